"""Hybrids with Gaussian coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from .._validation import check_count, check_flag, check_instance, check_positive, shown
from ..kernels import Kernel
from ..projections import Projection
from ._classical import Hyperbolic, Trigonometric
from ._complex import ComplexExponential
from ._data import Data
from ._drawing import Draws
from ._error import ErrorCase
from ._features import Features, as_tuple
from ._hybrid import Hybrid, HybridMap
from ._map import Layout, Map
from .coefficients import GaussianCoefficient, NormalizedGaussianCoefficient


@dataclass(frozen=True)
class GaussianHybrid(HybridMap):
    r"""Gaussian hybrid features: exact at x = y, or around chosen relations x = -M_k y.

    Use it for softmax where points near each other, or near a known relation, matter most.

    Parameters
    ----------
    n_coefficients : int
        Number n of projections of each coefficient.
    sigma : float, optional
        Inverse width of the bipolar coefficient; 1 by default.
    radius : float, optional
        Norm r at which that coefficient is normalised; chosen from the data by default.
    matrices : sequence of numbers, diagonals or symmetric matrices, optional
        The matrices M_k.
    width : float, optional
        The width c of the coefficients, only with ``matrices``; 1 by default.
    default : Map, optional
        Base that has the remaining weight, only with ``matrices``; `Hyperbolic` by default.
    shared : bool
        Whether all bases use the same W.

    Notes
    -----
    Without ``matrices`` (bipolar and normalised, HRF Section F): `Hyperbolic` with weight :math:`\hat\lambda` and
    `Trigonometric` with the rest, where :math:`\lambda = (1 - e^{-\sigma^2|x-y|^2/2})/(1 - e^{-2\sigma^2r^2})`; exact
    at x = y, 4 m (2n + 1) features.

    With ``matrices`` :math:`M_1, \dots, M_p` (HRF Eq. 20): the weights :math:`\lambda_k = e^{-|x + M_k y|^2/(2c^2)}`
    belong to bases whose variance is zero at :math:`x = -M_k y`, and the default base has the remaining weight.  Such a
    base is `ComplexExponential` with :math:`A_k^T A_k = M_k^{-1}`: M = 1 gives `Positive`, M = -1 gives
    `Trigonometric`.  The matrices must be symmetric.

    References
    ----------
    hrf (Eq. 20, Sections 2.4 and F).

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import Approximation, kernels, maps
    >>> spec = Approximation(kernels.Softmax(), maps.GaussianHybrid(4, radius=1.0), n_projections=8)
    >>> x = np.array([[0.3, -0.2, 0.5]])
    >>> bool(np.allclose(spec.draw(3, rng=0).gram(x, x), np.exp(x @ x.T)))
    True
    """

    n_coefficients: int = 8
    sigma: float | None = None
    radius: float | None = None
    matrices: tuple[Any, ...] | None = None
    width: float | None = None
    default: Map | None = None
    shared: bool = True
    name: ClassVar[str] = "gaussian-hybrid"
    formula: ClassVar[str] = r"\sum_k\hat\lambda_k\,\hat k_k, \lambda_k\text{ Gaussian}"

    def __post_init__(self) -> None:
        n = check_count("GaussianHybrid", "n_coefficients", self.n_coefficients)
        object.__setattr__(self, "n_coefficients", n)
        check_flag("GaussianHybrid", "shared", self.shared)
        for name in ("sigma", "radius", "width"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, check_positive("GaussianHybrid", name, getattr(self, name)))
        if self.default is not None:
            check_instance("GaussianHybrid", "default", self.default, Map, "Hyperbolic()")
        useless = ("width", "default") if self.matrices is None else ("sigma", "radius")
        for name in useless:
            if getattr(self, name) is not None:
                how = "needs matrices" if self.matrices is None else "belongs to the bipolar hybrid, without matrices"
                raise ValueError(f"GaussianHybrid: {name} {how}; leave one of them out.")
        if self.matrices is not None:
            object.__setattr__(self, "matrices", _symmetric(self.matrices))
        self._hybrid()

    def serves(self, kernel: Kernel | None) -> bool:
        return self._hybrid().serves(kernel)

    @property
    def planned(self) -> bool:
        return self._hybrid().planned

    @property
    def remedy_without_data(self) -> str:
        return (
            "call fit(X, Y) with data, or give a radius" if self.default is None else self.default.remedy_without_data
        )

    def plan(self, data: Data, projection: Projection, kernel: Kernel | None, rng: np.random.Generator, m: int) -> Map:
        if self.matrices is not None:
            default = None if self.default is None else self.default.plan(data, projection, kernel, rng, m)
            return replace(self, default=default)
        coefficient = self._bipolar().plan(data, rng)
        assert isinstance(coefficient, NormalizedGaussianCoefficient)
        return replace(self, radius=coefficient.radius)

    def layout(self, projection: Projection) -> Layout:
        return self._hybrid().layout(projection)

    def draw(self, draws: Draws, kernel: Kernel | None) -> Features:
        return self._hybrid().draw(draws, kernel)

    def mse(self, case: ErrorCase) -> np.ndarray:
        """Error of HRF Theorem F.1, with the covariances of shared and coupled rows."""
        return self._hybrid().mse(case)

    def _bipolar(self) -> NormalizedGaussianCoefficient:
        return NormalizedGaussianCoefficient(self.sigma or 1.0, self.radius, self.n_coefficients)

    def _hybrid(self) -> Hybrid:
        n = self.n_coefficients
        if self.matrices is None:
            return Hybrid((Hyperbolic(), Trigonometric()), (self._bipolar(),), self.shared)
        c = self.width or 1.0
        arrays = [np.asarray(M, dtype=np.float64) for M in self.matrices]
        bases = [ComplexExponential(as_tuple(_root_of_inverse(M))) for M in arrays]
        coefficients = [GaussianCoefficient(1 / c, as_tuple(-M / c), n) for M in arrays]
        return Hybrid((*bases, self.default or Hyperbolic()), tuple(coefficients), self.shared)


def _symmetric(matrices: Any) -> tuple[Any, ...]:
    if not isinstance(matrices, Sequence) or isinstance(matrices, str) or not len(matrices):
        raise TypeError(f"GaussianHybrid: matrices must be a list of at least one, such as [M], got {shown(matrices)}.")
    sentence = "GaussianHybrid: matrices must be finite real numbers, diagonals or symmetric matrices"
    try:
        arrays = [np.asarray(M, dtype=np.float64) for M in matrices]
    except (TypeError, ValueError):
        raise TypeError(f"{sentence}, got {shown(matrices)}.") from None
    for M in arrays:
        square = M.ndim < 2 or (M.ndim == 2 and M.shape[0] == M.shape[1] and np.allclose(M, M.T))
        if not (square and np.isfinite(M).all()):
            raise ValueError(f"{sentence}, got one of shape {M.shape}.")
    return tuple(as_tuple(M) for M in arrays)


def _root_of_inverse(M: np.ndarray) -> np.ndarray:
    """Return A with A^T A = M^{-1}, which is complex if M has negative entries."""
    if M.ndim < 2:
        if not M.all():
            raise ValueError("GaussianHybrid: matrices must be invertible.")
        return np.asarray(1 / np.sqrt(M.astype(np.complex128)))
    values, vectors = np.linalg.eigh(M)
    if not np.abs(values).min() > 1e-12 * np.abs(values).max():
        raise ValueError("GaussianHybrid: matrices must be invertible.")
    root: np.ndarray = (vectors / np.sqrt(values.astype(np.complex128))) @ vectors.T
    return root
