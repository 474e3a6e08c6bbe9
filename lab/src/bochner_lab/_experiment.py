"""What an experiment declares, how its verdict follows from its statements, and where all experiments are found."""

from __future__ import annotations

import difflib
import functools
import importlib
import json
import pkgutil
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from ._verdicts import Finding, without_power
from .datasets import load
from .datasets._entries import EMBEDDED
from .datasets._load import VARIABLE

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure

T = TypeVar("T")

PAPERS: dict[str, str] = {
    "hrf": "Hybrid Random Features",
    "crt": "Chefs' Random Tables",
    "qbf": "Quadrature-based Features for Kernel Approximation",
    "simrf": "Simplex Random Features",
    "omc": "Unifying Orthogonal Monte Carlo Methods",
    "ours": "Questions of our own",
}


REJUDGED = "Statements were judged anew after the run, by 95 % intervals and margins in place of two standard errors."
"""What ``deviations`` says of results whose numbers are older than their rule."""


def by_profile(*, smoke: T, full: T) -> Mapping[str, T]:
    """One value per profile."""
    return {"smoke": smoke, "full": full}


@dataclass(frozen=True)
class Row:
    """One line of the table that sets the paper's printed numbers next to ours.

    Attributes
    ----------
    label : str
        What is compared.
    printed : str
        The paper's number as printed, with its error; empty where the paper has a curve only.
    ours : float
    standard_error : float, optional
        None for a closed form.
    """

    label: str
    printed: str
    ours: float
    standard_error: float | None = None


@dataclass(frozen=True)
class Results:
    """The numbers of a finished run: those of each part, and the parameters they were computed with."""

    parameters: Mapping[str, Any]
    parts: Mapping[str, Any]


@dataclass(frozen=True)
class PowerCheck:
    """Trivial rivals next to the models of an experiment: whether the set-up could show what is claimed.

    Attributes
    ----------
    passed : bool
        If it is False, statements that were estimated are undecided.
    sentence : str
        What was required, and what came.
    rows : tuple of pairs
        Rivals and models with their values.
    """

    passed: bool
    sentence: str
    rows: tuple[tuple[str, float], ...] = ()


def statement(
    sentence: str, *, ours: bool = False
) -> Callable[[Callable[[Any, Results], Finding]], Callable[[Any, Results], Finding]]:
    """Declare a method to be the test of a statement.

    Statements are fixed, and committed, before the full profile is run; ``deviations`` names those that were changed later.

    Parameters
    ----------
    sentence : str
        The statement, with the rule that decides it: for superiority the confidence interval of a difference, for equality
        also the margin.
    ours : bool
        Whether it is ours, such as a theorem as we correct it: it is shown apart and does not count for the verdict.
    """

    def declare(test: Callable[[Any, Results], Finding]) -> Callable[[Any, Results], Finding]:
        test.sentence, test.ours = sentence, ours  # type: ignore[attr-defined]
        return test

    return declare


class Experiment:
    """One figure, table or theorem of a paper: a subclass declares it, and the engine runs it.

    Parts are the units that are computed, saved and resumed; each has its own stream of random numbers, so that the numbers
    do not depend on the order of the parts or on the number of processes.  The claim is divided into statements,
    methods decorated by `statement`.  The verdict is *holds* if all are true, *holds in part* if some are true and some
    false, *does not hold* if some are false and none is true, and *undecided* if none is false and some are undecided.

    Attributes
    ----------
    name : str
        As the command line knows it, paper first: ``"simrf-fig6"``.
    paper : str
        A key of `PAPERS`.
    item : str
        The figure, table or theorem.
    claim : str
        What the paper says, in one sentence.
    profiles : dict
        Parameters of the profiles ``"smoke"`` and ``"full"``.
    seconds : dict
        Time of the two profiles in one process, if nothing else runs.
    data : tuple of str
        Data sets, as `bochner_lab.datasets.load` knows them.
    methods : tuple of str
        The methods that are compared, by the names of their papers.
    extras : tuple of str
        Extras of the installation that it needs beyond ``experiments``, such as ``"torch"``.
    timed : bool
        Whether it measures time: its parts then run one after the other, without another part beside them.
    deviations : str
        Where it differs from the paper, and why.
    """

    name: ClassVar[str] = ""
    paper: ClassVar[str]
    item: ClassVar[str]
    claim: ClassVar[str]
    profiles: ClassVar[Mapping[str, Mapping[str, Any]]]
    seconds: ClassVar[Mapping[str, float]]
    data: ClassVar[tuple[str, ...]] = ()
    methods: ClassVar[tuple[str, ...]] = ()
    extras: ClassVar[tuple[str, ...]] = ()
    timed: ClassVar[bool] = False
    deviations: ClassVar[str] = ""

    def parts(self, p: Mapping[str, Any]) -> Iterable[str]:
        """Names of the parts."""
        return ("all",)

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Numbers of one part, as values that JSON can hold (arrays become lists)."""
        raise NotImplementedError

    def comparison(self, results: Results) -> list[Row]:
        """Printed numbers next to ours; empty where the paper prints none."""
        return []

    def power(self, results: Results) -> PowerCheck | None:
        """Trivial rivals in the same table, where models are trained; None where nothing is."""
        return None

    def plot(self, results: Results, figure: Figure) -> None:
        """Draw the figure."""
        raise NotImplementedError

    def statements(self) -> dict[str, Callable[[Results], Finding]]:
        """Tests of the statements, by their sentences, in the order of the file; those of a base class come first."""
        tests = [
            value for cls in reversed(type(self).__mro__) for value in vars(cls).values() if hasattr(value, "sentence")
        ]
        return {test.sentence: test.__get__(self) for test in tests}

    def judge(self, results: Results) -> dict[str, Finding]:
        """What the numbers say of each statement; a set-up that fails its power check decides nothing by estimates."""
        check = self.power(results)
        found = {sentence: test(results) for sentence, test in self.statements().items()}
        if check is None or check.passed:
            return found
        return {sentence: without_power(one, check.sentence) for sentence, one in found.items()}

    @property
    def rule(self) -> str:
        """How the verdict follows, in a sentence."""
        tests = self.statements().values()
        count, ours = len(tests), sum(getattr(test, "ours", False) for test in tests)
        apart = (
            ""
            if not ours
            else " One statement is ours and does not count."
            if ours == 1
            else f" {ours} are ours and do not count."
        )
        if count - ours == 1:
            return f"Follows the one statement below.{apart}"
        return (
            f"Holds if all {count - ours} statements below are true, in part if some are true and some false, does not hold "
            f"if some are false and none is true, and is undecided if none is false and some are undecided.{apart}"
        )


def recorded_seconds(one: Experiment, result: Mapping[str, Any] | None) -> float:
    """The time of the full profile: what a result recorded, but no more than what is declared, which knows no other work."""
    recorded = result is not None and result["profile"] == "full" and "wall_seconds" in result
    declared = float(one.seconds["full"])
    return min(float(result["wall_seconds"]), declared) if result is not None and recorded else declared


def needs(one: Experiment) -> str:
    """What an experiment needs beyond the package: a folder of data sets, and extras.

    Examples
    --------
    >>> from bochner_lab import experiment, needs
    >>> needs(experiment("simrf-fig6")), needs(experiment("simrf-fig8"))
    ('nothing', 'BOCHNER_DATA')
    """
    folder = [VARIABLE] if set(one.data) - set(EMBEDDED) else []
    return ", ".join([*folder, *one.extras]) or "nothing"


@dataclass(frozen=True)
class Absent:
    """What a paper reports and nobody can run here: what is missing, and what stands in for it."""

    name: str
    paper: str
    item: str
    claim: str
    missing: str
    stand_in: str


def absent() -> dict[str, Absent]:
    """Experiments that need hardware or data that are not here, by name."""
    text = resources.files(f"{__package__}.papers").joinpath("absent.json").read_text(encoding="utf-8")
    return {entry["name"]: Absent(**entry) for entry in json.loads(text)}


def printed(paper: str, key: str) -> dict[str, Any]:
    """Printed numbers of a paper: the entry ``key`` of its file ``printed.json``, with ``where`` they stand.

    Examples
    --------
    >>> printed("simrf", "section5.1")["where"]
    'Section 5.1'
    """
    text = resources.files(f"{__package__}.papers").joinpath(paper, "printed.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)[key]
    return found


@functools.lru_cache(maxsize=2)
def dataset(name: str) -> Any:
    """A data set of `bochner_lab.datasets`, kept while the parts of one experiment follow each other."""
    return load(name)


_ADDED: list[type[Experiment]] = []
"""Experiments of users' modules."""


def add_experiments(module: Any) -> list[str]:
    """Add the experiments that a module defines to the list, and return their names.

    Parameters
    ----------
    module : module
        A module of your own.  An experiment whose name is taken is refused.
    """
    own = [value for value in vars(module).values() if _is_experiment(value) and value.__module__ == module.__name__]
    for kind in own:
        if kind.name in experiments() and kind not in _ADDED:
            raise ValueError(
                f"{module.__name__}: there is an experiment {kind.name!r} already; give yours another name."
            )
    _ADDED.extend(kind for kind in own if kind not in _ADDED)
    experiments.cache_clear()
    return [kind.name for kind in own]


@functools.cache
def experiments() -> dict[str, Experiment]:
    """All experiments by name, in the order of papers and items: one per file of the folders of the papers."""
    found: list[Experiment] = []
    for paper in PAPERS:
        package = importlib.import_module(f"{__package__}.papers.{paper}")
        for module in pkgutil.iter_modules(package.__path__):
            if not module.name.startswith("_"):
                values = vars(importlib.import_module(f"{package.__name__}.{module.name}")).values()
                found += [value() for value in values if _is_experiment(value)]
    found += [kind() for kind in _ADDED]
    order = list(PAPERS)
    return {one.name: one for one in sorted(found, key=lambda one: (order.index(one.paper), _natural(one.name)))}


def experiment(name: str) -> Experiment:
    """The experiment of that name; an unknown one is refused with the nearest."""
    table = experiments()
    if name in table:
        return table[name]
    if name in absent():
        raise ValueError(f"{name} cannot be run here: {absent()[name].missing}")
    close = difflib.get_close_matches(str(name).lower(), table, n=1, cutoff=0.4)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise ValueError(f"unknown experiment {name!r}.{hint} `bochner-lab list` shows all {len(table)}.")


def _is_experiment(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, Experiment) and bool(value.name)


def _natural(name: str) -> list[Any]:
    """Sort key in which fig10 comes after fig2."""
    return [(int(piece), "") if piece.isdigit() else (-1, piece) for piece in re.split(r"(\d+)", name)]
