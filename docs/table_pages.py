"""The generated section on tables, from the cells that ``bochner-lab bench tables`` keeps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from reproduction_pages import table

from bochner_lab.benchmarks import exact, processes, tables, text
from bochner_lab.benchmarks._bench import Result
from bochner_lab.benchmarks._table_methods import OURS
from bochner_lab.benchmarks._tables import JUDGING

Cells = Sequence[Mapping[str, Any]]
SHORT = {
    OURS: "ours",
    "HistGradientBoosting": "HGB",
    "HistGradientBoosting, tuned": "HGB tuned",
    "ExtraTrees": "ExtraTrees",
    "SVR, SVC, tuned": "SVM tuned",
    "exact kernel ridge, tuned": "exact ridge",
    "Nystroem, tuned": "Nystroem",
    "RBFSampler, tuned": "RBFSampler",
    "xRFM": "xRFM",
    "linear": "linear",
}
RESULTS = Path(__file__).parents[1] / "lab" / "results"
FOLDER = RESULTS / "bench-tables" / "quick"


def measured_on(cells: Cells) -> str:
    """How the errors of the tables were measured."""
    found = tables.errors(cells)
    kept = [cell for cell in cells if cell["table"] in found]
    splits = sorted({len(one.methods[OURS]) for one in found.values()})
    fewer = sorted({SHORT.get(name, "candidates") for name in _fewer(found)})
    where = ", ".join(f"{name} {' and '.join(_values(kept, name))}" for name in kept[0]["environment"])
    return (
        f"Generated from `lab/results/bench-tables`, written by `bochner-lab bench tables --results`: {len(found)} "
        f"tables, at most {max(cell['rows'] for cell in kept)} training rows, {_range(splits)} of each, on: {where}. "
        "Errors are RMSE, or shares of wrong classes (at least half a row among the test rows of all splits), as means "
        "over splits, in units of that of a constant. The versions are those with which ours were measured last; other "
        "methods, whose code did not change, were measured with these versions of their packages or before.\n\nTimes are "
        "seconds of CPU beside other work. Paired tests are Wilcoxon's over the tables of a half, and corrected t tests "
        "over the splits of a table" + (f"; {' and '.join(fewer)} were measured on fewer splits." if fewer else ".")
    )


def judged_section(folder: Path = FOLDER) -> str:
    """What a user asks: against which other method the default wins how often, and on which tables it loses."""
    cells = tables.saved(folder)
    return "\n\n".join([measured_on(cells), _rivals(cells, JUDGING), _lost(cells)])


def judged_benchmark(folder: Path = FOLDER) -> str:
    """Counts against the goals, other methods over both halves, and errors of each table."""
    cells = tables.saved(folder)
    return "\n\n".join([measured_on(cells), _goals(tables.goals(cells), "tables"), _rivals(cells), _errors(cells)])


def _fewer(found: Mapping[str, tables.Errors]) -> set[str]:
    """Methods that lack splits."""
    return {name for one in found.values() for name, values in one.methods.items() if np.isnan(values).any()}


def _values(cells: Cells, name: str) -> list[str]:
    """What the cells say about a part of their environment."""
    return sorted({cell["environment"].get(name, "unknown") for cell in cells})


def _range(numbers: Sequence[int]) -> str:
    if numbers == [1]:
        return "one split"
    return f"{numbers[0]} splits" if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]} splits"


def _goals(found: Iterable[Result], last: str = "details") -> str:
    rows = [
        [r.case, f"{r.value:.3g} {r.unit}", r.goal, "-" if r.goal == "-" else "yes" if r.met else "no", r.details]
        for r in found
    ]
    return table(f"case | measured | goal | met | {last}", rows)


def _measured(found: Iterable[Result]) -> str:
    return table("case | measured | details", [[r.case, f"{r.value:.3g} {r.unit}".strip(), r.details] for r in found])


def exact_table(folder: Path = RESULTS / "bench-exact") -> str:
    """The exact machine, and the default on many rows."""
    return _measured(exact.goals(exact.saved(folder)))


def exact_benchmark(folder: Path = RESULTS / "bench-exact") -> str:
    """The exact machine against its goals."""
    return _goals(exact.goals(exact.saved(folder)))


def text_table(folder: Path = RESULTS / "bench-text") -> str:
    """Classes of text against logistic regression."""
    return _measured(text.goals(text.saved(folder)))


def process_table(folder: Path = RESULTS / "bench-processes") -> str:
    """Gaussian processes against scikit-learn's and SVGP's figures."""
    return _goals(processes.goals(*processes.saved(folder)))


def _rivals(cells: Cells, only: str | None = None) -> str:
    """Each other method over all tables of a half, or of both."""
    rows = []
    for half, part in tables.halves(cells):
        if only not in (None, half):
            continue
        for rival, short in SHORT.items():
            ratios = np.array([one.ratio(rival) for one in part.values() if rival in one.methods])
            if rival == OURS or not len(ratios):
                continue
            rows.append(
                [half, short, str(len(ratios)), str(int((ratios < 1).sum())), f"{np.exp(np.log(ratios).mean()):.3f}",
                 f"{tables.p_value(part, rival):.2g}"]
            )  # fmt: skip
    return table("half | other method | tables | ours is better on | our error over theirs (geometric mean) | p", rows)


def _errors(cells: Cells) -> str:
    """Errors of each table, in bold within 2 % of the best; the last line has the mean times."""
    rows = []
    for half, part in tables.halves(cells):
        for name, found in part.items():
            mean, behind = found.means, max(1.0, found.ratio(tables.best_rival(found)))
            shown = [_cell(mean[method], behind / found.ratio(method)) if method in mean else "" for method in SHORT]
            rows.append([f"{name} ({half})", *shown])
    times = [
        [cell["methods"][method]["cpu_seconds"] for cell in cells if method in cell["methods"]] for method in SHORT
    ]
    rows.append(["seconds", *(f"{np.mean(one):.2g}" if one else "" for one in times)])
    return table(" | ".join(["table", *SHORT.values()]), rows)


def _cell(error: float, of_best: float) -> str:
    return f"**{error:.3f}**" if of_best <= tables.WITHIN else f"{error:.3f}"


def _lost(cells: Cells) -> str:
    """The tables on which another method is better by more than 10 %, which, and how sure that is."""
    lost = []
    for _, part in tables.halves(cells):
        for name, found in part.items():
            best = tables.best_rival(found)
            ratio = found.ratio(best)
            if ratio > tables.BEHIND:
                level = found.p_value(best)
                known = "too few splits to test" if np.isnan(level) else f"p {level:.2g}"
                lost.append((ratio, f"{name} ({SHORT[best]}, {ratio:.2f}, {known})"))
    words = ", ".join(text for _, text in sorted(lost, reverse=True))
    return f"More than 10 % behind the best, with the ratio of errors and the level of the t test: {words or 'none'}."
