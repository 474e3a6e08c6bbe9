"""Curves of error against the number of features."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from typing import Any


def draw_curves(curves: Mapping[str, Sequence[tuple[int, float]]], tolerance: float | None, ax: Any = None) -> Any:
    """One line a mechanism, on logarithmic axes."""
    if ax is None:
        if importlib.util.find_spec("matplotlib") is None:
            raise ImportError("Recommendation.plot: a plot needs matplotlib; pip install 'bochner[plot]'.")
        from matplotlib.figure import Figure  # no window, whatever the backend

        ax = Figure(figsize=(7, 4.5), layout="constrained").add_subplot()
    for label, points in curves.items():
        ax.loglog(*zip(*points, strict=True), marker="o", markersize=3, label=label)
    if tolerance is not None:
        ax.axhline(tolerance, color="black", linestyle=":", label="tolerance")
    ax.set_xlabel("features")
    ax.set_ylabel("predicted relative error")
    ax.legend(fontsize="small")
    return ax
