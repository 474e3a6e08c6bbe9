"""Plain attention against what is faster on a CPU: the fused operator, and the compiled step of decoding.

Each of these is used where it is 1.5 times as fast.  The other cases are left to the plain engine, by tiles that stay in the
cache where no gradient is asked for, and what is chosen there must not be slower than all at once.  ``bochner-lab bench
attention`` measures these lines too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from bochner.reporting import seconds

from ._bench import Result, at_least, best_of_each, not_measured

_RULE = 1.5
_NO_SLOWER = 0.9
_REPEATS = {512: 9, 2048: 5, 8192: 3}
"""How often a call with that many tokens is repeated."""
_FUSED = (
    (512, True, 0, False),
    (512, True, 8, False),
    (512, True, 16, False),
    (512, True, 0, True),
    (512, True, 16, True),
    (2048, True, 0, False),
    (2048, True, 8, False),
    (2048, True, 32, False),
    (2048, True, 0, True),
    (2048, True, 32, True),
    (8192, True, 0, False),
    (8192, True, 64, False),
    (8192, True, 64, True),
    (8192, False, 0, True),
    (8192, True, 128, True),
)
"""Tokens, whether attention is causal, its window, and whether there are gradients, where the fused operator is chosen."""
_PLAIN = (
    (512, False, 0, False),
    (512, True, 32, False),
    (512, True, 64, False),
    (512, False, 0, True),
    (512, True, 32, True),
    (512, True, 64, True),
    (2048, False, 0, False),
    (2048, True, 64, False),
    (2048, True, 128, False),
    (2048, False, 0, True),
    (2048, True, 64, True),
    (8192, False, 0, False),
    (8192, True, 128, False),
)
"""Calls that are left to the plain engine, described in the same way."""
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
        for case in _FUSED:
            yield _engines(*case, "fused operator", _RULE)
        for case in _PLAIN:
            yield _engines(*case, "what is chosen", _NO_SLOWER)
        torch.set_num_threads(1)
        for window in (0, 64):
            yield _decoding(window)
    finally:
        torch.set_num_threads(threads)


def _engines(length: int, causal: bool, window: int, trained: bool, other: str, goal: float) -> Result:
    import torch

    from .attention import _inputs, _ours, _with_gradients

    inputs = tuple(x.requires_grad_(trained) for x in _inputs(length))
    works = [_ours(*inputs, causal=causal, window=window, engine=engine) for engine in ("plain", "auto")]
    if trained:
        works = [_with_gradients(work) for work in works]
    with torch.set_grad_enabled(trained):
        plain, chosen = best_of_each(works, _REPEATS[length])
    kind = f"{'causal' if causal else 'all to all'}{f', window {window}' if window else ''}"
    case = f"plain engine / {other}, {kind}, {'forward and backward, ' if trained else ''}L = {length}"
    return at_least(case, plain / chosen, goal, "x", f"{seconds(plain)}; {other} {seconds(chosen)}")


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
