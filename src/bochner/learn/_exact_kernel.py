"""The exact kernel machine: ``map="exact"``, whose features are the kernel with all rows of the fit."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from .._validation import check_option, shown
from ..approximation import Approximation
from ..approximation.files import plan_from_json, plan_to_json
from ..kernels import Kernel
from ..linalg.engine import for_each_tile, rows_per_tile
from ..maps import Landmarks
from ._changed_rows import in_coordinates
from ._chooser import is_auto
from ._coordinates import Coordinates
from ._feature_parameters import FeatureParameters, resolved_kernel
from ._linear.kernel_equations import far_above_rounding, solve_kernel
from ._linear.leave_one_out import GramFit, Judged, Score
from ._linear.ridge import Ridge, RidgeModel, Solution
from ._row_source import RowSource
from ._selection import EXACT_TRIAL_ROWS, GIVEN, LEARNED, Selection
from ._uncertainty import KeptRows

EXACT = "exact"
SOLVERS = ("auto", "dual", "cg")
_TRIED_ROWS, _FEWEST = 4096, 1600
"""Rows of each half on which bandwidth and alpha are tried again, and rows of all from which that is worth it."""
_OF_CLASSES = 10.0
"""Tolerances of conjugate gradients for classes: wrong ones of krkopt stand still at a hundred times as many."""
_WORTH = 0.01  # share of the error for which a walk goes on
_MOST_TRIALS = 6  # steps of a walk, each of which is a factorisation of `_TRIED_ROWS` rows: a second or two


def is_exact(value: Any) -> bool:
    """Whether a map is asked for by this name."""
    return isinstance(value, str) and value == EXACT


@dataclass(frozen=True)
class ExactKernel:
    """The kernel with the rows of a fit, in place of drawn features."""

    plan: str  # specification with the kernel, as JSON
    points: np.ndarray = field(repr=False)  # (n, d): the rows, in the coordinates of the kernel

    symmetric = True

    @classmethod
    def of(cls, kernel: Kernel, points: np.ndarray) -> ExactKernel:
        """The kernel with these rows."""
        return cls(plan_to_json(Approximation(kernel, Landmarks())), points)

    @cached_property
    def spec(self) -> Approximation:
        """Specification with the kernel."""
        return plan_from_json(self.plan)

    @property
    def n_features_in(self) -> int:
        """Columns of the rows."""
        return int(self.points.shape[1])

    @property
    def n_features_out(self) -> int:
        """Number of the rows."""
        return len(self.points)

    @property
    def features(self) -> ExactKernel:
        """Itself: there is nothing drawn."""
        return self

    def factored(self, *, stable: bool) -> None:
        """Return None: they are no others times a matrix."""

    def at_points(self, X: Any) -> np.ndarray:
        """Which rows are landmarks: none, since a row that is left out takes its kernel along."""
        return np.zeros(X.shape[0], dtype=bool)

    def at_unit_scale(self, X: Any) -> Any:
        """Rows as they are."""
        return X

    def queries(self, X: Any) -> np.ndarray:
        """Return the kernel of rows X (m, d) with the rows of the fit, (m, n), in the precision of X."""
        out = np.empty((X.shape[0], len(self.points)), X.dtype)

        def tile(i: int, j: int) -> None:
            self.fill_queries(X[i:j], out[i:j])

        for_each_tile(len(out), rows_per_tile(out.itemsize * max(out.shape[1], 1)), tile)
        return out

    def fill_queries(self, X: Any, out: np.ndarray) -> None:
        """Write the kernel of a tile of rows."""
        rows = X.toarray() if hasattr(X, "toarray") else X
        out[:] = self._columns(np.dtype(rows.dtype))(rows)

    def _columns(self, dtype: np.dtype) -> Any:
        known = self.__dict__.setdefault("_prepared", {})
        if dtype not in known:
            assert self.spec.kernel is not None
            known[dtype] = self.spec.kernel.columns(self.points.astype(dtype, copy=False))
        return known[dtype]

    def __getstate__(self) -> dict[str, Any]:
        return {"plan": self.plan, "points": self.points}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


def check_exact(machine: Any, rows: RowSource, *, begin: bool) -> None:
    """Refuse options that mean nothing for an exact kernel, and rows that it cannot have."""
    owner = type(machine).__name__
    check_option(owner, "solver", machine.solver, SOLVERS)
    if not is_auto(machine.n_components) or machine.projection is not None:
        raise ValueError(
            f"{owner}: map='exact' has no width and no projection, got n_components={shown(machine.n_components)} and "
            f"projection={shown(machine.projection)}; leave them out."
        )
    if begin or not rows.in_memory:
        raise ValueError(
            f"{owner}: map='exact' needs all rows in one place; for streams and Dask collections use 'auto'."
        )
    given = machine.alpha
    if is_auto(given):
        return
    if not isinstance(given, float | int | np.number) or not given > 0:
        raise ValueError(f"{owner}: alpha must be 'auto' or a positive number for map='exact', got {shown(given)}.")


def fit_exact(
    machine: Any,
    parameters: FeatureParameters,
    coordinates: Coordinates | None,
    selection: Selection | None,
    rows: RowSource,
    kept: KeptRows | None,
    *,
    classes: bool,
) -> tuple[Any, RidgeModel, Selection | None, KeptRows | None]:
    """Solve the equations of all rows, at a bandwidth and an alpha that are tried again on more rows than the search had.

    Parameters
    ----------
    machine : KernelMachine
    parameters : FeatureParameters
        What was chosen.
    coordinates : Coordinates or None
    selection : Selection or None
    rows : RowSource
        In memory; equal ones are merged if anything was left open.
    kept : KeptRows or None
        Rows whose left-out errors are wanted.
    classes : bool
        Whether targets are signs of classes.
    """
    owner, open_alpha = type(machine).__name__, is_auto(machine.alpha)
    X, Y, weights = rows.gathered()
    Z = np.ascontiguousarray(X if coordinates is None else coordinates(X))
    kernel = resolved_kernel(parameters, in_coordinates(coordinates, rows), machine.random_state)
    if not open_alpha:
        alpha = float(machine.alpha)
    elif selection is not None:
        alpha = float(selection.alpha)
    else:
        score = _leave_one_out(machine, kernel, Z, Y, weights, classes=classes)
        alpha, said = score.alpha, f"alpha {score.alpha:.3g} by leave-one-out errors of {len(score.losses)} rows."
        selection = Selection(repr(kernel), GIVEN, GIVEN, EXACT, len(Z), alpha, score.error, score.standard_error, said)
    given = machine.kernel  # another bandwidth than one stays, as in the search
    free = is_auto(machine.gamma) and kernel.has_bandwidth and (isinstance(given, str) or given.bandwidth == 1.0)
    if selection is not None and len(Z) >= _FEWEST and (free or open_alpha):
        kernel, alpha, error, spread = _tried_again(
            kernel,
            alpha,
            Z,
            Y,
            weights,
            classes=classes,
            intercept=machine.fit_intercept,
            free=free,
            alpha_free=open_alpha,
        )
        selection = _told(selection, kernel, alpha, error, spread, len(Z))
    elif selection is not None:
        selection = replace(selection, alpha=alpha)
    numbers = None if kept is None else rows.places_of(kept.X)  # type: ignore[attr-defined]
    found = solve_kernel(
        owner, kernel, Z, Y, weights, alpha, intercept=machine.fit_intercept, solver=machine.solver, left_out=numbers,
        enough=_OF_CLASSES if classes else 1.0, verbose=machine.verbose,
    )  # fmt: skip
    options = Ridge(owner, alpha, machine.alphas, machine.fit_intercept, machine.solver)
    model = RidgeModel(options, None, found=Solution(found.coefficients, found.intercept, alpha))
    kept = None if kept is None or found.left_out is None else kept._replace(gaps=found.left_out)
    return ExactKernel.of(kernel, Z), model, selection, kept


def _leave_one_out(
    machine: Any, kernel: Kernel, Z: np.ndarray, Y: np.ndarray, weights: np.ndarray | None, *, classes: bool
) -> Score:
    """Alpha by the leave-one-out errors of some rows, where nothing else was searched for."""
    some = np.random.default_rng(0).permutation(len(Z))[:EXACT_TRIAL_ROWS]
    judged = Judged.of(Y, weights, classes=classes).taken(some)
    fit = GramFit.of(kernel(Z[some]), judged.targets, judged.weights, intercept=machine.fit_intercept)
    grid = None if machine.alphas is None else np.sort(Ridge(type(machine).__name__, "loo", machine.alphas).grid())
    return fit.score(judged, grid)


def _stretched(kernel: Kernel, factor: float) -> Kernel:
    return kernel.with_bandwidth(np.asarray(kernel.bandwidth) * factor)


def _tried_again(
    kernel: Kernel,
    alpha: float,
    Z: np.ndarray,
    Y: np.ndarray,
    weights: np.ndarray | None,
    *,
    classes: bool,
    intercept: bool,
    free: bool,
    alpha_free: bool,
) -> tuple[Kernel, float, float, float]:
    """Bandwidth and alpha of the least error of held-out rows, from those of fewer rows downhill."""
    order = np.random.default_rng(0).permutation(len(Z))
    half = min(_TRIED_ROWS, len(Z) // 2)
    train, test = order[:half], order[half : 2 * half]
    judged = Judged.of(Y, weights, classes=classes).taken(test)
    own = None if weights is None else weights[train]

    def error(at: Kernel, alpha: float) -> tuple[float, float]:
        single = far_above_rounding(at, Z[train], alpha)
        rows, new = (Z[some].astype(np.float32 if single else np.float64) for some in (train, test))
        c, b, _ = solve_kernel("", at, rows, Y[train], own, alpha, intercept=intercept, single=single)
        gaps = judged.targets - (ExactKernel.of(at, rows).queries(new) @ c.astype(rows.dtype) + b)
        losses = judged.losses(gaps)
        return float(judged.mean(losses)), float(judged.spread(losses))

    best = (error(kernel, alpha), kernel, alpha)
    for what, size in (("bandwidth", 2**-0.5), ("alpha", 10**-0.5), ("bandwidth", 2**-0.25)):
        if not (free if what == "bandwidth" else alpha_free):
            continue
        for factor in (size, 1 / size):
            before = best
            for _ in range(_MOST_TRIALS):
                at = _stretched(best[1], factor) if what == "bandwidth" else best[1]
                alpha = best[2] if what == "bandwidth" else best[2] * factor
                found = error(at, alpha)
                if not found[0] < (1 - _WORTH) * best[0][0]:
                    break
                best = (found, at, alpha)
            if best is not before:
                break
    return best[1], best[2], *best[0]


def _told(selection: Selection, kernel: Kernel, alpha: float, error: float, spread: float, n: int) -> Selection:
    half = min(_TRIED_ROWS, n // 2)
    said = f"the exact kernel of {n} rows; bandwidth and alpha {alpha:.3g} by {half} held-out rows of as many"
    if selection.metric in LEARNED:  # held-out rows of the search have judged these
        error, spread = selection.error, selection.standard_error
    return replace(
        selection, kernel=repr(kernel), map=EXACT, n_components=n, alpha=alpha, error=error, standard_error=spread,
        reason=f"{said}; {selection.reason}",
    )  # fmt: skip
