"""The automatic mode of the kernel machines: what the parameters leave open is chosen on a sample of the rows.

`choose` reads what is told, `Search` tries candidates for the rest, each one a `Trial`, and `Selection` says what was chosen
and why; then `fit_chosen` fits all rows and chooses alpha by leave-one-out errors.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .. import catalogue, kernels
from .._validation import check_count, check_option, shown
from ..approximation import Approximation
from ..kernels import Kernel
from ..maps import Landmarks
from ._coordinates import CLIPPED, RAW, STANDARD, Coordinates
from ._feature_parameters import FeatureParameters, as_generator, look_up
from ._linear.leave_one_out import Judged, Score, about, best_of_many, fitted, grid_of, new_to, walk
from ._linear.moments import Moments
from ._linear.ridge import Ridge, RidgeModel
from ._linear.spectrum import NormalEquations
from ._metric import MOST_LEARNED, given_root
from ._row_source import Chunk, RowSource
from ._search import AT_POINTS, EXACT_ROWS, Search
from ._selection import (
    EXACT_TRIAL_ROWS,
    GIVEN,
    LANDMARKS,
    LEARNED,
    PIVOTS,
    RANDOM,
    Selection,
    selected,
)

_SAMPLE_ROWS, _SAMPLE_NUMBERS, _LEAST_ROWS = 8192, 1 << 25, 64
"""Rows of the sample, the numbers that it may have (256 MB), and the rows that it has in any case."""
_JUDGED_ROWS = 2048  # rows whose leave-one-out errors choose the alpha of the final fit
_LARGEST_ORDER = 2048
"""Order of a matrix up to which it is decomposed, rather than factored for one alpha after another."""
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
    columns = _columns(machine, rows, owner, searched=searches)
    metrics = _metrics(machine, owner, rows.shape[1], searched=bandwidth)
    maps, width = _maps(machine, rows, owner, kernel[0], begin=begin)
    judged, told = is_auto(machine.alpha), _told(machine, kernel[0], searched=searches)
    trials = searches or len(columns) > 1 or len(maps) > 1 or (width is None and maps != ("exact",))
    sample = _sampled(rows, _SAMPLE_ROWS if trials else _JUDGED_ROWS, rng) if trials or judged else None
    if not trials or sample is None:
        return _with_map(told, maps[0], width, rows), next(iter(columns.values())), None, sample if judged else None
    search = Search(
        owner, sample, rows.count(), kernels=kernel, bandwidth=bandwidth, columns=columns, metrics=metrics,
        classes=classes, intercept=machine.fit_intercept, alphas=_alphas(machine, owner, rows.n_targets), seed=seed,
    )  # fmt: skip
    best = search.best(told, maps, width)
    found = told._replace(kernel=best.kernel, gamma=told.gamma if not searches else None)
    given_metric = isinstance(machine.metric, np.ndarray | list | tuple)
    selection = selected(search, best, alpha=None if judged else machine.alpha, given_metric=given_metric)
    if begin and rows.count() < _STREAM_ROWS:
        small = (
            f"everything was chosen on the {rows.count()} rows of the first call of partial_fit; begin with more rows, or "
            f"pass the kernel, gamma and alpha."
        )
        selection = replace(selection, edges=(*selection.edges, small))
    first = MOST_LEARNED if best.metric in LEARNED and len(sample.X) >= 2 * EXACT_TRIAL_ROWS else 0
    by = sample.taken(slice(first, first + _JUDGED_ROWS)) if judged else None
    return _with_map(found, best.map, best.width, rows), best.coordinates, selection, by


def _told(machine: Any, kernel: Any, *, searched: bool) -> FeatureParameters:
    """Parameters as far as they are given, with a kernel to begin with."""
    given: FeatureParameters = machine._parameters()
    told = given._replace(
        kernel=given.kernel if kernel is None or (isinstance(given.kernel, str) and not searched) else kernel,
        gamma=None if is_auto(given.gamma) else given.gamma,
    )
    if is_auto(given.kernel) and not searched:
        told = told._replace(kernel=kernels.Gaussian() if told.gamma is None else "gaussian")
    return told


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


def _columns(machine: Any, rows: RowSource, owner: str, *, searched: bool) -> dict[str, Coordinates | None]:
    """Candidates of coordinates, preferred ones first, each followed by a metric that is given."""
    given = machine.standardize
    named = isinstance(given, str) and given in ("auto", "robust")
    if not named and not isinstance(given, bool | np.bool_):
        raise ValueError(f"{owner}: standardize must be 'auto', True, False or 'robust', got {shown(given)}.")
    columns: dict[str, Coordinates | None]
    if given is False or (is_auto(given) and not searched):
        columns = {RAW: None}
    elif given is True:
        columns = {STANDARD: Coordinates.standard(rows)}
    elif given == "robust":
        columns = {CLIPPED: Coordinates.clipped(rows)}
    else:
        columns = Coordinates.candidates(rows)
    if machine.metric is None or isinstance(machine.metric, str):
        return columns
    root = given_root(owner, machine.metric, rows.shape[1])
    return {name: (found or Coordinates()).followed_by(root) for name, found in columns.items()}


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


def fit_chosen(
    method: Ridge,
    phi: Any,
    rows: RowSource,
    selection: Selection | None,
    sample: Chunk | None,
    *,
    begin: bool,
    classes: bool,
    verbose: Any,
) -> tuple[RidgeModel, Selection | None]:
    """Fit all rows, or begin a stream with them, with alpha by left-out errors of some of them where it is left open."""
    if sample is None:
        return (method.begin if begin else method.fit)(phi, rows, verbose=verbose), selection
    start = None if selection is None else selection.alpha
    learned = selection is not None and selection.metric in LEARNED
    if learned and not begin and len(sample.X) < 2 * EXACT_TRIAL_ROWS:  # held-out rows have chosen it
        return replace(method, alpha=start).fit(phi, rows, verbose=verbose), selection
    prepared = replace(method, alpha="gcv" if start is None else start / 10)
    if not begin:
        prepared.check(rows.n_targets, in_memory=rows.in_memory)
    if begin or phi.n_features_out > _LARGEST_ORDER or method.solver == "cg":
        score = _sampled_alpha(phi, sample, method, classes=classes) if start is None else None
        given = replace(method, alpha=start if score is None else score.alpha)
        early = (given.begin if begin else given.iterated)(phi, rows, verbose=verbose)
        if early is not None:
            return early, _with_alpha(selection, given.alpha, score, method, phi, sample)
    model = prepared.collected(phi, rows, verbose=verbose)
    floor = start if selection is not None and selection.map == PIVOTS else None
    score = refined_alpha(model, phi, sample, start, method, classes=classes, floor=floor)
    model = replace(model, options=replace(method, alpha=score.alpha), found=None).solved(quiet=True)
    return model, _with_alpha(selection, score.alpha, score, method, phi, sample)


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
