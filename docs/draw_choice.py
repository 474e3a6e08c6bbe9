"""Draws the chart from a question to a call: ``python docs/draw_choice.py`` writes ``docs/choice.svg``."""

from __future__ import annotations

from html import escape
from pathlib import Path

WIDTH, LINE, PAD, GAP = 660, 34, 10, 16
COLUMNS = (20, 40, 345)
"""Left edges of what you have, what you ask, and what to call."""
CHART: dict[str, dict[str, str]] = {
    "a table with a target": {
        "What should I use at all?": "bochner.compare(X, y)",
        "The best kernel machine, untuned?": "KernelRidge() or KernelClassifier()",
        "How sure is a prediction?": "predict(X, interval=.9)",
        "More rows than fit in memory?": "partial_fit, or bochner.distributed",
    },
    "rows without a target": {
        "Which features, and how many?": "bochner.recommend(X, kernel=...)",
        "Features for another model?": "RandomFeatures() in a pipeline",
        "Structure of the rows?": "KernelPCA()",
        "Have they drifted? Are they related?": "mmd_test(X, Y), hsic_test(X, Y)",
    },
    "a graph": {"Values at the other nodes?": "graphs.NodeRegression(Walks(...))"},
    "a trained Transformer": {
        "Does linear attention pay for it?": "nn.attention_report(model, batches)",
        "Long contexts at the same quality?": "nn.calibrate(model, batches, cost=128)",
        "A state of constant size?": "nn.replace_attention, LinearCache",
    },
    "an idea": {
        "Its exact error?": "Approximation(...).mse(X, Y)",
        "Its rank among all mechanisms?": "extending.register, bochner.recommend",
        "A claim, with a verdict?": "an experiment of bochner-lab",
    },
    "a function": {
        "Its expectation under a Gaussian?": "bochner.expectation(f, d)",
        "Its minimum, by evaluations only?": "bochner.optimize.minimize",
    },
}


def chart() -> str:
    """The chart as SVG: what you have, and below it one line per question, narrow enough for a small screen."""
    parts, y = [], GAP
    for have, questions in CHART.items():
        parts.append(_box(COLUMNS[0], y, 200, 30, have, "#dbe9f6", bold=True))
        for k, (question, call) in enumerate(questions.items()):
            line = y + 30 + LINE * k + LINE / 2 + 4
            parts.append(f'<path d="M{COLUMNS[0] + 8} {y + 30} V{line} H{COLUMNS[1] - 3}" class="edge"/>')
            parts.append(f'<text x="{COLUMNS[1]}" y="{line + 5}">{escape(question)}</text>')
            parts.append(f'<path d="M{COLUMNS[2] - 24} {line} H{COLUMNS[2] - 6}" class="edge" marker-end="url(#end)"/>')
            parts.append(_box(COLUMNS[2], line - 14, WIDTH - COLUMNS[2] - 12, 28, call, "#fdf3e1", code=True))
        y += 30 + LINE * len(questions) + 4 + GAP
    style = (
        "text{font:14px sans-serif;fill:#222}.code{font:12px monospace}.bold{font-weight:bold}"
        ".edge{fill:none;stroke:#888;stroke-width:1.3}"
    )
    arrow = '<defs><marker id="end" orient="auto" markerWidth="7" markerHeight="7" refX="5" refY="3">'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" width="{WIDTH}" height="{y}">'
        f'<style>{style}</style>{arrow}<path d="M0 0 L6 3 L0 6 z" fill="#888"/></marker></defs>'
        f'<rect width="{WIDTH}" height="{y}" fill="#fff"/>{"".join(parts)}</svg>\n'
    )


def _box(x: float, y: float, w: float, h: float, text: str, fill: str, bold: bool = False, code: bool = False) -> str:
    kind = "bold" if bold else "code" if code else ""
    return (
        f'<rect x="{x}" y="{y}" width="{w}" height="{h}" rx="5" fill="{fill}" stroke="#bbb"/>'
        f'<text class="{kind}" x="{x + PAD}" y="{y + h / 2 + 4}">{escape(text)}</text>'
    )


if __name__ == "__main__":
    (Path(__file__).parent / "choice.svg").write_text(chart())
