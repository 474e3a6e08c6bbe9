"""What cross-validation judges: an interface, the search for a bandwidth, and mechanisms as features of a ridge.

Hyperparameters are chosen on the training rows of each fold.  Bandwidths are chosen once per map and fold, for the first
mechanism of that map, and used by all others: they differ by the coupling of their rows and not by the kernel.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ..approximation import Approximation
from ..kernels import Kernel, resolve_bandwidth
from ..linalg.engine import single_threaded_blas
from ._applicable import label_of, rows_within
from ._budget import Shared
from ._code import Snippet, mechanism_snippet
from ._leave_one_out import RidgeFit, ridge_by_leave_one_out
from ._task import Part, Task

_PLANNED_ROWS = 500
"""Rows from which maps choose their constants; landmarks are chosen from all of them."""
_FARTHEST = 8
"""The bandwidth moves by at most this many factors of sqrt(2) from where the rule of the library puts it."""


class Outcome(NamedTuple):
    """Predictions for the test rows (n, t), the chosen settings, and seconds of one fit and of a prediction per row."""

    scores: np.ndarray
    settings: dict[str, Any]
    fit_seconds: float
    seconds_per_row: float


class Contender(ABC):
    """An estimator with a way to choose its hyperparameters on training rows.

    Attributes
    ----------
    label : str
        Name in tables.
    width : int or None
        Number of features, if it has features.
    spec : Approximation or None
        The specification of a mechanism.
    ours : bool
        Whether it is of this library, and no rival.
    """

    label: str
    ours: bool = False
    width: int | None = None
    spec: Approximation | None = None

    def fitted_spec(self, settings: Mapping[str, Any]) -> Approximation | None:
        """The specification of a mechanism with its settings; None for others."""
        return None

    def snippet(self, settings: Mapping[str, Any], task: Task) -> Snippet | None:
        """Code of the estimator with these settings; None for a mere reference."""
        return None

    @abstractmethod
    def judge(self, part: Part, task: Task, seed: int, shared: Shared) -> Outcome:
        """Choose settings on the training rows, fit, and predict the test rows; ``shared`` lasts for one fold."""

    @abstractmethod
    def work(self, n: int, d: int, t: int) -> float:
        """Operations of `judge` on n rows of d columns and t targets, up to a factor.

        Beside the largest terms there are those that dominate a trial on few rows, in proportions that were measured.
        """


@dataclass(frozen=True)
class Bandwidths:
    """The kernel of all contenders: as given, or of a bandwidth to be searched around that of a rule.

    Attributes
    ----------
    kernel : Kernel
        The kernel; of unit bandwidth if that is searched.
    searched : bool
        Whether each training part chooses the bandwidth.
    """

    kernel: Kernel
    searched: bool

    def start(self, X: np.ndarray) -> Kernel:
        """The kernel where the search starts: that of the library's rule on these rows."""
        return resolve_bandwidth(self.kernel, self.kernel.default_rule, X) if self.searched else self.kernel

    def best(self, X: np.ndarray, loss: Callable[[Kernel], float], shared: Shared) -> Kernel:
        """The kernel of the lowest loss: steps by a factor of two until the loss rises, then one of sqrt(2)."""
        start = self.start(X)
        if not self.searched:
            return start

        def in_time(factor: float) -> float:
            shared.check()
            return loss(stretched(start, factor))

        return stretched(start, lowest(in_time))


def stretched(kernel: Kernel, factor: float) -> Kernel:
    """The kernel with its bandwidth multiplied."""
    return kernel.with_bandwidth(float(np.asarray(kernel.bandwidth)) * factor)


def lowest(loss: Callable[[float], float]) -> float:
    """The factor, a power of sqrt(2), with the lowest loss.

    Examples
    --------
    >>> round(lowest(lambda factor: abs(factor - 5.5)), 3)
    5.657
    """
    known = {step: loss(2 ** (step / 2)) for step in (-2, 0, 2)}

    def best() -> int:
        return min(known, key=lambda step: (known[step], abs(step)))

    while abs(best()) < _FARTHEST and best() in (min(known), max(known)):
        further = best() + int(math.copysign(2, best()))
        known[further] = loss(2 ** (further / 2))
    middle = best()
    known |= {step: loss(2 ** (step / 2)) for step in (middle - 1, middle + 1)}
    return float(2 ** (best() / 2))


class _Trial(NamedTuple):
    """A ridge fit on features of the training rows, with its time."""

    fit: RidgeFit
    features: Callable[[np.ndarray], np.ndarray]
    seconds: float


def ridge_outcome(trial: _Trial, part: Part, settings: Mapping[str, Any]) -> Outcome:
    """Predict the test rows with a fit on features."""
    start = time.perf_counter()
    scores = trial.fit(trial.features(part.X_test))
    spent = (time.perf_counter() - start) / len(part.X_test)
    return Outcome(scores, {**settings, "alpha": trial.fit.alpha}, trial.seconds, spent)


def ridge_trial(
    draw: Callable[[np.ndarray], Callable[[np.ndarray], np.ndarray]], part: Part, task: Task
) -> _Trial | None:
    """Draw features for the training rows and fit a ridge on them; None if they cannot be computed there."""
    start = time.perf_counter()
    try:
        with single_threaded_blas, np.errstate(over="ignore", invalid="ignore"):
            features = draw(part.X)
            fit = ridge_by_leave_one_out(np.asarray(features(part.X)), part.T, task.losses)
    except (ValueError, FloatingPointError, np.linalg.LinAlgError):
        return None  # too few rows for the constants of a map, or exponentials that overflow
    return _Trial(fit, features, time.perf_counter() - start)


def ridge_work(n: int, m: int) -> float:
    """Operations of choosing a bandwidth for m features of n rows: products, a decomposition, and calls of functions."""
    r = min(n, m)
    return n * m * (4 * r + 100) + 25 * r**3 + 2e8


class MechanismContender(Contender):
    """A mechanism of the catalogue as the features of a ridge."""

    ours = True

    def __init__(self, spec: Approximation, width: int, bandwidths: Bandwidths) -> None:
        self.spec: Approximation = spec
        self.width: int = width
        self.bandwidths = bandwidths
        self.label = label_of(spec)

    def judge(self, part: Part, task: Task, seed: int, shared: Shared) -> Outcome:
        """See `Contender.judge`."""
        known = shared.known

        def trial(kernel: Kernel) -> _Trial | None:
            return ridge_trial(lambda X: self._drawn(kernel, X, seed), part, task)

        def loss(kernel: Kernel) -> float:
            found = trial(kernel)
            return math.inf if found is None else found.fit.loss

        if self.spec.map not in known:
            known[self.spec.map] = self.bandwidths.best(part.X, loss, shared)
        shared.check()
        kernel = known[self.spec.map]
        found = trial(kernel)
        if found is None:
            raise FloatingPointError("its features overflow on these data")
        return ridge_outcome(found, part, {"bandwidth": kernel.bandwidth})

    def work(self, n: int, d: int, t: int) -> float:
        """See `Contender.work`."""
        return ridge_work(n, self.width)

    def fitted_spec(self, settings: Mapping[str, Any]) -> Approximation:
        """See `Contender.fitted_spec`."""
        if not self.bandwidths.searched:
            return self.spec
        return replace(self.spec, kernel=self.bandwidths.kernel.with_bandwidth(float(f"{settings['bandwidth']:.4g}")))

    def snippet(self, settings: Mapping[str, Any], task: Task) -> Snippet:
        """See `Contender.snippet`."""
        return mechanism_snippet(self.fitted_spec(settings), settings["alpha"], task)

    def _drawn(self, kernel: Kernel, X: np.ndarray, seed: int) -> Callable[[np.ndarray], np.ndarray]:
        spec = replace(self.spec, kernel=kernel)
        keeps = spec.map.keeps_points
        spec = replace(spec, n_projections=min(self.width, len(X))) if keeps else spec
        plan = spec.plan(X if keeps else X[:_PLANNED_ROWS], rng=seed)
        rows = rows_within(plan, self.width, X.shape[1])
        if not rows:
            raise ValueError("the width is too small for one row of this map")
        drawn: Callable[[np.ndarray], np.ndarray] = replace(plan, n_projections=rows).draw(X.shape[1], seed).queries
        return drawn


def median_settings(found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The median over folds of every setting, each a value that was chosen in some fold."""
    return {name: sorted(one[name] for one in found)[(len(found) - 1) // 2] for name in found[0]}
