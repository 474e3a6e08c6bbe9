"""The automatic mode of the kernel machines: what the parameters leave open is chosen on a sample of the rows.

`choose` reads what is told, `Search` tries candidates for the rest, and `Selection` says what was chosen and why; then
`bochner.learn._alpha` fits all rows and chooses alpha by leave-one-out errors.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from .. import catalogue, kernels
from .._validation import check_count, check_option, shown
from ..approximation import Approximation
from ..kernels import Kernel
from ..maps import Landmarks
from ._coordinates import Coordinates
from ._feature_parameters import FeatureParameters, as_generator, look_up
from ._linear.leave_one_out import Score
from ._linear.ridge import Ridge
from ._metric import given_root
from ._metric_search import MOST_LEARNED
from ._row_source import Chunk, RowSource
from ._search import AT_POINTS, EXACT_ROWS, Search
from ._selection import (
    CLIPPED,
    COMPRESSED,
    EXACT_TRIAL_ROWS,
    GIVEN,
    LANDMARKS,
    LEARNED,
    RANDOM,
    RAW,
    STANDARD,
    Selection,
    Trial,
    selected,
)

_SAMPLE_ROWS, _SAMPLE_NUMBERS, _LEAST_ROWS = 8192, 1 << 25, 64
"""Rows of the sample, the numbers that it may have (256 MB), and the rows that it has in any case."""
_JUDGED_ROWS = 2048
"""Rows whose leave-one-out errors choose the alpha of the final fit."""
_SAME_SCALE = 1.5
"""Ratio of the deviations of columns up to which it does not matter whether they are standardised."""
_OUTLYING, _LIMIT = 8.0, 5.0
"""Standard deviations from which clipping is tried, and where columns are clipped, in robust deviations."""
_CATEGORY_FACTORS = (0.5, 2.0)
"""Scales of categories beside that of a standardised column."""
_WIDE_COLUMNS = 2000
"""Columns from which the Laplacian kernel, whose distances are not matrix products, is not tried but the linear one is."""
_STREAM_WIDTH, _STREAM_ROWS = 1024, 256
"""Width of a stream, whose length is not known, and the rows of its first call below which a warning is due."""


def is_auto(value: Any) -> bool:
    """Whether a parameter is left open."""
    return isinstance(value, str) and value == "auto"


def _is_exact(value: Any) -> bool:
    return isinstance(value, str) and value == "exact"


def leaves_open(machine: Any) -> bool:
    """Whether a machine has anything to choose from its rows, alpha by a criterion included."""
    open_ones = (machine.kernel, machine.gamma, machine.metric, machine.map, machine.n_components, machine.standardize)
    return any(map(is_auto, open_ones)) or isinstance(machine.alpha, str)


def choose(
    machine: Any, rows: RowSource, *, classes: bool, begin: bool
) -> tuple[FeatureParameters, Coordinates | None, Selection | None, Chunk | None]:
    """Choose what the parameters of a machine leave open, on a sample of the rows.

    Parameters
    ----------
    machine : KernelMachine
        With its parameters.
    rows : RowSource
        Equal rows are merged already.
    classes : bool
        Whether targets are signs of classes.
    begin : bool
        Whether these are the first rows of a stream: landmarks of them must serve those that come.

    Returns
    -------
    parameters : FeatureParameters
        With nothing left open.
    coordinates : Coordinates or None
    selection : Selection or None
        None if nothing was left open, except for alpha.
    sample : Chunk or None
        Rows to choose alpha by; None if it is given.
    """
    owner, rng = type(machine).__name__, as_generator(machine.random_state)
    seed = int(rng.integers(2**31))  # before anything that depends on the number of rows
    kernel, bandwidth = _kernels(machine, rows, owner)
    searches = bandwidth or len(kernel) > 1
    columns, metrics = (
        _columns(machine, rows, owner, rng, searched=searches),
        _metrics(machine, owner, rows.shape[1], searched=bandwidth),
    )
    maps, width = _maps(machine, rows, owner, kernel[0], begin=begin)
    judged = is_auto(machine.alpha)
    trials = searches or len(columns) > 1 or len(maps) > 1 or (width is None and maps != ("exact",))
    sample = _sampled(rows, _SAMPLE_ROWS if trials else _JUDGED_ROWS, rng) if trials or judged else None
    given = machine._parameters()
    told = given._replace(
        kernel=given.kernel if kernel[0] is None or (isinstance(given.kernel, str) and not searches) else kernel[0],
        gamma=None if is_auto(given.gamma) else given.gamma,
    )
    if is_auto(given.kernel) and not searches:
        told = told._replace(kernel=kernels.Gaussian() if told.gamma is None else "gaussian")
    coordinates = next(iter(columns.values()))
    if not trials or sample is None:
        found = _with_map(told, maps[0], width, rows)
        return found, coordinates, None, sample if judged else None
    search = Search(
        owner, sample, rows.count(), kernels=kernel, bandwidth=bandwidth, columns=columns, metrics=metrics,
        classes=classes, intercept=machine.fit_intercept, alphas=_alphas(machine, owner, rows.n_targets), seed=seed,
    )  # fmt: skip
    best = search.exact() if kernel[0] is not None and (searches or len(columns) > 1) else _start(told, columns)
    if maps != ("exact",):
        best = search.featured(best, told._replace(kernel=best.kernel), maps, width)
    else:
        best = best._replace(map="exact", width=rows.count())
    if bandwidth and any(c is not None and c.center is not None for c in columns.values()):  # not of sparse rows
        best = best._replace(coordinates=(best.coordinates or Coordinates()).bounded(sample.X))
    found = _with_map(
        told._replace(kernel=best.kernel, gamma=told.gamma if not searches else None), best.map, best.width, rows
    )
    given_metric = isinstance(machine.metric, np.ndarray | list | tuple)
    selection = selected(search, best, alpha=None if judged else machine.alpha, given_metric=given_metric)
    if begin and rows.count() < _STREAM_ROWS:
        small = (
            f"everything was chosen on the {rows.count()} rows of the first call of partial_fit; begin with more rows, or "
            f"pass the kernel, gamma and alpha."
        )
        selection = replace(selection, edges=(*selection.edges, small))
    if not judged:
        return found, best.coordinates, selection, None
    first = MOST_LEARNED if best.metric in LEARNED and len(sample.X) >= 2 * EXACT_TRIAL_ROWS else 0
    return found, best.coordinates, selection, sample.taken(slice(first, first + _JUDGED_ROWS))


def _kernels(machine: Any, rows: RowSource, owner: str) -> tuple[tuple[Any, ...], bool]:
    """Candidates, and whether their bandwidth is free."""
    given, told = machine.kernel, not is_auto(machine.gamma)
    if is_auto(given):
        if told:
            return (kernels.Gaussian(),), False  # gamma belongs to a kernel, and without one to this
        wide = rows.shape[1] > _WIDE_COLUMNS
        found: tuple[Any, ...] = (kernels.Gaussian(), kernels.Matern(1.5))
        if not wide:
            found = (*found, kernels.Laplacian(), kernels.ExponentialPower(1.0))
        if machine.projection is not None or not (
            machine.map is None or is_auto(machine.map) or _is_exact(machine.map)
        ):
            found = tuple(kernel for kernel in found if _serves(machine, kernel, owner)) or found[:1]
        return found, True
    kernel = look_up(owner, catalogue.kernel, given) if isinstance(given, str) else given
    free = isinstance(kernel, Kernel) and kernel.has_bandwidth and np.ndim(kernel.bandwidth) == 0
    return (kernel,), bool(not told and free and kernel.bandwidth == 1.0)


def _serves(machine: Any, kernel: Kernel, owner: str) -> bool:
    """Whether the map and the projection that are given estimate a kernel."""
    parts: list[Any] = []
    for given, find in ((machine.map, catalogue.map), (machine.projection, catalogue.projection)):
        named = isinstance(given, str) and not is_auto(given)
        parts.append(look_up(owner, find, given) if named else None if is_auto(given) else given)
    try:
        Approximation(kernel, *parts)
    except (TypeError, ValueError):
        return False
    return True


def _columns(
    machine: Any, rows: RowSource, owner: str, rng: np.random.Generator, *, searched: bool
) -> dict[str, Coordinates | None]:
    """Candidates of coordinates, preferred ones first, each followed by a metric that is given."""
    columns = _plain_columns(machine.standardize, rows, owner, rng, searched=searched)
    if machine.metric is None or isinstance(machine.metric, str):
        return columns
    root = given_root(owner, machine.metric, rows.shape[1])
    return {name: (found or Coordinates()).followed_by(root) for name, found in columns.items()}


def _plain_columns(
    given: Any, rows: RowSource, owner: str, rng: np.random.Generator, *, searched: bool
) -> dict[str, Coordinates | None]:
    if (
        not is_auto(given)
        and not isinstance(given, bool | np.bool_)
        and not (isinstance(given, str) and given == "robust")
    ):
        raise ValueError(f"{owner}: standardize must be 'auto', True, False or 'robust', got {shown(given)}.")
    if given is False or (is_auto(given) and not searched):
        return {RAW: None}
    standard = Coordinates.standard(rows)
    assert standard.scale is not None
    if given is True:
        return {STANDARD: standard}
    seen = None if standard.center is None else rows.sample(_SAMPLE_ROWS, np.random.default_rng(0))
    if given == "robust":
        if seen is None:
            raise ValueError(
                f"{owner}: standardize='robust' centres columns, and sparse rows stay as they are; use True."
            )
        return {CLIPPED: Coordinates.robust(seen, _LIMIT, rows.blocks)}
    found: dict[str, Coordinates | None] = {STANDARD: standard}
    if np.ptp(np.log(standard.scale)) >= np.log(_SAME_SCALE):
        found[RAW] = None
    if seen is not None and np.abs(standard(seen.astype(np.float64))).max(initial=0.0) > _OUTLYING:
        found[CLIPPED] = Coordinates.robust(seen, _LIMIT, rows.blocks)
    compressing = None if seen is None else Coordinates.compressing(seen, rows.blocks)
    if compressing is not None:
        found[COMPRESSED] = compressing
    if rows.blocks and len(rows.blocks) < rows.shape[1]:
        for factor in _CATEGORY_FACTORS:
            found[f"standardised, categories x {factor:g}"] = standard.with_blocks(rows.blocks, factor)
    return found


def _metrics(machine: Any, owner: str, d: int, *, searched: bool) -> tuple[str, ...]:
    """Metrics to learn, beside none."""
    if not isinstance(machine.metric, str):
        return ()
    check_option(owner, "metric", machine.metric, ("auto", "columns", "learned"))
    if machine.metric == "auto":
        return ("columns", "learned") if searched and d <= _WIDE_COLUMNS else ()
    if not searched:
        raise ValueError(
            f"{owner}: metric={machine.metric!r} is learned along with the bandwidth, which is given; leave gamma at "
            f"'auto', with a kernel of distances such as kernels.Gaussian(), or pass the metric as an array."
        )
    return ("columns",) if machine.metric == "columns" else ("columns", "learned")


def _maps(machine: Any, rows: RowSource, owner: str, kernel: Any, *, begin: bool) -> tuple[tuple[str, ...], int | None]:
    """Maps to choose among, and the width if it is given.

    "exact" stands for landmarks at all rows, where there are few enough, or no more than a given width.
    """
    if _is_exact(machine.map):
        return ("exact",), None
    width = None if is_auto(machine.n_components) else check_count(owner, "n_components", machine.n_components)
    if not is_auto(machine.map):
        plain = machine.map is None or kernel is None or not _is_landmarks(machine.map, owner)
        n = 0 if plain else rows.count()
        exact = not plain and not begin and width is None and n <= EXACT_ROWS
        return (("exact",) if exact else (GIVEN,)), width if width or not begin else _STREAM_WIDTH
    if machine.projection is not None or kernel is None:
        return (RANDOM,), width if width or not begin else _STREAM_WIDTH
    n = rows.count()
    if begin:  # landmarks of the first rows must serve those that come
        width = width or _STREAM_WIDTH
        return ((RANDOM, LANDMARKS) if n >= 2 * width else (RANDOM,)), width
    return (("exact",) if n <= (width or EXACT_ROWS) else (LANDMARKS, RANDOM)), width


def _is_landmarks(given: Any, owner: str) -> bool:
    found = look_up(owner, catalogue.map, given) if isinstance(given, str) else given
    return isinstance(found, Landmarks) and isinstance(found.pivots, str)


def _with_map(parameters: FeatureParameters, name: str, width: int | None, rows: RowSource) -> FeatureParameters:
    """Parameters with a chosen map and width."""
    if name == "exact":
        return parameters._replace(map=AT_POINTS[LANDMARKS], n_components=max(rows.count(), width or 0))
    feature_map = AT_POINTS.get(name, parameters.map if name == GIVEN else None)
    return parameters._replace(map=feature_map, n_components=_STREAM_WIDTH if width is None else width)


def _start(told: FeatureParameters, columns: dict[str, Coordinates | None]) -> Trial:
    """What is given, before maps are compared."""
    name, coordinates = next(iter(columns.items()))
    unknown = Score(math.nan, np.inf, np.inf, np.empty(0))
    return Trial(told.kernel, name, coordinates, "none", math.nan, "exact", 0, 0, unknown)


def _alphas(machine: Any, owner: str, n_targets: int) -> np.ndarray | None:
    """Values of alpha for the trials: one that is given, or those to choose among."""
    if isinstance(machine.alpha, str):
        return None if machine.alphas is None else np.sort(Ridge(owner, "loo", machine.alphas).grid())
    Ridge(owner, machine.alpha).check(n_targets, in_memory=True)
    return np.maximum(np.atleast_1d(np.median(np.asarray(machine.alpha, dtype=np.float64))), 1e-12)


def _sampled(rows: RowSource, n: int, rng: np.random.Generator) -> Chunk:
    """Rows in random order, as many as memory allows."""
    chunk = rows.sample_weighted(max(min(n, _SAMPLE_NUMBERS // rows.shape[1]), _LEAST_ROWS), rng)
    rows.check_weight(float(len(chunk.X)))
    return chunk.taken(rng.permutation(len(chunk.X)))
