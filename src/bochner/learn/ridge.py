"""Ridge regression from sufficient statistics (primal) or from the features themselves (dual), in closed form."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from .statistics import RegressionStatistics, units_of

_ROUNDING = 1e-14
"""Of the squares of the targets: a residual of minus so much may be that of a perfect fit."""


@dataclass(frozen=True)
class Problem(ABC):
    r"""Minimise :math:`\sum_i w_i|y_i - \phi_i^TB|^2 + \alpha|B|^2`, over features and targets about their means or zero.

    Attributes
    ----------
    weight : float
        Sum of weights: the number of rows, where there are none.
    units : float
        Observations that the rows count as, see `RegressionStatistics`.
    cross : array (D, t)
        C, products of features and targets.
    total : array (t,)
        T, squares of the targets.
    n_means : int
        One if the means were taken out, zero otherwise: degrees of freedom of the intercept.
    """

    weight: float
    units: float
    cross: np.ndarray
    total: np.ndarray
    n_means: int

    @abstractmethod
    def cholesky(self, alpha: float) -> np.ndarray:
        """Coefficients B (D, t) for one strength."""

    @abstractmethod
    def eigenvectors(self) -> tuple[np.ndarray, np.ndarray]:
        """Positive eigenvalues of S and their vectors, as columns."""

    def coefficients(self, alpha: Any) -> np.ndarray:
        """B (D, t) for a strength, or one for each target: by Cholesky where one factorisation will do."""
        strengths = np.unique(alpha)
        if len(strengths) == 1 and strengths[0] > 0:
            try:
                return self.cholesky(float(strengths[0]))
            except linalg.LinAlgError:  # rounding made S indefinite, by more than alpha
                pass
        return Spectrum.of(self).coefficients(alpha)


@dataclass(frozen=True)
class Primal(Problem):
    """Given S, (D, D)."""

    scatter: np.ndarray

    @classmethod
    def of(cls, statistics: RegressionStatistics, *, intercept: bool) -> Primal:
        """From statistics."""
        S, C, T = statistics.moments(centred=intercept)
        return cls(statistics.weight, statistics.units, C, T, int(intercept), S)

    def cholesky(self, alpha: float) -> np.ndarray:
        """(S + alpha) B = C."""
        return np.asarray(linalg.solve(_plus(self.scatter, alpha), self.cross, assume_a="pos", overwrite_a=True))

    def eigenvectors(self) -> tuple[np.ndarray, np.ndarray]:
        """By a decomposition of S."""
        values, vectors = linalg.eigh(self.scatter, check_finite=False)
        keep = _positive(values)
        return values[keep], vectors[:, keep]


@dataclass(frozen=True)
class Dual(Problem):
    """Given features F (n, D) and targets Z (n, t), times roots of weights, with fewer rows than columns."""

    rows: np.ndarray
    targets: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray, Y: np.ndarray, weights: np.ndarray, *, intercept: bool) -> Dual:
        """From rows and targets about their means, if there is an intercept."""
        root = np.sqrt(weights)[:, None]
        F, Z = root * rows, root * Y
        return cls(float(weights.sum()), units_of(weights), F.T @ Z, (Z**2).sum(axis=0), int(intercept), F, Z)

    def cholesky(self, alpha: float) -> np.ndarray:
        r""":math:`B = F^T(FF^T + \alpha)^{-1}Z`."""
        K = _plus(self.rows @ self.rows.T, alpha)
        return np.asarray(self.rows.T @ linalg.solve(K, self.targets, assume_a="pos", overwrite_a=True))

    def eigenvectors(self) -> tuple[np.ndarray, np.ndarray]:
        r"""By a decomposition of the Gram matrix, :math:`FF^T = U\Lambda U^T` and :math:`V = F^TU\Lambda^{-1/2}`."""
        values, U = linalg.eigh(self.rows @ self.rows.T, check_finite=False)
        keep = _positive(values)
        return values[keep], self.rows.T @ (U[:, keep] / np.sqrt(values[keep]))


@dataclass(frozen=True)
class Spectrum:
    r"""The problem in the eigenvectors of :math:`S = V\Lambda V^T`: fits of every strength from one decomposition.

    With :math:`z = V^TC`, coefficients are :math:`V z/(\lambda+\alpha)`; the residual sum of squares is
    :math:`T - \sum z^2(\lambda+2\alpha)/(\lambda+\alpha)^2`, and the fit has :math:`\sum\lambda/(\lambda+\alpha)` degrees
    of freedom.
    """

    eigenvalues: np.ndarray
    basis: np.ndarray
    z: np.ndarray
    problem: Problem

    @classmethod
    def of(cls, problem: Problem) -> Spectrum:
        """By one decomposition."""
        values, V = problem.eigenvectors()
        return cls(values, V, V.T @ problem.cross, problem)

    def coefficients(self, alpha: Any) -> np.ndarray:
        """B (D, t), for one strength or one for each target."""
        return np.asarray(self.basis @ (self.z / (self.eigenvalues[:, None] + np.atleast_1d(alpha)[None, :])))

    def gcv(self, alpha: float) -> float:
        r"""Generalised cross-validation :math:`n\,\mathrm{RSS}/(n-\mathrm{df})^2`, summed over targets; n counts units.

        Infinite where it is not known: no freedom is left, or the residual sum of squares is lost in rounding.
        """
        n = self.problem.units
        shifted = self.eigenvalues[:, None] + alpha
        residual = self.problem.total - (self.z**2 * (shifted + alpha) / shifted**2).sum(axis=0)
        free = n - (self.eigenvalues / shifted[:, 0]).sum() - self.problem.n_means
        if free <= 1e-8 * n or (residual < -_ROUNDING * self.problem.total).any():
            return np.inf
        return float(n * residual.sum() / free**2)

    def left_out(self, alphas: np.ndarray, rows: np.ndarray, Y: np.ndarray, weights: np.ndarray) -> np.ndarray:
        r"""Squared errors :math:`\sum_i w_i(e_i/(1-h_i))^2` of rows, each left out of its own fit.

        A weight above one counts as repetitions, of which one is left out at a time; a row of less is left out whole, so
        that weights of any size, such as those that add up to one, make sense.  A row that alone decides its own fit
        leaves no error to know: the sum is infinite.

        Parameters
        ----------
        alphas : array (a,)
        rows, Y : arrays (n, D) and (n, t), about the means if there is an intercept
        weights : array (n,)

        Returns
        -------
        array (a,)
        """
        P = rows @ self.basis
        squares, errors, left = P**2, [], np.minimum(weights, 1)
        for alpha in alphas:
            shifted = self.eigenvalues + alpha
            leverage = left * (squares @ (1 / shifted) + self.problem.n_means / self.problem.weight)
            if leverage.max(initial=0.0) > 1 - 1e-12:
                errors.append(np.inf)
                continue
            gap = (Y - P @ (self.z / shifted[:, None])) / (1 - leverage)[:, None]
            errors.append(float((weights @ gap**2).sum()))
        return np.array(errors)


def _plus(matrix: np.ndarray, alpha: float) -> np.ndarray:
    shifted = matrix.copy()
    shifted.flat[:: len(matrix) + 1] += alpha
    return shifted


def _positive(values: np.ndarray) -> np.ndarray:
    """Which ascending eigenvalues stand out of rounding."""
    return np.asarray(values > max(values[-1], 0) * len(values) * np.finfo(np.float64).eps)
