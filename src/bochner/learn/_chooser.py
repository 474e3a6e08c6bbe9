"""The automatic mode of the kernel machines: what the parameters leave open is chosen on a sample of the rows.

`choose` reads what is told, `Search` tries candidates for the rest, `Selection` says what was chosen and why, and
`fit_chosen` fits all rows and chooses alpha by leave-one-out errors.
"""

from __future__ import annotations

import logging
import math
import time
import warnings
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .. import catalogue, kernels
from .._validation import check_count, check_option, shown
from ..approximation import Approximation
from ..kernels import Kernel
from ..maps import Landmarks
from ..reporting import format_table
from ._coordinates import Coordinates
from ._feature_parameters import FeatureParameters, as_generator, look_up
from ._linear.leave_one_out import Judged, Score, about, best_of_many, fitted, grid_of, new_to, walk
from ._linear.moments import Moments
from ._linear.ridge import Ridge, RidgeModel
from ._linear.spectrum import NormalEquations
from ._metric import given_root
from ._row_source import Chunk, RowSource
from ._search import (
    AT_POINTS,
    CLIPPED,
    COMPRESSED,
    EXACT_ROWS,
    EXACT_TRIAL_ROWS,
    GIVEN,
    LANDMARKS,
    LEARNED,
    MOST_LEARNED,
    PIVOTS,
    RANDOM,
    RAW,
    SHORTEST,
    STANDARD,
    Search,
    Trial,
)

_LOG = logging.getLogger("bochner")
_SAMPLE_ROWS, _SAMPLE_NUMBERS, _LEAST_ROWS = 8192, 1 << 25, 64
"""Rows of the sample, the numbers that it may have (256 MB), and the rows that it has in any case."""
_JUDGED_ROWS = 2048
"""Rows whose leave-one-out errors choose the alpha of the final fit."""
_LARGEST_ORDER = 2048
"""Order of a matrix up to which it is decomposed, rather than factored for one alpha after another."""
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
_NOTHING, _TOLD = 0.95, 100
"""Share of the error of a constant prediction from which a fit explains nothing, and rows from which that is said."""


@dataclass(frozen=True)
class Selection:
    """The choice of the automatic mode: a value to print, with the table of all candidates.

    Attributes
    ----------
    kernel : str
        The kernel with its bandwidth.
    columns : str
        "standardised", "clipped" (at five robust deviations), "compressed" (long tails to about their logarithms), "as
        they are", or standardised with another scale of categories.
    metric : str
        "none", "columns" (a scale of each), "learned" (a matrix) or "given".
    map : str
        "exact" (landmarks at all rows), "random features", "landmarks" (uniform ones), "pivoted landmarks" or "given".
    n_components : int
        Width of the features.
    alpha : float or array
        Regularisation.
    error, standard_error : float
        Leave-one-out error of the choice, in units of the variance of the targets, and its standard error.  For classes,
        the share of wrong ones plus a tenth of that.
    reason : str
        Why, in words.
    edges : tuple of str
        What deserves a warning: an error near that of a constant, or a bandwidth at the limit of the search.
    candidates : dict of str to list
        A table, one row for each candidate: what it was, and its error on how many rows, at which width.
    seconds : float
        How long the search took.
    """

    kernel: str
    columns: str
    metric: str
    map: str
    n_components: int
    alpha: Any
    error: float
    standard_error: float
    reason: str
    edges: tuple[str, ...] = ()
    candidates: dict[str, list[Any]] = field(default_factory=dict, repr=False)
    seconds: float = 0.0

    def __repr__(self) -> str:
        head = (
            f"Selection({self.kernel}, columns {self.columns}, metric {self.metric}, {self.map} of width "
            f"{self.n_components}, alpha={_number(self.alpha)}, leave-one-out error={self.error:.3g} +- "
            f"{self.standard_error:.1g})"
        )
        return "\n".join([head, self.reason, *self.edges, *([self.table()] if self.candidates else [])])

    def table(self) -> str:
        """Return the candidates as text, in the order in which they were tried."""
        rows = zip(*self.candidates.values(), strict=True)
        return format_table(list(self.candidates), [[_number(value) for value in row] for row in rows])

    def announce(self, owner: str) -> None:
        """Log the choice, and warn of what deserves it."""
        _LOG.info("%s: %s", owner, self.reason)
        for edge in self.edges:
            warnings.warn(f"{owner}: {edge}", UserWarning, stacklevel=2)


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
    selection = _selection(search, best, machine, given_metric=isinstance(machine.metric, np.ndarray | list | tuple))
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


def _selection(search: Search, best: Trial, machine: Any, *, given_metric: bool) -> Selection:
    seconds = time.perf_counter() - search.begun
    table: dict[str, list[Any]] = {
        "kernel": [_short(t.kernel) for t in search.tried],
        "columns": [t.columns for t in search.tried],
        "metric": ["given" if given_metric else t.metric for t in search.tried],
        "map": [t.map for t in search.tried],
        "bandwidth": [_bandwidth(t.kernel) for t in search.tried],
        "alpha": [t.score.alpha for t in search.tried],
        "error": [t.error for t in search.tried],
        "standard_error": [t.score.standard_error for t in search.tried],
        "n_rows": [t.n_rows for t in search.tried],
        "width": [t.width for t in search.tried],
    }
    return Selection(
        repr(best.kernel),
        best.columns,
        "given" if given_metric else best.metric,
        best.map,
        best.width,
        best.score.alpha if is_auto(machine.alpha) else machine.alpha,
        best.error,
        best.score.standard_error,
        _reason(search, best, seconds),
        _edges(search, best),
        table,
        seconds,
    )


def _reason(search: Search, best: Trial, seconds: float) -> str:
    """Return why this candidate was chosen, in words."""
    n = len(search.sample.X)
    parts = [
        f"{len(search.tried)} candidates by errors of left-out rows, on {n} of {search.n_rows} rows in {seconds:.1f} s"
    ]
    if len(search.kernels) > 1:
        parts.append(f"{_short(best.kernel)} kernel{_others(search, 'kernel', best)}")
    if search.bandwidth and not math.isnan(best.step):
        parts.append(f"bandwidth {_bandwidth(best.kernel):.3g}, {2**best.step:.3g} times the median distance")
    if len(search.columns) > 1:
        parts.append(f"columns {best.columns}{_others(search, 'columns', best)}")
    if search.metrics:
        if best.metric == "none":
            parts.append("no metric, since none that was learned had a clearly lower error of held-out rows")
        else:
            kind = "a scale of each column" if best.metric == "columns" else "a matrix"
            held = f"{search.with_metric:.3g} against {search.without_metric:.3g} without"
            parts.append(f"learned metric, {kind}, held-out error {held}")
    if best.map == "exact":
        parts.append("landmarks at all rows, which make the kernel exact")
    elif best.map in (LANDMARKS, PIVOTS, RANDOM):
        parts.append(f"{best.map} of width {best.width}{_others(search, 'map', best)}")
    return "; ".join(parts) + "."


def _others(search: Search, name: str, best: Trial) -> str:
    """Return the errors of the best candidates of other kinds, judged as the best one of this kind was."""

    def kind(trial: Trial) -> str:
        return _short(trial.kernel) if name == "kernel" else str(getattr(trial, name))

    stage = [t for t in search.tried if t.metric == "none" and (t.map == "exact") == (name != "map")]
    usual = Counter(t.n_rows for t in stage).most_common(1)[0][0] if stage else 0
    stage = [t for t in stage if t.n_rows == usual]
    least: dict[str, float] = {}
    for trial in stage:
        least[kind(trial)] = min(trial.error, least.get(kind(trial), np.inf))
    own = least.pop(kind(best), math.nan)
    if not least or not own <= min(least.values()):
        return ""  # it was chosen on more rows or at another width, and these errors are no reason for it
    others = ", ".join(f"{error:.3g} {other}" for other, error in sorted(least.items(), key=lambda pair: pair[1]))
    return f", error {own:.3g} against {others}"


def _edges(search: Search, best: Trial) -> tuple[str, ...]:
    """Return what deserves a warning."""
    if len(search.sample.X) < _TOLD:
        return ()
    if best.error > _NOTHING * search.nothing or not search.explains(best):
        return (
            f"the fit explains nothing: its leave-one-out error is {best.error:.3g}, and that of a constant "
            f"{search.nothing:.3g}.",
        )
    if search.bandwidth and best.step <= SHORTEST:  # long ones have a limit, to which predictions tend
        return (
            f"the bandwidth {_bandwidth(best.kernel):.3g} is at the limit of the search, {2**best.step:.3g} times the "
            f"median distance; transform the columns (logarithms?) or pass gamma.",
        )
    return ()


def _short(kernel: Any) -> str:
    """Return the kernel without its bandwidth."""
    if not isinstance(kernel, Kernel) or not kernel.has_bandwidth or np.ndim(kernel.bandwidth):
        return repr(kernel)
    text = repr(kernel.with_bandwidth(1.0))
    return text.replace("lengthscale=1.0", "").replace("scale=1.0", "").replace(", )", ")").replace("()", "")


def _bandwidth(kernel: Any) -> float:
    found = kernel.bandwidth if isinstance(kernel, Kernel) else math.nan
    return float(found) if isinstance(found, float | int) else math.nan


def _number(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


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
