"""Draws the pictures of frames, coupled radii and landmarks: ``python docs/draw_beyond.py`` writes three SVG files.

All errors are closed forms, by `Approximation.mse`, at points drawn with a fixed seed.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bochner import Approximation, kernels, maps, projections

DOCS = Path(__file__).parent
_SPREAD = np.geomspace(0.8, 0.1, 8)
"""Standard deviations of the coordinates of the clouds."""
_WIDTHS = (16, 32, 64, 128, 256, 512, 1024)
"""Widths of landmarks and cosines."""
_POSITIVE = {
    "positive (FAVOR+)": maps.Positive(),
    "optimal positive (FAVOR++)": maps.OptimalPositive(),
    "dense, not centred (FAVOR#)": maps.DenseExponential(center=False),
    "optimal positive in a frame": maps.Framed(maps.OptimalPositive()),
    "dense": maps.DenseExponential(),
}


def frames() -> Figure:
    """Median relative error of an entry of the softmax kernel, for clouds off-centre and for clouds unequal in scale."""
    figure = Figure(figsize=(7, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    x, y = np.random.default_rng(0).standard_normal((2, 150, 8)) * _SPREAD
    moves, ratios = np.linspace(0, 2, 9), np.geomspace(1, 16, 9)
    for name, feature_map in _POSITIVE.items():
        moved = [_softmax_error(feature_map, x + s / 8**0.5, y + s / 8**0.5) for s in moves]
        stretched = [_softmax_error(feature_map, x * _stretch(r), y / _stretch(r)) for r in ratios]
        left.semilogy(moves, moved, label=name)
        right.loglog(ratios, stretched)
    left.set(xlabel="distance of both means from the origin", ylabel="median relative error", ylim=(0.07, 3))
    right.set(xlabel="scale of queries / keys, first / last coordinate")
    left.set_title("off-centre clouds", fontsize=10)
    right.set_title("unbalanced clouds", fontsize=10)
    figure.legend(loc="outside lower center", ncols=3, fontsize=8)
    return figure


def _stretch(ratio: float) -> np.ndarray:
    """Factors of the coordinates: from the root of the ratio down to one over it."""
    return np.asarray(ratio ** np.linspace(0.5, -0.5, 8))


def _softmax_error(feature_map: maps.Map, X: np.ndarray, Y: np.ndarray) -> float:
    kernel = kernels.Softmax()
    plan = Approximation(kernel, feature_map, projections.IID(), n_projections=256).plan(X, Y, rng=0)
    return float(np.median(np.sqrt(plan.mse(X, Y)) / kernel(X, Y)))


def coupled_radii() -> Figure:
    """Squared error of cosines with coupled radii over that with independent radii, one orthogonal block each."""
    figure = Figure(figsize=(6, 3.6), layout="constrained")
    axes = figure.subplots()
    distances = np.linspace(0.1, 4, 40)
    for d in (4, 8, 16, 32, 64):
        plain, coupled = (_cosine_mse(d, distances, radii) for radii in ("kernel", "coupled"))
        axes.plot(distances, coupled / plain, label=f"d = {d}")
    axes.axhline(1, color="grey", linewidth=0.8)
    axes.set(xlabel="distance |x - y| in lengthscales", ylabel="squared error, coupled over plain", ylim=(0.4, 1.2))
    axes.legend(fontsize=8)
    return figure


def _cosine_mse(d: int, distances: np.ndarray, radii: str) -> np.ndarray:
    X, Y = np.zeros((1, d)), distances[:, None] * np.eye(1, d)
    spec = Approximation(kernels.Gaussian(), maps.Trigonometric(), projections.Orthogonal(radii=radii), d)
    return np.asarray(spec.mse(X, Y)[0])


def landmarks() -> Figure:
    """Relative Gram error against width, on data whose Gram matrix has a steep spectrum and on data with a flat one."""
    figure = Figure(figsize=(7, 3.6), layout="constrained")
    X = np.random.default_rng(0).standard_normal((2000, 16))
    data = {
        "steep spectrum: scales 1 to 0.001": X * np.geomspace(1, 0.001, 16),
        "flat spectrum: 16 equal scales": X / 2,
    }
    for axes, (title, points) in zip(figure.subplots(1, 2, sharey=True), data.items(), strict=True):
        _gram_errors(axes, points)
        axes.set_title(title, fontsize=10)
        axes.set(xlabel="number of features")
        axes.set_xticks(_WIDTHS[::2], [str(width) for width in _WIDTHS[::2]])
        axes.minorticks_off()
    figure.axes[0].set(ylabel="relative error of the Gram matrix")
    figure.axes[1].legend(fontsize=8)
    return figure


def _gram_errors(axes: Axes, points: np.ndarray) -> None:
    """One curve for each choice of landmarks, and one for orthogonal cosines, judged on rows that are not landmarks."""
    kernel, seen, held = kernels.Gaussian(), points[:1700], points[1700:]
    exact = kernel(held)
    for name, feature_map in {
        "cosines, orthogonal rows": maps.Trigonometric(),
        "landmarks, uniform": maps.Landmarks(),
        "landmarks, rpcholesky": maps.Landmarks("rpcholesky"),
    }.items():
        specs = [Approximation(kernel, feature_map).with_width(width) for width in _WIDTHS]
        mses = [spec.plan(seen, rng=0).mse(held) for spec in specs]
        axes.loglog(_WIDTHS, [np.sqrt(mse.sum() / (exact**2).sum()) for mse in mses], label=name)


PICTURES = {"frames.svg": frames, "coupled_radii.svg": coupled_radii, "landmarks.svg": landmarks}
"""The files and what draws them."""


if __name__ == "__main__":
    with matplotlib.rc_context({"svg.hashsalt": "bochner", "svg.fonttype": "none"}):  # the same file at every run
        for name, draw in PICTURES.items():
            draw().savefig(DOCS / name, metadata={"Date": None})
