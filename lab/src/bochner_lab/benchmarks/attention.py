"""Benchmarks of linear attention against exact attention, performer-pytorch and bare matrix products."""

from __future__ import annotations

import contextlib
import io
import math
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from bochner.reporting import seconds, size

from ._bench import Result, at_least, at_most, best_of_each, measured, not_measured

_L, _HEADS, _D, _M = 16384, 8, 64, 256
_LONG = 65536
_LENGTHS = (256, 512, 1024, 2048, 4096, 8192)
_SHORT = 128
_MIDDLE = 2048
_BATCH = (32, _HEADS, 512, _D)
_SHAPE = f"L = {_L}, {_HEADS} heads, d = {_D}, m = {_M}, float32"
_PEERS = 'pip install -e "lab[peers]"'


def run() -> Iterator[Result]:
    """All cases on two threads, or one line that says what is missing."""
    try:
        import torch
    except ImportError:
        yield not_measured("linear_attention", 'needs PyTorch: pip install "torch>=2.4"')
        return
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        yield from _bidirectional()
        yield from _causal()
        yield from _against_products()
        yield from _engines()
        yield from _batch()
        yield from _break_even()
        yield from _training()
        yield from _memory()
    finally:
        torch.set_num_threads(threads)


def _inputs(length: int = _L) -> tuple[Any, Any, Any]:
    """Queries, keys and values of one sequence, with features to meet them."""
    import torch

    q, k, v = torch.randn(3, 1, _HEADS, length, _D, generator=torch.Generator().manual_seed(0))
    return q, k, v


def _ours(q: Any, k: Any, v: Any, *, causal: bool, **options: Any) -> Callable[[], Any]:
    from bochner.approximation import Approximation
    from bochner.kernels import Softmax
    from bochner.maps import OptimalPositive
    from bochner.nn import linear_attention

    root = _D**-0.25
    phi = Approximation(Softmax(), OptimalPositive(), n_projections=_M).fit(
        q[0, :, :256] * root, k[0, :, :256] * root, 0
    )
    return lambda: linear_attention(q, k, v, features=phi, causal=causal, **options)


def _performer(q: Any, k: Any, v: Any, *, causal: bool) -> Callable[[], Any] | None:
    """FastAttention of performer-pytorch, in its plain torch form; None where it is not installed."""
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            from performer_pytorch import FastAttention

            attention = FastAttention(dim_heads=_D, nb_features=_M, causal=causal)
    except ImportError:
        return None
    return lambda: attention(q, k, v)


def _exact(q: Any, k: Any, v: Any, *, causal: bool) -> Callable[[], Any]:
    from torch.nn.functional import scaled_dot_product_attention

    return lambda: scaled_dot_product_attention(q, k, v, is_causal=causal)


def _products(q: Any, k: Any, v: Any) -> Callable[[], Any]:
    """The four matrix products of linear attention and nothing else."""
    import torch

    W = torch.randn(_D, _M, generator=torch.Generator().manual_seed(1))
    return lambda: (q @ W) @ ((k @ W).mT @ v)


def _bidirectional() -> Iterator[Result]:
    import torch

    inputs = _inputs()
    with torch.no_grad():
        ours, bare = best_of_each([_ours(*inputs, causal=False), _products(*inputs)], 9)
        yield at_most(
            f"linear_attention / its matrix products, {_SHAPE}",
            ours / bare,
            1.2,
            "x",
            f"{seconds(ours)}; products {seconds(bare)}",
        )
        yield from _against(inputs, ours, causal=False, performer_goal=2, exact_goal=6)


def _causal() -> Iterator[Result]:
    import torch

    inputs = _inputs()
    with torch.no_grad():
        (ours,) = best_of_each([_ours(*inputs, causal=True)], 5)
        yield from _against(inputs, ours, causal=True, performer_goal=20, exact_goal=3)


def _chunk_products(q: Any, k: Any, v: Any) -> Callable[[], Any]:
    """The products of causal linear attention and nothing else: features, sums, and those within chunks of 64."""
    import torch

    W, chunks = torch.randn(_D, _M, generator=torch.Generator().manual_seed(1)), (-1, 64)

    def work() -> Any:
        queries, keys, values = (x.unflatten(-2, chunks) for x in (q @ W, k @ W, v))
        return queries @ (keys.mT @ values), (queries @ keys.mT) @ values

    return work


def _against_products() -> Iterator[Result]:
    """Against the bare products of the same call: short and long, and with gradients."""
    import torch

    for causal, length, goal in ((False, _SHORT, 1.6), (False, _MIDDLE, 1.2), (True, _MIDDLE, 1.6)):
        inputs, kind = _inputs(length), "causal " if causal else ""
        bare = _chunk_products(*inputs) if causal else _products(*inputs)
        with torch.no_grad():
            ours, products = best_of_each([_ours(*inputs, causal=causal), bare], 30)
        case = f"{kind}linear_attention / its matrix products, L = {length}"
        yield at_most(case, ours / products, goal, "x", f"{seconds(ours)}; products {seconds(products)}")
        tensors = tuple(x.requires_grad_() for x in inputs)
        works = [_ours(*tensors, causal=causal), _chunk_products(*tensors) if causal else _products(*tensors)]
        if length > _SHORT:
            ours, products = best_of_each([_with_gradients(work) for work in works], 10)
            details = f"{seconds(ours)}; products {seconds(products)}"
            yield at_most(f"{case}, forward and backward", ours / products, 1.8, "x", details)


def _with_gradients(work: Callable[[], Any]) -> Callable[[], None]:
    def both() -> None:
        out = work()
        sum(x.sum() for x in (out if isinstance(out, tuple) else (out,))).backward()

    return both


def _engines() -> Iterator[Result]:
    """The plain engine against the fused operator and the compiled step, and windows against exact attention."""
    import torch

    from . import engines

    yield from engines.run()
    inputs = _inputs(_MIDDLE)
    with torch.no_grad():
        for causal, window in ((False, 16), (True, 64)):
            works = [_ours(*inputs, causal=causal, window=window), _exact(*inputs, causal=causal)]
            ours, exact = best_of_each(works, 5)
            case = f"exact / {'causal ' if causal else ''}linear_attention with a window of {window}, L = {_MIDDLE}"
            yield measured(case, exact / ours, "x", f"{seconds(ours)}; exact {seconds(exact)}")


def _batch() -> Iterator[Result]:
    """Many short sequences, where exact attention costs as many operations."""
    import torch

    q, k, v = torch.randn(3, *_BATCH, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        works = [_ours(q, k, v, causal=False), _exact(q, k, v, causal=False)]
        ours, exact = best_of_each(works, 5)
    case = f"linear_attention / exact, {_BATCH[0]} x {_HEADS} heads x {_BATCH[2]} tokens, d = {_D}, m = {_M}"
    yield at_most(case, ours / exact, 1.3, "x", f"{seconds(ours)}; exact {seconds(exact)}")


def _against(inputs: Any, ours: float, *, causal: bool, performer_goal: float, exact_goal: float) -> Iterator[Result]:
    kind = "causal " if causal else ""
    performer = _performer(*inputs, causal=causal)
    case = f"performer-pytorch / linear_attention, {kind}{_SHAPE}"
    if performer is None:
        yield not_measured(case, f"needs performer-pytorch: {_PEERS}")
    else:
        (theirs,) = best_of_each([performer], 1)
        yield at_least(case, theirs / ours, performer_goal, "x", f"{seconds(ours)}; performer {seconds(theirs)}")
    (exact,) = best_of_each([_exact(*inputs, causal=causal)], 1)
    yield at_least(
        f"scaled_dot_product_attention / linear_attention, {kind}{_SHAPE}",
        exact / ours,
        exact_goal,
        "x",
        f"{seconds(ours)}; exact {seconds(exact)}",
    )


def _break_even() -> Iterator[Result]:
    """From which length on linear attention is faster, and the lead at the length that is the goal."""
    import torch

    for causal, goal, lead in ((False, 1024, 1.3), (True, 2048, 1.0)):
        kind = "causal " if causal else ""
        with torch.no_grad():
            times = ((n, *_ours_and_exact(_inputs(n), causal)) for n in _LENGTHS)
            length = next((n for n, ours, exact in times if ours < exact), math.inf)
            ours, exact = _ours_and_exact(_inputs(goal), causal)
        case = f"shortest sequence for which {kind}linear_attention is faster than exact attention"
        yield at_most(case, length, goal, "tokens", f"of {_LENGTHS}")
        details = f"{seconds(ours)}; exact {seconds(exact)}"
        yield at_least(f"exact / {kind}linear_attention, L = {goal}", exact / ours, lead, "x", details)


def _ours_and_exact(inputs: Any, causal: bool) -> list[float]:
    return best_of_each([_ours(*inputs, causal=causal), _exact(*inputs, causal=causal)], 9)


def _training() -> Iterator[Result]:
    """Forward and backward: without a goal."""
    inputs = tuple(x.requires_grad_() for x in _inputs())
    for causal in (False, True):
        works = [_ours(*inputs, causal=causal), _exact(*inputs, causal=causal)]
        ours, exact = best_of_each([lambda work=work: work().sum().backward() for work in works], 1)  # type: ignore[misc]
        case = f"exact / linear_attention, {'causal ' if causal else ''}forward and backward, {_SHAPE}"
        yield measured(case, exact / ours, "x", f"{seconds(ours)}; exact {seconds(exact)}")


def _memory() -> Iterator[Result]:
    """Peak memory of a process that does nothing else, on a long sequence."""
    for causal in (False, True):
        script = (
            "import torch\n"
            "from bochner_lab.benchmarks.attention import _inputs, _ours\n"
            "from bochner_lab.benchmarks._bench import peak_memory\n"
            "torch.set_num_threads(2)\n"
            f"with torch.no_grad(): _ours(*_inputs({_LONG}), causal={causal})()\n"
            "print(peak_memory())"
        )
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        peak = float(done.stdout)
        kind = "causal " if causal else ""
        yield at_most(f"peak memory of {kind}linear_attention, L = {_LONG}", peak / 1e9, 2.0, "GB", size(peak))
