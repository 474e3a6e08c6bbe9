"""`recommend` with targets: every mechanism and its rivals, judged by the error of their predictions."""

from __future__ import annotations

from collections.abc import Sequence

from .._table import seconds
from ..approximation import Approximation
from ..kernels import Kernel
from ._applicable import plainness, planned
from ._budget import Budget
from ._code import Source
from ._contenders import Bandwidths, Contender, MechanismContender
from ._cross_validation import Race, run_race
from ._decision import Decision, decide
from ._peers import peers
from ._task import FOLDS, Task

BUDGET = 120.0
"""Seconds for cross-validation."""
_LOOKED_AT = 400
_PLANNED = 0.15
"""Share of the time left in which mechanisms are planned; in many columns that alone may take long."""
_LEAST = 0.7
"""Share of the budget that may be spent before; the rest is for cross-validation in any case."""


def judge(
    task: Task,
    kernel: Kernel,
    width: int,
    seed: int,
    *,
    searched: bool,
    positive: bool = False,
    budget: float = BUDGET,
    spent: float = 0.0,
    shown: bool = False,
    source: Source | None = None,
    others: Sequence[Contender] = (),
    owner: str = "recommend",
) -> Decision:
    """Cross-validate every mechanism for a kernel at one width, and the estimators of scikit-learn.

    Parameters
    ----------
    task : Task
        Rows, targets and folds.
    kernel : Kernel
        The kernel; at unit bandwidth if that is searched.
    width : int
        Number of features.
    seed : int
        Seed of draws.
    searched : bool
        Whether the bandwidth is chosen on training rows.
    positive : bool
        Whether to consider only positive features.
    budget : float
        Seconds.
    spent : float
        Seconds of the budget that were spent before, on reading data for example.
    shown : bool
        Whether to show progress bars.
    source : Source, optional
        Where X and y come from, for the code to paste.
    others : sequence of Contender
        Further estimators to judge, beside those of scikit-learn.
    owner : str
        Name of the caller, for error messages.

    Returns
    -------
    Decision
    """
    clock, bandwidths = Budget(budget, min(spent, _LEAST * budget)), Bandwidths(kernel, searched)
    specs, complete = _mechanisms(task, bandwidths, width, seed, positive, clock)
    if not specs:
        kind = "positive mechanism" if positive else "mechanism"
        raise ValueError(f"{owner}: a width of {width} is too small for any {kind} of {kernel!r}; allow more features.")
    mechanisms: list[Contender] = [MechanismContender(spec, width, bandwidths) for spec in specs]
    n_first = sum(plainness(spec) < 2 for spec in specs)
    needed = [*mechanisms[:n_first], *others, *peers(task, bandwidths, width)]
    race = run_race(task, [*needed, *mechanisms[n_first:]], seed, clock, shown=shown, n_needed=len(needed))
    if not any(record.settings and record.contender.spec is not None for record in race.records):
        raise ValueError(f"{owner}: no mechanism could be judged on these data; try another kernel, or standardise X.")
    return decide(race, source or Source(), _notes(task, race, budget, searched, complete=complete))


def _mechanisms(
    task: Task, bandwidths: Bandwidths, width: int, seed: int, positive: bool, budget: Budget
) -> tuple[list[Approximation], bool]:
    """Symmetric mechanisms whose bias vanishes, and whether there was time to plan them all.

    The library's defaults come first, then landmarks, then all others.
    """
    _, part = next(iter(task.parts()))
    start = bandwidths.start(part.X)
    end, found = budget.spent + _PLANNED * budget.left, []
    every = planned(start, part.X[:_LOOKED_AT], None, width, seed, (part.X, None), plain_first=True)
    for spec, plan in every:
        if plan.symmetric and plan.positive >= positive and (plan.unbiased or plan.projection.consistent):
            found.append(spec)
        if found and budget.spent > end:
            return found, False
    return found, True


def _notes(task: Task, race: Race, budget: float, searched: bool, *, complete: bool) -> list[str]:
    n, asked = len(race.task.y), len(task.y)
    sampled = f"a sample of {n} of {task.n_given} rows" if task.n_given > n else f"{n} rows"
    chosen = "bandwidth and alpha" if searched else "alpha"
    notes = [
        f"{FOLDS}-fold cross-validation on {sampled} in {seconds(race.seconds)}; {chosen}, and all settings of the others, "
        f"were chosen on the training rows of each fold."
    ]
    if task.doubtful:
        notes.append(
            "The target, whole numbers of few different values, was taken for a number; give the task if it is a class."
        )
    kept = [f"{n} rows were used in place of {asked}"] if n < asked else []
    kept += [f"{race.n_cut} of the estimators had fewer folds"] if race.n_cut else []
    if kept or race.left_out or not complete:
        done = _joined([*kept, *_left_out(race, complete)])
        notes.append(f"To keep the budget of {budget:g} s, {done}; a larger budget decides more.")
    return notes


def _left_out(race: Race, complete: bool) -> list[str]:
    """What the budget left out: other estimators by name and with the reason, and the number of mechanisms."""
    mechanisms = {record.contender.label for record in race.records if record.contender.spec is not None}
    n = sum(name in mechanisms for name in race.left_out)
    found = [f"{name} was left out ({why})" for name, why in race.left_out.items() if name not in mechanisms]
    found += [f"{n} of the mechanisms were not started"] if n else []
    return [*found, *([] if complete else ["other mechanisms were not considered"])]


def _joined(parts: Sequence[str]) -> str:
    return ", and ".join([*([", ".join(parts[:-1])] if len(parts) > 1 else []), parts[-1]])
