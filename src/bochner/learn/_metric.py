"""Metrics: given ones, and learned ones, in which directions count more if the prediction changes along them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import numpy as np

from .._validation import shown
from ..kernels import Kernel, median_distance
from ._linear.leave_one_out import GramFit, Judged, Score

LEAST = 1e-3
"""Share of the mean eigenvalue that every direction keeps."""
MEDIAN_ROWS = 500  # 125,000 distances: enough for a start that the search moves
_HALVED = 0.02
"""Share of the error for which the bandwidth is halved."""
_MOST_TARGETS = 4
"""Targets whose gradients are taken; of more targets, so many random combinations."""
_STEP = 1e-3
"""Relative change of the bandwidth whose effect is the derivative of the kernel in the distance."""


def given_root(owner: str, metric: Any, d: int) -> np.ndarray:
    """Square root of a metric that is given: the diagonal (d,), or a positive semidefinite matrix (d, d)."""
    message = (
        f"{owner}: metric must be 'auto', None, 'columns', 'learned', non-negative numbers ({d},), or a symmetric positive "
        f"semidefinite matrix ({d}, {d}), got {shown(metric)}."
    )
    try:
        M = np.asarray(metric, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(message) from None
    if M.shape not in ((d,), (d, d)) or not np.isfinite(M).all() or not M.any():
        raise ValueError(message)
    if M.ndim == 1:
        if (M < 0).any():
            raise ValueError(message)
        return np.sqrt(M)
    values, vectors = np.linalg.eigh((M + M.T) / 2)
    if not np.allclose(M, M.T, atol=1e-8 * np.abs(M).max()) or values[0] < -1e-8 * values[-1]:
        raise ValueError(message)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T)


def at_median(kernel: Kernel, Z: np.ndarray, step: float) -> Kernel:
    """Return the kernel with a bandwidth of two to the ``step`` times the median distance between rows."""
    base = median_distance(Z[:MEDIAN_ROWS], metric=kernel.metric or "euclidean")
    return kernel.with_bandwidth(base * 2.0**step)


def iterates(
    kernel: Kernel,
    step: float,
    Z: np.ndarray,
    judged: Judged,
    *,
    start: np.ndarray,
    matrix_after: float,
    intercept: bool,
    halve: bool = True,
) -> Iterator[tuple[np.ndarray, Kernel, GramFit, float]]:
    r"""Learn a metric on rows: roots of metrics one after another, each with its kernel, its fit, and its step.

    An iterate fits the exact kernel in the present coordinates, with alpha by leave-one-out errors, and replaces the
    metric by the mean of the outer products of the gradients of the prediction at the rows,
    :math:`M = \frac1n\sum_i \nabla f(x_i)\nabla f(x_i)^T` (recursive feature machines).  Columns are scaled first, and
    directions are learned from there: where most columns do not matter, the first fits are too poor to show directions.

    Parameters
    ----------
    kernel : Kernel
        Of Euclidean or city-block distances.
    step : float
        Bandwidth to begin with: two to the step times the median distance.  The fewer directions matter, the shorter it
        can be; each metric halves it while that lowers the leave-one-out error.
    Z : array (n, d)
    judged : Judged
        Targets and weights of these rows.
    start : array (d,) or (d, d)
        Root of the first metric.
    matrix_after : float
        Iterates of a diagonal metric before those of a matrix; infinite if columns are only scaled.
    intercept, halve : bool
        Whether there is an intercept, and whether shorter bandwidths are tried.
    """
    root, first = start, halve
    for k in count(1):
        X = times(Z, root)
        at, fit, score = _fitted(kernel, X, step, judged, intercept=intercept)
        if halve:
            shorter = _fitted(kernel, X, step - 1, judged, intercept=intercept)
            halve = shorter[2].error < (1 - _HALVED) * score.error
            if halve:
                (at, fit, score), step = shorter, step - 1
        yield root, at, fit, step
        G = gradients(at, X, fit.coefficients(score.alpha) / judged.units)
        back = times(G, root)  # in the coordinates before, since the root is symmetric
        M = back.T @ back
        if not np.isfinite(M).all() or not M.any():
            return
        root, halve = _root(M, diagonal=k <= matrix_after), halve or (first and k == 1)


def _fitted(
    kernel: Kernel, X: np.ndarray, step: float, judged: Judged, *, intercept: bool
) -> tuple[Kernel, GramFit, Score]:
    at = at_median(kernel, X, step)
    fit = GramFit.of(at(X), judged.targets, judged.weights, intercept=intercept)
    return at, fit, fit.score(judged)


def gradients(kernel: Kernel, X: np.ndarray, c: np.ndarray) -> np.ndarray:
    r"""Gradients at rows X (n, d) of functions :math:`\sum_j c_jk(x, x_j)`, for coefficients (n, t): (n t, d).

    The derivative of the kernel in the distance r is that in the bandwidth: :math:`r\,k'(r) = -\partial k/\partial\log b`.
    """
    if c.shape[1] > _MOST_TARGETS:
        signs = np.random.default_rng(0).standard_normal((c.shape[1], _MOST_TARGETS))
        c = c @ signs / np.sqrt(_MOST_TARGETS)
    up, down = (kernel.with_bandwidth(kernel.bandwidth * np.exp(sign * _STEP))(X) for sign in (1, -1))
    slope = (down - up) / (2 * _STEP)  # r k'(r)
    if kernel.metric == "cityblock":
        return _city_block_gradients(slope, X, c)
    norms = np.einsum("nd,nd->n", X, X)
    squares = norms[:, None] + norms - 2 * X @ X.T
    G = np.where(squares > 1e-12 * norms.max(), slope / np.where(squares > 0, squares, 1.0), 0.0)
    return np.concatenate([(G @ b)[:, None] * X - (G * b) @ X for b in c.T])


def _city_block_gradients(slope: np.ndarray, X: np.ndarray, c: np.ndarray) -> np.ndarray:
    from ..linalg.loops import manhattan, signed_sums

    distances, columns = np.empty_like(slope), np.ascontiguousarray(X.T)
    manhattan(X, columns, np.ones(X.shape[1]), distances)
    G = np.where(distances > 0, slope / np.where(distances > 0, distances, 1.0), 0.0)
    found = np.empty((c.shape[1], *X.shape))
    for b, out in zip(c.T, found, strict=True):
        signed_sums(X, columns, G * b, out)
    return found.reshape(-1, X.shape[1])


def screened_root(X: np.ndarray, judged: Judged, seed: int) -> np.ndarray:
    """Root of a diagonal metric by how much trees use each column, for a start where a first fit explains nothing.

    Trees find the few columns that matter among many, where distances that add up all columns show nothing.
    """
    from sklearn.ensemble import ExtraTreesRegressor

    trees = ExtraTreesRegressor(60, min_samples_leaf=3, max_features=0.7, random_state=seed % 2**31)
    Y = judged.targets / judged.units
    share = trees.fit(X, Y[:, 0] if Y.shape[1] == 1 else Y, judged.weights).feature_importances_
    excess = np.maximum(share - np.median(share), 0) if len(share) > 4 else share
    return np.asarray(np.sqrt(excess / max(excess.mean(), 1e-300) + LEAST))


def times(Z: np.ndarray, root: np.ndarray) -> np.ndarray:
    """Rows times a matrix or a diagonal."""
    return np.asarray(Z * root if root.ndim == 1 else Z @ root)


def _root(M: np.ndarray, *, diagonal: bool) -> np.ndarray:
    """Square root of a metric of mean eigenvalue one, with a little of the identity."""
    if diagonal:
        values = np.diag(M)
        return np.asarray(np.sqrt(values / values.mean() + LEAST))
    values, vectors = np.linalg.eigh(M)
    values = np.maximum(values, 0)
    return np.asarray((vectors * np.sqrt(values / values.mean() + LEAST)) @ vectors.T)
