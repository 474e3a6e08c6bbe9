"""The report of ``bochner compare``: a self-contained HTML page with embedded figures."""

from __future__ import annotations

import base64
import html
import io
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from .._environment import environment
from .._table import as_json, printable, seconds, size
from .compare import Comparison
from .measurement import Measurement


def write_report(found: Comparison, out: Path) -> Path:
    """Write the page, and its numbers beside it; return the page's path."""
    out.mkdir(parents=True, exist_ok=True)
    (out / "comparison.json").write_text(as_json(found.as_dict()), encoding="utf-8")
    page = out / "index.html"
    page.write_text(render(found), encoding="utf-8")
    return page


def render(found: Comparison) -> str:
    """The page as text."""
    template = Template(resources.files(__package__).joinpath("compare_report.html").read_text(encoding="utf-8"))
    facts = ", ".join(f"{name} {value}" for name, value in environment().items())
    best = found.measurements[0]
    return template.substitute(
        figures(found),
        data=html.escape(printable(found.problem.description)),
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


def figures(found: Comparison) -> dict[str, str]:
    """Figures by name, each an HTML element."""
    return {
        "curves": _svg(_curves(found)),
        "predicted": _svg(_predicted(found)),
        "frontier": _svg(_frontier(found)),
        "grams": _png(_grams(found), "Gram matrices side by side"),
    }


def _curves(found: Comparison) -> Figure:
    figure, ax = _axes("features", "relative error")
    for k, curve in enumerate(found.curves):
        ax.plot(curve.n_features, curve.predicted, color=f"C{k}", linewidth=1)
        ax.plot(curve.n_features, curve.measured, "o", color=f"C{k}", markersize=4, label=curve.label)
    measured = [error for curve in found.curves for error in curve.measured]
    ax.set_ylim(min(measured) / 2, max(measured) * 4)  # errors that rare draws carry are predicted far above
    ax.legend(fontsize="x-small", title="dots: measured, lines: predicted", title_fontsize="x-small", loc="upper right")
    return figure


def _predicted(found: Comparison) -> Figure:
    figure, ax = _axes("predicted error", "measured error")
    measured = np.array([m.measured for m in found.measurements])
    least, most = measured[measured > 0].min() / 1.5, measured.max() * 3
    for source, marker, color in (("theory", "o", "C0"), ("simulation", "x", "C1")):
        kind = [m for m in found.measurements if m.source == source and m.predicted <= most]
        x, y, spread = ([getattr(m, name) for m in kind] for name in ("predicted", "measured", "standard_error"))
        ax.errorbar(x, y, 2 * np.array(spread), fmt=marker, color=color, markersize=5, capsize=2, label=f"by {source}")
    beyond = [m.measured for m in found.measurements if m.predicted > most]
    if beyond:
        ax.plot(
            [most] * len(beyond), beyond, ">", color="C3", label="far beyond: rare draws carry the error", clip_on=False
        )
    ax.plot((least, most), (least, most), color="black", linewidth=0.8, linestyle=":")
    ax.set_xlim(least, most)
    ax.legend(fontsize="small")
    return figure


def _frontier(found: Comparison) -> Figure:
    figure, ax = _axes("time per row (microseconds)", "measured error")
    times = np.array([m.seconds_per_row * 1e6 for m in found.measurements])
    errors = np.array([m.measured for m in found.measurements])
    ax.plot(times, errors, "o", markersize=4, color="#b0b8c0")
    order = np.argsort(times)
    best = order[errors[order] <= np.minimum.accumulate(errors[order])]
    ax.plot(times[best], errors[best], color="black", linewidth=0.8)
    for k in best:
        ax.plot(times[k], errors[k], "o", markersize=6, label=found.measurements[k].label)
    ax.legend(
        fontsize="x-small", title="nothing is faster and better than", title_fontsize="x-small", loc="upper right"
    )
    return figure


def _grams(found: Comparison) -> Figure:
    figure = Figure(figsize=(2.6 * len(found.pictures), 3.3), layout="constrained")
    exact = found.pictures[0].gram
    for k, picture in enumerate(found.pictures):
        ax = figure.add_subplot(1, len(found.pictures), k + 1)
        ax.imshow(picture.gram, vmin=exact.min(), vmax=exact.max(), cmap="viridis")
        error = f"\nmeasured error {picture.error:.3g}" if k else ""
        ax.set_title(picture.label.replace(", ", ",\n") + error, fontsize=7)
        ax.set_xticks([])
        ax.set_yticks([])
    return figure


def _axes(x: str, y: str) -> tuple[Figure, Any]:
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    ax: Any = figure.add_subplot()
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    ax.grid(alpha=0.3)
    return figure, ax


def _svg(figure: Figure) -> str:
    """As SVG without the header of a file; text is drawn, so no font is needed."""
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None})
    text = out.getvalue()
    return text[text.index("<svg") :]


def _png(figure: Figure, description: str) -> str:
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=140)
    return f'<img alt="{description}" src="data:image/png;base64,{base64.b64encode(out.getvalue()).decode()}">'
