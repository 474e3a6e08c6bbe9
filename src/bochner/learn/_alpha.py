"""The alpha of the final fit of the automatic mode: by leave-one-out errors of a sample, from the fit of all rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ._linear.leave_one_out import Judged, Score, about, best_of_many, fitted, grid_of, new_to, walk
from ._linear.moments import Moments
from ._linear.ridge import Ridge, RidgeModel
from ._linear.spectrum import NormalEquations
from ._row_source import Chunk, RowSource
from ._selection import EXACT_TRIAL_ROWS, GIVEN, LEARNED, PIVOTS, Selection

_LARGEST_ORDER = 2048
"""Order of a matrix up to which it is decomposed, rather than factored for one alpha after another."""


def fit_chosen(
    method: Ridge,
    phi: Any,
    rows: RowSource,
    selection: Selection | None,
    sample: Chunk | None,
    *,
    classes: bool,
    verbose: Any,
) -> tuple[RidgeModel, Selection | None]:
    """Fit all rows, with the alpha of the least leave-one-out error of some of them where it is left open."""
    if sample is None:
        return method.fit(phi, rows, verbose=verbose), selection
    start = None if selection is None else selection.alpha
    if selection is not None and selection.metric in LEARNED and len(sample.X) < 2 * EXACT_TRIAL_ROWS:
        return replace(method, alpha=start).fit(phi, rows, verbose=verbose), selection  # held-out rows have chosen it
    prepared = replace(method, alpha="gcv" if start is None else start / 10)
    prepared.check(rows.n_targets, in_memory=rows.in_memory)
    if phi.n_features_out > _LARGEST_ORDER or method.solver == "cg":
        score = _sampled_alpha(phi, sample, method, classes=classes) if start is None else None
        wide = replace(method, alpha=start if score is None else score.alpha).iterated(phi, rows, verbose=verbose)
        if wide is not None:
            return wide, _with_alpha(selection, start if score is None else score.alpha, score, method, phi, sample)
    model = prepared.collected(phi, rows, verbose=verbose)
    floor = start if selection is not None and selection.map == PIVOTS else None
    score = refined_alpha(model, phi, sample, start, method, classes=classes, floor=floor)
    model = replace(model, options=replace(method, alpha=score.alpha), found=None).solved(quiet=True)
    return model, _with_alpha(selection, score.alpha, score, method, phi, sample)


def begin_chosen(
    method: Ridge,
    phi: Any,
    rows: RowSource,
    selection: Selection | None,
    sample: Chunk | None,
    *,
    classes: bool,
    verbose: Any,
) -> tuple[RidgeModel, Selection | None]:
    """Begin a stream, at an alpha chosen on the sample of its first rows."""
    if sample is None:
        return method.begin(phi, rows, verbose=verbose), selection
    score = _sampled_alpha(phi, sample, method, classes=classes) if selection is None else None
    alpha = score.alpha if selection is None and score is not None else selection.alpha  # type: ignore[union-attr]
    model = replace(method, alpha=alpha).begin(phi, rows, verbose=verbose)
    return model, _with_alpha(selection, alpha, score, method, phi, sample)


def _with_alpha(
    selection: Selection | None, alpha: Any, score: Score | None, method: Ridge, phi: Any, sample: Chunk
) -> Selection:
    """Return the selection, with the alpha of the final fit and its score."""
    if selection is None:
        reason = f"alpha {alpha:.3g} by leave-one-out errors of {len(sample.X)} rows."
        kernel = repr(phi.spec.kernel)
        selection = Selection(kernel, GIVEN, GIVEN, GIVEN, phi.n_features_out, alpha, np.nan, np.nan, reason)
    grid = None if method.alphas is None else np.sort(method.grid())
    if grid is not None and len(grid) > 1 and alpha in (grid[0], grid[-1]):
        edge = f"alpha {alpha:.3g} is at the edge of alphas; extend them, or leave them out."
        selection = replace(selection, edges=(*selection.edges, edge))
    if score is None or selection.metric in LEARNED:  # held-out rows have judged these
        return replace(selection, alpha=alpha)
    return replace(selection, alpha=alpha, error=score.error, standard_error=score.standard_error)


def refined_alpha(
    model: RidgeModel,
    phi: Any,
    sample: Chunk,
    start: float | None,
    method: Ridge,
    *,
    classes: bool,
    floor: float | None = None,
) -> Score:
    """Choose the alpha of a fit to all rows by leave-one-out errors of a sample of them.

    Parameters
    ----------
    model : RidgeModel
        Of all rows.
    phi : FeatureMap
    sample : Chunk
        Some of the rows.
    start : float or None
        Where to look first.
    method : Ridge
    classes : bool
    floor : float or None
        Where not to look below: where outliers are landmarks, the rows to judge by have none, and allow too little.
    """
    (X, Y, weights), equations = sample, model.equations
    if not isinstance(equations, NormalEquations) and equations.order > _LARGEST_ORDER:
        return _sampled_alpha(
            phi, sample, method, classes=classes
        )  # a decomposition would take far longer than the fit
    F, Z = about(model.means if method.intercept else None, phi.queries(X), Y)
    new = new_to(phi, X)
    F, Z, judged = F[new], Z[new], Judged.of(Y, weights, classes=classes).taken(new)
    grid = grid_of(equations) if method.alphas is None else np.sort(method.grid())
    if floor is not None:
        grid = grid[grid >= min(0.9 * floor, grid[-1])]
    if isinstance(model.data, Moments):  # not where rounding decides; one alpha is left at least
        grid = grid[grid >= min(10 * model.data.blur, grid[-1])]
    if isinstance(equations, NormalEquations) and (start is not None or equations.order > _LARGEST_ORDER // 2):
        middle = float(grid[len(grid) // 3]) if start is None else start
        return walk(equations, F, Z, judged, grid, middle, len(grid))
    return best_of_many(equations, F, Z, judged, grid)[0]


def _sampled_alpha(phi: Any, sample: Chunk, method: Ridge, *, classes: bool) -> Score:
    """Choose the alpha of a fit to the sample alone, by its leave-one-out errors."""
    X, Y, weights = sample
    F = phi.queries(X)
    equations, means = fitted(F, Y, weights, intercept=method.intercept)
    F, Z = about(means, F, Y)
    new = new_to(phi, X)
    grid = grid_of(equations) if method.alphas is None else np.sort(method.grid())
    return best_of_many(equations, F[new], Z[new], Judged.of(Y, weights, classes=classes).taken(new), grid)[0]
