"""The report of ``bochner compare --target``: what to use, and how sure that is."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

from ..selection import Decision, Judged
from .compare import decision_as_dict
from .problem import Problem
from .report_page import FILTER, Cell, Row, axis, escaped, figure, folded, table, write_page

_SHOWN = 24


def write_report(problem: Problem, decision: Decision, out: Path) -> Path:
    """Write the page, and its numbers beside it; return the page's path."""
    charts = {"cost": _cost(decision), "gaps": _gaps(decision)}
    return write_page(_body(problem, decision), charts, {}, decision_as_dict(problem, decision), out)


def _body(problem: Problem, decision: Decision) -> str:
    words = "".join(f"<p>{escaped(sentence)}</p>" for sentence in decision.sentences)
    notes = " ".join(escaped(note) for note in decision.notes)
    shown = decision.chosen(_SHOWN)
    hidden = [line for line in decision.lines if line not in shown]
    measure, rest = decision.task.measure, ""
    if hidden:
        equal, undecided = sum(line.equal for line in hidden), sum(line.undecided for line in hidden)
        counts = {"equal to the lowest": equal, "undecided": undecided, "worse": len(hidden) - equal - undecided}
        summary = f"{len(hidden)} more mechanisms: " + ", ".join(f"{n} {what}" for what, n in counts.items() if n)
        rest = folded(
            summary, table("folded", decision.header, (_row(decision, line) for line in hidden), _sorted_by(hidden))
        )
    failed = "".join(f"<li>{escaped(label)}: {escaped(why)}</li>" for label, why in decision.failures.items())
    gaps = (
        f"{measure} above the lowest, with the {decision.critical:.2g} standard errors of the paired difference within "
        f"which estimators are called equal, or undecided if they were judged on fewer folds: those whose bar reaches zero."
    )
    parts = [
        "<h1>What to use on your data</h1>",
        f"<p>{escaped(problem.description)}. {notes}</p>",
        f'<div class="decision">{words}</div>',
        "<h2>The recommended estimator</h2>",
        f'<pre><code id="code">{escaped(decision.code)}</code></pre>',
        '<h2>Figures</h2>\n<div class="figures">',
        figure("cost", f"{measure} against the time of one fit; bars are one standard error."),
        figure("gaps", gaps),
        "</div>\n<h2>All estimators</h2>",
        FILTER,
        table("mechanisms", decision.header, (_row(decision, line) for line in shown), _sorted_by(shown)),
        rest,
        f"<p>Not judged:</p><ul>{failed}</ul>" if failed else "",
        f"<p>Mechanisms are features of a ridge. The {measure} is that on test rows, with one standard error; mechanisms "
        f"that are clearly worse are dropped after the first folds, and their error is then the lowest one plus the paired "
        f"difference. Times are those of one fit with known settings; that of the automatic machine "
        f"includes its search.</p>",
    ]
    return "\n".join(part for part in parts if part)


def _sorted_by(lines: list[Judged]) -> int | None:
    """The column of errors, unless lines that were tested on fewer folds come after the others."""
    return 1 if all(one.error <= other.error for one, other in pairwise(lines)) else None


def _row(decision: Decision, line: Judged) -> Row:
    text = [cell.replace("+-", "\u00b1") for cell in decision.row(line)]
    values = (
        line.label,
        line.error,
        line.gap.difference,
        line.width,
        line.fit_seconds,
        line.seconds_per_row,
        line.n_folds,
    )
    cells = [Cell("" if value is None else value, shown) for value, shown in zip(values, text, strict=True)]
    return Row(cells, decision.code_of(line), line is decision.recommended)


def _kinds(decision: Decision) -> list[tuple[str, list[Judged], str]]:
    chosen = decision.recommended
    others = [line for line in decision.lines if line is not chosen]
    return [
        ("mechanisms", [line for line in others if line.spec is not None], "#9aa5b1"),
        ("other estimators", [line for line in others if line.spec is None], "#d97706"),
        ("recommended", [chosen], "#2563eb"),
    ]


def _cost(decision: Decision) -> dict[str, Any]:
    top = 1.5 * max([decision.recommended.error, *(line.error for line in decision.lines if line.spec is None)])
    series: list[dict[str, Any]] = []
    for name, lines, color in _kinds(decision):
        points = [
            {
                "x": line.fit_seconds,
                "y": min(line.error, top),
                "low": max(line.error - line.standard_error, line.error / 10),
                "high": min(line.error + line.standard_error, top),
                "text": "\n".join([line.label, *_facts(decision, line)]),
            }
            for line in lines
        ]
        series.append({"name": name, "points": points, "color": color, "large": name != "mechanisms"})
    errors = [value for one in series for point in one["points"] for value in (point["low"], point["high"])]
    times = [line.fit_seconds for line in decision.lines]
    return {
        "x": axis("time of one fit (seconds)", times),
        "y": axis(decision.task.measure, errors, log=False),
        "series": series,
    }


def _facts(decision: Decision, line: Judged) -> list[str]:
    text = [cell.replace("+-", "\u00b1") for cell in decision.row(line)]
    return [f"{title}: {value}" for title, value in zip(decision.header[1:], text[1:], strict=True) if value]


def _gaps(decision: Decision) -> dict[str, Any]:
    shown = decision.chosen(_SHOWN)
    series: list[dict[str, Any]] = []
    for name, lines, color in _kinds(decision):
        points = []
        for place, line in enumerate(shown, start=1):
            if line not in lines:
                continue
            gap, width = line.gap.difference, decision.critical * line.gap.standard_error
            text = "\n".join([line.label, *_facts(decision, line)])
            points.append({"x": place, "y": gap, "low": gap - width, "high": gap + width, "text": text})
        series.append({"name": name, "points": points, "color": color, "large": name != "mechanisms"})
    ends = [value for one in series for point in one["points"] for value in (point["low"], point["high"])]
    series.append({"line": [[0.5, 0], [len(shown) + 0.5, 0]], "dashed": True, "color": "currentColor"})
    return {
        "x": axis("place in the table", [1, len(shown)], log=False),
        "y": axis(f"{decision.task.measure} above the lowest", [*ends, 0.0], log=False),
        "series": series,
    }
