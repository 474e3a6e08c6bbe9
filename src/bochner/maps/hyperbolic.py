"""Exponentials of both signs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..kernels import Kernel
from .draws import Draws
from .exponential import ExponentialMap
from .features import Features
from .positive import Positive
from .statistics import Data


@dataclass(frozen=True)
class Hyperbolic(ExponentialMap):
    r"""The ++ features of HRF: exponentials at w and at -w, two a projection.

    Notes
    -----
    .. math:: \phi(x) = (2m)^{-1/2} \left[e^{w_i\cdot x}\right]_i, \left[e^{-w_i\cdot x}\right]_i \; e^{-c|x|^2},

    whose products are hyperbolic cosines, :math:`e^{-(|x|^2+|y|^2)/2}\,\frac1m\sum_i\cosh(w_i\cdot(x+y))` for softmax
    (HRF Eq. 3).  Unbiased; exact at x = -y.  Variance with independent rows:
    :math:`\frac{1}{2m} e^{|x+y|^2}\mathrm{SM}^2(1-e^{-|x+y|^2})^2` (HRF Lemma 2.2, m counting projections), below that of
    `Positive` at equal width.

    References
    ----------
    hrf (Eq. 3, Lemma 2.2).

    Examples
    --------
    >>> from bochner import Approximation, kernels, maps
    >>> Approximation(kernels.Softmax(), maps.Hyperbolic(), n_projections=8).draw(3, rng=0).n_features_out
    16
    """

    always_positive: ClassVar[bool] = True
    references: ClassVar[tuple[str, ...]] = ("hrf",)

    def draw(self, draws: Draws, kernel: Kernel | None, data: Data | None) -> Features:
        """`Positive` with antithetic pairs."""
        return Positive(antithetic=True).draw(draws, kernel, data)
