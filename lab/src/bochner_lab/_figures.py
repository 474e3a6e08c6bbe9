"""The figure of an experiment, drawn from its result file."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ._estimates import BEYOND, Estimate
from ._experiment import Experiment, Results, experiment
from ._runner import plain, read_result
from ._verdicts import CANNOT_RUN

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MARKERS = "osD^v<>PX*"


def draw(result: Path, one: Experiment | None = None, path: Path | None = None) -> Path:
    """Draw the figure of a result; return its path.

    Parameters
    ----------
    result : Path
        The file that `run` wrote; nothing is computed again.
    one : Experiment, optional
        The experiment, if it is not one of the package.
    path : Path, optional
        The picture; ``figure.png`` beside the result by default.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise ValueError("figures need matplotlib; pip install matplotlib.")
    from matplotlib.figure import Figure

    found = read_result(result)
    if found["verdict"] == CANNOT_RUN:
        raise ValueError(f"{found['experiment']} has no figure, since it could not be run: {found['missing']}")
    one = one or experiment(found["experiment"])
    check_current(result, found, one)
    figure = Figure(figsize=(9, 4.2), layout="constrained")
    one.plot(Results(found["parameters"], {name: part["numbers"] for name, part in found["parts"].items()}), figure)
    for ax in figure.axes:
        _few_ticks(ax)
    figure.suptitle(f"{one.paper.upper()}, {one.item} ({found['profile']} profile)", fontsize="medium")
    path = result.with_name("figure.png") if path is None else path
    figure.savefig(path, dpi=110)
    return path


def check_current(path: Path, found: Mapping[str, Any], one: Experiment) -> None:
    """Raise a ValueError for a result whose parts or parameters are those of another version of its experiment."""
    p = one.profiles.get(found["profile"])
    if p is None or found["parameters"] != plain(p) or list(found["parts"]) != list(one.parts(p)):
        raise ValueError(
            f"{path} was made by another version of {one.name}, with other parts or parameters; `bochner-lab run {one.name} "
            f"--profile {found['profile']}` computes it again."
        )


def _few_ticks(ax: Any) -> None:
    """Readable labels of a logarithmic x axis: powers of ten, or 1, 2 and 5 where there are few of them."""
    from matplotlib.ticker import LogLocator, NullFormatter

    if ax.get_xscale() != "log":
        return
    low, high = ax.get_xlim()
    if low > 0 and high < 100 * low:
        ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_formatter(NullFormatter())


def panels(figure: Figure, titles: Sequence[str], x: str, y: str, *, columns: int = 4, scale: str = "log") -> list[Any]:
    """Axes in a grid, one per title, with common labels; the figure grows with the number of rows."""
    columns = min(columns, len(titles))
    rows = -(-len(titles) // columns)
    figure.set_size_inches(max(8, 3.3 * columns), max(4.2, 2.7 * rows + 0.8))
    grid = figure.subplots(rows, columns, squeeze=False)
    for ax in grid.flat[len(titles) :]:
        ax.set_axis_off()
    for ax, title in zip(grid.flat, titles, strict=False):
        ax.set_title(title, fontsize="small")
        ax.set_yscale(scale)
        ax.tick_params(labelsize="x-small")
    figure.supxlabel(x, fontsize="small")
    figure.supylabel(y, fontsize="small")
    return list(grid.flat[: len(titles)])


def curve(ax: Any, x: Any, y: Estimate, label: str, k: int, *, joined: bool = True) -> None:
    """A curve with bars of two standard errors, in the k-th colour and marker; points only where x are names."""
    style = {
        "color": f"C{k % 10}",
        "marker": MARKERS[(k + 3 * (k // 10)) % len(MARKERS)],
        "markersize": 3.5,
        "capsize": 2,
    }
    line = "-" if joined else "none"
    ax.errorbar(np.asarray(x), y.mean, BEYOND * y.error, label=label, linewidth=1, linestyle=line, **style)


def band(ax: Any, x: Any, y: Estimate, label: str, k: int) -> None:
    """A curve within a band of two standard errors, in the k-th colour."""
    color, half = f"C{k % 10}", BEYOND * y.error
    ax.plot(x, y.mean, label=label, color=color, linewidth=1.2)
    ax.fill_between(x, y.mean - half, y.mean + half, color=color, alpha=0.15, linewidth=0)


def legend(figure: Figure, ax: Any) -> None:
    """One legend for all axes, to their right."""
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", fontsize="x-small")
