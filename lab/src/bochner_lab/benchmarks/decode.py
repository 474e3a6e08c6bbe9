"""Benchmarks of decoding: the time per token of converted models against softmax attention with its cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from bochner.reporting import seconds, size

from ._bench import Result, at_least, at_most, best_of_each, measured, not_measured

_LAYERS, _WIDTH, _HEADS, _M = 4, 128, 4, 256
_CONTEXTS = (256, 1024, 8192)
_PART = 1024
_REPEATS = 60
_CODED = (2048, 8192, 16384)
_STEPS = 8
_IN_TURN = 4
"""Tokens of a layer by itself in one run.  In turns of one token, ours took twice as long (2.4 against 1.2 ms at 16384
keys): softmax copies and reads 75 MB, after which nothing of ours is left in the cache of the processor."""
_WINDOW, _KEPT = 64, 64
_SHAPE = f"{_LAYERS} layers, width {_WIDTH}, {_HEADS} heads, m = {_M}, float32, one thread"


def run() -> Iterator[Result]:
    """Cases with features on one thread, with codes on two, or one line that says what is missing."""
    try:
        import torch
        import transformers  # noqa: F401
    except ImportError:
        yield not_measured("LinearCache", 'needs transformers: pip install "torch>=2.4" "transformers>=5"')
        return
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for name, make in (("GPT-2", _gpt2), ("Llama", _llama)):
            yield from _family(name, make)
        torch.set_num_threads(2)
        yield from _codes()
    finally:
        torch.set_num_threads(threads)


def _smollm2(layers: int, **sizes: int) -> Any:
    """A model of the shape of SmolLM2-135M, with random weights: times do not depend on them."""
    from transformers import LlamaConfig, LlamaForCausalLM

    heads = {"num_attention_heads": 9, "num_key_value_heads": 3}
    config = LlamaConfig(hidden_size=576, num_hidden_layers=layers, max_position_embeddings=1 << 15, **heads, **sizes)
    return LlamaForCausalLM(config).eval()


def _codes() -> Iterator[Result]:
    """Time per token with codes against softmax with the cache of transformers: attention itself, and whole models."""
    import torch

    yield from _attention_itself()
    yield from _codes_of("one layer of SmolLM2", 1, {"vocab_size": 8, "intermediate_size": 8}, {})
    torch.manual_seed(0)
    whole = {"vocab_size": 49152, "intermediate_size": 1536}
    yield from _codes_of("SmolLM2-135M", 30, whole, {2048: 1.0, 8192: 1.0, 16384: 1.5})


def _attention_itself() -> Iterator[Result]:
    """What a layer calls with its projected queries, keys and values: its cache, and its attention function.

    The same for both; what is the same in both, such as projections and norms, is left out, and is part of "one layer".
    """
    import torch
    from transformers import AttentionInterface, DynamicCache

    from bochner.nn import CodedCache, CodedPlan, replace_attention

    exact = _smollm2(1, vocab_size=8, intermediate_size=8)
    ours = replace_attention(exact, CodedPlan.uncalibrated(exact, kept=_KEPT, window=_WINDOW), copy=True)

    def tokens_of(model: Any, cache: Any) -> Callable[[], Any]:
        module = model.model.layers[0].self_attn
        function = AttentionInterface()[module.config._attn_implementation]
        q, k, v = torch.randn(1, 9, 1, 64), torch.randn(1, 3, 1, 64), torch.randn(1, 3, 1, 64)

        def run() -> None:
            for _ in range(_IN_TURN):
                keys, values = cache.update(k, v, 0)
                function(module, q, keys, values, None, scaling=module.scaling, dropout=0.0)

        return run

    with torch.inference_mode():
        for context in _CODED:
            caches = _random_keys(CodedCache(ours), context), _random_keys(DynamicCache(config=exact.config), context)
            runs = [tokens_of(model, cache) for model, cache in zip((ours, exact), caches, strict=True)]
            coded, softmax = (t / _IN_TURN for t in best_of_each(runs, _REPEATS))
            case = f"attention of SmolLM2: softmax with its cache / {_WINDOW + _KEPT + 1} keys by codes, time per token"
            details = f"{seconds(coded)}; softmax {seconds(softmax)}"
            if context == _CODED[-1]:
                yield at_least(f"{case}, context {context}, two threads", softmax / coded, 6.0, "x", details)
            else:
                yield measured(f"{case}, context {context}, two threads", softmax / coded, "x", details)


def _codes_of(name: str, layers: int, sizes: dict[str, int], goals: dict[int, float]) -> Iterator[Result]:
    import torch
    from transformers import DynamicCache

    from bochner.nn import CodedCache, CodedPlan, replace_attention

    exact = _smollm2(layers, **sizes)
    plans = CodedPlan.uncalibrated(exact, kept=_KEPT, window=_WINDOW)
    ours = replace_attention(exact, plans, copy=True)
    with torch.inference_mode():
        for context in _CODED:
            caches = _random_keys(CodedCache(ours), context), _random_keys(DynamicCache(config=exact.config), context)
            tokens = (
                _IN_TURN if layers == 1 else 1
            )  # of thirty layers, each meets its keys as others left the processor
            runs = [_steps(model, cache, tokens) for model, cache in zip((ours, exact), caches, strict=True)]
            coded, softmax = (t / tokens for t in best_of_each(runs, _REPEATS if layers == 1 else _STEPS))
            case = f"{name}: softmax with its cache / {_WINDOW + _KEPT + 1} keys by codes, time per token, context {context}"
            details = f"{seconds(coded)}; softmax {seconds(softmax)}"
            if context in goals:
                yield at_least(f"{case}, two threads", softmax / coded, goals[context], "x", details)
            else:
                yield measured(f"{case}, two threads", softmax / coded, "x", details)


def _random_keys(cache: Any, length: int) -> Any:
    """A cache that holds as many random keys and values of SmolLM2's shape: a forward pass would take minutes."""
    import torch

    for place in range(len(cache.layers)):
        cache.update(torch.randn(1, 3, length, 64), torch.randn(1, 3, length, 64), place)
    return cache


def _gpt2() -> Any:
    from transformers import GPT2Config, GPT2LMHeadModel

    sizes = {"n_embd": _WIDTH, "n_layer": _LAYERS, "n_head": _HEADS, "n_positions": 2 * max(_CONTEXTS)}
    return GPT2LMHeadModel(GPT2Config(vocab_size=256, bos_token_id=0, eos_token_id=0, **sizes)).eval()


def _llama() -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = {"hidden_size": _WIDTH, "num_hidden_layers": _LAYERS, "intermediate_size": 4 * _WIDTH}
    heads = {"num_attention_heads": _HEADS, "num_key_value_heads": _HEADS // 2}
    return LlamaForCausalLM(
        LlamaConfig(vocab_size=256, max_position_embeddings=2 * max(_CONTEXTS), **sizes, **heads)
    ).eval()


def _family(name: str, make: Callable[[], Any]) -> Iterator[Result]:
    """Times at all contexts, interleaved, so that a busy machine affects all of them equally."""
    import torch
    from transformers import DynamicCache

    from bochner.nn import LinearCache, replace_attention

    torch.manual_seed(0)
    exact = make()
    ours = replace_attention(exact, "dense", _M, copy=True)
    with torch.no_grad():
        ours(torch.randint(256, (1, _PART)))  # chooses the constants
        states = [
            [_filled(model, cache, length) for length in _CONTEXTS]
            for model, cache in ((ours, lambda: LinearCache(ours)), (exact, lambda: DynamicCache(config=exact.config)))
        ]
        steps = [_step(model, cache) for model, caches in zip((ours, exact), states, strict=True) for cache in caches]
        times = best_of_each(steps, _REPEATS)
    linear, softmax = (dict(zip(_CONTEXTS, part, strict=True)) for part in (times[:3], times[3:]))
    shortest, middle, longest = _CONTEXTS
    yield at_most(
        f"{name}: time per token with LinearCache, context {longest} / {shortest}, {_SHAPE}",
        linear[longest] / linear[shortest],
        1.25,
        "x",
        f"{seconds(linear[longest])}; {seconds(linear[shortest])}",
    )
    for context in (middle, longest):
        yield at_least(
            f"{name}: softmax with its cache / LinearCache, time per token, context {context}",
            softmax[context] / linear[context],
            1.0,
            "x",
            f"{seconds(linear[context])}; softmax {seconds(softmax[context])}",
        )
    held = sum(x.nbytes for layer in states[1][-1].layers for x in (layer.keys, layer.values))
    yield measured(
        f"{name}: memory of the cache of softmax / of LinearCache, context {longest}",
        held / states[0][-1].nbytes,
        "x",
        f"{size(states[0][-1].nbytes)}; softmax {size(held)}",
    )


def _filled(model: Any, make: Callable[[], Any], length: int) -> Any:
    """A cache that has seen that many tokens."""
    import torch

    cache = make()
    for start in range(0, length, _PART):
        model(torch.randint(256, (1, min(_PART, length - start))), past_key_values=cache)
    return cache


def _steps(model: Any, cache: Any, count: int) -> Callable[[], Any]:
    """Generation of ``count`` tokens, one after the other."""
    step = _step(model, cache)

    def run() -> None:
        for _ in range(count):
            step()

    return run


def _step(model: Any, cache: Any) -> Callable[[], Any]:
    import torch

    token = torch.zeros(1, 1, dtype=torch.int64)
    return lambda: model(token, past_key_values=cache)
