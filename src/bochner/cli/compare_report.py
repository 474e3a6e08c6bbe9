"""The report of ``bochner compare`` on Gram matrices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .._table import seconds, size
from .compare import Comparison
from .measurement import Measurement
from .report_page import FILTER, Cell, Row, axis, escaped, figure, folded, picture, table, write_page

_HEADER = (
    "mechanism", "features", "measured error", "median draw", "predicted", "predicted by", "time per row", "memory",
    "positive", "symmetric", "unbiased",
)  # fmt: skip
_SORTED = 2
_HOPELESS = 3.0
"""Mechanisms whose error is this many times the lowest are folded away, beyond the first few."""
_LEAST = 10
_CAPTIONS = {
    "curves": "Error against the number of features: measured (dots) and predicted (lines).",
    "predicted": "Predicted against measured error, with two standard errors. Of mechanisms at the right edge rare draws "
    "carry the mean squared error: theory counts them, a few draws do not meet them.",
    "frontier": "Time against error; nothing is both faster and better than the mechanisms on the line.",
}
_ABOUT_GRAMS = (
    "Some rows, in the order of their first principal component. Each matrix is that of the draw with the median error "
    "among those of the table, and the number is the error of this draw on all measured rows, as in the column <em>median "
    "draw</em>. Below each: its difference to the exact matrix, on one scale for all."
)
_ABOUT_ERRORS = (
    "Errors are relative Frobenius errors of the Gram matrix, root mean squares over independent draws, and <em>median "
    "draw</em> is the median of the same errors; <em>predicted</em> is the same number before drawing, on a sample of "
    "pairs: by a closed form (<em>theory</em>), or by a small simulation where none is known. Mechanisms that may "
    "be equal to the best were drawn more often."
)


def write_report(found: Comparison, out: Path) -> Path:
    """Write the page, and its numbers beside it; return the page's path."""
    return write_page(_body(found), _charts(found), _pictures(found), found.as_dict(), out)


def _body(found: Comparison) -> str:
    best = found.best
    limit = max(_HOPELESS * found.measurements[0].ranked, found.measurements[:_LEAST][-1].ranked)
    good = [m for m in found.measurements if m.ranked <= limit]
    hopeless = [m for m in found.measurements if m.ranked > limit]
    words = "".join(f"<p>{escaped(sentence)}</p>" for sentence in found.sentences)
    rest = ""
    if hopeless:
        summary = (
            f"{len(hopeless)} more, with more than {limit / found.measurements[0].ranked:.3g} times the lowest error"
        )
        rest = folded(summary, table("folded", _HEADER, (_row(m, found) for m in hopeless), _SORTED))
    parts = [
        "<h1>Random features on your data</h1>",
        f"<p>{escaped(found.problem.description)}. {len(found.measurements)} mechanisms, each with features of width at "
        f"most {found.n_features}.</p>",
        f'<div class="decision">{words}<p>Measured error {best.measured:.3g}. To use it: '
        f'<code id="code">{escaped(best.spec)}</code></p></div>',
        '<h2>Figures</h2>\n<div class="figures">',
        *(figure(name, caption) for name, caption in _CAPTIONS.items()),
        f'</div>\n<h2>Gram matrices</h2>\n<div class="grams" id="grams">{_cards(found)}</div>',
        f"<p>{_ABOUT_GRAMS}</p>\n<h2>All mechanisms</h2>",
        FILTER,
        table("mechanisms", _HEADER, (_row(m, found) for m in good), _SORTED),
        rest,
        f"<p>{_ABOUT_ERRORS}</p>",
    ]
    return "\n".join(part for part in parts if part)


def _row(m: Measurement, found: Comparison) -> Row:
    cells = (
        Cell(m.label, m.label),
        Cell(m.n_features, str(m.n_features)),
        Cell(m.ranked, f"{m.measured:.4g} \u00b1 {m.standard_error:.1g}"),
        Cell(m.typical, f"{m.typical:.4g}"),
        Cell(m.predicted, f"{m.predicted:.4g}"),
        Cell(m.source, m.source),
        Cell(m.seconds_per_row, seconds(m.seconds_per_row)),
        Cell(m.nbytes, size(m.nbytes)),
        Cell(m.positive, "yes" if m.positive else "no"),
        Cell(m.symmetric, "yes" if m.symmetric else "no"),
        Cell(m.unbiased, "yes" if m.unbiased else "approx."),
    )
    return Row(cells, m.spec, m is found.best)


def _charts(found: Comparison) -> dict[str, Any]:
    return {"curves": _curves(found), "predicted": _predicted(found), "frontier": _frontier(found)}


def _curves(found: Comparison) -> dict[str, Any]:
    measured = [error for curve in found.curves for error in curve.measured]
    top = max(measured) * 2  # errors that rare draws carry are predicted far above
    series = []
    for curve in found.curves:
        points = [
            {"x": x, "y": y, "text": f"{curve.label}\nwidth {x}: measured {y:.3g}, predicted {p:.3g}"}
            for x, y, p in zip(curve.n_features, curve.measured, curve.predicted, strict=True)
        ]
        line = [[x, min(p, top)] for x, p in zip(curve.n_features, curve.predicted, strict=True)]
        series.append({"name": curve.label, "points": points, "line": line})
    widths = [width for curve in found.curves for width in curve.n_features]
    return {"x": axis("features", widths), "y": axis("relative error", [*measured, top]), "series": series}


def _predicted(found: Comparison) -> dict[str, Any]:
    measured = [m.measured for m in found.measurements if m.measured > 0 and np.isfinite(m.measured)]
    most = max(measured) * 3
    series: list[dict[str, Any]] = []
    for source in ("theory", "simulation"):
        kind = [m for m in found.measurements if m.source == source and m.measured in measured]
        points = [_compared(m, min(m.predicted, most)) for m in kind]
        series.append({"name": f"predicted by {source}", "points": points})
    ends = [min(measured) / 1.2, most]
    series.append({"line": [[v, v] for v in ends], "dashed": True, "color": "currentColor"})
    return {"x": axis("predicted error", ends), "y": axis("measured error", [ends[0], max(measured)]), "series": series}


def _compared(m: Measurement, x: float) -> dict[str, Any]:
    text = f"{m.label}\npredicted {m.predicted:.3g}, measured {m.measured:.3g} \u00b1 {m.standard_error:.1g}"
    low, high = max(m.measured - 2 * m.standard_error, m.measured / 10), m.measured + 2 * m.standard_error
    return {"x": x, "y": m.measured, "low": low, "high": high, "text": text}


def _frontier(found: Comparison) -> dict[str, Any]:
    finite = [m for m in found.measurements if m.measured > 0 and np.isfinite(m.measured)]
    times = np.array([m.seconds_per_row * 1e6 for m in finite])
    errors = np.array([m.measured for m in finite])
    order = np.argsort(times)
    best = order[errors[order] <= np.minimum.accumulate(errors[order])]
    spots = [
        {"x": t, "y": m.measured, "text": f"{m.label}\n{t:.2g} us per row, error {m.measured:.3g}"}
        for m, t in zip(finite, times.tolist(), strict=True)
    ]
    others = [spot for k, spot in enumerate(spots) if k not in best]
    line = [[spots[k]["x"], spots[k]["y"]] for k in best]
    series = [
        {"name": "others", "points": others, "color": "#9aa5b1"},
        {
            "name": "none is faster and better",
            "points": [spots[k] for k in best],
            "line": line,
            "large": True,
            "color": "#2563eb",
        },
    ]
    return {"x": axis("time per row (microseconds)", times), "y": axis("measured error", errors), "series": series}


def _cards(found: Comparison) -> str:
    cards = []
    for k, one in enumerate(found.pictures):
        error = f"median draw: error {one.error:.3g}" if k else "the matrix to estimate"
        canvases = f'<canvas id="gram{k}"></canvas>' + (f'<canvas id="error{k}"></canvas>' if k else "")
        cards.append(
            f"<figure>{canvases}<figcaption><strong>{escaped(one.label)}</strong><br>{error}</figcaption></figure>"
        )
    return "".join(cards)


def _pictures(found: Comparison) -> dict[str, Any]:
    exact = found.pictures[0].gram
    low, high = float(exact.min()), float(exact.max())
    errors = [one.gram - exact for one in found.pictures[1:]]
    limit = max(float(np.quantile(np.abs(error), 0.99)) for error in errors)
    drawn = {f"gram{k}": picture(np.nan_to_num(one.gram), low, high) for k, one in enumerate(found.pictures)}
    return drawn | {
        f"error{k}": picture(np.nan_to_num(error), -limit, limit, errors=True)
        for k, error in enumerate(errors, start=1)
    }
