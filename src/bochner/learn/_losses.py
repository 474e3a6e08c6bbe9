"""Ridge regression with other losses than squares, Huber's and that of quantiles, by reweighted least squares."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .._progress import note, progress
from .._validation import check_option, shown
from ..linalg.cholesky import Cholesky, symmetric_product
from ..linalg.engine import blas_for
from ._linear.feature_moments import collect_moments
from ._linear.leave_one_out import Judged, Score, alpha_grid, new_to
from ._linear.moments import Moments
from ._linear.ridge import Ridge, RidgeModel, Solution
from ._linear.spectrum import NormalEquations
from ._row_source import Chunk, RowSource

LOSSES = ("squared", "huber", "quantile")
_NORMAL_MAD, _NORMAL_RANGE = 0.6745, 2.5631
"""Median size, and the distance between the tenths at both ends, of a normal law of deviation one."""
_CLIPPED = 5.0  # deviations from the median at which targets are clipped for the search and for the first fit
_SMOOTH = 0.01  # residuals, in units of the scale, within which the loss of quantiles is a parabola
_STEPS, _SAMPLE_STEPS = 100, 30  # most fits to all rows, and to the sample on which alpha is chosen
_TOLERANCE, _SAMPLE_TOLERANCE = 1e-7, 1e-4
"""Share of the objective by which a step must lower it to be followed by another."""
_FOLDS = 5  # as in scikit-learn; of 80 rows, 64 remain to fit
_SAMPLE_ROWS = 1024
"""Rows on which alpha is chosen: each of some hundred fits to them takes a few hundredths of a second."""


@dataclass(frozen=True)
class Loss:
    r"""Loss of a residual r, and the least-squares problem that bounds it from above and touches it at r.

    With the scale s it is :math:`r^2` for :math:`|r|\le c=\epsilon s` and :math:`2c|r|-c^2` beyond (Huber), or
    :math:`s(|r|+(2\tau-1)r)`, twice the scale times the pinball loss, with a parabola for :math:`|r|<s/100`.
    """

    name: str
    epsilon: float  # epsilon and tau
    quantile: float
    scale: float = 1.0  # s, a robust standard deviation of the residuals, which gives the loss the units of squares

    def __call__(self, r: np.ndarray) -> np.ndarray:
        """Return losses of residuals."""
        size = np.abs(r)
        if self.name == "huber":
            c = self.epsilon * self.scale
            return np.where(size <= c, r**2, 2 * c * size - c**2)
        least = _SMOOTH * self.scale
        smooth = np.where(size < least, r**2 / (2 * least) + least / 2, size)
        return np.asarray(self.scale * (smooth + (2 * self.quantile - 1) * r))

    def least_squares(self, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the weights of squares, and the shifts of targets, whose sum bounds the loss and touches it at r."""
        if self.name == "huber":
            c = self.epsilon * self.scale
            return np.minimum(1.0, c / np.maximum(np.abs(r), c)), np.zeros(len(r))
        size = np.maximum(np.abs(r), _SMOOTH * self.scale)
        return self.scale / (2 * size), (2 * self.quantile - 1) * size


def check_loss(machine: Any) -> None:
    """Refuse losses that mean nothing, or that go with no other option."""
    owner = type(machine).__name__
    check_option(owner, "loss", machine.loss, LOSSES)
    if machine.loss == "squared":
        return
    if (
        machine.method != "ridge"
        or machine.solver != "auto"
        or (isinstance(machine.map, str) and machine.map == "exact")
    ):
        raise ValueError(
            f"{owner}: loss={machine.loss!r} reweights the rows of method='ridge' with solver='auto' and features, got "
            f"method={machine.method!r}, solver={machine.solver!r} and map={shown(machine.map)}."
        )
    if isinstance(machine.alpha, str) and machine.alpha != "auto":
        raise ValueError(
            f"{owner}: alpha must be 'auto' or a number for loss={machine.loss!r}, got {shown(machine.alpha)}, which is a "
            f"criterion of squared errors."
        )
    name, least, most = ("epsilon", 1.0, np.inf) if machine.loss == "huber" else ("quantile", 0.0, 1.0)
    value = getattr(machine, name)
    if not isinstance(value, float | int | np.floating) or not least < value < most:
        what = "a number above 1" if name == "epsilon" else "a number between 0 and 1"
        raise ValueError(f"{owner}: {name} must be {what}, got {shown(value)}.")


def clipped_targets(Y: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
    """Targets (n, t) without what is far from their median, with their weights.

    Half the distance between the tenths at both ends gives the unit, so that a tenth of bad targets on either side
    change nothing; a target that is constant in between is not clipped.
    """
    low, middle, high = np.quantile(Y, [0.1, 0.5, 0.9], axis=0)
    reach = np.where(high > low, _CLIPPED * (high - low) / _NORMAL_RANGE, np.inf)
    return np.clip(Y, middle - reach, middle + reach), weights


class Reweighted(NamedTuple):
    """A fit with another loss: the model without statistics, and the scale of each target (t,)."""

    model: RidgeModel
    scale: np.ndarray


def reweighted(
    first: RidgeModel,
    phi: Any,
    rows: RowSource,
    sample: Chunk,
    left_out: np.ndarray,
    loss: Loss,
    *,
    choose_alpha: bool,
    verbose: Any = 0,
) -> Reweighted:
    r"""Minimise :math:`\sum_i w_i\ell(y_i - b - B^T\phi(x_i)) + \alpha|B|^2`, for one target after another.

    Each step solves the least-squares problem that bounds the loss from above and touches it at the present residuals
    (Hunter and Lange 2000), so that the objective never rises.

    Parameters
    ----------
    first : RidgeModel
        Fit of clipped targets by squares, to begin with.
    phi : FeatureMap
    rows : RowSource
        In memory, with targets (n, t).
    sample : Chunk
        Some of them, on which alpha is chosen.
    left_out : array (m, t)
        Residuals of rows that were left out of the first fit, from which the scale is known: those of rows that it has
        learned are too small, and where it interpolates they are zero.
    loss : Loss
        Without its scale.
    choose_alpha : bool
        Whether alpha is chosen by the loss of rows that are left out.
    verbose : int
    """
    options, t = first.options, rows.n_targets
    alphas = np.broadcast_to(np.asarray(first.solution.alpha, dtype=np.float64), (t,)).copy()
    scale = np.array([_scale(column) for column in left_out.T])
    solutions = []
    for k in range(t):
        own, begin = replace(loss, scale=float(scale[k])), first.solution
        single = rows.relabelled(partial(_one_target, k=k), 1, weighted=rows.weighted)
        moved = 0.0
        if choose_alpha:
            chosen = sample._replace(targets=sample.targets[:, k])
            alphas[k], moved = _chosen_alpha(options, phi, chosen, own, float(alphas[k]))
        start = Solution(begin.coefficients[:, [k]], begin.intercept[[k]], alphas[k])
        found = _fit(replace(options, alpha=alphas[k]), phi, single, own, start, verbose)
        if loss.name == "quantile" and options.intercept and rows.count() <= _SAMPLE_ROWS:
            found = found._replace(intercept=found.intercept + moved)
        solutions.append(found)
    B, intercept = (np.concatenate([s[i] for s in solutions], axis=-1) for i in range(2))
    alpha = float(alphas[0]) if len(np.unique(alphas)) == 1 else alphas
    model = RidgeModel(replace(options, alpha=alpha), None, found=Solution(B, intercept, alpha))
    return Reweighted(model, scale)


def _scale(left_out: np.ndarray) -> float:
    """Robust standard deviation of residuals; where most of them are zero, that of the others, or one."""
    size = np.abs(left_out[np.isfinite(left_out)])
    found = float(np.median(size)) if size.size else 0.0
    found = found if found > 0 or not size.any() else float(np.median(size[size > 0]))
    return found / _NORMAL_MAD if found > 0 else 1.0


def _one_target(Y: Any, weights: Any, *, k: int) -> tuple[Any, Any]:
    return Y[:, [k]], weights


def _predicted(chunks: Iterator[Chunk], *, predict: Any) -> np.ndarray:
    """Predictions (n,) of one target."""
    return np.concatenate([predict(X)[:, 0].astype(np.float64) for X, _, _ in chunks])


def _given(Y: Any, weights: Any, *, targets: np.ndarray, row_weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return targets[:, None], row_weights


def _fit(options: Ridge, phi: Any, rows: RowSource, loss: Loss, start: Solution, verbose: Any) -> Solution:
    """Minimise the loss of all rows from a start."""
    Y, w = rows.reduce_targets(_targets_and_weights)
    y, D = Y[:, 0].astype(np.float64), phi.n_features_out
    if rows.count() <= D:
        X, _, _ = rows.gathered()
        few = _FewRows(phi.queries(X), w, intercept=options.intercept)
        c, b = few.fit(y, loss, float(start.alpha), _first(few.F, start), _STEPS, _TOLERANCE, verbose)[:2]
        return Solution((few.F.T @ c)[:, None], np.array([b]), start.alpha)

    def predicted(solution: Solution) -> np.ndarray:
        predict = RidgeModel(options, None, found=solution).predictor(phi)
        return np.asarray(rows.reduce(partial(_predicted, predict=predict), width=D))

    def solved(z: np.ndarray, v: np.ndarray) -> tuple[Solution, np.ndarray]:
        other = rows.relabelled(partial(_given, targets=z, row_weights=v), 1, weighted=True)
        moments: Moments = collect_moments(phi, other, least_alpha=float(start.alpha))
        B = NormalEquations.of(moments, about_mean=options.intercept).solve(start.alpha).coefficients
        b = moments.target_mean - moments.feature_mean @ B if options.intercept else np.zeros(1)
        found = Solution(B, b, start.alpha)
        return found, predicted(found)

    def penalty(solution: Solution) -> float:
        return float(start.alpha * np.vdot(solution.coefficients, solution.coefficients))

    found: Solution = _descend(y, w, loss, start, predicted(start), solved, penalty, _STEPS, _TOLERANCE, verbose)[0]
    return found


def _targets_and_weights(Y: Any, weights: Any) -> tuple[np.ndarray, np.ndarray]:
    return Y, np.ones(len(Y)) if weights is None else weights


def _first(F: np.ndarray, start: Solution) -> np.ndarray:
    return np.asarray((F.astype(np.float64) @ start.coefficients + start.intercept)[:, 0])


def _descend(
    y: np.ndarray,
    w: np.ndarray,
    loss: Loss,
    state: Any,
    f: np.ndarray,
    solved: Callable[[np.ndarray, np.ndarray], tuple[Any, np.ndarray]],
    penalty: Callable[[Any], float],
    steps: int,
    tolerance: float,
    verbose: Any,
) -> tuple[Any, np.ndarray]:
    """Least squares one after another, until the objective falls no more: the last state and its predictions."""
    value = np.inf
    bar = progress(range(steps), label=f"{loss.name} loss", shown=bool(verbose))
    for _ in bar:
        v, shift = loss.least_squares(y - f)
        found, predictions = solved(y + shift, w * v)
        now = float(w @ loss(y - predictions)) + penalty(found)
        if not now < value:  # rounding is left, or nothing
            break
        state, f, gain, value = found, predictions, value - now, now
        if gain <= tolerance * now:
            break
        note(bar, f"objective {now:.6g}")
    return state, f


class _FewRows:
    r"""Fits of rows fewer than features, in their Gram matrix :math:`K = FF^T`.

    With weights V the coefficients of the rows solve :math:`(K+\alpha V^{-1})c = z-b`, :math:`1^Tc = 0`; predictions are
    :math:`z - \alpha V^{-1}c`, and a row that is left out has the error :math:`c_i/G_{ii}`, where G is the inverse of the
    matrix, without its part along the intercept.
    """

    def __init__(self, F: np.ndarray, weights: np.ndarray, *, intercept: bool) -> None:
        self.F, self.w, self.intercept = F.astype(np.float64), weights, intercept
        self.K = symmetric_product(self.F)
        self.floor = len(F) * np.finfo(np.float64).eps * float(np.trace(self.K))

    def _factored(self, alpha: float, v: np.ndarray) -> tuple[Cholesky, np.ndarray]:
        A = self.K.copy()
        A.flat[:: len(A) + 1] += max(alpha, self.floor) / v
        factor = Cholesky.of(A, overwrite=True)
        return factor, factor.solve(np.ones((len(A), 1)))[:, 0]

    def fit(
        self, y: np.ndarray, loss: Loss, alpha: float, f: np.ndarray, steps: int, tolerance: float, verbose: Any = 0
    ) -> tuple[np.ndarray, float, np.ndarray]:
        """Coefficients of the rows (n,), the intercept, and predictions, from predictions f on."""
        floored = max(alpha, self.floor)

        def solved(z: np.ndarray, v: np.ndarray) -> tuple[Any, np.ndarray]:
            factor, ones = self._factored(alpha, v)
            u = factor.solve(z[:, None])[:, 0]
            b = float(u.sum() / ones.sum()) if self.intercept else 0.0
            c = u - b * ones
            return (c, b), z - floored * c / v

        def penalty(found: Any) -> float:
            with blas_for(len(self.K)):
                return float(floored * found[0] @ (self.K @ found[0]))

        (c, b), f = _descend(y, self.w, loss, None, f, solved, penalty, steps, tolerance, verbose)
        return c, b, f


class _HeldOut:
    """Residuals of rows by fits to the other folds: a fit of quantiles passes through rows, and those tell nothing."""

    def __init__(self, F: np.ndarray, y: np.ndarray, w: np.ndarray, loss: Loss, *, intercept: bool) -> None:
        self.F, self.y, self.w, self.loss = F.astype(np.float64), y, w, loss
        fold = np.random.default_rng(0).permutation(len(y)) % min(_FOLDS, len(y))
        mean = np.average(y, weights=w) if intercept else 0.0
        self.folds = [
            [_FewRows(F[fold != k], w[fold != k], intercept=intercept), fold == k, np.full((fold != k).sum(), mean)]
            for k in range(fold.max() + 1)
            if (fold != k).any()
        ]

    def __call__(self, alpha: float) -> np.ndarray:
        """Residuals (n,); fits begin at those of the last alpha."""
        gaps = np.zeros(len(self.y))
        for fold in self.folds:
            few, test, f = fold
            c, b, fold[2] = few.fit(self.y[~test], self.loss, alpha, f, _SAMPLE_STEPS, _SAMPLE_TOLERANCE)
            gaps[test] = self.y[test] - self.F[test] @ (few.F.T @ c) - b
        return gaps


def _chosen_alpha(options: Ridge, phi: Any, sample: Chunk, loss: Loss, start: float) -> tuple[float, float]:
    """Alpha of the least loss of held-out rows of a sample, from a start downhill, and the quantile of their residuals.

    The latter is zero but for what flexible fits of few rows have learned: they lie above more of their own targets than of
    new ones.  Moved by it, a fit is a conformal prediction.
    """
    X, y, weights = sample.taken(slice(_SAMPLE_ROWS))
    y, w = y.astype(np.float64), np.ones(len(y)) if weights is None else weights
    F, new = phi.queries(X), new_to(phi, X)
    held_out = _HeldOut(F, y, w, loss, intercept=options.intercept)
    square = float(np.einsum("nd,nd->", held_out.F, held_out.F)) / max(len(y), 1)
    grid = np.sort(options.grid()) if options.alphas is not None else alpha_grid(square)
    judged = Judged(y[new, None], None if weights is None else w[new], np.ones(1))
    known: dict[int, np.ndarray] = {}

    def error(k: int) -> float:
        known[k] = held_out(float(grid[k]))[new]
        return float(judged.mean(loss(known[k])))

    best = int(np.abs(np.log(grid / max(start, np.finfo(float).tiny))).argmin())
    errors = {best: error(best)}
    while fresh := [k for k in (best + 1, best - 1) if 0 <= k < len(grid) and k not in known]:
        errors[fresh[0]] = error(fresh[0])
        best = min(errors, key=lambda k: errors[k])
    tried = sorted(known)
    alpha = Score.best(grid[tried], np.column_stack([loss(known[k]) for k in tried]), judged).alpha
    gaps = known[tried[int(np.abs(grid[tried] - alpha).argmin())]]
    order, own = np.argsort(gaps), w[new]
    share = np.cumsum(own[order]) / (own.sum() + own.mean())  # i of n + 1, where all weights are one
    return alpha, float(np.interp(loss.quantile, share, gaps[order]))
