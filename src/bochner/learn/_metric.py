"""Learned metrics: directions in which the prediction changes count more, by the gradients of earlier predictions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .._validation import shown
from ._coordinates import Coordinates
from ._feature_parameters import FeatureParameters, draw_features
from ._row_source import Chunk, rows_in_memory
from ._selection_criterion import best_of_many, fitted, strengths, units_of, weighted_median_distance

_ITERATIONS = 10
_WIDTH = 512
_HELD_OUT = 4
"""One in so many rows of the sample judges the metrics, and none of them is learned from."""
_GRADIENT_ROWS = 1024
_LEAST = 1e-3
"""Share of the mean eigenvalue that every direction keeps."""
_WORTH = 0.02
"""Share of the held-out error that a metric must save."""
_DOUBT = 2.0
"""Standard errors that the saving must exceed: the best of several iterates is one of the lucky ones."""
_MOST_COLUMNS = 2048
_FITS = 6
"""Most bandwidths of an iterate."""


@dataclass(frozen=True)
class LearnedMetric:
    """The result: held-out errors of all iterates, and the matrix of the best.

    Attributes
    ----------
    root : array (d,), (d, d) or None
        Square root of the metric, for coordinates; None where no metric was worth it.
    errors : list of float
        Held-out errors, in units of the variance: without a metric first.
    """

    root: np.ndarray | None
    errors: list[float]

    @property
    def reason(self) -> str:
        """The result in words."""
        best = min(self.errors)
        found = f"held-out error {best:.3g} against {self.errors[0]:.3g} without"
        return f"learned metric, {found}" if self.root is not None else f"no metric, none was worth it ({found})"


def given_root(owner: str, metric: Any, d: int) -> np.ndarray:
    """Square root of a metric that is given: the diagonal (d,), or a positive semidefinite matrix (d, d)."""
    message = (
        f"{owner}: metric must be None, 'learned', non-negative numbers ({d},), or a symmetric positive semidefinite matrix "
        f"({d}, {d}), got {shown(metric)}."
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


def learned_metric(
    owner: str,
    features: FeatureParameters,
    coordinates: Coordinates | None,
    sample: Chunk,
    *,
    bandwidth: bool,
    diagonal: bool,
    intercept: bool,
    alike: bool,
    seed: int,
) -> LearnedMetric:
    r"""Learn a metric on a sample of the rows.

    Each iterate fits random features in the present coordinates, and replaces the metric by the mean of the outer
    products of the gradients of the prediction, :math:`M = \frac1n\sum_i \nabla f(x_i)\nabla f(x_i)^T`.  The gradients
    are one product with the adjoint of W.  Columns are scaled first, and directions are learned from there: where most
    columns do not matter, the first fits are too poor to show directions.  Rows that are held out judge each iterate; the
    best is kept.

    Parameters
    ----------
    owner : str
    features : FeatureParameters
        Kernel as a value, without a map: cosines are used, whatever the final map.
    coordinates : Coordinates or None
        Of the rows, before the metric.
    sample : Chunk
        Rows in random order.
    bandwidth : bool
        Whether the bandwidth is free; it is then searched for in each iterate.
    diagonal : bool
        Whether columns are only scaled.
    intercept, alike : bool
        See `Freedom`.
    seed : int
    """
    d = sample.X.shape[1]
    if not diagonal and d > _MOST_COLUMNS:
        raise ValueError(
            f"{owner}: metric='learned' has a matrix of {d} x {d} numbers; with more than {_MOST_COLUMNS} columns pass "
            f"ard=True."
        )
    Z = sample.X.astype(np.float64) if coordinates is None else coordinates(sample.X.astype(np.float64))
    held = max(len(Z) // _HELD_OUT, 1)
    train, test = sample.taken(slice(held, None)), sample.taken(slice(held))
    task = _Task(owner, features, train, test, Z[held:], Z[:held], bandwidth, intercept, alike, seed)
    start = task.iterate(np.ones(d), 0.0)
    tried = [start]
    for only_columns in (True,) if diagonal else (True, False):
        _descend(task, tried, diagonal=only_columns)
    best = min(tried, key=lambda iterate: iterate.error)
    return LearnedMetric(best.root if best.clearly_below(start) else None, [iterate.error for iterate in tried])


def _descend(task: _Task, tried: list[_Iterate], *, diagonal: bool) -> None:
    """Add iterates after the best of those tried, until two in a row save little."""
    best = last = min(tried, key=lambda iterate: iterate.error)
    worse = 0
    for _ in range(_ITERATIONS):
        if worse > 1 or not np.isfinite(last.M).all() or not last.M.any():
            return
        last = task.iterate(_root(last.M, diagonal=diagonal), last.step)
        tried.append(last)
        worse = 0 if last.error < (1 - _WORTH / 2) * best.error else worse + 1
        best = last if last.error < best.error else best


class _Iterate(NamedTuple):
    """Root of a metric, the best bandwidth in it, its error and losses on held-out rows, and the next metric."""

    root: np.ndarray
    step: float
    error: float
    losses: np.ndarray
    M: np.ndarray

    def clearly_below(self, other: _Iterate) -> bool:
        """Whether it saves enough of the error, and more than the doubt about the mean of the differences."""
        gain = other.losses - self.losses
        doubt = _DOUBT * float(np.std(gain)) / math.sqrt(len(gain)) if np.isfinite(gain).all() else 0.0
        return other.error - self.error > max(_WORTH * other.error, doubt)


_Fit = tuple[float, np.ndarray, Any, np.ndarray]
"""Held-out error and losses, features, and coefficients."""


@dataclass
class _Task:
    owner: str
    features: FeatureParameters
    train: Chunk
    test: Chunk
    Z: np.ndarray
    Z_test: np.ndarray
    bandwidth: bool
    intercept: bool
    alike: bool
    seed: int

    def iterate(self, root: np.ndarray, step: float) -> _Iterate:
        """A fit in these coordinates, with the best bandwidth from ``step``, and the metric in the coordinates before."""
        X, X_test = _times(self.Z, root), _times(self.Z_test, root)
        step, (error, losses, phi, B) = self._walk(X, X_test, step)
        gradients = self.gradients(self.owner, phi, X[:_GRADIENT_ROWS], B)  # in the new coordinates
        back = _times(gradients, root)  # and in those before, since the root is symmetric
        M = np.einsum("nd,ne->de", back, back) / len(back)
        return _Iterate(root, step, error, losses, M)

    def _walk(self, X: np.ndarray, X_test: np.ndarray, step: float) -> tuple[float, _Fit]:
        """The best fit from a bandwidth downhill in steps of two."""
        known = {step: self._fit(X, X_test, step)}
        while self.bandwidth and len(known) < _FITS:
            fresh = [s for s in (step - 1, step + 1) if s not in known]
            if not fresh:
                break
            known[fresh[0]] = self._fit(X, X_test, fresh[0])
            step = min(known, key=lambda s: known[s][0])
        return step, known[step]

    def _fit(self, X: np.ndarray, X_test: np.ndarray, step: float) -> _Fit:
        kernel, (_, Y, weights) = self.features.kernel, self.train
        if self.bandwidth:
            base = weighted_median_distance(X[:500], None, kernel.metric or "euclidean")
            kernel = kernel.with_bandwidth(base * 2.0**step)
        width = min(_WIDTH, int(self.features.n_components))
        parameters = self.features._replace(kernel=kernel, map=None, n_components=width + width % 2)
        phi = draw_features(parameters, rows_in_memory(self.owner, X), np.random.default_rng(self.seed), symmetric=True)
        units = units_of(Y, weights, alike=self.alike)
        F = phi.queries(X)
        options = {"intercept": self.intercept, "whole": False, "classes": False}
        equations, judged = fitted(F, Y, weights, units, **options)
        score, _ = best_of_many(equations, judged, strengths(equations))
        B = equations.solve(score.alpha).coefficients / units
        w = np.ones(len(F)) if weights is None else weights
        predicted = phi.queries(X_test) @ B
        target = self.test.targets / units
        if self.intercept:
            predicted = predicted - (w @ F / w.sum()) @ B + w @ (Y / units) / w.sum()
        v = np.ones(len(target)) if self.test.weights is None else self.test.weights
        losses = v * ((target - predicted) ** 2).mean(axis=1) / v.mean()
        error = float(losses.mean())
        return (error if np.isfinite(error) else np.inf), losses, phi, B

    @staticmethod
    def gradients(owner: str, phi: Any, X: np.ndarray, B: np.ndarray) -> np.ndarray:
        """Gradients of all targets at rows X, (n t, d)."""
        unit, F = phi.spec.at_unit_scale(X), phi.queries(X)
        scale = phi.spec.at_unit_scale(np.ones((1, X.shape[1])))
        each = [phi.features.pull_back(unit, F, np.broadcast_to(b, F.shape)) for b in B.T]
        if each[0] is None:
            raise ValueError(
                f"{owner}: metric='learned' needs features with a gradient, and {phi.spec.map!r} of "
                f"{phi.spec.kernel!r} has none; use a shift-invariant kernel such as kernels.Gaussian()."
            )
        gradients: np.ndarray = np.concatenate(each) * scale
        return gradients


def _times(Z: np.ndarray, root: np.ndarray) -> np.ndarray:
    return np.asarray(Z * root if root.ndim == 1 else Z @ root)


def _root(M: np.ndarray, *, diagonal: bool) -> np.ndarray:
    """Square root of a metric of mean eigenvalue one, with a little of the identity."""
    if diagonal:
        values = np.diag(M)
        return np.asarray(np.sqrt(values / values.mean() + _LEAST))
    values, vectors = np.linalg.eigh(M)
    values = np.maximum(values, 0)
    return np.asarray((vectors * np.sqrt(values / values.mean() + _LEAST)) @ vectors.T)
