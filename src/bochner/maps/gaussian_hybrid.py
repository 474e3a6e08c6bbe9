"""Hybrids with Gaussian coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._validation import check_count, check_flag, check_instance, check_positive
from ..kernels import Kernel
from .base import Map
from .coefficients import GaussianCoefficient, NormalizedGaussianCoefficient
from .complex_exponential import ComplexExponential
from .draws import Draws
from .features import Features
from .hybrid import Hybrid, HybridMap
from .hyperbolic import Hyperbolic
from .linear import as_tuple
from .statistics import Data
from .trigonometric import Trigonometric


@dataclass(frozen=True)
class GaussianHybrid(HybridMap):
    r"""Gaussian hybrid features: bipolar and normalised (HRF Section F), or around chosen relations x = -M_k y (Eq. 20).

    Notes
    -----
    Without ``matrices``: `Hyperbolic` with weight :math:`\hat\lambda` and `Trigonometric` with the rest, where
    :math:`\lambda = (1 - e^{-\sigma^2|x-y|^2/2})/(1 - e^{-2\sigma^2r^2})`; exact at x = y, 4 m (2n + 1) features.

    With ``matrices`` :math:`M_1, \dots, M_p`: weights :math:`\lambda_k = e^{-|x + M_k y|^2/(2c^2)}` for bases that have
    no variance where :math:`x = -M_k y`, and the rest for a default base.  Such a base is `ComplexExponential` with
    :math:`A_k^T A_k = M_k^{-1}`: M = 1 gives `Positive`, M = -1 `Trigonometric`.  Matrices are symmetric.

    Parameters
    ----------
    n_coefficients : int
        Number n of projections of each coefficient.
    sigma : float, optional
        Inverse width of the bipolar coefficient (1 without it).
    radius : float, optional
        Norm r at which that coefficient is normalised; from the data without it.
    matrices : sequence of numbers, diagonals or symmetric matrices, optional
        M_k.
    width : float, optional
        c, with ``matrices`` (1 without it).
    default : Map, optional
        Base of the remaining weight, with ``matrices`` (`Hyperbolic` without it).
    shared : bool
        Whether all bases use the same W.

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
        """As the hybrid it stands for."""
        return self._hybrid().serves(kernel)

    @property
    def needs_data(self) -> bool:
        """For the radius, or as the default base does."""
        return self._hybrid().needs_data

    @property
    def remedy_without_data(self) -> str:
        """A number for the radius, or what the default base needs."""
        return (
            "call fit(X, Y) with data, or give a radius" if self.default is None else self.default.remedy_without_data
        )

    def draw(self, draws: Draws, kernel: Kernel | None, data: Data | None) -> Features:
        """As a general hybrid."""
        return self._hybrid().draw(draws, kernel, data)

    def _hybrid(self) -> Hybrid:
        n = self.n_coefficients
        if self.matrices is None:
            coefficient = NormalizedGaussianCoefficient(self.sigma or 1.0, self.radius, n)
            return Hybrid((Hyperbolic(), Trigonometric()), (coefficient,), self.shared)
        c = self.width or 1.0
        arrays = [np.asarray(M, dtype=np.float64) for M in self.matrices]
        bases = [ComplexExponential(as_tuple(_root_of_inverse(M))) for M in arrays]
        coefficients = [GaussianCoefficient(1 / c, as_tuple(-M / c), n) for M in arrays]
        return Hybrid((*bases, self.default or Hyperbolic()), tuple(coefficients), self.shared)


def _symmetric(matrices: Any) -> tuple[Any, ...]:
    if not isinstance(matrices, Sequence) or isinstance(matrices, str) or not len(matrices):
        raise TypeError(f"GaussianHybrid: matrices must be a list of at least one, such as [M], got {matrices!r}.")
    sentence = "GaussianHybrid: matrices must be finite real numbers, diagonals or symmetric matrices"
    try:
        arrays = [np.asarray(M, dtype=np.float64) for M in matrices]
    except (TypeError, ValueError):
        raise TypeError(f"{sentence}, got {matrices!r}.") from None
    for M in arrays:
        square = M.ndim < 2 or (M.ndim == 2 and M.shape[0] == M.shape[1] and np.allclose(M, M.T))
        if not (square and np.isfinite(M).all()):
            raise ValueError(f"{sentence}, got one of shape {M.shape}.")
    return tuple(as_tuple(M) for M in arrays)


def _root_of_inverse(M: np.ndarray) -> np.ndarray:
    """A with A^T A = M^{-1}: complex where M is negative."""
    if M.ndim < 2:
        if not M.all():
            raise ValueError("GaussianHybrid: matrices must be invertible.")
        return np.asarray(1 / np.sqrt(M.astype(np.complex128)))
    values, vectors = np.linalg.eigh(M)
    if not np.abs(values).min() > 1e-12 * np.abs(values).max():
        raise ValueError("GaussianHybrid: matrices must be invertible.")
    root: np.ndarray = (vectors / np.sqrt(values.astype(np.complex128))) @ vectors.T
    return root
