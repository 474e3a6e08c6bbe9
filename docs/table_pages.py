"""The generated section on tables, from the cells that ``bochner-lab bench tables`` keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from reproduction_pages import table

from bochner_lab.benchmarks import tables
from bochner_lab.benchmarks._table_methods import OURS

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
FOLDER = Path(__file__).parents[1] / "lab" / "results" / "bench-tables" / "quick"


def judged_section(folder: Path = FOLDER) -> str:
    """Counts against the goals, other methods over all tables, and errors of each table."""
    cells = tables.saved(folder)
    found = tables.errors(cells)
    kept = [cell for cell in cells if cell["table"] in found]
    splits = sorted({len(values[OURS]) for values in found.values()})
    where = ", ".join(f"{name} {value}" for name, value in kept[0]["environment"].items())
    return "\n\n".join(
        [
            f"Generated from `lab/results/bench-tables`, written by `bochner-lab bench tables --results`: {len(found)} "
            f"tables, at most {max(cell['rows'] for cell in kept)} training rows, {_range(splits)} of each, on: {where}. "
            "Errors are RMSE, or shares of wrong classes, in units of those of a constant. Times are seconds of CPU beside "
            "other work. Paired tests are Wilcoxon's over the tables of a half.",
            _goals(cells),
            _rivals(cells),
            _errors(cells),
            _lost(cells),
        ]
    )


def _range(numbers: Sequence[int]) -> str:
    if numbers == [1]:
        return "one split"
    return f"{numbers[0]} splits" if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]} splits"


def _goals(cells: Cells) -> str:
    rows = [
        [r.case, f"{r.value:.3g} {r.unit}", r.goal, "-" if r.goal == "-" else "yes" if r.met else "no", r.details]
        for r in tables.goals(cells)
    ]
    return table("case | measured | goal | met | tables", rows)


def _rivals(cells: Cells) -> str:
    """Each other method over all tables of a half."""
    rows = []
    for half, part in tables.halves(cells):
        means = {name: tables.means(values) for name, values in part.items()}
        for rival, short in SHORT.items():
            ratios = np.array([mean[OURS] / mean[rival] for mean in means.values() if rival in mean])
            if rival == OURS or not len(ratios):
                continue
            rows.append(
                [half, short, str(len(ratios)), str(int((ratios < 1).sum())), f"{np.exp(np.log(ratios).mean()):.3f}",
                 f"{tables.p_value(means, rival):.2g}"]
            )  # fmt: skip
    return table("half | other method | tables | ours is better on | our error over theirs (geometric mean) | p", rows)


def _errors(cells: Cells) -> str:
    """Errors of each table, in bold within 2 % of the best; the last line has the mean times."""
    rows = []
    for half, part in tables.halves(cells):
        for name, found in part.items():
            mean = tables.means(found)
            best = min(mean[method] for method in SHORT if method in mean)
            shown = [_cell(mean.get(method), best) for method in SHORT]
            rows.append([f"{name} ({half})", *shown])
    times = [
        [cell["methods"][method]["cpu_seconds"] for cell in cells if method in cell["methods"]] for method in SHORT
    ]
    rows.append(["seconds", *(f"{np.mean(one):.2g}" if one else "" for one in times)])
    return table(" | ".join(["table", *SHORT.values()]), rows)


def _cell(error: float | None, best: float) -> str:
    if error is None:
        return ""
    return f"**{error:.3f}**" if error <= tables.WITHIN * best else f"{error:.3f}"


def _lost(cells: Cells) -> str:
    """The tables on which another method is better by more than 10 %, and which."""
    lost = []
    for _, part in tables.halves(cells):
        for name, found in part.items():
            mean = tables.means(found)
            best = min((method for method in SHORT if method in mean), key=lambda method: mean[method])
            if mean[OURS] > tables.BEHIND * mean[best]:
                lost.append((mean[OURS] / mean[best], f"{name} ({SHORT[best]}, {mean[OURS] / mean[best]:.2f})"))
    words = ", ".join(text for _, text in sorted(lost, reverse=True))
    return f"More than 10 % behind the best, with the ratio of errors: {words or 'none'}."
