"""The report: one HTML page that needs nothing but itself."""

from __future__ import annotations

import html
from importlib import resources
from pathlib import Path
from string import Template

from ..._table import seconds, size
from ..environment import environment
from .comparison import Comparison
from .figures import figures
from .measure import Measurement


def write_report(found: Comparison, out: Path) -> Path:
    """Write the page, and its numbers beside it; return the page's path."""
    import json

    out.mkdir(parents=True, exist_ok=True)
    (out / "comparison.json").write_text(json.dumps(found.as_dict(), indent=2), encoding="utf-8")
    page = out / "index.html"
    page.write_text(render(found), encoding="utf-8")
    return page


def render(found: Comparison) -> str:
    """The page as text."""
    template = Template(resources.files(__package__).joinpath("report.html").read_text(encoding="utf-8"))
    facts = ", ".join(f"{name} {value}" for name, value in environment().items())
    best = found.measurements[0]
    return template.substitute(
        figures(found),
        data=html.escape(found.problem.description),
        features=found.n_features,
        count=len(found.measurements),
        best=html.escape(best.label),
        best_error=f"{best.measured:.3g}",
        best_spec=html.escape(best.spec),
        rows="\n".join(_row(m) for m in found.measurements),
        environment=html.escape(facts),
    )


def _row(m: Measurement) -> str:
    cells = (
        (m.label, m.label),
        (m.n_features, m.n_features),
        (m.measured, f"{m.measured:.4g} &plusmn; {m.standard_error:.1g}"),
        (m.predicted, f"{m.predicted:.4g}"),
        (m.source, m.source),
        (m.seconds_per_row, seconds(m.seconds_per_row)),
        (m.nbytes, size(m.nbytes)),
        (m.positive, "yes" if m.positive else "no"),
        (m.symmetric, "yes" if m.symmetric else "no"),
        (m.unbiased, "yes" if m.unbiased else "approx."),
    )
    inner = "".join(f'<td data-value="{html.escape(str(value))}">{_cell(text)}</td>' for value, text in cells)
    return f'<tr title="{html.escape(m.spec)}">{inner}</tr>'


def _cell(text: object) -> str:
    return str(text) if "&plusmn;" in str(text) else html.escape(str(text))
