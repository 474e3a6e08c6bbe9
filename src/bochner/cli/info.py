"""The command ``bochner info``: shows the installation, draws and measures every projection, and tests a few results."""

from __future__ import annotations

import argparse
import importlib.util
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import hadamard

from .. import catalogue, kernels
from ..approximation import Approximation, load
from ..catalogue._mechanisms import LARGE_DIMENSION
from ..linalg import fwht
from ..linalg.loops import ENGINE
from ..maps import OptimalPositive, Trigonometric
from ..projections import Operator
from ..reporting import environment, format_table, label, seconds, size
from .problem import check_range, writable

MOST_ENTRIES = 2**26  # largest number of entries of W, some of which are drawn as dense matrices


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


Check = Callable[[], str]  # does the check and returns what it found; raises if the answer is wrong


def inner_loops() -> str:
    """A transform by the inner loops, compiled or not, agrees with a matrix product."""
    X = np.random.default_rng(0).standard_normal((5, 64))
    np.testing.assert_allclose(fwht(X), X @ hadamard(64), rtol=1e-12, atol=1e-12)
    return "agrees with a matrix product"


def features() -> str:
    """Cosines and exponentials estimate their kernels within five standard errors."""
    x, y = np.array([[0.3, -0.6, 0.2]]), np.array([[0.5, 0.1, -0.4]])
    for kernel, feature_map in ((kernels.Gaussian(), Trigonometric()), (kernels.Softmax(), OptimalPositive())):
        spec = Approximation(kernel, feature_map, n_projections=300).plan(x, y)
        error = abs(spec.draw(3, rng=0).gram(x, y) - kernel(x, y)).item()
        if not error < 5 * spec.mse(x, y).item() ** 0.5:
            raise ValueError(f"the error {error:.3g} of {kernel!r} is beyond five standard errors")
    return "within five standard errors of their kernels"


def kernel_machine() -> str:
    """A kernel machine fits a sine."""
    from ..learn import KernelRidge

    x = np.linspace(-3, 3, 200)[:, None]
    score = KernelRidge(kernels.Gaussian(), n_components=64, alpha=0.001, random_state=0).fit(x, np.sin(x[:, 0]))
    if not (found := score.score(x, np.sin(x[:, 0]))) > 0.99:
        raise ValueError(f"a fit of a sine has a score of {found:.3f}")
    return f"fits a sine, score {found:.3f}"


def files() -> str:
    """Features are saved and loaded bit by bit."""
    phi = Approximation(kernels.Gaussian(), n_projections=8).draw(3, rng=0)
    with tempfile.TemporaryDirectory() as folder:
        phi.save(Path(folder) / "phi.npz")
        same = np.array_equal(load(Path(folder) / "phi.npz").queries(np.eye(3)), phi.queries(np.eye(3)))
    if not same:
        raise ValueError("features differ after loading")
    return "saved and loaded, bit by bit"


def attention() -> str:
    """Linear attention agrees with the quadratic form of the same features; not checked without PyTorch."""
    if importlib.util.find_spec("torch") is None:
        return "PyTorch is not installed: pip install torch"
    import torch

    from ..nn import linear_attention

    q, k, v = 0.5 * torch.randn(3, 1, 2, 50, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    phi = Approximation(kernels.Softmax(), OptimalPositive(), n_projections=32).fit(q * 8**-0.25, k * 8**-0.25, rng=0)
    weights = phi.queries(q * 8**-0.25) @ phi.keys(k * 8**-0.25).transpose(-1, -2)
    exact = weights / weights.sum(dim=-1, keepdim=True) @ v
    torch.testing.assert_close(linear_attention(q, k, v, features=phi), exact, rtol=1e-6, atol=1e-8)
    return "agrees with its quadratic form"


CHECKS: dict[str, tuple[Check, str]] = {
    "inner loops": (inner_loops, "reinstall numba and llvmlite: pip install --force-reinstall numba llvmlite"),
    "features": (features, "reinstall numpy and scipy: pip install --force-reinstall numpy scipy"),
    "kernel machine": (kernel_machine, "upgrade scikit-learn: pip install --upgrade scikit-learn"),
    "files": (files, "set TMPDIR to a folder that can be written"),
    "attention": (attention, "upgrade PyTorch: pip install --upgrade torch"),
}
"""Every check, with what to do if it fails."""


def self_test(checks: dict[str, tuple[Check, str]] | None = None) -> tuple[list[str], bool]:
    """Lines of the self-test, the last of which says "all well" or how many checks failed, and whether all passed.

    Parameters
    ----------
    checks : dict or None
        Checks with their remedies; None means all.
    """
    lines, failed = [], 0
    for name, (check, remedy) in (CHECKS if checks is None else checks).items():
        try:
            lines.append(f"{name:16}{check()}")
        except Exception as error:
            failed += 1
            reason = " ".join(str(error).split())[:200]
            lines.append(f"{name:16}FAILED: {type(error).__name__}: {reason}. To mend it, {remedy}.")
    return [*lines, "all well" if not failed else f"{failed} checks failed"], not failed
