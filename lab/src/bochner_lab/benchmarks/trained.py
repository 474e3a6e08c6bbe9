"""A trained language model whose attention was converted without training: by features, by windows, and by codes in blocks.

Perplexities are of test text of WikiText-2, constants of validation text.  Times are CPU seconds of one thread, which other
programs on the machine change less than the clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from bochner.reporting import seconds

from ._bench import Result, at_most, measured, not_measured

_SHORT, _LONG, _TIMED = 512, 8192, 16384
_BLOCK, _WINDOW, _SHARED = 128, 64, 512
_TEXTS = 2
_PART = 512
"""Positions whose logits are formed at once."""


def run() -> Iterator[Result]:
    """Perplexities with few tokens, loss and time with many; or one line that says what is missing."""
    try:
        import torch

        from .._trained_models import SMOLLM2, load
    except ImportError:
        yield not_measured("SmolLM2-135M", 'needs transformers: pip install "torch>=2.4" "transformers>=5"')
        return
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield from _times()
        try:
            model, tokens = load(SMOLLM2, False)
        except ImportError as error:
            yield not_measured("SmolLM2-135M", str(error))
            return
        yield from _perplexities(model, tokens)
        yield from _long_texts(model, tokens)
    finally:
        torch.set_num_threads(threads)


def _times() -> Iterator[Result]:
    """One attention of the shape of SmolLM2, with random queries and keys."""
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    from bochner.nn import KeyCodes, coded_attention

    drawn = torch.Generator().manual_seed(0)
    for length in (_LONG, _TIMED):
        q, k, v = (torch.randn(1, 9, length, 64, generator=drawn) for _ in range(3))
        codes = KeyCodes.fitted(q[:, :, :_SHORT], k[:, :, :_SHORT])
        shared: dict[str, Any] = {
            "window": _WINDOW,
            "kept": _SHARED,
            "candidates": _SHARED,
            "block": _BLOCK,
            "causal": True,
        }
        with torch.inference_mode():
            coded_attention(q[:, :, :1024], k[:, :, :1024], v[:, :, :1024], codes, **shared)  # compiles
            ours = _cpu(partial(coded_attention, q, k, v, codes, **shared))
            exact = _cpu(partial(scaled_dot_product_attention, q, k, v, is_causal=True))
        case = f"9 heads of 64, causal, {length} tokens: {_SHARED} keys shared by blocks of {_BLOCK} / exact, CPU time"
        details = f"{seconds(ours)}; exact {seconds(exact)}"
        if length == _TIMED:
            yield at_most(case, ours / exact, 1 / 3, "x", details)
        else:
            yield measured(case, ours / exact, "x", details)


def _cpu(work: Callable[[], Any]) -> float:
    """Least CPU seconds of three calls."""
    found = []
    for _ in range(3):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


def _perplexities(model: Any, tokens: Any) -> Iterator[Result]:
    """A text of 512 tokens, with features alone, windows alone, and both."""
    import torch

    from bochner.nn import CodedPlan, calibrate, replace_attention

    batches, text = [tokens("valid", 1, _SHORT)], tokens("test", 1, _SHORT)
    plans: dict[str, Any] = {
        "256 rows of FAVOR++": lambda: "favor++",
        "256 calibrated rows": lambda: calibrate(model, batches, 256),
        "a window of 64 and the first token": lambda: CodedPlan.uncalibrated(model, kept=0, window=64, exact_below=0),
        "64 calibrated rows beside them": lambda: calibrate(model, batches, 64, window=64, anchors=1),
        "a window of 128 and the first token": lambda: CodedPlan.uncalibrated(model, kept=0, window=128, exact_below=0),
    }
    case = f"SmolLM2-135M, a text of {_SHORT} tokens: perplexity with"
    yield measured(f"{case} exact attention", float(_losses(model, text).mean().exp()), "", "")
    for name, made in plans.items():
        torch.manual_seed(0)
        converted = replace_attention(model, made(), 256, copy=True)
        yield measured(f"{case} {name}", float(_losses(converted, text).mean().exp()), "", "one draw")


def _long_texts(model: Any, tokens: Any) -> Iterator[Result]:
    """Texts of 8192 tokens, as many as the model was trained for, by codes in blocks."""
    import torch

    from bochner.nn import CodedHead, calibrate, replace_attention

    found: dict[str, Any] = calibrate(
        model, [tokens("valid", 1, _SHORT)], 64, cost=128, generator=torch.Generator().manual_seed(0)
    )
    options: dict[str, Any] = {"window": _WINDOW, "block": _BLOCK, "exact_below": 0}
    plans = {
        name: replace(plan, heads=[CodedHead(head.frame, _SHARED, _SHARED) for head in plan.heads], **options)
        for name, plan in found.items()
    }
    converted = replace_attention(model, plans, copy=True, generator=torch.Generator().manual_seed(0))
    for number, text in enumerate(tokens("test", _TEXTS, _LONG)):
        exact, ours = (_losses(part, text[None]) for part in (model, converted))
        change = (ours - exact).view(-1)
        error = float(change.std() / len(change) ** 0.5)
        yield at_most(
            f"SmolLM2-135M, text {number} of {_LONG} tokens: increase of the perplexity by codes in blocks of {_BLOCK}",
            100 * float(change.mean().expm1()),
            1.0,
            "%",
            f"+- {100 * error:.2f} over tokens; perplexity {float(exact.mean().exp()):.2f} with exact attention",
        )


def _losses(model: Any, text: Any) -> Any:
    """Cross-entropy of each next token."""
    import torch
    from torch.nn.functional import cross_entropy

    with torch.inference_mode():
        hidden, after = model.model(text, use_cache=False).last_hidden_state[0, :-1], text[0, 1:]
        parts = [
            cross_entropy(model.lm_head(hidden[at : at + _PART]), after[at : at + _PART], reduction="none")
            for at in range(0, len(after), _PART)
        ]
    return torch.cat(parts).double()
