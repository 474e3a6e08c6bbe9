"""Plain attention against what is faster on a CPU: the fused operator, and the compiled step of decoding.

Each of these stays in the library while it is 1.5 times as fast in the cases it is meant for.  ``bochner-lab bench
attention`` measures these lines too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from bochner.reporting import seconds

from ._bench import Result, at_least, best_of_each, not_measured

_RULE = 1.5
_LENGTHS = {512: 9, 2048: 5}
"""Tokens of a call, and how often it is repeated."""
_WINDOWS = (8, 16, 64, 100)
_TRAINED = ((False, 0), (True, 0), (True, 64))
_LAYERS, _HEADS, _CONTEXT, _STEPS = 4, 4, 256, 40


def run() -> Iterator[Result]:
    """All cases on two threads, each pair of engines in turn, or one line that says what is missing."""
    try:
        import torch
    except ImportError:
        yield not_measured("engines of attention", 'needs PyTorch: pip install "torch>=2.4"')
        return
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        for length, repeats in _LENGTHS.items():
            for causal, window in ((False, 0), (True, 0), *((True, window) for window in _WINDOWS)):
                yield _engines(length, repeats, causal, window)
            for causal, window in _TRAINED:
                yield _engines(length, repeats, causal, window, trained=True)
        torch.set_num_threads(1)
        for window in (0, 64):
            yield _decoding(window)
    finally:
        torch.set_num_threads(threads)


def _engines(length: int, repeats: int, causal: bool, window: int, *, trained: bool = False) -> Result:
    import torch

    from .attention import _inputs, _ours, _with_gradients

    inputs = tuple(x.requires_grad_(trained) for x in _inputs(length))
    works = [_ours(*inputs, causal=causal, window=window, engine=engine) for engine in ("plain", "auto")]
    if trained:
        works = [_with_gradients(work) for work in works]
    with torch.set_grad_enabled(trained):
        plain, fused = best_of_each(works, repeats)
    kind = f"{'causal' if causal else 'all to all'}{f', window {window}' if window else ''}"
    case = f"plain engine / fused operator, {kind}, {'forward and backward, ' if trained else ''}L = {length}"
    return at_least(case, plain / fused, _RULE, "x", f"{seconds(plain)}; fused {seconds(fused)}")


def _decoding(window: int) -> Result:
    """A token of a small model: its converted attention, and the same attention by `linear_attention` with a state."""
    case = f"plain step / compiled step of decoding, {_LAYERS} layers, window {window}, time per token, one thread"
    try:
        import torch
        from transformers import AttentionInterface, DynamicCache, LlamaConfig, LlamaForCausalLM
    except ImportError:
        return not_measured(case, 'needs transformers: pip install "transformers>=5"')
    from bochner import Approximation, kernels, maps
    from bochner.nn import AttentionFeatures, LayerPlan, LinearCache, linear_attention, replace_attention

    sizes = {"hidden_size": 128, "num_hidden_layers": _LAYERS, "intermediate_size": 512, "vocab_size": 256}
    exact = LlamaForCausalLM(LlamaConfig(**sizes, num_attention_heads=_HEADS, num_key_value_heads=_HEADS)).eval()
    spec = Approximation(kernels.Softmax(), maps.Positive(), n_projections=256)
    plans = {f"model.layers.{layer}.self_attn": LayerPlan([spec] * _HEADS, window=window) for layer in range(_LAYERS)}
    ours = replace_attention(exact, plans, copy=True)
    features = [AttentionFeatures(spec) for _ in range(_LAYERS)]
    states: dict[int, Any] = {}

    def plain(module: Any, q: Any, k: Any, v: Any, mask: Any, **_: Any) -> tuple[Any, None]:
        state = states.get(module.layer_idx)
        new = slice(-q.shape[-2], None)  # the cache gives back all keys, of which the state has the earlier ones
        out, states[module.layer_idx] = linear_attention(
            q, k[..., new, :], v[..., new, :], causal=True, features=features[module.layer_idx],
            window=window, state=state, return_state=True, engine="plain",
        )  # fmt: skip
        return out.transpose(1, 2), None

    AttentionInterface.register("bochner_plain_step", plain)
    with torch.inference_mode():
        steps = [_step(ours, LinearCache(ours))]
        exact.set_attn_implementation("bochner_plain_step")
        steps.append(_step(exact, DynamicCache(config=exact.config)))
        compiled, by_operations = best_of_each(steps, _STEPS)
    details = f"{seconds(by_operations)}; compiled {seconds(compiled)}"
    return at_least(case, by_operations / compiled, _RULE, "x", details)


def _step(model: Any, cache: Any) -> Callable[[], Any]:
    """A token after a context."""
    import torch

    tokens = torch.randint(0, 256, (1, _CONTEXT), generator=torch.Generator().manual_seed(0))
    model(tokens, past_key_values=cache, use_cache=True)
    return lambda: model(tokens[:, :1], past_key_values=cache, use_cache=True)
