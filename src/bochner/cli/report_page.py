"""The page of a report: one HTML file with its style, script, tables, charts and pictures, and nothing from elsewhere."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Iterable, Sequence
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

import numpy as np

from .._environment import environment
from .._table import as_json, printable

NUMBERS = "comparison.json"
FILTER = '<input id="filter" type="search" placeholder="Filter by name" aria-label="Filter by name">'


class Cell(NamedTuple):
    """A cell of a table: what it is sorted by, and its text."""

    value: Any
    text: str


class Row(NamedTuple):
    """A row of a table, the text shown when the pointer rests on it, and whether it is the chosen one."""

    cells: Sequence[Cell]
    title: str = ""
    chosen: bool = False


def write_page(body: str, charts: dict[str, Any], pictures: dict[str, Any], numbers: dict[str, Any], out: Path) -> Path:
    """Write the page and its numbers beside it; return the page's path."""
    out.mkdir(parents=True, exist_ok=True)
    (out / NUMBERS).write_text(as_json(numbers), encoding="utf-8")
    page = out / "index.html"
    page.write_text(_page(body, {"charts": charts, "pictures": pictures}), encoding="utf-8")
    return page


def _page(body: str, data: dict[str, Any]) -> str:
    files = resources.files(__package__)
    style, script, template = (
        files.joinpath(f"report_page.{kind}").read_text(encoding="utf-8") for kind in ("css", "js", "html")
    )
    facts = ", ".join(f"{name} {value}" for name, value in environment().items())
    written = json.dumps(data, allow_nan=False).replace("<", "\\u003c")  # no text can end the script
    parts = {"style": style, "script": script, "body": body, "data": written}
    return Template(template).substitute(parts, environment=escaped(facts), numbers=NUMBERS)


def escaped(text: object) -> str:
    """Text for HTML, without what a page would obey."""
    return html.escape(printable(str(text)))


def table(name: str, header: Sequence[str], rows: Iterable[Row], sorted_by: int | None = None) -> str:
    """A table whose columns sort by a click, and which becomes a list of cards on a narrow page."""
    order = {sorted_by: ' aria-sort="ascending"'}
    heads = "".join(f"<th{order.get(k, '')}><button>{escaped(title)}</button></th>" for k, title in enumerate(header))
    lines = []
    for row in rows:
        cells = "".join(
            f'<td data-value="{escaped(cell.value)}" data-label="{escaped(title)}">{escaped(cell.text)}</td>'
            for cell, title in zip(row.cells, header, strict=True)
        )
        chosen = ' class="chosen"' if row.chosen else ""
        lines.append(f'<tr{chosen} title="{escaped(row.title)}">{cells}</tr>')
    body = "\n".join(lines)
    return f'<table id="{name}"><thead><tr>{heads}</tr></thead><tbody>\n{body}\n</tbody></table>'


def folded(summary: str, content: str) -> str:
    """Content that is shown on request."""
    return f'<details class="folded"><summary>{escaped(summary)}</summary>\n{content}\n</details>'


def figure(name: str, caption: str) -> str:
    """The place of a chart."""
    return f'<figure id="{name}"><div class="plot"></div><figcaption>{escaped(caption)}</figcaption></figure>'


def axis(label: str, values: Iterable[float], *, log: bool = True) -> dict[str, Any]:
    """An axis around finite values, positive ones if it is logarithmic, with some room at both ends."""
    finite = [v for v in values if np.isfinite(v) and (v > 0 or not log)] or [1.0]
    low, high = min(finite), max(finite)
    room = (high / low) ** 0.06 * 1.02 if log else 0.06 * (high - low) or 1.0
    return {"label": label, "log": log, "range": [low / room, high * room] if log else [low - room, high + room]}


def picture(matrix: np.ndarray, low: float, high: float, *, errors: bool = False) -> dict[str, Any]:
    """A square matrix as bytes between two values."""
    bytes_ = np.round(255 * np.clip((matrix - low) / ((high - low) or 1.0), 0, 1)).astype(np.uint8)
    coded = base64.b64encode(bytes_.tobytes()).decode()
    return {"size": len(matrix), "bytes": coded, "low": float(low), "high": float(high), "errors": errors}
