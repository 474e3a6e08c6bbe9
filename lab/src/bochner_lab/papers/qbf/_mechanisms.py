"""The methods and data of QBF's experiments."""

from __future__ import annotations

import numpy as np

from bochner import catalogue
from bochner.approximation import Approximation
from bochner.extending import Kernel
from bochner.kernels import ArcCosine, Gaussian

from ..._experiment import dataset

METHODS = {"G": "rff", "Gort": "orf", "ROM": "rom", "QMC": "qmc", "GQ": "gq", "B": "qbf-b"}
DATA = {"Powerplant": "ccpp", "LETTER": "letter", "USPS": "usps", "MNIST": "mnist", "LEUKEMIA": "leukemia"}
KERNELS = ("gaussian", "arc-cosine-0", "arc-cosine-1")
LARGE = 1000
"""Above this dimension the paper leaves out QMC and GQ; here Gort too, whose exact rotations take minutes."""


def methods_for(d: int) -> tuple[str, ...]:
    """Methods that are run in d dimensions."""
    return tuple(METHODS) if d < LARGE else ("G", "ROM", "B")


def kernel_of(name: str, d: int) -> Kernel:
    """The Gaussian with the paper's gamma = 1/d, or an arc-cosine kernel."""
    return Gaussian(np.sqrt(d / 2)) if name == "gaussian" else ArcCosine(int(name[-1]))


def specification(method: str, kernel: Kernel, d: int, n: int) -> Approximation:
    """A method at the width of n rules, D = n (2 (d + 1) + 1)."""
    rows = catalogue.mechanism(METHODS[method]).projection
    return Approximation(kernel, projection=rows, n_projections=1).with_width(n * (2 * (d + 1) + 1))


def points(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Standardised columns, without constant ones, and the target."""
    loaded = dataset(DATA[name])
    X = np.asarray(loaded.X, dtype=np.float32)
    deviation = X.std(0)
    return ((X - X.mean(0)) / np.where(deviation > 0, deviation, 1.0)), loaded.y
