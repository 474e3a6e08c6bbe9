"""The linear equations of a regression on features, solved stably, and their eigenvectors."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg

from ...linalg.cholesky import Cholesky, room_for_triangle, symmetric_product
from ...linalg.engine import blas_for
from .moments import Moments, units_of

_EPS = float(np.finfo(np.float64).eps)
_NEGATIVE = 1e-14  # tolerance, relative to sum(y**2), below which a negative residual counts as zero
_COPIED = 256  # rows that are copied at a time


class Scaling(NamedTuple):
    """What is subtracted from targets, and what they are divided by, (t,) each."""

    shift: np.ndarray
    scale: np.ndarray

    @classmethod
    def of(cls, mean: np.ndarray, variance: np.ndarray, *, center: bool, normalize: bool) -> Scaling:
        """The mean, if targets are centred, and the size of what is left, if they are normalised.

        A target whose deviations are within rounding error keeps its unit.
        """
        shift = mean.copy() if center else np.zeros(len(mean))
        spread, rounding = np.sqrt(variance + (mean - shift) ** 2), 10 * _EPS * np.abs(mean)
        return cls(shift, np.where(normalize & (spread > rounding), spread, 1.0))

    @classmethod
    def of_rows(cls, Y: np.ndarray, weights: np.ndarray | None, *, center: bool, normalize: bool) -> Scaling:
        """Scaling of targets (n, t) with weights (n,) or each one."""
        mean = np.average(Y, axis=0, weights=weights)
        variance = np.average((Y - mean) ** 2, axis=0, weights=weights)
        return cls.of(mean, variance, center=center, normalize=normalize)

    def apply(self, Y: np.ndarray) -> np.ndarray:
        """Targets without their units."""
        return np.asarray((Y - self.shift) / self.scale)


class Solved(NamedTuple):
    """Coefficients (D, t), and how many of the directions that the data could have were lost in rounding."""

    coefficients: np.ndarray
    lost: int = 0


@dataclass(frozen=True)
class Equations(ABC):
    r"""Minimise :math:`\sum_i w_i|y_i - \phi_i^TB|^2 + \alpha|B|^2`, over features and targets about their means or zero."""

    weight: float  # sum of weights: the number of rows, where there are none
    units: float  # observations that the rows count as, see `Moments`
    cross: np.ndarray  # (D, t): C, products of features and targets
    total: np.ndarray  # (t,): T, squares of the targets
    n_means: int  # one if the means were taken out, zero otherwise: degrees of freedom of the intercept
    rounding: float  # relative rounding error of the features

    @property
    @abstractmethod
    def trace(self) -> float:
        """Sum of the eigenvalues of S."""

    @property
    @abstractmethod
    def order(self) -> int:
        """Order of the matrix that is factored."""

    @abstractmethod
    def cholesky(self, alpha: float) -> np.ndarray:
        """Coefficients B (D, t) for one alpha."""

    @abstractmethod
    def eigenvectors(self) -> tuple[np.ndarray, np.ndarray]:
        """Ascending eigenvalues of S and their vectors, as columns."""

    @property
    def floor(self) -> float:
        """Bound below which an eigenvalue, or an alpha, is within rounding error."""
        return self.order * _EPS * self.trace

    def spectrum(self) -> Spectrum:
        """Decompose S once; eigenvalues within rounding error are set to zero, and nothing is fitted there."""
        with blas_for(self.order):
            values, V = self.eigenvectors()
            known = values > max(values[-1], 0) * len(values) * _EPS
            z = np.where(known[:, None], V.T @ self.cross, 0.0)
        return Spectrum(np.where(known, values, 0.0), V, z, self)

    def solve(self, alpha: Any) -> Solved:
        """Fit of one alpha, or one for each target: by Cholesky where one factorisation will do."""
        alphas = np.unique(alpha)
        if len(alphas) == 1 and alphas[0] > self.floor:
            with blas_for(self.order), contextlib.suppress(linalg.LinAlgError):  # rounding made S indefinite
                return Solved(self.cholesky(float(alphas[0])))
        spectrum = self.spectrum()
        return spectrum.within_rounding(alpha) if alphas[0] <= self.floor else Solved(spectrum.coefficients(alpha))


@dataclass(frozen=True)
class NormalEquations(Equations):
    """Given S, (D, D), on and above the diagonal; what is below it means nothing."""

    gram: np.ndarray

    @classmethod
    def of(cls, moments: Moments, *, about_mean: bool, scaling: Scaling | None = None) -> NormalEquations:
        """Equations from moments: features about their mean or zero, and targets likewise, or as they are scaled."""
        S, C, T = moments.upper, moments.cross, moments.target_scatter
        phi, w = moments.feature_mean, moments.weight
        if not about_mean:
            gap = moments.target_mean - (0 if scaling is None else scaling.shift)
            S = S + w * np.outer(phi, phi)
            C, T = C + w * np.outer(phi, gap), T + w * gap**2
        if scaling is not None:
            C, T = C / scaling.scale, T / scaling.scale**2
        return cls(w, moments.units, C, T, int(about_mean), moments.rounding, S)

    @property
    def trace(self) -> float:
        """Trace of the matrix."""
        return float(np.trace(self.gram))

    @property
    def order(self) -> int:
        """D."""
        return len(self.gram)

    def cholesky(self, alpha: float) -> np.ndarray:
        """(S + alpha) B = C."""
        return Cholesky.of(plus(self.gram, alpha), overwrite=True).solve(self.cross)

    def eigenvectors(self) -> tuple[np.ndarray, np.ndarray]:
        """Eigenvectors by a decomposition of S."""
        values, vectors = linalg.eigh(self.gram.T, check_finite=False)  # of which the lower triangle is read
        return values, vectors


@dataclass(frozen=True)
class RowEquations(Equations):
    """Given features F (n, D) and targets Z (n, t), times roots of weights, with fewer rows than columns."""

    rows: np.ndarray
    targets: np.ndarray

    @classmethod
    def of(
        cls, rows: np.ndarray, Y: np.ndarray, weights: np.ndarray | None = None, *, about_mean: bool, rounding: float
    ) -> RowEquations:
        """Equations from rows and targets in float64, about their means if there is an intercept."""
        w = np.ones(len(rows)) if weights is None else weights
        root = np.sqrt(w)[:, None]
        F, Z = (rows, Y) if weights is None else (root * rows, root * Y)
        sums = float(w.sum()), units_of(w), F.T @ Z, (Z**2).sum(axis=0)
        return cls(*sums, int(about_mean), rounding, F, Z)

    @cached_property
    def gram(self) -> np.ndarray:
        """Products of the rows with each other, (n, n)."""
        return symmetric_product(self.rows)

    @property
    def trace(self) -> float:
        """Trace of the rows' Gram matrix, which has the same eigenvalues."""
        return float(np.vdot(self.rows, self.rows))

    @property
    def order(self) -> int:
        """Number of rows n."""
        return len(self.rows)

    def cholesky(self, alpha: float) -> np.ndarray:
        r""":math:`B = F^T(FF^T + \alpha)^{-1}Z`."""
        return np.asarray(self.rows.T @ Cholesky.of(plus(self.gram, alpha), overwrite=True).solve(self.targets))

    def eigenvectors(self) -> tuple[np.ndarray, np.ndarray]:
        r"""Eigenvectors from the Gram matrix, :math:`FF^T = U\Lambda U^T` and :math:`V = F^TU\Lambda^{-1/2}`."""
        values, U = linalg.eigh(self.gram, check_finite=False)
        known = values > max(values[-1], 0) * len(values) * _EPS
        return values, self.rows.T @ (U * np.where(known, 1 / np.sqrt(np.where(known, values, 1.0)), 0.0))


@dataclass(frozen=True)
class Spectrum:
    r"""The equations in the eigenvectors of :math:`S = V\Lambda V^T`: fits of every alpha from one decomposition.

    With :math:`z = V^TC`, coefficients are :math:`V z/(\lambda+\alpha)`; the residual sum of squares is
    :math:`T - \sum z^2(\lambda+2\alpha)/(\lambda+\alpha)^2`, and the fit has :math:`\sum\lambda/(\lambda+\alpha)`
    degrees of freedom.
    """

    values: np.ndarray  # (r,): eigenvalues in ascending order; zero if they are within rounding error
    vectors: np.ndarray  # (D, r)
    z: np.ndarray  # (r, t): zero where the eigenvalue is
    equations: Equations

    def coefficients(self, alpha: Any, least: float = 0.0) -> np.ndarray:
        """B (D, t), for one alpha or one for each target, from eigenvalues above ``least``."""
        known = self.values > least
        shifted = self.values[known, None] + np.atleast_1d(alpha)[None, :]
        return np.asarray(self.vectors[:, known] @ (self.z[known] / shifted))

    def within_rounding(self, alpha: Any) -> Solved:
        """The minimum-norm fit, for an alpha within rounding error.

        Directions in which the features are within rounding error are left out: their coefficients would be large, and
        would amplify the rounding errors of new rows.
        """
        least = self.values[-1] * self.equations.rounding if len(self.values) else 0.0
        rank = int(np.count_nonzero(self.values > least))
        could = min(len(self.vectors), int(self.equations.units) - self.equations.n_means)
        return Solved(self.coefficients(alpha, least), max(could - rank, 0))


def plus(matrix: np.ndarray, alpha: float, dtype: np.dtype | None = None) -> np.ndarray:
    """A copy of the matrix on and above its diagonal, to which alpha is added; what is below it means nothing."""
    shifted = room_for_triangle(len(matrix), matrix.dtype if dtype is None else dtype)
    for i in range(0, len(matrix), _COPIED):
        shifted[i : i + _COPIED, i:] = matrix[i : i + _COPIED, i:]
    shifted.flat[:: len(matrix) + 1] += alpha
    return shifted


def gcv(spectrum: Spectrum, alpha: float) -> float:
    r"""Generalised cross-validation :math:`n\,\mathrm{RSS}/(n-\mathrm{df})^2`, summed over targets; n counts units.

    Infinite where it is not known: no freedom is left, or the residual sum of squares is lost in rounding.
    """
    equations = spectrum.equations
    n, shifted = equations.units, spectrum.values[:, None] + alpha
    residual = equations.total - (spectrum.z**2 * (shifted + alpha) / shifted**2).sum(axis=0)
    free = n - (spectrum.values / shifted[:, 0]).sum() - equations.n_means
    if free <= 1e-8 * n or (residual < -_NEGATIVE * equations.total).any():
        return np.inf
    return float(n * residual.sum() / free**2)


def best_alpha(alphas: np.ndarray, scores: np.ndarray) -> float:
    """The alpha of the lowest score; the largest one, where rounding left none."""
    return float(alphas[np.argmin(scores)] if np.isfinite(scores).any() else alphas.max())
