"""Draws the picture of the README: ``python docs/draw_readme.py`` writes ``docs/readme.svg`` from ``lab/results/``.

One panel for each kind of user: our default against boosted trees on tables that it was not designed with
(`bochner-lab bench tables`), a trained model after conversion (experiment `ours-trained-models`), and predicted errors
beside simulated ones.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.datasets import load_digits

from bochner import kernels, mechanism
from bochner_lab.benchmarks._table_methods import BOOSTING
from bochner_lab.benchmarks._tables import JUDGING
from bochner_lab.benchmarks.tables import halves, saved

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS))

from reproduction_pages import results  # noqa: E402

OURS, THEIRS = "#1f77b4", "#9a9a9a"
MODEL = "MiniLM, 512 tokens"
LIMITS = (-1.6, 0.95)
"""Limits of the axis: logarithms of ratios to base 2; longer bars are cut, and say how long they are."""
NAMED = 3
"""One in so many tables is named, besides those with a higher error than trees."""
KEYS = {
    "codes, calibrated": "keys that codes find (ours)",
    "sampled keys": "sampled keys",
    "low-rank scores": "by low-rank scores",
    "largest (oracle)": "the largest weights",
    "block summaries": "by summaries of blocks",
    "window": "the nearest keys",
}
"""Ways to choose keys, in words."""


def judged_tables(other: str = BOOSTING) -> dict[str, float]:
    """Our default's error over that of boosted trees, on every table of the judging half: means over splits."""
    cells = saved(DOCS.parent / "lab" / "results" / "bench-tables" / "quick")
    judged = {name: one for half, part in halves(cells) if half == JUDGING for name, one in part.items()}
    return {name: found.ratio(other) for name, found in judged.items() if other in found.methods}


def tables(axes: Axes) -> None:
    """Bars of that ratio, best first."""
    ratios = dict(sorted(judged_tables().items(), key=lambda pair: pair[1]))
    colors = [OURS if ratio <= 1 else THEIRS for ratio in ratios.values()]
    axes.barh(range(len(ratios)), [np.log2(ratio) for ratio in ratios.values()], color=colors)
    for place, (name, ratio) in enumerate(ratios.items()):
        if np.log2(ratio) < LIMITS[0]:  # the bar goes on beyond the picture
            axes.text(LIMITS[0], place, f" {ratio:.2g}", va="center", fontsize=8, color="white", weight="bold")
        if ratio > 1 or place % NAMED == 0:  # beside the bar, where the axis leaves room
            axes.text(-0.04 if ratio > 1 else 0.04, place, name, ha="right" if ratio > 1 else "left", va="center")
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_xticks(ticks := [-1, 0], [f"{2.0**tick:g}" for tick in ticks])
    axes.set_yticks([])
    axes.set(xlabel="our error / that of boosted trees", xlim=LIMITS)
    axes.set_ylim(len(ratios) - 0.4, -0.6)
    axes.set_title(f"{len(ratios)} tables")


def trained_model(axes: Axes) -> None:
    """Similarity of the embeddings of a converted sentence encoder to the original's, by how keys are chosen."""
    numbers: dict[str, Any] = results()["ours-trained-models"]["parts"][MODEL]["numbers"]
    most = str(max(numbers["costs"]))
    found = {name: float(np.mean(values[most])) for name, values in numbers["values"].items()}
    shown = dict(sorted(found.items(), key=lambda pair: -pair[1]))
    colors = [OURS if name.startswith("codes") else THEIRS for name in shown]
    bars = axes.barh(range(len(shown)), [1 - value for value in shown.values()], 0.45, color=colors)
    axes.bar_label(bars, [f"{1 - value:.2g}" for value in shown.values()], padding=3)
    for place, name in enumerate(shown):
        axes.text(1.15e-4, place - 0.3, KEYS[name], va="bottom")
    axes.set(xscale="log", xlabel="change of the embedding, 1 - cosine", xlim=(1e-4, 0.3))
    axes.set_xticks([1e-4, 1e-3, 1e-2, 1e-1], ["0.0001", "0.001", "0.01", "0.1"])
    axes.minorticks_off()
    axes.set_yticks([])
    axes.set_ylim(len(shown) - 0.5, -0.9)
    axes.set_title(f"a trained encoder, {most} of 512 keys")


def theory(axes: Axes) -> None:
    """Closed forms as lines, simulations as points."""
    X = load_digits().data[:30] / 16
    X -= X.mean(axis=0)
    kernel, widths = kernels.Gaussian(3.0), (16, 32, 64, 128, 256)
    named = {"rff": "cosines, independent", "orf": "cosines, orthogonal", "simrf": "exponentials, simplex"}
    for color, (name, title) in enumerate(named.items()):
        specs = [mechanism(name, kernel, width if name == "simrf" else width // 2) for width in widths]
        drawn = [[((s.draw(64, rng=seed).gram(X) - kernel(X)) ** 2).mean() for seed in range(400)] for s in specs]
        axes.plot(widths, [s.mse(X).mean() ** 0.5 for s in specs], color=f"C{color}", label=title)
        axes.plot(widths, np.mean(drawn, axis=1) ** 0.5, "o", color=f"C{color}")
    axes.set(
        xscale="log", yscale="log", xlabel="width of the features", ylabel="error of a kernel value", ylim=(0.006, 0.21)
    )
    axes.set_xticks(widths, widths)
    axes.set_yticks((0.01, 0.02, 0.05, 0.1, 0.2), ("0.01", "0.02", "0.05", "0.1", "0.2"))
    axes.minorticks_off()
    axes.legend(fontsize=8, loc="lower left", title="lines: formula; points: simulated", title_fontsize=8)
    axes.set_title("errors of random features")


def main() -> None:
    """Write the picture."""
    style = {"svg.hashsalt": "bochner", "svg.fonttype": "none", "font.size": 9, "axes.titlesize": 10}
    with matplotlib.rc_context(style):
        figure = Figure(figsize=(8.6, 3.7), layout="constrained")
        left, middle, right = figure.subplots(1, 3)
        tables(left)
        trained_model(middle)
        theory(right)
        figure.savefig(DOCS / "readme.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
