"""The automatic mode of the kernel machines: what the parameters leave open is chosen on a sample of the rows."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from .. import catalogue
from .._validation import check_count, check_flag, shown
from ..kernels import Kernel
from ._coordinates import Coordinates
from ._feature_parameters import FeatureParameters, as_generator, look_up
from ._linear.ridge import Ridge
from ._metric import LearnedMetric, given_root, learned_metric
from ._row_source import Chunk, RowSource
from ._selection import Selection
from ._selection_criterion import Score
from ._selection_search import (
    GIVEN,
    JUDGED_ROWS,
    LANDMARKS,
    PIVOTS,
    RANDOM,
    SECOND_ROWS,
    Freedom,
    Search,
)
from ._strength_search import LARGEST_ORDER, refined_alpha, sampled_alpha

_SAMPLE_NUMBERS = 1 << 24
"""Numbers of a sample of rows, and of landmarks: 128 MB."""
_LEAST_ROWS = 64
_SAME_SCALE = 1.5
"""Ratio of the deviations of columns up to which it does not matter whether they are standardised."""


class Settings(NamedTuple):
    """Parameters of a machine, as they were given."""

    owner: str
    features: FeatureParameters
    standardize: Any
    metric: Any
    ard: bool
    alpha: Any
    alphas: Any
    intercept: bool
    alike: bool
    whole: bool
    random_state: Any


@dataclass(frozen=True)
class Choice:
    """Parameters without anything left open, except for the strength of the final fit.

    Attributes
    ----------
    features : FeatureParameters
    coordinates : Coordinates or None
    selection : Selection or None
        None if nothing was left open.
    freedom : Freedom or None
        For the strength of the final fit; None if it is given.
    sample : Chunk or None
        Rows to judge it by.
    """

    features: FeatureParameters
    coordinates: Coordinates | None
    selection: Selection | None = None
    freedom: Freedom | None = None
    sample: Chunk | None = None

    def begin(self, method: Any, phi: Any, rows: RowSource, *, verbose: Any) -> tuple[Any, Selection | None]:
        """Begin a stream, at a strength chosen on the sample of its first rows."""
        if self.freedom is None or self.sample is None:
            return method.begin(phi, rows, verbose=verbose), self.selection
        known = None if self.selection is None else self.selection.alpha
        score = sampled_alpha(phi, self.sample, self.freedom) if known is None else None
        selection = self._selection(known if score is None else score.alpha, score)
        return replace(method, alpha=selection.alpha).begin(phi, rows, verbose=verbose), selection

    def fit(self, method: Any, phi: Any, rows: RowSource, *, verbose: Any) -> tuple[Any, Selection | None]:
        """Fit all rows, with the strength of the least leave-one-out error of some of them where it is left open."""
        start = None if self.selection is None else self.selection.alpha
        if self.freedom is None or self.sample is None:
            return method.fit(phi, rows, verbose=verbose), self.selection
        _prepared(method, start).check(rows.n_targets, in_memory=rows.in_memory)
        if phi.n_features_out > LARGEST_ORDER or method.solver == "cg":
            begun = perf_counter()
            score = sampled_alpha(phi, self.sample, self.freedom) if start is None else None
            alpha, spent = start if score is None else score.alpha, perf_counter() - begun
            wide = replace(method, alpha=alpha).iterated(phi, rows, verbose=verbose)
            if wide is not None:
                return wide, self._selection(alpha, score, spent)
        model = _prepared(method, start).collected(phi, rows, verbose=verbose)
        begun = perf_counter()
        pivoted = self.selection is not None and self.selection.map == PIVOTS
        score = refined_alpha(model, phi, self.sample, start, self.freedom, at_least_start=pivoted)
        spent = perf_counter() - begun
        model = replace(model, options=replace(method, alpha=score.alpha), found=None).solved()
        return model, self._selection(score.alpha, score, spent)

    def _selection(self, alpha: Any, score: Score | None, spent: float = 0.0) -> Selection:
        """The selection, with the strength of the final fit, its score, and the seconds spent to find it."""
        assert self.sample is not None
        selection = self.selection
        if selection is None:
            reason = f"alpha {alpha:.3g} by leave-one-out errors of {len(self.sample.X)} rows."
            selection = Selection(GIVEN, self.coordinates is not None, None, alpha, np.nan, np.nan, reason)
        grid = None if self.freedom is None else self.freedom.alphas
        if grid is not None and len(grid) > 1 and alpha in (grid[0], grid[-1]):
            edge = f"alpha {alpha:.3g} is at the edge of alphas; extend them, or leave them out."
            selection = replace(selection, edges=(*selection.edges, edge))
        if score is None:
            return selection
        found = {"alpha": alpha, "error": score.error, "standard_error": score.standard_error}
        return replace(selection, seconds=selection.seconds + spent, **found)


def _prepared(method: Ridge, start: float | None) -> Ridge:
    """Options of the sums: for strengths down to a tenth of the one to start from, if there is any."""
    return replace(method, alpha="gcv" if start is None else start / 10)


def choose(settings: Settings, rows: RowSource, *, begin: bool) -> Choice:
    """Choose what the parameters leave open, on a sample of the rows.

    Parameters
    ----------
    settings : Settings
    rows : RowSource
    begin : bool
        Whether these are the first rows of a stream: landmarks are then offered only if there are many of them.
    """
    rng = as_generator(settings.random_state)
    seed = int(rng.integers(2**31))  # before anything that depends on the number of rows
    freedom = _freedom(settings, rows, begin=begin)
    open_alpha, learns = is_auto(settings.alpha), _learns(settings)
    searches = freedom.bandwidth or len(freedom.maps) > 1 or len(freedom.columns) > 1
    size = SECOND_ROWS if searches or learns else JUDGED_ROWS
    sample = _sampled(rows, size, rng) if searches or learns or open_alpha else None
    if sample is not None and not settings.whole:
        _warn_of_counts(settings.owner, sample.weights)
    metric = None
    if learns and sample is not None:
        metric = _learned(settings, freedom, sample, seed)
        freedom = _in_metric(freedom, metric)
    selection, features, coordinates = None, freedom.parameters, next(iter(freedom.columns.values()))
    if searches and sample is not None:
        search = Search(freedom, sample, rows.count(), seed)
        selection = search.run()
        coordinates = freedom.columns[selection.standardize]
        features = features._replace(kernel=search.kernel_of(selection.bandwidth), map=freedom.map_of(selection.map))
    elif freedom.maps != (GIVEN,):
        features = features._replace(map=freedom.map_of(freedom.maps[0]))
    if metric is not None:
        standardize = next(iter(freedom.columns))
        given = Selection(GIVEN, standardize, None, None, np.nan, np.nan, "") if selection is None else selection
        reason = f"{metric.reason}; {given.reason}".removesuffix("; ")
        selection = replace(given, reason=reason, metric_errors=metric.errors)
    if not open_alpha:
        return Choice(features, coordinates, selection)
    judged = None if sample is None else sample.taken(slice(JUDGED_ROWS))
    return Choice(features, coordinates, selection, freedom, judged)


def _warn_of_counts(owner: str, weights: np.ndarray | None) -> None:
    """Warn of weights that count as repetitions, but are hardly meant as such: whole numbers, none of which is one."""
    least = 0.0 if weights is None else float(weights.min())
    if least > 1 and weights is not None and (weights == np.rint(weights)).all():
        warnings.warn(
            f"{owner}: sample_weight has whole numbers of at least {least:g}, which count as repetitions of rows, so that "
            f"leave-one-out errors are too small; if they are no counts, divide them by their mean.",
            UserWarning,
            stacklevel=2,
        )


def _learns(settings: Settings) -> bool:
    """Whether a metric is to be learned."""
    check_flag(settings.owner, "ard", settings.ard)
    learns = isinstance(settings.metric, str) and settings.metric == "learned"
    if settings.ard and not learns and settings.metric is not None:
        raise ValueError(
            f"{settings.owner}: ard=True learns the scale of each column, and metric={shown(settings.metric)} gives it; "
            f"pass one of them."
        )
    return learns or settings.ard


def _learned(settings: Settings, freedom: Freedom, sample: Chunk, seed: int) -> LearnedMetric:
    return learned_metric(
        settings.owner,
        freedom.parameters,
        next(iter(freedom.columns.values())),
        sample,
        bandwidth=freedom.bandwidth,
        diagonal=settings.ard,
        intercept=settings.intercept,
        alike=settings.alike,
        seed=seed,
    )


def _in_metric(freedom: Freedom, metric: LearnedMetric) -> Freedom:
    """Only the columns in which the metric was learned, if it was worth it."""
    if metric.root is None:
        return freedom
    standardize, coordinates = next(iter(freedom.columns.items()))
    return freedom._replace(columns={standardize: (coordinates or Coordinates()).followed_by(metric.root)})


def _freedom(settings: Settings, rows: RowSource, *, begin: bool) -> Freedom:
    owner, given = settings.owner, settings.features
    check_count(owner, "n_components", given.n_components)
    kernel = look_up(owner, catalogue.kernel, given.kernel) if isinstance(given.kernel, str) else given.kernel
    gamma, bandwidth = given.gamma, False
    if is_auto(gamma):
        bandwidth = isinstance(kernel, Kernel) and kernel.has_bandwidth and np.ndim(kernel.bandwidth) == 0
        bandwidth = bool(bandwidth and kernel.bandwidth == 1.0)
        gamma = None
    maps: tuple[str, ...] = (GIVEN,)
    exact = False
    if is_auto(given.map):
        maps, exact = _maps(given, rows, begin=begin)
        given = given._replace(map=None)
    columns = _columns(settings, rows, searched=bandwidth)
    return Freedom(
        owner,
        given._replace(kernel=kernel if bandwidth else given.kernel, gamma=gamma),
        bandwidth,
        maps,
        columns,
        _alphas(settings, rows.n_targets),
        settings.intercept,
        settings.alike,
        settings.whole,
        exact,
    )


def _maps(given: FeatureParameters, rows: RowSource, *, begin: bool) -> tuple[tuple[str, ...], bool]:
    """Maps to choose among, and whether landmarks are exact."""
    d, width = rows.shape[1], int(given.n_components)
    if given.projection is not None or given.kernel is None or width * d > _SAMPLE_NUMBERS:
        return (RANDOM,), False
    n = rows.count()
    if begin:  # landmarks of the first rows must serve those that come
        return ((RANDOM, LANDMARKS) if n >= 2 * width else (RANDOM,)), False
    return ((LANDMARKS,), True) if n <= width else ((RANDOM, LANDMARKS), False)


def _columns(settings: Settings, rows: RowSource, *, searched: bool) -> dict[bool, Coordinates | None]:
    """Coordinates to choose among, preferred ones first, each followed by a metric that is given."""
    columns = _plain_columns(settings, rows, searched=searched)
    if settings.metric is None or _learns(settings):
        return columns
    root = given_root(settings.owner, settings.metric, rows.shape[1])
    return {standardize: (found or Coordinates()).followed_by(root) for standardize, found in columns.items()}


def _plain_columns(settings: Settings, rows: RowSource, *, searched: bool) -> dict[bool, Coordinates | None]:
    """Standardised or as they are."""
    if settings.standardize is not None:
        check_flag(settings.owner, "standardize", settings.standardize)
        return {settings.standardize: Coordinates.standard(rows) if settings.standardize else None}
    if not searched:
        return {False: None}
    standard = Coordinates.standard(rows)
    assert standard.scale is not None
    alike = np.ptp(np.log(standard.scale)) < np.log(_SAME_SCALE)
    return {True: standard} if alike else {True: standard, False: None}


def _alphas(settings: Settings, n_targets: int) -> np.ndarray | None:
    """Strengths of the trials: one that is given, or those to choose among."""
    if isinstance(settings.alpha, str):
        return None if settings.alphas is None else np.sort(Ridge(settings.owner, "loo", settings.alphas).grid())
    Ridge(settings.owner, settings.alpha).check(n_targets, in_memory=True)
    return np.maximum(np.atleast_1d(np.median(np.asarray(settings.alpha, dtype=np.float64))), 1e-12)


def _sampled(rows: RowSource, n: int, rng: np.random.Generator) -> Chunk:
    """Rows in random order, as many as memory allows."""
    chunk = rows.sample_weighted(max(min(n, _SAMPLE_NUMBERS // rows.shape[1]), _LEAST_ROWS), rng)
    rows.check_weight(float(len(chunk.X)))
    return chunk.taken(rng.permutation(len(chunk.X)))


def is_auto(value: Any) -> bool:
    """Whether a parameter is left open."""
    return isinstance(value, str) and value == "auto"
