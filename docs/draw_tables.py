"""Draws the pictures of the page on kernel machines: ``python docs/draw_tables.py`` writes ``docs/tables.svg``.

How to read a choice (errors of its candidates), which kernel for what (our machine with one kernel given), and where trees
win, the last two from the cells of ``bochner-lab bench tables``.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bochner.learn import KernelRidge
from bochner_lab.benchmarks._table_methods import BOOSTING, CANDIDATE, TREES
from bochner_lab.benchmarks._tables import DESIGN, TABLES
from bochner_lab.benchmarks.tables import Errors, errors, halves, saved

DOCS = Path(__file__).parent
CELLS = saved(DOCS.parent / "lab" / "results" / "bench-tables" / "quick")
KERNELS = {"gaussian": "C0", "matern-3/2": "C1", "exponential": "C2", "laplacian": "C3"}
NAMES = {"Gaussian": "gaussian", "Matern(nu=1.5)": "matern-3/2", "Laplacian": "laplacian"}
_MOST = 4.0
"""Ratios beyond it, or below its inverse, are drawn there."""


def candidates(axes: Axes) -> None:
    """Leave-one-out errors of the candidates without a metric, by bandwidth."""
    split = next(table for table in TABLES if table.name == "cpu_act").split(0, 500, 10)
    chosen = KernelRidge(metric=None, random_state=0).fit(split.X, split.y).selection_
    table = chosen.candidates
    columns = [name for name in dict.fromkeys(table["columns"]) if name in ("standardised", chosen.columns)]
    for name in dict.fromkeys(table["kernel"]):
        for style, scaled in zip(("o-", "s--"), columns, strict=False):
            own = [
                k
                for k, pair in enumerate(zip(table["kernel"], table["columns"], strict=True))
                if pair == (name, scaled)
            ]
            if own:
                bandwidth, error = (np.array([table[key][k] for k in own]) for key in ("bandwidth", "error"))
                order, label = np.argsort(bandwidth), f"{name.split('(')[0]}, {scaled}"
                color = KERNELS[NAMES.get(name, "exponential")]
                axes.plot(bandwidth[order], error[order], style, color=color, label=label, markersize=4)
    axes.plot(
        [table["bandwidth"][np.argmin(table["error"])]], [min(table["error"])], "k*", markersize=12, label="chosen"
    )
    axes.set(xscale="log", yscale="log", xlabel="bandwidth", ylabel="leave-one-out error, of a constant's")
    axes.set_yticks(ticks := (0.03, 0.05, 0.1, 0.2), ticks)
    axes.minorticks_off()
    axes.set_ylim(top=0.9)
    axes.legend(loc="upper right")
    axes.set_title("candidates of a choice, on cpu_act")


def kernels(axes: Axes) -> None:
    """Error of our machine with each kernel, without a metric, over that of the best of the four."""
    tried = [cell for cell in CELLS if cell["half"] == DESIGN and any(n.startswith(CANDIDATE) for n in cell["methods"])]
    ratios: dict[str, list[float]] = {}
    for name, found in errors(tried).items():
        means = [found.means[f"{CANDIDATE}{kernel}, no metric"] for kernel in KERNELS]
        ratios[name] = [error / min(means) for error in means]
    order = sorted(ratios, key=lambda name: ratios[name][0] / ratios[name][-1])
    for k, (kernel, color) in enumerate(KERNELS.items()):
        values = np.minimum([ratios[name][k] for name in order], _MOST)
        axes.plot(values, np.arange(len(order)), "o", color=color, label=kernel, markersize=5)
    axes.set_yticks(np.arange(len(order)), order)
    axes.set(xlabel="error / that of the best kernel")
    axes.grid(axis="y", linewidth=0.3)
    axes.legend(loc="center right")
    axes.set_title("which kernel: no metric, design half")


def trees(axes: Axes) -> None:
    """Our default over the better of boosted trees and ExtraTrees."""
    found: dict[str, tuple[float, str]] = {}
    for half, part in halves(CELLS):
        found |= {name: (_over_trees(one), half) for name, one in part.items()}
    order = sorted(found, key=lambda name: found[name][0])
    colors = [
        "#9a9a9a" if found[name][0] > 1 else "#8fbfe0" if found[name][1] == DESIGN else "#1f77b4" for name in order
    ]
    axes.barh(order, [np.log2(np.clip(found[name][0], 1 / _MOST, _MOST)) for name in order], color=colors)
    axes.axvline(0, color="black", linewidth=0.8)
    axes.invert_yaxis()
    axes.set_xticks(ticks := [-2, -1, 0, 1, 2], [f"{2.0**tick:g}" for tick in ticks])
    axes.margins(y=0.01)
    axes.set(xlabel="our error / that of the better trees")
    axes.set_title("our default and trees")


def _over_trees(found: Errors) -> float:
    return max(found.ratio(BOOSTING), found.ratio(TREES))


def main() -> None:
    """Write the picture."""
    style = {"svg.hashsalt": "bochner", "svg.fonttype": "none", "font.size": 8, "axes.titlesize": 9}
    with matplotlib.rc_context(style):
        figure = Figure(figsize=(7.4, 7.4), layout="constrained")
        panels = figure.subplot_mosaic([["candidates", "trees"], ["kernels", "trees"]])
        candidates(panels["candidates"])
        kernels(panels["kernels"])
        trees(panels["trees"])
        figure.savefig(DOCS / "tables.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
