"""Benchmarks of the inner loops in NumPy, where Numba cannot be imported, next to the compiled ones."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from bochner.reporting import as_json, seconds

from ._bench import Result, at_most, in_process

_REPEATS, _LONG = 5, 1.0
"""Runs of each case, and seconds from which one is enough."""


def run() -> Iterator[Result]:
    """All cases, each in a process with Numba and in one without, by the CPU time of the faster of several runs."""
    compiled, plain = (in_process(__name__, engine) for engine in ("with", "without"))
    for name, fast in compiled.items():
        details = f"{seconds(plain[name])} of CPU in NumPy, {seconds(fast)} compiled"
        yield at_most(f"{name}, without Numba / with", plain[name] / fast, 3, "x", details)


def cases() -> Iterator[tuple[str, Callable[[], Any]]]:
    """What is measured: the doors of the library behind which there are compiled loops."""
    from bochner import kernels, projections, rotations
    from bochner.extending import fwht
    from bochner.learn import FourierProcess, KernelRidge, RandomFeatures

    rng = np.random.default_rng(0)
    X: np.ndarray = rng.standard_normal((4000, 64)).astype(np.float32)
    wide: np.ndarray = rng.standard_normal((1000, 512)).astype(np.float32)
    y = np.sin(X[:, 0])
    phi = RandomFeatures(gamma=1 / 64, n_components=1024, random_state=0).fit(X)
    yield "RandomFeatures.transform, 4000 x 64 -> 1024", lambda: phi.transform(X)
    yield "fwht, 1000 x 512", lambda: fwht(wide)
    for kind in ("Hadamard", "MultiHadamard", "UnpaddedHadamard", "StructuredGivens", "Butterfly", "Kac"):
        rotation = getattr(rotations, kind)()
        P = projections.Orthogonal(rotation).sample(512, 1024, 0)
        yield f"Orthogonal({kind}()), 1000 x 512 -> 1024", partial(P, wide)
    S = projections.Simplex(rotations.Hadamard()).sample(512, 1024, 0)
    yield "Simplex(Hadamard()), 1000 x 512 -> 1024", lambda: S(wide)
    few = X[:1000, :8].astype(np.float64)
    yield "Laplacian kernel, 1000 x 1000 x 8", lambda: kernels.Laplacian(2.0)(few)
    yield "Matern kernel, 1000 x 1000 x 8", lambda: kernels.Matern(1.5, 2.0)(few)
    plane, box = rng.uniform(0, 1, (20_000, 2)), (np.zeros(2), np.ones(2))
    height = np.sin(9 * plane[:, 0]) + 0.1 * rng.standard_normal(20_000)
    grid = FourierProcess(kernels.Matern(1.5, 0.2), noise=0.01, optimize=False, box=box, random_state=0)
    yield "FourierProcess.fit, 20000 x 2", lambda: grid.fit(plane, height)
    ridge = KernelRidge(gamma=1 / 64, n_components=512, alpha=0.1, random_state=0)
    yield "KernelRidge.fit, 4000 x 64 -> 512", lambda: ridge.fit(X, y)
    learned = KernelRidge(random_state=0)
    yield "KernelRidge().fit, 300 x 8, everything chosen", lambda: learned.fit(few[:300], y[:300])
    try:
        import torch
    except ImportError:
        return
    yield from _attention(torch)


def _attention(torch: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Sixteen steps of decoding, and attention with codes."""
    from bochner.nn import AttentionState, RandomFeatureAttention, coded_attention

    torch.manual_seed(0)
    layer = RandomFeatureAttention(256, 4, batch_first=True, spec="favor+", window=16).eval()
    x = torch.randn(2, 16, 256)

    def decode() -> None:
        state = AttentionState()
        with torch.no_grad():
            for t in range(16):
                now = x[:, t : t + 1]
                layer(now, now, now, need_weights=False, is_causal=True, state=state)

    yield "decoding, 16 steps, 4 heads, window 16", decode
    q, k, v = torch.randn(3, 1, 4, 512, 64)
    yield "coded_attention, 4 heads, 512 tokens", lambda: coded_attention(q, k, v, causal=True, window=16, kept=48)


def _main(engine: str) -> None:
    """Print the least CPU time of each case."""
    if engine == "without":
        sys.modules["numba"] = sys.modules["llvmlite"] = None  # type: ignore[assignment]  # importing them fails
    times = {}
    for name, work in cases():
        work()
        first = _cpu(work)
        times[name] = first if first > _LONG else min(first, *(_cpu(work) for _ in range(_REPEATS - 1)))
    print(as_json(times))


def _cpu(work: Callable[[], Any]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


if __name__ == "__main__":
    _main(sys.argv[1])
