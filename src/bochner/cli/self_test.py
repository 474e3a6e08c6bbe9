"""A self-test of the installation: a few computations with known answers, and what to do where one fails."""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.linalg import hadamard

from .. import kernels
from ..approximation import Approximation, load
from ..linalg import fwht
from ..maps import OptimalPositive, Trigonometric

Check = Callable[[], str]
"""Does the check and returns what it found; raises if the answer is wrong."""


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
