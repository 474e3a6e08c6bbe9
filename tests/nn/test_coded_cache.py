"""Decoding with codes: the same tokens as without a cache, and the compiled loop against torch operations."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch

transformers = pytest.importorskip("transformers")

from bochner.linalg.compiled.selecting import largest  # noqa: E402
from bochner.nn import CodedCache, CodedPlan, calibrate, replace_attention  # noqa: E402
from bochner.nn import _coded_cache as module  # noqa: E402
from bochner.nn._coded_step import unequal_bits  # noqa: E402
from bochner.nn._key_codes import packed  # noqa: E402

from .test_coded_models import llama, plan, tokens  # noqa: E402


@pytest.fixture(autouse=True)
def always_coded(monkeypatch):
    monkeypatch.setattr(module, "DECODED_BELOW", 0)


def coded_model(features=False, sampled=4, **options):
    model = llama()
    plans = calibrate(model, [tokens(2, 48)], 16, cost=20, generator=torch.Generator().manual_seed(0))
    found = {}
    for name, own in plans.items():
        heads = [
            replace(head, kept=3 + h, candidates=None, sampled=sampled if h % 2 == 0 else 0, features=None, gate=0.0)
            for h, head in enumerate(own.heads)
        ]
        if features:
            planned = calibrate(model, [tokens(2, 48)], 16, window=4)[name].heads
            heads = [
                replace(x, features=f, gate=0.5) if h % 2 else x
                for h, (x, f) in enumerate(zip(heads, planned, strict=True))
            ]
        found[name] = replace(own, heads=heads, **{"window": 4, "exact_below": 0, "block": 1} | options)
    return replace_attention(model, found, generator=torch.Generator().manual_seed(1))


@torch.no_grad()
def step_by_step(model, ids, cache, mask=None):
    rows = []
    for i in range(ids.shape[1]):
        own = None if mask is None else mask[:, : i + 1]
        rows.append(model(ids[:, i : i + 1], past_key_values=cache, attention_mask=own).logits)
    return torch.cat(rows, dim=1)


@pytest.mark.parametrize("features", [False, True])
@pytest.mark.parametrize("compiled", [True, False])
@torch.no_grad()
def test_steps_give_what_the_whole_sequence_gives(features, compiled, monkeypatch):
    model, ids = coded_model(features), tokens(2, 40)
    whole = model(ids, use_cache=False).logits
    if not compiled:
        monkeypatch.setattr(module.CodedStep, "_compiled", module.CodedStep._plain)
    torch.testing.assert_close(step_by_step(model, ids, CodedCache(model)), whole, rtol=0, atol=1e-4)


@pytest.mark.parametrize("features", [False, True])
@torch.no_grad()
def test_padding_on_the_left_changes_nothing(features):
    model, ids = coded_model(features), tokens(2, 30)
    mask = torch.ones_like(ids)
    mask[0, :9] = 0
    cache = CodedCache(model)
    model(ids[:, :20], attention_mask=mask[:, :20], past_key_values=cache)
    out = model(ids[:, 20:21], attention_mask=mask[:, :21], past_key_values=cache).logits
    alone = CodedCache(model)
    positions = torch.arange(20)[None]
    model(ids[:1, 9:20], past_key_values=alone, position_ids=positions[:, 9:])
    single = model(ids[:1, 20:21], past_key_values=alone, position_ids=torch.tensor([[20]])).logits
    torch.testing.assert_close(out[:1], single, rtol=0, atol=1e-4)


@torch.no_grad()
def test_generate_uses_the_cache_by_itself_and_gives_the_same_tokens(monkeypatch):
    model, ids, made = coded_model(), tokens(2, 24), []
    usual = module.CodedCache.__init__
    monkeypatch.setattr(module.CodedCache, "__init__", lambda self, m: (made.append(m), usual(self, m))[1])
    options = {"max_new_tokens": 12, "do_sample": False}
    out = model.generate(ids, **options)
    assert made == [model]
    assert torch.equal(out, model.generate(ids, use_cache=False, **options))
    beams = model.generate(ids, num_beams=3, **options)
    assert torch.equal(beams, model.generate(ids, num_beams=3, use_cache=False, **options))
    made.clear()
    model.generate(ids, cache_implementation="dynamic", **options)
    llama().generate(ids, **options)
    assert not made


@torch.no_grad()
def test_a_used_cache_goes_on_with_a_longer_prompt_and_refuses_its_own():
    model, ids = coded_model(), tokens(2, 24)
    cache, options = CodedCache(model), {"max_new_tokens": 6, "do_sample": False}
    out = model.generate(ids, past_key_values=cache, **options)
    with pytest.raises(ValueError, match="CodedCache: the cache holds 29 positions, and the prompt has 24"):
        model.generate(ids, past_key_values=cache, **options)
    assert torch.equal(model.generate(out, past_key_values=cache, **options), model.generate(out, **options))


@torch.no_grad()
def test_a_cropped_cache_continues_as_if_the_tokens_had_not_been():
    model, ids = coded_model(True), tokens(1, 40)
    cache = CodedCache(model)
    step_by_step(model, ids[:, :30], cache)
    cache.crop(-10)
    assert cache.get_seq_length() == 20
    whole = model(torch.cat([ids[:, :20], ids[:, 30:]], dim=1), use_cache=False).logits[:, 20:]
    torch.testing.assert_close(step_by_step(model, ids[:, 30:], cache), whole, rtol=0, atol=1e-4)
    with pytest.raises(ValueError, match="negative number or 0, got 3"):
        cache.crop(3)


@torch.no_grad()
def test_selected_repeated_copied_and_pickled_caches_continue():
    model, ids = coded_model(), tokens(2, 30)
    cache = CodedCache(model)
    step_by_step(model, ids[:, :20], cache)
    expected = model(ids, use_cache=False).logits[:, 20:]
    for other in (copy.deepcopy(cache), pickle.loads(pickle.dumps(cache))):
        torch.testing.assert_close(step_by_step(model, ids[:, 20:], other), expected, rtol=0, atol=1e-4)
    twice = copy.deepcopy(cache)
    twice.batch_repeat_interleave(2)
    out = step_by_step(model, ids[:, 20:].repeat_interleave(2, 0), twice)
    torch.testing.assert_close(out, expected.repeat_interleave(2, 0), rtol=0, atol=1e-4)
    cache.reorder_cache(torch.tensor([1, 0]))
    torch.testing.assert_close(step_by_step(model, ids[[1, 0], 20:], cache), expected[[1, 0]], rtol=0, atol=1e-4)
    cache.reset()
    assert cache.get_seq_length() == 0


@torch.no_grad()
def test_a_prompt_in_several_parts_and_everything_kept_is_the_model():
    exact, ids = llama(), tokens(2, 40)
    model = replace_attention(exact, plan(40), copy=True)
    cache = CodedCache(model)
    parts = [model(ids[:, a:b], past_key_values=cache).logits for a, b in ((0, 15), (15, 31), (31, 32), (32, 40))]
    torch.testing.assert_close(torch.cat(parts, dim=1), exact(ids).logits, rtol=0, atol=1e-4)


def test_models_without_codes_are_refused():
    with pytest.raises(ValueError, match="no decoder with coded attention"):
        CodedCache(llama())
    with pytest.raises(TypeError, match="one of transformers"):
        CodedCache(torch.nn.Linear(2, 2))


@pytest.mark.parametrize("count", [1, 7, 64, 300, 5000])
@pytest.mark.parametrize("n", [63, 64, 1000, 20000])
def test_the_largest_scores_are_those_of_a_sort(n, count):
    """A sample gives the bound; where it misleads, since the largest scores lie between its members, all are looked at."""
    scores = np.random.default_rng(0).standard_normal(n).astype(np.float32)
    hidden = np.where(np.arange(n) % 3 == 0, -np.inf, scores).astype(np.float32)
    tricked = np.where(np.arange(n) % max(n // 1024, 1) == 0, scores + 100, scores).astype(np.float32)
    equal, one = np.round(scores), np.full(n, -np.inf, np.float32)
    one[5] = 1.0
    places, room = np.empty(n, np.int64), np.empty(n, np.float32)
    for values in (scores, hidden, tricked, -tricked, equal, one):
        found = largest(values, count, places, room)
        expected = np.argsort(-values, kind="stable")[: min(count, int((values > -np.inf).sum()))]
        np.testing.assert_array_equal(places[:found], np.sort(expected))


def test_words_count_different_bits():
    one, other = torch.randn(2, 50, 100, generator=torch.Generator().manual_seed(0)).sign()
    found = unequal_bits(packed(one), packed(other))
    assert torch.equal(found, (one != other).sum(-1))


def test_generate_holds_nothing_where_attention_is_two_sided():
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    config = transformers.XLMRobertaXLConfig(vocab_size=50, is_decoder=False, pad_token_id=0, **sizes)
    torch.manual_seed(0)
    model = transformers.XLMRobertaXLForCausalLM(config).eval()
    for parameter in model.parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=0.2)
    prompt = torch.randint(3, 50, (1, 12))
    options = {"max_new_tokens": 4, "do_sample": False, "eos_token_id": None, "pad_token_id": 0}
    expected = model.generate(prompt, **options)
    plans = CodedPlan.uncalibrated(model, kept=64, window=4, exact_below=0)
    assert torch.equal(replace_attention(model, plans, copy=True).generate(prompt, **options), expected)
