"""The report of ``bochner compare``: one HTML page without anything from elsewhere, and its numbers beside it."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .._whole_file import write_whole
from ..reporting import as_json, printable, shortened
from .mechanisms import MeasuredMechanism, MeasuredMechanisms, row
from .problem import Problem

if TYPE_CHECKING:
    from ..comparison import Comparison, Result

NUMBERS, PAGE = "comparison.json", "index.html"
_SHOWN = 20  # mechanisms before the others are folded
_MECHANISMS = ("mechanism", "features", "error of the kernel", "by theory", "time per row", "positive", "unbiased")
_ABOUT_ERRORS = (
    "Errors are relative Frobenius errors of the Gram matrix, root mean squares over independent draws with one standard "
    "error. By theory is the same number in closed form, where there is one. Where it says rare draws, the error comes from "
    "draws too rare to be seen here, and the closed form decides the rank. A mechanism with two names is listed once."
)
_ABOUT_MECHANISMS = (
    "A mechanism is a way to turn a row into a short vector, so that dot products of vectors estimate the kernel. All have "
    "the same number of features."
)
_TEMPLATE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>bochner compare</title>
<link rel="icon" href="data:,">
<style>
{style}</style>
</head>
<body>
<main>
{body}
</main>
<footer>Made by <code>bochner compare</code>. {environment}. The numbers are in {numbers} beside this page.</footer>
</body>
</html>
"""


@dataclass(frozen=True)
class Report:
    """Results of a comparison."""

    problem: Problem
    comparison: Comparison | None
    mechanisms: MeasuredMechanisms
    environment: dict[str, str]

    def as_dict(self) -> dict[str, Any]:
        """Return what is written as JSON."""
        found = {"environment": self.environment, "data": self.problem.description}
        estimators = None if self.comparison is None else self.comparison.as_dict()
        return {**found, "estimators": estimators, "mechanisms": self.mechanisms.as_dict()}


class _Row(NamedTuple):
    """Cells of a row, the length of its bar between 0 and 1, its tooltip, and its style."""

    cells: Sequence[str]
    bar: float
    title: str
    style: str


def script(data: str, model: str) -> str:
    """Code that reads the data and fits the model, with all imports first."""
    lines = f"{data}\n{model}".splitlines()
    imports = [line for line in lines if line.startswith(("import ", "from "))]
    others = [line for line in lines if line and line not in imports]
    return "\n".join([*imports, "", *others])


def write_report(report: Report, out: Path) -> Path:
    """Write the page and its numbers, each at once or not at all; return the page's path."""
    out.mkdir(parents=True, exist_ok=True)
    _write(out / NUMBERS, as_json(report.as_dict()))
    facts = ", ".join(f"{name} {value}" for name, value in report.environment.items())
    style = resources.files(__package__).joinpath("report.css").read_text(encoding="utf-8")
    page = _TEMPLATE.format(style=style, body=_body(report), environment=_escaped(facts), numbers=NUMBERS)
    return _write(out / PAGE, page)


def _write(path: Path, text: str) -> Path:
    write_whole("write_report", path, lambda file: file.write(text.encode()))
    return path


def _body(report: Report) -> str:
    parts = ["<h1>bochner compare</h1>", f'<p class="soft">{_escaped(report.problem.description)}</p>']
    if report.comparison is not None:
        parts += _of_estimators(report.comparison, report.problem.table.code)
    return "\n".join(parts + _of_mechanisms(report.mechanisms))


def _of_estimators(found: Comparison, code: str) -> list[str]:
    header = ["estimator", found.measure, *found.header[2:]]
    highest = max(result.error for result in found.results)
    rows = (_estimator(result, found, highest) for result in found.results)
    judged = f"All were evaluated on the same {found.n_folds} folds of {found.n_used} rows."
    return [
        f'<div class="answer">{_paragraphs([found.headline, *found.reasons])}</div>',
        f"<pre><code>{_escaped(script(code, found.code))}</code></pre>",
        "<h2>What predicts the target</h2>",
        _table(header, rows),
        f"<details><summary>In words</summary>{_list(found.sentences)}</details>",
        _paragraphs([judged, *found.not_judged, *found.notes]),
    ]


def _list(sentences: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{_escaped(sentence)}</li>' for sentence in sentences)}</ul>"


def _estimator(result: Result, found: Comparison, highest: float) -> _Row:
    style = " ".join((["chosen"] if result is found.best else []) + (["ours"] if result.ours else []))
    return _Row(found.row(result), result.error / (highest or 1.0), result.code, style)


def _of_mechanisms(found: MeasuredMechanisms) -> list[str]:
    first, rest = found.found[:_SHOWN], found.found[_SHOWN:]
    highest = max(m.ranked for m in first)
    parts = [
        f"<h2>Mechanisms with {found.n_features} features</h2>",
        f"<p>{_ABOUT_MECHANISMS} Here: {_escaped(shortened(repr(found.kernel)))} on {found.n_rows} rows.</p>",
        _paragraphs(found.sentences),
        _table(_MECHANISMS, (_mechanism(m, m is first[0], highest) for m in first)),
    ]
    if rest:
        more = _table(_MECHANISMS, (_mechanism(m, False, highest) for m in rest))
        parts.append(f"<details><summary>{len(rest)} more, with larger errors</summary>\n{more}\n</details>")
    return [*parts, f'<p class="soft">{_ABOUT_ERRORS}</p>']


def _mechanism(m: MeasuredMechanism, chosen: bool, highest: float) -> _Row:
    style = " ".join((["chosen"] if chosen else []) + (["ours"] if m.kind == "other" else []))
    return _Row(row(m), min(m.ranked / (highest or 1.0), 1.0), m.spec, style)


def _table(header: Sequence[str], rows: Iterable[_Row]) -> str:
    """A table whose second column, the error, has a bar under it; a list of cards on a narrow page."""
    heads = "".join(f"<th>{_escaped(title)}</th>" for title in header)
    lines = []
    for one in rows:
        cells = [
            f'<td data-label="{_escaped(title)}">{_escaped(text)}</td>'
            for title, text in zip(header, one.cells, strict=True)
        ]
        bar = f'<span class="bar" style="width:{100 * one.bar:.1f}%"></span></td>'
        cells[0] = cells[0].removesuffix("</td>") + bar
        lines.append(f'<tr class="{one.style}" title="{_escaped(one.title)}">{"".join(cells)}</tr>')
    body = "\n".join(lines)
    return f"<table><thead><tr>{heads}</tr></thead><tbody>\n{body}\n</tbody></table>"


def _paragraphs(sentences: Iterable[str]) -> str:
    return "".join(f"<p>{_escaped(sentence)}</p>" for sentence in sentences)


def _escaped(text: object) -> str:
    """Text for HTML, without what a page would obey."""
    return html.escape(printable(str(text)).replace("+-", "\u00b1"))
