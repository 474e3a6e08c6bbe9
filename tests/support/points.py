"""Points of the golden values."""

from __future__ import annotations

import numpy as np

from bochner import theory

X = np.array([0.5, -0.3, 0.2, 0.4])
Y = np.array([0.1, 0.45, -0.25, 0.3])
XD = np.array([0.7, -0.5, 0.0, 0.9])
YD = np.array([-0.4, -0.8, 0.6, 0.5])
XS = np.array([0.3, 0.1, -0.2, 0.4])
YS = np.array([0.2, -0.1, 0.1, 0.3])
PAIR, PAIR_S = theory.Pairs.of(X, Y), theory.Pairs.of(XS, YS)
SOFTMAX2, GAUSSIAN2 = np.exp(2 * PAIR.log_softmax), np.exp(2 * PAIR.log_gaussian)
DIAGONAL = np.array([1.1 + 0.3j, 0.2 + 0.9j, 0.8 - 0.4j, -0.3 + 1.1j])
for array in (X, Y, XD, YD, XS, YS, DIAGONAL):
    array.flags.writeable = False

# squared distances from none to far beyond where exp overflows; |x + y| = 30 and more
SPREAD = np.array([0.0, 1e-12, 1e-6, 0.01, 0.5, 1.0, 1.001, 4.0, 29.9, 30.1, 200.0, 900.0, 4000.0])
