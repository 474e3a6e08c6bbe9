"""A cache of running sums gives what the whole sequence at once gives, for all ways of decoding."""

from __future__ import annotations

import copy

import pytest
import torch
import transformers

from bochner import Approximation, kernels, maps
from bochner.approximation.log_features import KeySums
from bochner.nn import LayerPlan, LinearCache, calibrate, linear_attention, replace_attention
from bochner.nn._decoding_step import DecodingStep
from bochner.nn._drawn import DrawnFeatures
from support.attention_models import PADDED, TOKENS, gpt2
from support.transformer_families import build, convertible

DECODERS = ["GPT-2", "GPT-NeoX", "Llama", "Qwen2", "Qwen3", "Gemma2"]
SPEC = Approximation(kernels.Softmax(), maps.Positive(), n_projections=12)


@pytest.fixture(scope="module", params=DECODERS)
def decoder(request):
    return convert(request.param)


@pytest.fixture(scope="module")
def llama():
    return convert("Llama")


def convert(name, spec=SPEC, **options):
    model, _ = build(name, **options)
    return replace_attention(model, spec, select=convertible, generator=torch.Generator().manual_seed(0))


def generate(model, cache, **options):
    """Tokens and logits of decoding, greedily if nothing else is said."""
    options = {"inputs": TOKENS, "max_new_tokens": 7, "do_sample": False, "eos_token_id": None} | options
    given = {"past_key_values": cache} if cache is not None else {"use_cache": False}
    torch.manual_seed(0)
    out = model.generate(**options, **given, return_dict_in_generate=True, output_logits=True)
    return out.sequences, torch.stack(out.logits)


def check_same(model, **options):
    """Decoding with running sums gives the tokens and logits of decoding without any cache."""
    (tokens, logits), (expected, exact) = (generate(model, c, **options) for c in (LinearCache(model), None))
    assert torch.equal(tokens, expected)
    assert torch.allclose(logits, exact, atol=1e-6)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.swept(2)
def test_greedy_decoding_of_padded_batches(decoder, side):
    check_same(decoder, attention_mask=PADDED.flip(1) if side == "left" else PADDED)


@pytest.fixture(scope="module")
def near():
    """A model that computes a window and the first keys exactly."""
    plan = LayerPlan([SPEC] * 4, window=4, anchors=2)
    return convert("Llama", {f"model.layers.{i}.self_attn": plan for i in range(2)})


@pytest.mark.parametrize("side", ["left", "right"])
def test_windows_and_anchors(near, side):
    check_same(near, attention_mask=PADDED.flip(1) if side == "left" else PADDED)
    check_same(near, num_beams=3)


def test_windows_need_this_cache(near):
    with pytest.raises(
        ValueError, match=r"with a window cannot use this cache, .* past_key_values=bochner\.nn\.LinearCache"
    ):
        near.generate(TOKENS, max_new_tokens=2, do_sample=False, past_key_values=transformers.DynamicCache())


def test_sampling(llama):
    check_same(llama, do_sample=True, top_k=20, num_return_sequences=2, attention_mask=PADDED.flip(1))


def test_beams(llama):
    check_same(llama, num_beams=3, num_return_sequences=2, attention_mask=PADDED.flip(1))


def test_candidates_that_are_verified(llama):
    """Prompt lookup removes the candidates that the model rejects."""
    tokens = torch.tensor([[3, 4, 5, 6, 3, 4, 5, 6, 3, 4]])
    expected, _ = generate(llama, None, inputs=tokens, max_new_tokens=20)
    cache = LinearCache(llama)
    found = llama.generate(
        tokens, past_key_values=cache, max_new_tokens=20, do_sample=False, prompt_lookup_num_tokens=3, eos_token_id=None
    )
    assert torch.equal(found, expected)


@torch.no_grad()
def test_prompts_in_parts(decoder):
    whole = decoder(TOKENS, attention_mask=PADDED, use_cache=False).logits
    cache, parts = LinearCache(decoder), []
    for start, stop in ((0, 5), (5, 6), (6, 10), (10, 12)):
        options = {"attention_mask": PADDED[:, :stop], "past_key_values": cache}
        parts.append(decoder(TOKENS[:, start:stop], **options).logits)
    assert torch.allclose(torch.cat(parts, dim=1)[PADDED.bool()], whole[PADDED.bool()], atol=1e-6)


@torch.no_grad()
def test_size_and_shapes_do_not_depend_on_the_context(llama):
    cache = LinearCache(llama)
    sizes, shapes = set(), set()
    for _ in range(4):
        llama(TOKENS, past_key_values=cache)
        sizes.add(cache.nbytes)
        shapes.add(tuple(tuple(x.shape) for layer in cache.layers for x in layer.state.sums))
    assert len(sizes) == len(shapes) == 1
    assert cache.get_seq_length() == 48
    assert cache.nbytes == 2 * 3 * 4 * 12 * (4 + 1 + 1) * 8  # layers, batch, heads, rows, values and ones and maxima


@torch.no_grad()
def test_a_prompt_that_is_shared(llama):
    cache = LinearCache(llama)
    llama(TOKENS[:1, :6], past_key_values=cache)
    options = {"inputs": TOKENS[:1], "max_new_tokens": 3}
    found = generate(llama, copy.deepcopy(cache), **options)[0]
    assert torch.equal(found, generate(llama, None, **options)[0])
    assert cache.get_seq_length() == 6
    cache.batch_repeat_interleave(2)
    cache.batch_select_indices(torch.tensor([1, 0, 1]))
    assert cache.layers[0].state.sums.values.shape[0] == 3
    cache.reset()
    assert cache.get_seq_length() == 0 and cache.layers[0].state.empty


@pytest.mark.parametrize("name", ["BART", "T5"])
@pytest.mark.parametrize("beams", [1, 2])
def test_models_with_an_encoder(name, beams):
    model, batch = build(name)
    new = replace_attention(model, SPEC, select=convertible, generator=torch.Generator().manual_seed(0))
    inputs = {key: x for key, x in batch.items() if not key.startswith("decoder")}
    inputs |= {"inputs": None, "num_beams": beams}
    cache = LinearCache.encoder_decoder(new)
    (tokens, logits), (expected, exact) = (generate(new, c, **inputs) for c in (cache, None))
    assert torch.equal(tokens, expected)
    assert torch.allclose(logits, exact, atol=1e-6)
    held = cache.cross_attention_cache.layers[0]
    assert held.keys.shape[-2] == 0 and not held.state.empty


@torch.no_grad()
def test_whisper():
    new, batch = convert("Whisper"), build("Whisper")[1]
    whole = new(**batch, use_cache=False).logits
    cache, tokens = LinearCache.encoder_decoder(new), batch.pop("decoder_input_ids")
    encoded = new.get_encoder()(**batch)
    parts = [
        new(encoder_outputs=encoded, decoder_input_ids=tokens[:, a:b], past_key_values=cache).logits
        for a, b in ((0, 4), (4, 5), (5, 12))
    ]
    assert torch.allclose(torch.cat(parts, dim=1), whole, atol=1e-9)


def test_other_layers_keep_their_caches():
    new = convert("Qwen2")
    kinds = [type(layer).__name__ for layer in LinearCache(new).layers]
    assert kinds == ["LinearLayer", "DynamicSlidingWindowLayer"]


@torch.no_grad()
def test_crop(llama):
    cache = LinearCache(llama)
    llama(TOKENS, past_key_values=cache)
    cache.crop(0)
    with pytest.raises(ValueError, match=r"LinearCache: 2 of 12 tokens cannot be removed, .* activate_past_recording"):
        cache.crop(-2)
    with pytest.raises(ValueError, match="tokens_to_remove must be a negative number or 0, got 5"):
        cache.crop(5)
    assert not cache.is_croppable
    cache.activate_past_recording()
    expected = llama(TOKENS[:, :4], past_key_values=copy.deepcopy(cache)).logits
    for part in (TOKENS[:, :3], TOKENS[:, 5:9], TOKENS[:, 2:3]):
        llama(part, past_key_values=cache)
    with pytest.raises(ValueError, match="members cannot be selected while tokens may still be removed"):
        cache.reorder_cache(torch.tensor([0, 1, 2]))
    cache.crop(-6)  # one, four, and one of three
    assert cache.get_seq_length() == 14
    found = llama(TOKENS[:, 2:4], past_key_values=cache).logits
    assert torch.allclose(found, expected[:, 2:], atol=1e-9)
    cache.crop(-100)
    assert cache.get_seq_length() == 0


def test_refusals():
    plain, _ = build("GPT-2")
    with pytest.raises(
        ValueError, match=r"no attention of GPT2LMHeadModel that uses a cache is converted; call replace_att"
    ):
        LinearCache(plain)
    with pytest.raises(TypeError, match="LinearCache: model must be"):
        LinearCache(3)
    with pytest.raises(TypeError, match="model must be one of transformers"):
        LinearCache(torch.nn.Linear(2, 2))
    with pytest.raises(ValueError, match=r"has an encoder; use LinearCache\.encoder_decoder"):
        LinearCache(convert("BART"))


def test_it_is_a_cache_of_transformers():
    assert issubclass(LinearCache, transformers.Cache)
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        from bochner import nn

        nn.Nothing  # noqa: B018


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@torch.no_grad()
def test_single_precision_and_half(dtype):
    """The type is that of the model; sums are of float32, and rounding is that of the type."""
    model, _ = build("Llama")
    new = replace_attention(model.to(dtype), "dense", 12, generator=torch.Generator().manual_seed(0))
    whole, cache = new(TOKENS, use_cache=False).logits, LinearCache(new)
    steps = [new(TOKENS[:, t : t + 1], past_key_values=cache).logits for t in range(12)]
    found = torch.cat(steps, dim=1)
    assert found.dtype == dtype and cache.layers[0].state.sums.values.dtype == torch.float32
    tolerance = 1e-4 if dtype == torch.float32 else 0.05
    assert float((found - whole).norm() / whole.norm()) < tolerance


@pytest.mark.parametrize("framed", [True, False])
@torch.no_grad()
def test_operations_of_a_step_equal_the_compiled_loop(framed):
    """Devices without the compiled loop take a dozen operations; grouped keys, padding, and reading alone."""
    torch.manual_seed(0)
    feature_map = maps.DenseExponential() if framed else maps.Positive()
    spec = Approximation(kernels.Softmax(), feature_map, n_projections=6)
    features = DrawnFeatures(spec, 4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).current
    compiled, plain = (DecodingStep.of(features, 0.5, 4, torch.zeros(1).double()) for _ in range(2))
    plain.arrays = []
    sums = KeySums(torch.rand(3, 4, 6, 6).double(), torch.randn(3, 4, 1, 6).double())
    before, there = [x.clone() for x in sums], torch.tensor([True, False, True])
    q, k, v = torch.randn(3, 4, 1, 4).double(), torch.randn(3, 2, 1, 4).double(), torch.randn(3, 2, 1, 5).double()
    states = [sums, sums]
    for key, value, mask in ((k, v, None), (2 * k, v, there), (k[:, :, :0], v[:, :, :0], None)):
        (a, states[0]), (b, states[1]) = (
            step(state, q, key, value, mask) for step, state in zip((compiled, plain), states, strict=True)
        )
        assert torch.allclose(a, b, atol=1e-12)
        assert all(torch.allclose(x, y, atol=1e-12) for x, y in zip(*states, strict=True))
    assert all(torch.equal(x, y) for x, y in zip(sums, before, strict=True))


@pytest.mark.parametrize("window, anchors", [(1, 0), (4, 0), (0, 3), (5, 2)])
@pytest.mark.parametrize("framed", [False, True])
def test_a_compiled_step_beside_near_keys(framed, window, anchors):
    """Equal to the usual way, with padding, heads that share keys, and anchors that are still to be found."""
    feature_map = maps.DenseExponential() if framed else maps.Positive()
    spec = Approximation(kernels.Softmax(), feature_map, n_projections=6)
    features = DrawnFeatures(spec, 4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).current
    g = torch.Generator().manual_seed(1)
    q, k, v = (torch.randn(3, h, 20, e, generator=g).double() for h, e in ((4, 4), (2, 4), (2, 5)))
    there = torch.rand(3, 20, generator=g) < 0.6
    there[0, :6] = False
    options = {"features": features, "scale": 0.5, "causal": True, "window": window, "anchors": anchors}
    keys, values = (x.repeat_interleave(2, dim=1) for x in (k, v))
    whole = linear_attention(q, keys, values, key_mask=there[:, None], **options)
    step = DecodingStep.of(features, 0.5, 4, q)
    with torch.no_grad():
        first = (x[:, :, :3] for x in (q, keys, values))
        _, state = linear_attention(*first, key_mask=there[:, None, :3], return_state=True, **options)
        for t in range(3, 20):
            row = (x[:, :, t : t + 1] for x in (q, k, v))
            out, sums, near = step.beside(state, (window, anchors), *row, there[:, t])
            assert torch.allclose(out, whole[:, :, t : t + 1], atol=1e-12)
            state.update(sums, 1, near)
            if t == 9:
                state = state.clone()  # another state: the step goes on from a copy


@torch.no_grad()
def test_steps_in_one_graph():
    """Each step of a compiled model is one graph, which any number of tokens shares."""
    spec = {"model.layers.0.self_attn": SPEC, "model.layers.1.self_attn": LayerPlan([SPEC] * 4, window=4, anchors=2)}
    model, mask = convert("Llama", spec), PADDED.flip(1)
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    caches, steps = (LinearCache(model), LinearCache(model)), [(model, compiled)] * 3 + [(model, model)]
    tokens = TOKENS
    for i, works in enumerate([(model, model), *steps]):
        outs = [
            work(tokens, attention_mask=mask, past_key_values=cache, use_cache=True).logits[:, -1:]
            for work, cache in zip(works, caches, strict=True)
        ]
        assert torch.allclose(*outs, atol=1e-6), i
        tokens, mask = outs[0].argmax(dim=-1), torch.nn.functional.pad(mask, (0, 1), value=1)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] <= 2  # the first length, and then any


def test_signed_features_take_the_usual_way():
    new = convert("Llama", Approximation(kernels.Softmax(), maps.Trigonometric(), n_projections=512))
    check_same(new, max_new_tokens=3)


def test_gradients_through_a_cache(llama):
    """Parts of a sequence give the gradients of the whole."""
    weight = llama.model.layers[0].self_attn.k_proj.weight
    (whole,) = torch.autograd.grad(llama(TOKENS, use_cache=False).logits.square().sum(), weight)
    cache = LinearCache(llama)
    parts = [llama(TOKENS[:, a:b], past_key_values=cache).logits for a, b in ((0, 7), (7, 8), (8, 12))]
    (found,) = torch.autograd.grad(torch.cat(parts, dim=1).square().sum(), weight)
    assert torch.allclose(found, whole, atol=1e-8)


@torch.no_grad()
def test_generate_makes_its_own_cache_and_refuses_a_used_one():
    model, tokens = gpt2(), TOKENS[:2, :9]
    plans = calibrate(model, [tokens], 8, window=3, anchors=1)
    model = replace_attention(model, plans)
    options = {"max_new_tokens": 5, "do_sample": False, "pad_token_id": 0}
    cache = LinearCache(model)
    expected = model.generate(tokens, past_key_values=cache, **options)
    assert torch.equal(model.generate(tokens, **options), expected)  # the usual cache would refuse a window
    assert torch.equal(model.generate(tokens, use_cache=False, **options), expected)
    with pytest.raises(ValueError, match=r"holds 13 positions, and the prompt has 9; .* or a new cache"):
        model.generate(tokens, past_key_values=cache, **options)
    longer = torch.cat([expected, tokens[:, :2]], dim=1)
    assert torch.equal(model.generate(longer, past_key_values=cache, **options), model.generate(longer, **options))
