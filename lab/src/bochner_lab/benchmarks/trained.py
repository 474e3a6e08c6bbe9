"""A trained language model whose attention was converted without training: by features, by windows, and by codes.

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
_FITTED = 2048
"""Tokens of the text that frames for long texts come from: `calibrate` with 8192 tokens was not tried."""
_WINDOW = 64
_WAYS: dict[str, dict[str, int]] = {
    "512 keys shared by blocks of 128": {"kept": 512, "candidates": 512, "sampled": 0, "block": 128},
    "32 keys and 288 draws of each query": {"kept": 32, "candidates": 96, "sampled": 288, "block": 1},
}
"""Two ways of choosing keys; the numbers of the second were the best of three on validation text."""
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
        with torch.inference_mode():
            exact = _cpu(partial(scaled_dot_product_attention, q, k, v, is_causal=True))
            for name, way in _WAYS.items():
                chosen: dict[str, Any] = {"window": _WINDOW, "causal": True, **way}
                coded_attention(q[:, :, :1024], k[:, :, :1024], v[:, :, :1024], codes, **chosen)  # compiles
                ours = _cpu(partial(coded_attention, q, k, v, codes, **chosen))
                case = f"9 heads of 64, causal, {length} tokens: {name} / exact, CPU time"
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
    """Texts of 8192 tokens, as many as the model was trained for, by codes."""
    import torch

    from bochner.nn import CodedHead, calibrate, replace_attention

    found: dict[str, Any] = calibrate(
        model, [tokens("valid", 1, _FITTED)], 64, cost=128, generator=torch.Generator().manual_seed(0)
    )
    texts = list(tokens("test", _TEXTS, _LONG))
    exact = [_losses(model, text[None]) for text in texts]
    for name, way in _WAYS.items():
        numbers = way["kept"], way["candidates"], way["sampled"]
        plans = {
            module: replace(
                plan,
                heads=[CodedHead(head.frame, *numbers) for head in plan.heads],
                window=_WINDOW,
                block=way["block"],
                exact_below=0,
            )
            for module, plan in found.items()
        }
        converted = replace_attention(model, plans, copy=True, generator=torch.Generator().manual_seed(0))
        for number, (text, before) in enumerate(zip(texts, exact, strict=True)):
            change = (_losses(converted, text[None]) - before).view(-1)
            error = float(change.std() / len(change) ** 0.5)
            yield at_most(
                f"SmolLM2-135M, text {number} of {_LONG} tokens: increase of the perplexity by {name}",
                100 * float(change.mean().expm1()),
                1.0,
                "%",
                f"+- {100 * error:.2f} over tokens; perplexity {float(before.mean().exp()):.2f} with exact attention",
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
