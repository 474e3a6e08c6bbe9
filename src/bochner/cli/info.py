"""The command ``bochner info``: shows the installation, draws and measures every projection, and tests a few results."""

from __future__ import annotations

import argparse
import importlib.util
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .. import catalogue
from ..catalogue._parts import LARGE_DIMENSION
from ..linalg.loops import ENGINE
from ..projections import Operator
from ..reporting import environment, format_table, label, seconds, size
from .problem import check_range, writable
from .self_test import self_test

MOST_ENTRIES = 2**26
"""Largest number of entries of W, some of which are drawn as dense matrices."""


def register(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser("info", help="show the installation, draw every projection once, and test it")
    parser.add_argument("--dimension", type=int, default=512, help="dimension d of the data (default 512)")
    parser.add_argument("--rows", type=int, default=1024, help="number m of rows of W (default 1024)")
    parser.add_argument("--picture", type=Path, help="write a picture of the couplings to this file")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the survey and the self-test; draw the picture if asked."""
    check_range(options, "dimension", 2, MOST_ENTRIES)
    check_range(options, "rows", 1, MOST_ENTRIES // options.dimension)
    if options.picture:
        _check_picture(options.picture)
    for name, value in environment().items():
        print(f"{name:14}{value}")
    print(
        f"{'inner loops':14}{'compiled by Numba' if ENGINE == 'Numba' else 'NumPy, more slowly: Numba cannot be imported'}"
    )
    print(f"\n{_names()}")
    print(
        f"\nEvery projection, drawn with d = {options.dimension}, m = {options.rows}, applied to 1000 float32 rows:\n"
    )
    header = ["projection", "unbiased", "W", "memory", "draw", "apply", "cosines between rows"]
    print(format_table(header, [_row(s) for s in survey(options.dimension, options.rows)]))
    print("\nOrthogonal rows have cosine 0, a simplex -1/(d-1); the spread is the standard deviation over pairs.")
    if options.picture:
        draw_couplings(options.picture)
        print(f"\nPicture of the couplings: {options.picture}")
    lines, passed = self_test()
    print("\nSelf-test:\n" + "\n".join(lines))
    return 0 if passed else 1


def _check_picture(path: Path) -> None:
    """Check the path of the picture before the work starts."""
    if importlib.util.find_spec("matplotlib") is None:
        raise ValueError("a picture needs matplotlib; pip install matplotlib.")
    from matplotlib.figure import Figure

    kinds = Figure().canvas.get_supported_filetypes()
    if path.suffix.lower().lstrip(".") not in kinds:
        raise ValueError(f"--picture {path} must end in one of {', '.join(f'.{kind}' for kind in sorted(kinds))}.")
    if path.is_dir():
        raise ValueError(f"--picture {path} is a folder; give a file.")
    writable("--picture", path.parent)


def _names() -> str:
    """What there is in the catalogue, by name."""
    kinds = ("kernels", "maps", "projections", "rotations", "geometries", "radii", "mechanisms")
    return "\n".join(f"{kind:14}{', '.join(getattr(catalogue, kind)())}" for kind in kinds)


@dataclass(frozen=True)
class Survey:
    """Measurements of one drawn projection."""

    name: str
    unbiased: bool
    shape: tuple[int, int]
    nbytes: int
    draw: float
    apply: float
    cosine_mean: float
    cosine_spread: float


def survey(d: int, m: int) -> Iterator[Survey]:
    """Measure every projection of the catalogue; above d = 1024, those that scale."""
    X = np.random.default_rng(0).standard_normal((1000, d), dtype=np.float32)
    for projection in catalogue.projections().values():
        if d > LARGE_DIMENSION and not projection.scales:
            continue
        start = time.perf_counter()
        P = projection.sample(d, m, 0)
        draw = time.perf_counter() - start
        apply = _shortest(P, X)
        mean, spread = cosines(P)
        yield Survey(label(projection), projection.unbiased, P.shape, P.nbytes, draw, apply, mean, spread)


def _shortest(P: Operator, X: np.ndarray, repeats: int = 3) -> float:
    """Shortest of several applications in seconds, after one that is not counted."""
    times = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        P(X)
        times.append(time.perf_counter() - start)
    return min(times[1:])


def cosines(P: Operator, rows: int = 64) -> tuple[float, float]:
    """Mean and standard deviation of the cosines between the first rows of W, of one block where they are coupled."""
    count = min(rows, P.shape[0], P.block_sizes[0] if P.block_sizes[0] > 1 else P.shape[0])  # or all, if independent
    W = P.to_dense()[:count]
    norms = np.linalg.norm(W, axis=1, keepdims=True)
    U = W / np.where(norms > 0, norms, 1)
    pairs = (U @ U.T)[np.triu_indices(count, 1)]
    return (float(pairs.mean()), float(pairs.std())) if len(pairs) else (0.0, 0.0)


def _row(s: Survey) -> list[str]:
    cosines = f"{s.cosine_mean:+.4f} +- {s.cosine_spread:.0e}"
    shape = f"{s.shape[0]} x {s.shape[1]}"
    unbiased = "yes" if s.unbiased else "approx."
    return [s.name, unbiased, shape, size(s.nbytes), seconds(s.draw), seconds(s.apply), cosines]


def draw_couplings(path: Path, d: int = 8) -> None:
    """Cosines between the rows of three blocks of each projection, as one figure."""
    from matplotlib.figure import Figure

    shown = catalogue.projections()
    n_rows = -(-len(shown) // 4)
    figure = Figure(figsize=(12, 3 * n_rows + 0.4), layout="constrained")
    axes = figure.subplots(n_rows, 4, squeeze=False)
    for ax in axes.flat:
        ax.set_axis_off()
    for ax, (title, projection) in zip(axes.flat, shown.items(), strict=False):
        W = projection.sample(d, 3 * d, 0).to_dense()
        U = W / np.linalg.norm(W, axis=1, keepdims=True)
        image = ax.imshow(U @ U.T, cmap="RdBu_r", vmin=-1, vmax=1)
        ax.set_title(title)
    figure.colorbar(image, ax=axes, shrink=0.6, label="cosine between two rows")
    figure.suptitle(f"Angles between the rows of W: {3 * d} rows in {d} dimensions")
    figure.savefig(path, dpi=120)
