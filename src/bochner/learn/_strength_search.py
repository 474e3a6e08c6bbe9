"""The regularisation strength of a fit, once the features are chosen, by leave-one-out errors of a sample of rows."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ._linear.criteria import about
from ._linear.moments import Moments
from ._linear.ridge import RidgeModel
from ._linear.spectrum import NormalEquations
from ._row_source import Chunk
from ._selection_criterion import Judged, Score, best_of_many, fitted, score_of, strengths, units_of, walk
from ._selection_search import Freedom

LARGEST_ORDER = 2048
"""Largest order of a matrix that is decomposed."""


def refined_alpha(
    model: RidgeModel, phi: Any, sample: Chunk, start: float | None, freedom: Freedom, *, at_least_start: bool = False
) -> Score:
    """The strength of a fit to all rows, by leave-one-out errors of a sample of them.

    Parameters
    ----------
    model : RidgeModel
        Of all rows.
    phi : FeatureMap
    sample : Chunk
        Some of the rows.
    start : float or None
        Where to look first.
    freedom : Freedom
    at_least_start : bool
        Whether not to look below it: where outliers are landmarks, the rows to judge by have none, and allow too little.
    """
    (X, Y, weights), equations = sample, model.equations
    if not isinstance(equations, NormalEquations) and equations.order > LARGEST_ORDER:
        return sampled_alpha(phi, sample, freedom)  # a decomposition would take far longer than the fit
    units = units_of(Y, weights, alike=freedom.alike)
    means = model.means if freedom.intercept else None
    features, targets = about(means, phi.queries(X), Y)
    offset = np.zeros(Y.shape[1]) if means is None else means[1]
    judged = Judged(features, targets, weights, units, freedom.whole, offset if freedom.alike else None).new_to(phi, X)
    grid = strengths(equations) if freedom.alphas is None else freedom.alphas
    if at_least_start and start is not None:
        grid = grid[grid >= min(0.9 * start, grid[-1])]
    if isinstance(model.data, Moments):  # not where rounding decides; one strength is left at least
        grid = grid[grid >= min(10 * model.data.blur, grid[-1])]
    if isinstance(equations, NormalEquations) and (start is not None or equations.order > LARGEST_ORDER):
        middle = float(grid[len(grid) // 2]) if start is None else start
        return walk(partial(score_of, equations, judged), grid, middle, len(grid))
    return best_of_many(equations, judged, grid)[0]


def sampled_alpha(phi: Any, sample: Chunk, freedom: Freedom) -> Score:
    """The strength of a fit to the sample alone, by its leave-one-out errors."""
    X, Y, weights = sample
    units = units_of(Y, weights, alike=freedom.alike)
    equations, judged = fitted(phi.queries(X), Y, weights, units, **freedom.fit_options)
    judged = judged.new_to(phi, X)
    return best_of_many(equations, judged, strengths(equations) if freedom.alphas is None else freedom.alphas)[0]
