r"""Leave-one-out errors of ridge regression in closed form, from features or from a Gram matrix.

A row that is left out has the error :math:`e_i/(1-h_i)`, with its residual and its leverage in the fit of all rows.  Rows
are left out whole, whatever their weight: equal rows are merged before, see `bochner.learn._row_source`, and a weight
stands for repetitions.  Unlike generalised cross-validation this uses the leverage of each row: an outlier that decides its
own fit counts with the error that it would have if it were new.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg
from scipy.linalg.blas import dsymm as symm

from ...approximation import FeatureMap
from ...linalg.cholesky import Cholesky
from ...linalg.engine import blas_for
from .._row_source import Chunk
from .moments import Moments
from .spectrum import Equations, NormalEquations, RowEquations, Spectrum, plus

STEP = math.sqrt(10)  # ratio of neighbouring values of alpha
LEAST, MOST = 1e-9, 1e4  # bounds of alpha, in units of the mean square of the features of a row
LEAST_NEW = 64  # fewest rows that must not be landmarks for landmarks to be ignored
_EPS = float(np.finfo(np.float64).eps)
_TIES = 0.1  # weight of the squared error of classes; breaks ties between equal error rates
_SINGLE = 100 * float(np.finfo(np.float32).eps)
"""Share of the trace from which alpha is far above the rounding errors of a factor in float32."""
_CANCELLED = 1e-8
"""Share of the squares of the targets below which those of the residuals are mostly rounding errors of their difference."""
_PIECE = 256  # rows whose leverages are computed at a time
_ONE = 1 - 1e-10  # a leverage above it leaves no error to know


def alpha_grid(square: float) -> np.ndarray:
    """Return the values of alpha to choose among: half decades, in units of the mean square of the features of a row."""
    if not math.isfinite(square):
        raise ValueError("The squares of the features overflow, so alpha cannot be chosen: rescale the columns.")
    unit = 10.0 ** round(math.log10(max(square, np.finfo(np.float64).tiny)))
    return unit * np.logspace(math.log10(LEAST), math.log10(MOST), 1 + round(math.log(MOST / LEAST, STEP)))


def grid_of(equations: Equations) -> np.ndarray:
    """Return `alpha_grid` for the features of these equations."""
    return alpha_grid(equations.trace / max(equations.units, 1.0))


def doubt(n: float) -> float:
    """Standard errors by which a difference must exceed zero to count: small samples shrink towards a smooth fit.

    Examples
    --------
    >>> doubt(10), round(doubt(400), 2)
    (1.0, 0.16)
    """
    return float(min(1.0, math.sqrt(10.0 / max(n, 1.0))))


class Judged(NamedTuple):
    """Rows on which fits are judged."""

    targets: np.ndarray  # (n, t): as they are
    weights: np.ndarray | None  # (n,)
    units: np.ndarray  # (t,): units of the errors: an error of one is that of predicting the mean
    classes: bool = False  # whether targets are signs of classes, which are judged by the wrong ones

    @classmethod
    def of(cls, Y: np.ndarray, weights: np.ndarray | None, *, classes: bool) -> Judged:
        """Rows with these targets, in units of their standard deviations; all classes have the same unit."""
        return cls(Y.astype(np.float64), weights, units_of(Y, weights, alike=classes), classes)

    def losses(self, gaps: np.ndarray) -> np.ndarray:
        """Losses (n, ...) of errors (n, ..., t): squares, after wrong classes where there are classes."""
        squares = np.asarray(((gaps / self.units) ** 2).mean(axis=-1))
        return self.wrong(gaps) + _TIES * squares if self.classes else squares

    def losses_of_a_constant(self) -> np.ndarray:
        """Losses (n,) of predicting the mean, which is the most frequent class where there are classes."""
        mean = self.mean(self.targets)
        squares = np.asarray((((self.targets - mean) / self.units) ** 2).mean(axis=-1))
        if not self.classes:
            return squares
        # the mean of balanced classes is zero but for rounding, of which y - (y - mean) makes another class in each row
        return wrong_classes(self.targets, np.broadcast_to(mean, self.targets.shape)) + _TIES * squares

    def wrong(self, gaps: np.ndarray) -> np.ndarray:
        """Wrong classes (n, ...) of errors (n, ..., t)."""
        actual = self.targets.reshape(len(gaps), *[1] * (gaps.ndim - 2), -1)
        return wrong_classes(actual, actual - gaps)

    def taken(self, which: Any) -> Judged:
        """The rows of a slice or of a mask."""
        return self._replace(targets=self.targets[which], weights=None if self.weights is None else self.weights[which])

    def mean(self, losses: np.ndarray) -> Any:
        """Weighted mean over rows of losses (n, ...)."""
        return losses.mean(axis=0) if self.weights is None else self.weights @ losses / self.weights.sum()

    def spread(self, losses: np.ndarray) -> Any:
        """Standard error of `mean`."""
        w = np.ones(len(losses)) if self.weights is None else self.weights
        return np.sqrt(w**2 @ (losses - self.mean(losses)) ** 2) / w.sum()


class Score(NamedTuple):
    """Error of one alpha: mean, standard error, and the loss of each row (n,).

    Losses are squared errors in units of the variance of the targets, so that predictions of the mean have one; for
    classes they are the wrong ones, and a tenth of the squares, which tells rules apart that err as often.
    """

    alpha: float
    error: float
    standard_error: float
    losses: np.ndarray

    @classmethod
    def best(cls, alphas: np.ndarray, losses: np.ndarray, judged: Judged) -> Score:
        """Best of several alpha by losses (n, a): the largest one that is not clearly worse than the lowest error."""
        bad = ~np.isfinite(losses).all(axis=0)
        if bad.all():
            return cls(float(alphas[-1]), np.inf, np.inf, np.full(len(losses), np.inf))
        losses = np.where(bad, np.inf, losses)
        errors = np.where(bad, np.inf, judged.mean(np.where(bad, 0.0, losses)))
        low = int(errors.argmin())
        close = [
            a
            for a in np.flatnonzero(~bad)
            if alphas[a] >= alphas[low]
            and errors[a] - errors[low] <= doubt(len(losses)) * judged.spread(losses[:, a] - losses[:, low]) / 4
        ]
        a = max(close, key=lambda k: alphas[k])
        return cls(float(alphas[a]), float(errors[a]), float(judged.spread(losses[:, a])), losses[:, a])


def wrong_classes(actual: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Which rows get a wrong class (n, ...), by signs (n, ..., t); for rows with several labels, the share of wrong ones.

    Rows that were merged have means of signs, and count by the share of those that are wrong.

    Examples
    --------
    >>> import numpy as np
    >>> wrong_classes(np.array([[1, -1, -1], [-1, 1, -1]]), np.array([[-0.1, -0.2, -0.3], [0.1, 0.2, 0.3]]))
    array([0., 1.])
    """
    member = (actual + 1) / 2
    if actual.shape[-1] > 1 and np.allclose(member.sum(axis=-1), 1):
        best = found.argmax(axis=-1)[..., None]
        return np.asarray(1 - np.take_along_axis(np.broadcast_to(member, found.shape), best, axis=-1)[..., 0])
    return np.asarray(np.where(found > 0, 1 - member, member).mean(axis=-1))


def units_of(Y: np.ndarray, weights: np.ndarray | None, *, alike: bool) -> np.ndarray:
    """Standard deviations of targets (t,); with ``alike`` the same for all, as for classes."""
    w = np.ones(len(Y)) if weights is None else weights
    Y = Y.astype(np.float64)
    mean = w @ Y / w.sum()
    variance = w @ (Y - mean) ** 2 / w.sum()
    variance = np.full_like(variance, variance.mean()) if alike else variance
    return np.sqrt(np.where(variance > (10 * _EPS * mean) ** 2, variance, 1.0))


class GramFit(NamedTuple):
    r"""Kernel ridge regression for every alpha, by one decomposition of a Gram matrix K (n, n).

    With weights W and rows about their weighted mean, :math:`\sqrt W K_c\sqrt W = U\Lambda U^T`; coefficients are
    :math:`c = \sqrt W U(\Lambda+\alpha)^{-1}z` with :math:`z = U^T\sqrt W(y-\bar y)`, and they add up to zero.
    """

    values: np.ndarray  # (n,)
    vectors: np.ndarray
    z: np.ndarray  # (n, t)
    roots: np.ndarray  # (n,): square roots of the weights
    mean: np.ndarray  # (t,): intercept of the targets, or zero
    column_mean: np.ndarray  # (n,): mean of the rows of K, or zero
    intercept: bool

    @classmethod
    def of(cls, K: np.ndarray, Y: np.ndarray, weights: np.ndarray | None, *, intercept: bool) -> GramFit:
        """Decompose the Gram matrix of rows with targets (n, t)."""
        w = np.ones(len(K)) if weights is None else weights.astype(np.float64)
        K, Y, share, roots = K.astype(np.float64), Y.astype(np.float64), w / w.sum(), np.sqrt(w)
        mean, row = np.zeros(Y.shape[1]), np.zeros(len(K))
        if intercept:
            mean, row = share @ Y, share @ K
            K = K - row[None, :] - row[:, None] + float(share @ row)
        with blas_for(len(K)):
            values, U = linalg.eigh(roots[:, None] * K * roots, overwrite_a=True, check_finite=False, driver="evd")
            z = U.T @ (roots[:, None] * (Y - mean))
        return cls(np.maximum(values, 0), U, z, roots, mean, row, intercept)

    @property
    def alphas(self) -> np.ndarray:
        """The values of alpha to choose among."""
        return alpha_grid(float(self.values.sum()) / float((self.roots**2).sum()))

    def score(self, judged: Judged, alphas: np.ndarray | None = None) -> Score:
        """Best alpha by leave-one-out errors."""
        alphas = self.alphas if alphas is None else alphas
        n, t, a = len(self.roots), self.z.shape[1], len(alphas)
        with blas_for(n):
            shrunk = self.values[:, None] / (self.values[:, None] + alphas)  # (n, a)
            leverage = self.vectors**2 @ shrunk
            fit = (self.vectors @ (shrunk[:, :, None] * self.z[:, None, :]).reshape(n, a * t)).reshape(n, a, t)
        if self.intercept:
            leverage = leverage + (self.roots**2 / float((self.roots**2).sum()))[:, None]
        gaps = (judged.targets - self.mean)[:, None, :] - fit / self.roots[:, None, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            gaps = gaps / np.where(leverage > _ONE, 0.0, 1 - leverage)[:, :, None]
        return Score.best(alphas, judged.losses(gaps), judged)

    def coefficients(self, alphas: Any) -> np.ndarray:
        """Dual coefficients (n, t), or (n, a, t) for several alpha."""
        shifted = self.values[:, None] + np.atleast_1d(alphas)
        with blas_for(len(self.roots)):
            flat = self.vectors @ (self.z[:, None, :] / shifted[:, :, None]).reshape(len(self.roots), -1)
        if self.intercept:  # rounding mixes null vectors with that of the mean, which a small alpha would magnify
            flat -= np.outer(self.roots, self.roots @ flat / (self.roots @ self.roots))
        found = self.roots[:, None, None] * flat.reshape(len(self.roots), -1, self.z.shape[1])
        return np.asarray(found if np.ndim(alphas) else found[:, 0])

    def predict(self, K: np.ndarray, alphas: Any) -> np.ndarray:
        """Targets (m, t) or (m, a, t) of new rows, by their kernels (m, n) with the rows of the fit."""
        c = self.coefficients(alphas)
        flat = (K - self.column_mean) @ c.reshape(len(c), -1)
        return np.asarray(flat.reshape(len(K), *c.shape[1:]) + self.mean)


def fitted(F: np.ndarray, Y: np.ndarray, weights: np.ndarray | None, *, intercept: bool) -> tuple[Equations, Any]:
    """Equations of a fit to features (n, D), and the means that were taken from features and targets, or None."""
    means = None
    if intercept:
        w = np.ones(len(F)) if weights is None else weights
        means = w @ F.astype(np.float64) / w.sum(), w @ Y.astype(np.float64) / w.sum()
    F, Y = about(means, F, Y)
    if len(F) < F.shape[1]:
        return RowEquations.of(F, Y, weights, about_mean=intercept, rounding=_EPS), means
    return NormalEquations.of(Moments.of(F, Y, weights), about_mean=intercept), means


def about(means: Any, features: np.ndarray, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Features and targets in float64, without their means if there are any."""
    if means is None:
        return features.astype(np.float64), Y.astype(np.float64)
    return features - means[0], Y - means[1]


def gaps_of_rows(
    spectrum: Spectrum, alphas: np.ndarray, F: np.ndarray, Y: np.ndarray, weights: np.ndarray | None
) -> np.ndarray:
    """Errors (n, a, t) of rows with features and targets about the means, each left out; infinite if none is known."""
    equations, w = spectrum.equations, np.ones(len(F)) if weights is None else weights
    n, t, a = len(F), Y.shape[1], len(alphas)
    with blas_for(equations.order):
        P = F @ spectrum.vectors
        shifted = spectrum.values[:, None] + alphas
        leverage = w[:, None] * (
            P**2 @ ((spectrum.values > 0)[:, None] / shifted) + equations.n_means / equations.weight
        )
        fit = (P @ (spectrum.z[:, None, :] / shifted[:, :, None]).reshape(-1, a * t)).reshape(n, a, t)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray((Y[:, None, :] - fit) / np.where(leverage > _ONE, 0.0, 1 - leverage)[:, :, None])


def best_of_many(
    equations: Equations, F: np.ndarray, Y: np.ndarray, judged: Judged, alphas: np.ndarray
) -> tuple[Score, np.ndarray]:
    """Best alpha by one decomposition, and the eigenvalues in descending order; F and Y are about the means."""
    spectrum = equations.spectrum()
    gaps = gaps_of_rows(spectrum, alphas, F, Y, judged.weights)
    return Score.best(alphas, judged.losses(gaps), judged), spectrum.values[::-1]


def fit_of_one(
    equations: NormalEquations, F: np.ndarray, weights: np.ndarray | None, alpha: float, *, single: bool = False
) -> tuple[np.ndarray, np.ndarray] | None:
    """Coefficients (D, t) for one alpha by a Cholesky factor, and leverages (n,) of rows; None within rounding.

    With ``single`` the factor is one of float32 where alpha is far above its rounding errors.
    """
    dtype = np.dtype(np.float32 if single and alpha > _SINGLE * equations.trace else np.float64)
    with blas_for(equations.order):
        try:
            factor = Cholesky.of(plus(equations.gram, alpha, dtype), overwrite=True)
        except linalg.LinAlgError:
            return None
        B, leverage = factor.solve(equations.cross), np.empty(len(F))
        for i in range(0, len(F), _PIECE):  # of wide features a few rows at a time are enough
            half = factor.solve_lower(F[i : i + _PIECE].T.astype(dtype))
            leverage[i : i + _PIECE] = np.einsum("dn,dn->n", half, half)
    w = np.ones(len(F)) if weights is None else weights
    leverage = w * (leverage + equations.n_means / equations.weight)
    return None if leverage.max(initial=0.0) > _ONE else (B, leverage)


def gaps_of_one(
    equations: NormalEquations,
    F: np.ndarray,
    Y: np.ndarray,
    weights: np.ndarray | None,
    alpha: float,
    *,
    single: bool = False,
) -> np.ndarray | None:
    """Errors (n, t) for one alpha of rows about the means, each left out; None within rounding.  See `fit_of_one`."""
    found = fit_of_one(equations, F, weights, alpha, single=single)
    return None if found is None else (Y - F @ found[0]) / (1 - found[1])[:, None]


def losses_of_all(
    equations: NormalEquations, F: np.ndarray, Y: np.ndarray, judged: Judged, alpha: float, *, single: bool = False
) -> np.ndarray | None:
    r"""Squared errors (n,) for one alpha of some rows, whose mean estimates that of all rows; None within rounding.

    The residuals of all rows have the sum of squares :math:`T - 2\,C\cdot B + B\cdot SB`.  Leverages differ little, so the
    mean of :math:`e_i^2/(1-\bar h)^2` over all rows is close to the error of rows that are left out, and some rows tell the
    small difference: they are a control variate.
    """
    found = fit_of_one(equations, F, judged.weights, alpha, single=single)
    if found is None:
        return None
    B, leverage = found[0].astype(np.float64), found[1]
    with blas_for(equations.order):
        fitted = symm(1.0, equations.gram.T, B, lower=1)  # what is above the diagonal, in columns
    squares = equations.total + (B * (fitted - 2 * equations.cross)).sum(axis=0)
    residuals = Y - F @ B
    missed = squares / equations.weight - judged.mean(residuals**2)
    missed[squares < _CANCELLED * equations.total] = 0.0  # a fit through all rows: what is left of the sum is rounding
    missed = float((missed / judged.units**2).mean() / (1 - judged.mean(leverage)) ** 2)
    return np.asarray(judged.losses(residuals / (1 - leverage)[:, None]) + missed)


def gaps_of_each(equations: RowEquations, weights: np.ndarray | None, alpha: float) -> np.ndarray | None:
    r"""Errors (n, t) of all rows of dual equations for one alpha, each left out; None within rounding.

    With :math:`c = (K+\alpha)^{-1}z` the error is :math:`\alpha c_i/(\alpha[(K+\alpha)^{-1}]_{ii} - w_i/W)`, over the root
    of the weight; the last term is that of the intercept.
    """
    with blas_for(equations.order):
        try:
            factor = Cholesky.of(plus(equations.gram, alpha), overwrite=True)
        except linalg.LinAlgError:
            return None
        c, root = factor.solve(equations.targets), factor.inverse_root()
        inverse = np.einsum("ij,ij->i", root, root)
    w = np.ones(len(c)) if weights is None else weights
    left = alpha * inverse - equations.n_means * w / equations.weight
    return None if left.min(initial=1.0) < 1 - _ONE else alpha * c / (left * np.sqrt(w))[:, None]


def walk(
    equations: NormalEquations,
    F: np.ndarray,
    Y: np.ndarray,
    judged: Judged,
    grid: np.ndarray,
    start: float,
    longest: int,
) -> Score:
    """Best alpha by `downhill`, for rows with features F and targets Y about the means.

    A Cholesky factor for each is cheaper than a decomposition where few are asked for.
    """

    def losses(alpha: float) -> np.ndarray | None:
        gaps = gaps_of_one(equations, F, Y, judged.weights, alpha)
        return None if gaps is None else judged.losses(gaps)

    return downhill(losses, judged, grid, start, longest)


def downhill(
    losses: Callable[[float], np.ndarray | None], judged: Judged, grid: np.ndarray, start: float | None, longest: int
) -> Score:
    """Best alpha from a start downhill along the grid, until both neighbours are worse or ``longest`` are known.

    Parameters
    ----------
    losses : callable
        From an alpha to the losses (n,) of rows that are left out, or None where they are within rounding.
    judged : Judged
        The rows.
    grid : array
        Values of alpha, ascending.
    start : float or None
        Where to begin; None tries all of them.
    longest : int
        Values to try at most.
    """
    known: dict[int, np.ndarray] = {}

    def error(k: int) -> float:
        found = losses(float(grid[k]))
        known[k] = np.full(len(judged.targets), np.inf) if found is None else found
        return float(judged.mean(known[k]))

    first = range(len(grid)) if start is None else [int(np.abs(np.log(grid / start)).argmin())]
    errors = {k: error(k) for k in first}
    while len(known) < longest:
        best = min(errors, key=lambda k: errors[k])
        fresh = [k for k in (best + 1, best - 1) if k not in known and 0 <= k < len(grid)]
        if not fresh:
            break
        errors[fresh[0]] = error(fresh[0])
    tried = sorted(known)
    return Score.best(grid[tried], np.column_stack([known[k] for k in tried]), judged)


def new_to(phi: Any, X: Any) -> np.ndarray:
    """Which rows are no landmarks, if others are left; all of them otherwise.

    A row that is left out of the fit remains a landmark, and nothing then holds the coefficient of its own feature: its
    error is not that of a new row.  Where all rows are landmarks the fit is one of the kernel itself, and it is.
    """
    new = ~phi.features.at_points(phi.at_unit_scale(X))
    return new if np.count_nonzero(new) >= min(LEAST_NEW, len(new)) else np.ones(len(new), dtype=bool)


def squares_of_chunks(
    chunks: Iterator[Chunk], *, phi: FeatureMap, spectrum: Spectrum, alphas: np.ndarray, means: Any
) -> Any:
    """Squared errors of rows that come in chunks, and how many they are: (2, a + 1), of new rows and of landmarks."""
    total = np.zeros((2, len(alphas) + 1))
    for X, Y, weights in chunks:
        if not len(X):
            continue
        known = phi.features.at_points(phi.at_unit_scale(X))
        F, Z = about(means if spectrum.equations.n_means else None, phi.queries(X), Y)
        w = np.ones(len(F)) if weights is None else weights
        squares = w[:, None] * (gaps_of_rows(spectrum, alphas, F, Z, weights) ** 2).sum(axis=2)
        for part, which in enumerate((~known, known)):
            total[part] += [*squares[which].sum(axis=0), np.count_nonzero(which)]
    return total


def of_new_rows(sums: np.ndarray) -> np.ndarray:
    """Errors of rows that are no landmarks, from `squares_of_chunks`; of all rows, if others are few."""
    return np.asarray(sums[0, :-1] if sums[0, -1] >= LEAST_NEW else sums[:, :-1].sum(axis=0))
