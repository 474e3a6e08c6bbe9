"""`recommend` with targets: every mechanism and its rivals, judged by the error of their predictions."""

from __future__ import annotations

from collections.abc import Sequence

from .._table import seconds
from ..approximation import Approximation
from ..kernels import Kernel
from ._applicable import plainness, planned
from ._code import Source
from ._contenders import Bandwidths, Contender, MechanismContender
from ._cross_validation import Race, run_race
from ._decision import Decision, decide
from ._peers import peers
from ._task import FOLDS, Task

BUDGET = 120.0
"""Seconds for cross-validation."""
_LOOKED_AT = 400


def judge(
    task: Task,
    kernel: Kernel,
    width: int,
    seed: int,
    *,
    searched: bool,
    positive: bool = False,
    budget: float = BUDGET,
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
    bandwidths = Bandwidths(kernel, searched)
    specs = _mechanisms(task, bandwidths, width, seed, positive)
    if not specs:
        kind = "positive mechanism" if positive else "mechanism"
        raise ValueError(f"{owner}: a width of {width} is too small for any {kind} of {kernel!r}; allow more features.")
    mechanisms: list[Contender] = [MechanismContender(spec, width, bandwidths) for spec in specs]
    n_first = sum(plainness(spec) < 2 for spec in specs)
    contenders = [*mechanisms[:n_first], *others, *peers(task, bandwidths, width), *mechanisms[n_first:]]
    race = run_race(task, contenders, seed, budget, shown=shown)
    if not any(record.settings and record.contender.spec is not None for record in race.records):
        raise ValueError(f"{owner}: no mechanism could be judged within {budget:g} s; allow a larger budget.")
    return decide(task, race, source or Source(), _notes(task, race, budget, searched))


def _mechanisms(task: Task, bandwidths: Bandwidths, width: int, seed: int, positive: bool) -> list[Approximation]:
    """Symmetric mechanisms whose bias vanishes, the library's defaults first, then landmarks, then all others."""
    _, part = next(iter(task.parts()))
    start = bandwidths.start(part.X)
    every = planned(start, part.X[:_LOOKED_AT], None, width, seed, (part.X, None))
    found = [
        spec
        for spec, plan in every
        if plan.symmetric and plan.positive >= positive and (plan.unbiased or plan.projection.consistent)
    ]
    return sorted(found, key=plainness)


def _notes(task: Task, race: Race, budget: float, searched: bool) -> list[str]:
    sampled = (
        f"a sample of {len(task.y)} of {task.n_given} rows" if task.n_given > len(task.y) else f"{len(task.y)} rows"
    )
    chosen = "bandwidth and alpha" if searched else "alpha"
    notes = [
        f"{FOLDS}-fold cross-validation on {sampled} in {seconds(race.seconds)}; {chosen}, and all settings of the others, "
        f"were chosen on the training rows of each fold."
    ]
    if race.n_cut or race.n_unjudged:
        missing = f", and {race.n_unjudged} were not judged" if race.n_unjudged else ""
        notes.append(
            f"To keep the budget of {budget:g} s, {race.n_cut} estimators were judged on fewer folds{missing}; a larger "
            f"budget decides more."
        )
    return notes
