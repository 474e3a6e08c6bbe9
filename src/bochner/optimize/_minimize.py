"""Descent along smoothed gradients, from a start to a stopping rule."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .._progress import progress
from .._random import RNG
from .._validation import check_count, check_flag, check_number, check_positive, shown
from ..projections import Projection
from ._evaluation import EvaluationError, Evaluator
from ._gradient import Candidates
from ._strategy import EvolutionStrategy
from ._update_rules import UpdateRule

_MESSAGES = (
    "The target was reached.",
    "The norm of the gradient is within its tolerance.",
    "The value has not improved for as many iterations as the patience allows.",
    "The next iteration would exceed the budget of evaluations.",
    "The maximum number of iterations was reached.",
    "The callback asked to stop.",
    "All directions of an iteration failed.",
)
TARGET, GRADIENT, PATIENCE, BUDGET, ITERATIONS, CALLBACK, FAILED = range(7)
_SUCCESSES = (TARGET, GRADIENT, PATIENCE)


class _Run:
    """The state of one run: the strategy, the evaluator, and the best centre so far."""

    def __init__(self, strategy: EvolutionStrategy, evaluator: Evaluator) -> None:
        self.strategy, self.evaluator = strategy, evaluator
        self.x, self.fun = strategy.x.copy(), math.nan
        self.nit = self.since_improvement = 0

    def look(self) -> float:
        """Evaluate the centre, and keep it if it is the best so far."""
        (value,) = self.evaluator.values([self.strategy.x[None].copy()]).tolist()
        self.since_improvement += 1
        if value < self.fun or (math.isnan(self.fun) and not math.isnan(value)):
            self.x, self.fun, self.since_improvement = self.strategy.x.copy(), value, 0
        return float(value)

    def n_next(self) -> int:
        """Evaluations of one more iteration, up to and including its last centre."""
        return len(self.strategy.ask()) + (0 if self.strategy.estimator == "forward" else 1)

    def move(self, value: float) -> None:
        """One step, from a centre with that value."""
        points: Candidates = self.strategy.ask()
        if self.strategy.estimator == "forward":
            values = np.append(value, self.evaluator.values(itertools.islice(points.tiles(), 1, None)))
        else:
            values = self.evaluator.values(points.tiles())
        self.strategy.tell(values)
        self.nit += 1

    def result(self, status: int | None = None) -> Any:
        """What is known so far."""
        from scipy.optimize import OptimizeResult

        estimate = self.strategy.estimate
        found = OptimizeResult(x=self.x.copy(), fun=self.fun, nit=self.nit, nfev=self.evaluator.n_evaluations)
        found.n_failed = self.evaluator.n_failed
        found.jac = None if estimate is None else estimate.gradient
        found.jac_standard_error = math.nan if estimate is None else estimate.standard_error
        found.center = self.strategy.x.copy()
        if status is not None:
            found.status, found.success, found.message = status, status in _SUCCESSES, _MESSAGES[status]
        return found


def minimize(
    f: Callable[[np.ndarray], Any],
    x0: Any,
    *,
    sigma: float = 0.1,
    learning_rate: float = 0.01,
    projection: Projection | str | None = None,
    n_directions: int | None = None,
    estimator: str = "antithetic",
    optimizer: str | UpdateRule = "adam",
    shaping: str = "raw",
    max_iterations: int = 1000,
    max_evaluations: int | None = None,
    target: float | None = None,
    gradient_tolerance: float | None = None,
    patience: int | None = None,
    callback: Callable[[Any], Any] | None = None,
    verbose: bool = False,
    batched: bool = False,
    map: Any = None,
    rng: RNG = None,
) -> Any:
    r"""Minimise a black box by descent along gradients of its Gaussian smoothing.

    Use it for functions of tens to millions of variables that have no gradient, are noisy, or have many shallow minima.

    Parameters
    ----------
    f : callable
        The function: of a vector (d,), or with ``batched=True`` of a matrix (k, d) with one value per row.
    x0 : array (d,)
        Where the search starts.
    sigma, learning_rate, projection, n_directions, estimator, optimizer, shaping, rng
        As in `EvolutionStrategy`.
    max_iterations : int
        Most iterations.
    max_evaluations : int, optional
        Budget of evaluations, never exceeded.
    target : float, optional
        Stop when the value at the centre is at most this.
    gradient_tolerance : float, optional
        Stop when the norm of the gradient estimate is at most this.
    patience : int, optional
        Stop when that many iterations have not improved the value at the centre.
    callback : callable, optional
        Called after each iteration with the result so far, as ``callback(result)``; it stops the search by returning True
        or by raising StopIteration.
    verbose : bool
        Whether a progress bar is shown.
    batched, map
        As in `smoothed_gradient`.

    Returns
    -------
    scipy.optimize.OptimizeResult
        ``x``, the centre with the lowest value, and ``fun``, that value; ``center``, the last centre; ``jac`` and
        ``jac_standard_error``, the last gradient estimate; the counts ``nit``, ``nfev`` and ``n_failed``; ``success``,
        ``status`` and ``message``.

    See Also
    --------
    EvolutionStrategy : the same search in your own loop, which can be saved and resumed.

    Notes
    -----
    f is evaluated once per iteration at the centre, for the stopping rules and the result.  Of a noisy f, ``fun`` is the
    lowest value that was seen, not the mean at ``x``.

    An evaluation that raises, or is not finite, is left out with its antithetic partner and counted; the first is reported
    by an `EvaluationWarning`.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.optimize import minimize
    >>> found = minimize(lambda x: float((x - 1) @ (x - 1)), np.zeros(10), learning_rate=0.1, target=1e-3, rng=0)
    >>> found.success, bool(np.abs(found.x - 1).max() < 0.1)
    (True, True)
    """
    owner = "minimize"
    strategy = EvolutionStrategy(
        x0,
        sigma=sigma,
        learning_rate=learning_rate,
        projection=projection,
        n_directions=n_directions,
        estimator=estimator,
        optimizer=optimizer,
        shaping=shaping,
        rng=rng,
    )
    max_iterations = check_count(owner, "max_iterations", max_iterations)
    budget = math.inf if max_evaluations is None else check_count(owner, "max_evaluations", max_evaluations)
    patience = None if patience is None else check_count(owner, "patience", patience)
    target = None if target is None else check_number(owner, "target", target)
    if gradient_tolerance is not None:
        check_positive(owner, "gradient_tolerance", gradient_tolerance)
    if callback is not None and not callable(callback):
        raise TypeError(f"{owner}: callback must be a function of the result so far, got {shown(callback)}.")
    check_flag(owner, "verbose", verbose)
    run = _Run(strategy, Evaluator(owner, f, batched, map))
    bar = progress(range(max_iterations), label=owner, shown=verbose, delay=0)
    try:
        status = _descend(run, bar, budget, target, gradient_tolerance, patience, callback)
    finally:
        getattr(bar, "close", lambda: None)()
    if math.isnan(run.fun):
        raise EvaluationError(f"{owner}: f failed at x0 and at every later centre; the first: {run.evaluator.reason}.")
    run.evaluator.warn()
    return run.result(status)


def _descend(
    run: _Run,
    iterations: Any,
    budget: float,
    target: float | None,
    gradient_tolerance: float | None,
    patience: int | None,
    callback: Callable[[Any], Any] | None,
) -> int:
    """Iterate until a rule says stop, and return which."""
    value = run.look()
    for _ in iterations:
        if target is not None and value <= target:
            return TARGET
        if run.evaluator.n_evaluations + run.n_next() > budget:
            return BUDGET
        try:
            run.move(value)
        except EvaluationError:
            return FAILED
        value = run.look()
        if hasattr(iterations, "set_postfix"):
            iterations.set_postfix(fun=f"{run.fun:.4g}", refresh=False)
        if _stopped_by(callback, run):
            return CALLBACK
        estimate = run.strategy.estimate
        if gradient_tolerance is not None and estimate is not None:
            if float(np.linalg.norm(estimate.gradient)) <= gradient_tolerance:
                return GRADIENT
        if patience is not None and run.since_improvement >= patience:
            return PATIENCE
    return TARGET if target is not None and value <= target else ITERATIONS


def _stopped_by(callback: Callable[[Any], Any] | None, run: _Run) -> bool:
    if callback is None:
        return False
    try:
        return callback(run.result()) is True
    except StopIteration:
        return True
