"""The hybrid that is exact at both ends of the angle."""

from __future__ import annotations

from dataclasses import dataclass

from .._validation import check_count, check_flag
from ..kernels import Kernel
from .coefficients import AngularCoefficient
from .draws import Draws
from .features import Features
from .hybrid import Hybrid, HybridMap
from .hyperbolic import Hyperbolic
from .statistics import Data
from .trigonometric import Trigonometric


@dataclass(frozen=True)
class AngularHybrid(HybridMap):
    r"""Angular hybrid features (HRF Section 3): `Hyperbolic` for large angles, `Trigonometric` for small ones.

    Notes
    -----
    :math:`\hat\lambda\,\mathrm{SM}^{++} + (1-\hat\lambda)\,\mathrm{SM}^{trig}` with :math:`\hat\lambda` an estimate of
    :math:`\theta/\pi` by n signs.  Zero variance at angles 0 and :math:`\pi` for equal norms; 4 m (n + 1) features.  Error:
    :math:`E\hat\lambda^2\,\mathrm{MSE}^{++} + E(1-\hat\lambda)^2\,\mathrm{MSE}^{trig}` (HRF Theorem 3.1), plus
    :math:`2E\hat\lambda(1-\hat\lambda)\,\mathrm{Cov} \le 0` with shared projections and different norms.

    Parameters
    ----------
    n_coefficients : int
        Number n of sign projections.
    shared : bool
        Whether both bases use the same W.

    References
    ----------
    hrf (Eq. 19, Theorem 3.1).

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import Approximation, kernels, maps
    >>> phi = Approximation(kernels.Softmax(), maps.AngularHybrid(4), n_projections=8).draw(3, rng=0)
    >>> x = np.array([[0.3, -0.2, 0.5]])
    >>> bool(np.allclose(phi.gram(x, x), np.exp(x @ x.T)) and np.allclose(phi.gram(x, -x), np.exp(-x @ x.T)))
    True
    """

    n_coefficients: int = 8
    shared: bool = True

    def __post_init__(self) -> None:
        n = check_count("AngularHybrid", "n_coefficients", self.n_coefficients)
        object.__setattr__(self, "n_coefficients", n)
        check_flag("AngularHybrid", "shared", self.shared)

    def draw(self, draws: Draws, kernel: Kernel | None, data: Data | None) -> Features:
        """As a general hybrid."""
        hybrid = Hybrid((Hyperbolic(), Trigonometric()), (AngularCoefficient(self.n_coefficients),), self.shared)
        return hybrid.draw(draws, kernel, data)
