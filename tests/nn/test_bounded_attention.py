"""Attention with a state of fixed size: against a plain simulation, exact where everything is held, decoded, saved."""

import math

import pytest
import torch

transformers = pytest.importorskip("transformers")

from bochner.nn import BoundedHead, BoundedPlan, LinearCache, calibrate, replace_attention  # noqa: E402
from bochner.nn._bounded_attention import BoundedState, windowed  # noqa: E402

SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}


def llama(seed=0):
    torch.manual_seed(seed)
    config = transformers.LlamaConfig(vocab_size=60, num_key_value_heads=2, eos_token_id=None, **SIZES)
    model = transformers.LlamaForCausalLM(config).eval()
    with torch.no_grad():  # sharper than at the start of training
        for name, weight in model.named_parameters():
            if "q_proj" in name or "k_proj" in name:
                weight *= 6
    return model


def tokens(*shape, seed=0):
    return torch.randint(0, 60, shape, generator=torch.Generator().manual_seed(seed))


def drawn(heads=4, key_heads=2, n=70, d=8, seed=0):
    g = torch.Generator().manual_seed(seed)
    x = 1.5 * torch.randn(2, heads, n, d, generator=g, dtype=torch.float64)
    y, v = torch.randn(2, 2, key_heads, n, d, generator=g, dtype=torch.float64)
    return x, y, v


def simulated(x, y, v, there, bounds):
    """One member and head of keys at a time, one query at a time, with sets of positions."""
    group, out = x.shape[1] // y.shape[1], torch.zeros_like(x)
    for b in range(len(x)):
        for h in range(y.shape[1]):
            heads = range(h * group, (h + 1) * group)
            window, kept = (max(getattr(bounds.heads[i], name) for i in heads) for name in ("window", "kept"))
            anchors = [j for j in range(y.shape[2]) if there[b, j]][: bounds.anchors]
            held, used, seen = [], torch.zeros(y.shape[2], dtype=torch.float64), torch.zeros(y.shape[2])
            means = [[] for _ in range(bounds.means if kept else 0)]  # sets of positions
            for start in range(0, y.shape[2], bounds.block):
                stop = min(start + bounds.block, y.shape[2])
                new = torch.zeros_like(used)
                full = [one for one in means if one]
                for i in range(start, stop):
                    places = [j for j in [*held, *range(start, i + 1)] if there[b, j]]
                    keys = torch.stack(
                        [y[b, h, one].mean(0) for one in [*([j] for j in places), *full]] or [y[b, h, 0]]
                    )
                    values = torch.stack(
                        [v[b, h, one].mean(0) for one in [*([j] for j in places), *full]] or [v[b, h, 0]]
                    )
                    logs = torch.tensor([0.0] * len(places) + [math.log(len(one)) for one in full], dtype=y.dtype)
                    for head in heads if len(logs) else ():
                        weights = (keys @ x[b, head, i] + logs).softmax(-1)
                        out[b, head, i] = weights @ values
                        new[places] += weights[: len(places)] * bool(there[b, i])
                used += new * v[b, h].norm(dim=-1)
                held += range(start, stop)
                seen[held] += 1
                last = held[-window:]
                others = [j for j in held if j not in last and j not in anchors and there[b, j]]
                best = sorted(others, key=lambda j: -float(used[j] / (seen[j] + 1)))
                count = kept + bounds.anchors - len([j for j in anchors if j in held and j not in last])
                centers = [y[b, h, one].mean(0) for one in means if one]
                for k, j in enumerate(best[count:] if means else ()):
                    if len(centers) < len(means):
                        means[k % len(means)].append(j)
                    else:
                        means[min(range(len(means)), key=lambda m: float((y[b, h, j] - centers[m]).norm()))].append(j)
                held = sorted({*last, *best[:count], *(j for j in anchors if j in held)})
                used *= bounds.decay
                seen *= bounds.decay
    return out


def places(x, y, there):
    bias = torch.zeros(len(x), y.shape[1], y.shape[2], dtype=x.dtype)
    return bias.masked_fill(~there[:, None], -torch.inf)


def padding(n, side):
    there = torch.ones(2, n, dtype=torch.bool)
    if side is not None:
        there[0, slice(0, 9) if side == "left" else slice(n - 9, n)] = False
    return there


@pytest.mark.parametrize("side", ["left", "right", None])
@pytest.mark.parametrize("kept", [(0, 0, 0, 0), (6, 6, 6, 6), (0, 2, 9, 9)], ids=str)
def test_the_state_is_what_a_simulation_holds(kept, side):
    """Padding that is held takes the place of a kept key only where there are no others: the window is of positions."""
    x, y, v = drawn()
    heads = [BoundedHead(*sizes) for sizes in zip((5, 5, 8, 8), kept, strict=True)]
    bounds, there = BoundedPlan(heads, 1, 4, 0.8, 3), padding(70, side)
    out = BoundedState().attend(x, y, v, places(x, y, there), bounds)
    torch.testing.assert_close(out, simulated(x, y, v, there, bounds))


@pytest.mark.parametrize("side", ["left", "right", None])
@pytest.mark.parametrize("anchors", [0, 1, 3])
def test_windows_in_blocks_are_those_of_the_state(anchors, side):
    x, y, v = drawn()
    heads = [BoundedHead(window) for window in (5, 5, 70, 70)]
    bounds, there = BoundedPlan(heads, anchors, 4, 1.0), padding(70, side)
    bias = places(x, y, there)
    torch.testing.assert_close(
        windowed(x, y, v, bias, bounds, True), BoundedState().attend(x, y, v, bias, bounds), rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("side", ["left", "right", None])
@pytest.mark.parametrize("window", [1, 7, 200])
def test_two_sided_windows(window, side):
    x, y, v = drawn(n=150)
    there = padding(150, side)
    out = windowed(x, y, v, places(x, y, there), BoundedPlan([BoundedHead(window)] * 4, 2, 4, 1.0), False)
    i = torch.arange(150)
    first = there & (there.cumsum(-1) <= 2)
    seen = (((i[:, None] - i).abs() < window) | first[:, None]) & there[:, None]
    expected = torch.nn.functional.scaled_dot_product_attention(
        x, y, v, attn_mask=seen[:, None], scale=1.0, enable_gqa=True
    ).masked_fill(~seen.any(-1)[:, None, :, None], 0.0)
    torch.testing.assert_close(out, expected)


def plan(window=5, kept=6, **options):
    return BoundedPlan([BoundedHead(window, kept)] * 4, **{"block": 4} | options)


@torch.no_grad()
def test_everything_held_is_the_model():
    model, ids = llama(), tokens(2, 40)
    for one in (plan(40, 0), plan(5, 40)):
        other = replace_attention(model, one, copy=True)
        torch.testing.assert_close(other(ids).logits, model(ids).logits, rtol=0, atol=2e-5)


@pytest.mark.parametrize("kept", [0, 6])
@torch.no_grad()
def test_decoding_is_the_whole_sequence_in_a_state_of_fixed_size(kept):
    model = replace_attention(llama(), plan(kept=kept))
    ids, cache = tokens(2, 50), LinearCache(model)
    whole, parts, sizes = model(ids).logits, [], []
    for start, stop in [(0, 23), (23, 30), *((i, i + 1) for i in range(30, 50))]:
        parts.append(model(ids[:, start:stop], past_key_values=cache).logits)
        sizes.append(cache.layers[0].state.pools[0].y.shape[-2])
    torch.testing.assert_close(torch.cat(parts, dim=1), whole, rtol=0, atol=1e-4)
    assert max(sizes) < 5 + kept + 4 * bool(kept) + 1 + 4 and (cache.get_seq_length(), cache.nbytes > 0) == (50, True)


@torch.no_grad()
def test_generate_makes_the_cache_and_follows_beams():
    model, ids = replace_attention(llama(), plan()), tokens(2, 21)
    for options in ({"do_sample": False}, {"num_beams": 3, "do_sample": False}):
        cached, whole = (
            model.generate(ids, max_new_tokens=12, pad_token_id=0, use_cache=use, **options) for use in (True, False)
        )
        assert torch.equal(cached, whole)


@torch.no_grad()
def test_a_saved_model_comes_back(tmp_path):
    model, ids = replace_attention(llama(), plan()), tokens(1, 40)
    model.save_pretrained(tmp_path)
    loaded = transformers.LlamaForCausalLM.from_pretrained(tmp_path).eval()
    torch.testing.assert_close(loaded(ids).logits, model(ids).logits, rtol=0, atol=0)


def test_gradients_pass_through_what_is_held():
    model, ids = replace_attention(llama(), plan()).train(), tokens(1, 40)
    model(ids, labels=ids).loss.backward()
    assert all(p.grad is not None and bool(p.grad.isfinite().all()) for p in model.parameters())


def bert():
    return transformers.BertModel(transformers.BertConfig(vocab_size=60, **SIZES))


ERRORS = [
    (lambda: BoundedHead(0), ValueError, "BoundedHead: window must be an integer of at least 1"),
    (lambda: BoundedHead(4, -1), ValueError, "BoundedHead: kept must be an integer of at least 0"),
    (lambda: BoundedPlan([]), ValueError, "BoundedPlan: heads must hold at least one"),
    (lambda: BoundedPlan(BoundedHead()), TypeError, "BoundedPlan: heads must be a sequence of BoundedHead"),
    (lambda: BoundedPlan([BoundedHead()], decay=0.0), ValueError, r"decay must lie in \(0, 1\], got 0\.0"),
    (lambda: replace_attention(bert(), plan()), ValueError, "BertSelfAttention is not causal; use a plan with kept=0"),
    (lambda: replace_attention(llama(), BoundedPlan([BoundedHead()])), ValueError, "plan has 1 heads, .* has 4"),
    (
        lambda: replace_attention(torch.nn.MultiheadAttention(8, 4), plan()),
        ValueError,
        "a BoundedPlan converts attention of transformers, got MultiheadAttention",
    ),
]


@pytest.mark.parametrize(("call", "kind", "words"), ERRORS, ids=[words for *_, words in ERRORS])
def test_errors_in_words(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


def test_calibration_gives_keys_to_the_heads_that_need_them():
    """The values of the second layer are so small that its keys do not matter."""
    model, ids = llama(), tokens(2, 120)
    model.model.layers[1].self_attn.v_proj.weight.data *= 0.01
    plans = calibrate(model, [ids], state=60)
    assert set(plans) == {f"model.layers.{i}.self_attn" for i in range(2)}
    first, second = plans.values()
    assert first.size + second.size <= 120 and first.size > second.size + 20
    held = tokens(2, 120, seed=1)

    @torch.no_grad()
    def error(of):
        return float((replace_attention(model, of, copy=True)(held).logits - model(held).logits).square().mean())

    same = BoundedPlan([BoundedHead(15, 60 - 15 - 17)] * 4)
    assert error(plans) < error(same)


@pytest.mark.parametrize("length", [33, 64, 70])
def test_no_state_is_larger_than_it_was_asked_for(length):
    """Heads that may hold all keys of the batches hold them, and no more."""
    model = llama()
    for state in (24, length - 1, length, length + 16):
        plans = calibrate(model, [tokens(1, length)], state=state)
        assert sum(plan.size for plan in plans.values()) / len(plans) <= state
    held = tokens(1, length, seed=1)
    torch.testing.assert_close(replace_attention(model, plans, copy=True)(held).logits, model(held).logits)


def test_a_state_needs_causal_attention():
    with pytest.raises(ValueError, match=r"calibrate: state=32 needs causal attention"):
        calibrate(bert(), [tokens(1, 40)], state=32)


@torch.no_grad()
def test_packed_sequences_are_computed_apart():
    module = replace_attention(llama(), plan()).model.layers[0].self_attn.random_features
    q, k, v = (torch.randn(1, heads, 50, 8, generator=torch.Generator().manual_seed(heads)) for heads in (4, 2, 2))
    options = {"causal": True, "prefixes": None, "key_mask": None, "scale": 0.5}
    packed = module(q, k, v, borders=torch.tensor([0, 30, 50]), **options)
    parts = [module(*(x[..., cut, :] for x in (q, k, v)), **options) for cut in (slice(0, 30), slice(30, 50))]
    torch.testing.assert_close(packed, torch.cat(parts, dim=-2))
