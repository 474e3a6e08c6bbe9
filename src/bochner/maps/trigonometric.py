"""Cosines and sines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..kernels import Kernel, Softmax
from .base import Map
from .draws import Draws
from .exponential import ExponentialFeatures, norm_coefficient
from .features import Features
from .nodes import Nodes
from .statistics import Data


@dataclass(frozen=True)
class Trigonometric(Map):
    r"""Trigonometric features: all cosines, then all sines; m projections give 2m features.

    Notes
    -----
    For a shift-invariant kernel with rows w of its spectral law (Bochner's theorem),

    .. math:: \phi(x) = m^{-1/2} [\cos(w_i\cdot x)]_i, [\sin(w_i\cdot x)]_i, \qquad
              \phi(x)\cdot\phi(y) = \tfrac1m \sum_i \cos(w_i\cdot(x-y)),

    and for the softmax kernel :math:`e^{|x|^2/2}` times that (HRF Eq. 2).  Unbiased for any law of rows with the right
    marginals; exact at x = y.  Variance with independent rows, Gaussian kernel: :math:`(1-k^2)^2/(2m)` (CRT Theorem
    3.2 with A = 0, s = -1).  The pair of cosine and sine has a lower variance than a single cosine with a random offset at
    the same width.

    References
    ----------
    rahimi2007, hrf (Eq. 2), crt (Section 3).

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import Approximation, kernels, maps
    >>> phi = Approximation(kernels.Gaussian(), maps.Trigonometric(), n_projections=8).draw(3, rng=0)
    >>> bool(np.allclose(phi.gram(np.ones((1, 3))), 1))
    True
    """

    requirement: ClassVar[str] = "a shift-invariant or softmax kernel, since it is a mean of cosines of differences"
    references: ClassVar[tuple[str, ...]] = ("rahimi2007", "hrf", "crt")

    def serves(self, kernel: Kernel | None) -> bool:
        """Shift-invariant kernels, and softmax."""
        return kernel is not None and (kernel.shift_invariant or isinstance(kernel, Softmax))

    def draw(self, draws: Draws, kernel: Kernel | None, data: Data | None) -> Features:
        """Cosines are even, so nodes need no reflection."""
        return ExponentialFeatures(Nodes(draws.operator(), reflect=False), 0, -1, norm_coefficient(kernel, 0.0))
