"""Draws the picture of the README: ``python docs/draw_readme.py`` writes ``docs/readme.svg`` from ``lab/results/``.

Left: what features cost and how accurate they are, against scikit-learn (experiment `ours-time`).  Right: what is left of
the accuracy of a trained model at equal cost, against features of Performers (experiment `ours-attention-conversion`).
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS))

from reproduction_pages import results  # noqa: E402

THEIRS, OURS = ("#9a9a9a", "#5f5f5f"), ("#1f77b4", "#17a085", "#d95f02")
SHOWN = {
    "RBFSampler": "scikit-learn RBFSampler",
    "Nystroem": "scikit-learn Nystroem",
    "orf": "orthogonal rows",
    "sorf": "orthogonal rows, fast rotation",
    "landmarks": "landmarks",
}


def features(axes: Axes) -> None:
    """Relative error of the kernel matrix against the time of a fit and a transform, by width."""
    found = results()["ours-time"]
    parts = {name: part["numbers"] for name, part in found["parts"].items()}
    colours = dict(zip(SHOWN, (*THEIRS, *OURS), strict=True))
    for name, title in SHOWN.items():
        points = [parts[f"{name} {width}"] for width in found["parameters"]["widths"]]
        style = "s--" if name in ("RBFSampler", "Nystroem") else "o-"
        seconds = [1e3 * point["seconds"] for point in points]
        axes.loglog(seconds, [point["mean"] for point in points], style, color=colours[name], label=title)
    rows, widths = found["parameters"]["rows"], ", ".join(map(str, found["parameters"]["widths"]))
    axes.set(xlabel=f"milliseconds for {rows:,} images of MNIST", ylabel="relative error of the kernel")
    axes.set_title(f"{widths} features", fontsize=10)
    axes.set_xticks((20, 50, 100, 200, 500), ("20", "50", "100", "200", "500"))
    axes.set_yticks((0.005, 0.01, 0.02, 0.05), ("0.005", "0.01", "0.02", "0.05"))
    axes.minorticks_off()
    axes.legend(fontsize=8)


def conversion(axes: Axes) -> None:
    """Accuracy of a vision transformer before and after its attention is converted, without training."""
    found = results()["ours-attention-conversion"]
    models = [part["numbers"] for part in found["parts"].values() if "softmax" in part["numbers"]]
    bars = {"softmax": np.mean([model["softmax"] for model in models])}
    for name in ("FAVOR+", "FAVOR++", "dense", "dense, calibrated"):
        bars[name] = np.mean([np.mean(model["accuracy"][name]) for model in models])
    labels = ["softmax\n(quadratic)", "FAVOR+\n(Performer)", "FAVOR++", "dense", "dense,\ncalibrated"]
    colours = [THEIRS[1], THEIRS[0], OURS[0], OURS[0], OURS[0]]
    for k, (value, colour) in enumerate(zip(bars.values(), colours, strict=True)):
        axes.bar(k, value, color=colour)
        axes.text(k, value + 0.015, f"{value:.2f}", ha="center", fontsize=9)
    axes.set_xticks(range(len(bars)), labels, fontsize=8)
    axes.set(ylabel="accuracy on test images", ylim=(0, 1.05))
    axes.set_title(f"a trained vision transformer, converted: {found['parameters']['rows']} rows per head", fontsize=10)


def main() -> None:
    """Write the picture."""
    figure = Figure(figsize=(11, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    features(left)
    conversion(right)
    with matplotlib.rc_context({"svg.hashsalt": "bochner", "svg.fonttype": "none"}):
        figure.savefig(DOCS / "readme.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
