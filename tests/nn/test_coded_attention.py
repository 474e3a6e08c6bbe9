"""Coded attention: exact where everything is kept, the right keys where not, and each key counted once."""

import math

import numpy as np
import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from bochner import rotations
from bochner.catalogue import mechanism
from bochner.maps import Frame
from bochner.nn import KeyCodes, _coded_blocks, coded_attention
from bochner.nn import _coded_attention as module
from bochner.nn._coded_layout import BlockLayout, KeySelection
from bochner.nn._coded_remainder import Remainder, draw_keys, phases_at
from bochner.nn._drawn import DrawnFeatures
from bochner.projections import IID, Blocks, Orthogonal, Simplex

LENGTH, D, HEADS = 50, 16, 4


def tensors(seed=0, length=LENGTH, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(3, 2, HEADS, length, D, generator=generator, dtype=dtype)


def padded(length=LENGTH):
    there = torch.ones(2, length, dtype=torch.bool)
    there[0, :5] = False
    there[1, -3:] = False
    return there


def exact(q, k, v, causal, there=None):
    n, p = q.shape[-2], k.shape[-2]
    seen = torch.ones(n, p, dtype=torch.bool).tril(p - n) if causal else torch.ones(n, p, dtype=torch.bool)
    seen = seen if there is None else seen & there[:, None, None, :]
    return scaled_dot_product_attention(q, k, v, attn_mask=seen).masked_fill(~seen.any(-1, keepdim=True), 0.0)


def frames(count=HEADS, d=D):
    return [Frame(np.zeros(d), np.zeros(d), np.eye(d))] * count


def remainder(q, k, heads=(1, 3), gates=(1.0, 0.5), rows=64):
    x, y = (z[:, list(heads)].transpose(0, 1).flatten(1, 2) * D**-0.25 for z in (q, k))
    features = DrawnFeatures(mechanism("favor++", n_projections=rows), D, len(heads), dtype=q.dtype)
    features.fit(x, y)
    return Remainder(features, heads, gates)


@pytest.mark.parametrize("block", [1, 4, 7, 64])
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("masked", [True, False])
def test_everything_kept_is_exact_attention(causal, block, masked):
    q, k, v = tensors()
    there = padded() if masked else None
    options = {"window": 5, "anchors": 2, "kept": LENGTH, "block": block, "causal": causal, "key_mask": there}
    options["sampled"] = [0, 3, 0, 7]
    out = coded_attention(q, k, v, **options)
    torch.testing.assert_close(out, exact(q, k, v, causal, there), rtol=0, atol=1e-12)


@pytest.mark.parametrize("block", [1, 8])
@pytest.mark.parametrize("causal", [True, False])
def test_features_of_no_remainder_change_nothing(causal, block):
    q, k, v = tensors()
    options = {"window": 5, "kept": LENGTH, "block": block, "causal": causal, "remainder": remainder(q, k)}
    torch.testing.assert_close(coded_attention(q, k, v, **options), exact(q, k, v, causal), rtol=0, atol=1e-9)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("with_features", [True, False])
def test_gathered_keys_give_what_all_masked_scores_give(causal, with_features):
    """The fast form with blocks of one query against the plain form, with another number of keys in each head."""
    q, k, v = tensors()
    codes, bias = KeyCodes.fitted(q, k, 64), torch.zeros(2, HEADS, LENGTH, dtype=q.dtype)
    bias = bias.masked_fill(~padded()[:, None], -torch.inf)
    rest = remainder(q, k) if with_features else None
    chosen = KeySelection(5, 2, (18, 9, 0, 27), (6, 3, 0, 9))
    rows = [q * D**-0.25, k * D**-0.25, v, bias, codes, chosen, causal, rest]
    plain = module.attend(*rows)
    blocks = _coded_blocks.attend_blocks(*rows)
    torch.testing.assert_close(blocks, plain, rtol=0, atol=1e-9)


def test_the_remainder_counts_each_key_once():
    """Exact keys and estimated ones in one dense softmax, formed here from the features themselves."""
    q, k, v = tensors()
    rest = remainder(q, k, heads=range(HEADS), gates=[1.0] * HEADS)
    codes = KeyCodes.fitted(q, k, 64)
    out = coded_attention(q, k, v, codes, window=4, anchors=1, kept=3, causal=True, block=8, remainder=rest)
    x, y = q * D**-0.25, k * D**-0.25
    features = rest.features.current
    kernel = features.log(x, key=False).log.exp() @ features.log(y, key=True).log.exp().mT
    layout = BlockLayout.of(x, LENGTH, None, KeySelection(4, 1, (9,) * HEADS, (3,) * HEADS, 8), True)
    found = []
    for start in range(0, LENGTH, 8):
        stop = min(start + 8, LENGTH)
        blocks = layout.blocks(x[..., start:stop, :])
        places = _coded_blocks._selected(blocks, codes.keys(y), codes, layout, start, stop, None)[0][:, :, 0]
        low = start - 3
        for i in range(start, stop):
            used = (torch.arange(LENGTH) >= low) | (torch.arange(LENGTH) < 1)
            used = used.expand(2, HEADS, LENGTH).clone()
            scores = (x[:, :, i, None] * y).sum(-1)
            proposed = torch.zeros(2, HEADS, LENGTH + 1, dtype=torch.bool).scatter(-1, places, True)[..., :-1]
            best = scores.masked_fill(~proposed, -torch.inf).topk(3).indices
            used |= torch.zeros_like(used).scatter(-1, best, True) & proposed
            weights = torch.where(used, scores.exp(), kernel[:, :, i])[..., : i + 1]
            found.append((weights / weights.sum(-1, keepdim=True))[..., None, :] @ v[:, :, : i + 1])
    torch.testing.assert_close(out, torch.cat(found, dim=-2), rtol=0, atol=1e-9)


def test_window_alone_is_masked_attention():
    q, k, v = tensors()
    i = torch.arange(LENGTH)
    seen = ((i[:, None] - i < 6) | (i < 2)) & (i[:, None] >= i)
    masked = scaled_dot_product_attention(q, k, v, attn_mask=seen)
    out = coded_attention(q, k, v, window=6, anchors=2, kept=0, causal=True)
    torch.testing.assert_close(out, masked, rtol=0, atol=1e-12)


def test_grouped_heads_and_last_queries():
    q, k, v = tensors()
    k, v = k[:, ::2], v[:, ::2]
    wide = [x.repeat_interleave(2, dim=1) for x in (k, v)]
    out = coded_attention(q[..., -7:, :], k, v, kept=LENGTH, window=3, causal=True, enable_gqa=True, block=4)
    torch.testing.assert_close(out, exact(q[..., -7:, :], *wide, True), rtol=0, atol=1e-12)


def test_packed_sequences_do_not_see_each_other():
    q, k, v = tensors()
    codes = KeyCodes.fitted(q, k, 64)
    options = {"window": 3, "kept": 4, "causal": True}
    out = coded_attention(q, k, v, codes, cu_seqlens=torch.tensor([0, 20, 50]), **options)
    parts = [
        coded_attention(*(x[..., part, :] for x in (q, k, v)), codes, **options) for part in (slice(20), slice(20, 50))
    ]
    torch.testing.assert_close(out, torch.cat(parts, dim=-2), rtol=0, atol=1e-12)


@pytest.mark.parametrize("block", [1, 8])
def test_later_keys_change_no_bit_of_earlier_queries(block):
    q, k, v = tensors()
    codes, rest = KeyCodes.fitted(q, k, 64), remainder(q, k)
    options = {"window": 4, "kept": 5, "causal": True, "block": block, "remainder": rest}
    before = coded_attention(q, k, v, codes, **options)[..., :24, :]
    k2, v2 = k.clone(), v.clone()
    k2[..., 24:, :] *= 50
    v2[..., 24:, :] = 1e6
    after = coded_attention(q, k2, v2, codes, **options)[..., :24, :]
    torch.testing.assert_close(after, before, rtol=0, atol=1e-9)


def test_gradients_flow_through_the_keys_that_were_selected():
    q, k, v = (x[:1, :1, :12].clone() for x in tensors())
    codes = KeyCodes(frames(1), 64, generator=torch.Generator().manual_seed(0))
    rest = remainder(q, k, heads=(0,), gates=(0.7,), rows=8)
    for block in (1, 4):
        inputs = [x.clone().requires_grad_() for x in (q, k, v)]

        def attention(*rows, block=block):
            return coded_attention(*rows, codes, window=2, kept=3, causal=True, block=block, remainder=rest)

        assert torch.autograd.gradcheck(attention, inputs, eps=1e-7, atol=1e-5, fast_mode=True)


@pytest.mark.parametrize(
    "projection", [Orthogonal(), Simplex(), IID(), Blocks(rotation=rotations.Hadamard())], ids=repr
)
def test_estimated_cosines_have_the_mean_of_the_angular_law(projection):
    """E sign(w.x) sign(w.y) = 1 - 2 theta/pi; 400 draws, two-sided at 5 standard errors, one false alarm in a million."""
    x, y = torch.zeros(2, 1, 1, D, dtype=torch.float64)
    x[..., :] = 1.0
    y[..., 0], y[..., 1] = 1.0, 0.5
    theta = math.acos(float((x * y).sum() / x.norm() / y.norm()))
    means = []
    for seed in range(400):
        codes = KeyCodes(frames(1), 64, projection, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
        means.append(float((codes.queries(x).signs * codes.keys(y).signs).mean()))
    z = (np.mean(means) - (1 - 2 * theta / math.pi)) / (np.std(means, ddof=1) / math.sqrt(len(means)))
    assert abs(z) < 5


def test_a_frame_does_not_change_exact_scores():
    """x.y = x'.y' + b.x + a.y - a.b: with many bits the estimate tends to x.y up to a number for each query."""
    generator = np.random.default_rng(0)
    frame = Frame(generator.normal(size=D), generator.normal(size=D), generator.normal(size=(D, D)) + 4 * np.eye(D))
    codes = KeyCodes([frame], 64, dtype=torch.float64)
    x, y = torch.randn(2, 1, 20, D, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    inside = [
        (z - o) @ turn
        for z, o, turn in ((x, codes.query_center, codes.query_turn), (y, codes.key_center, codes.key_turn))
    ]
    score = inside[0] @ inside[1].mT + codes.keys(y).offsets[..., None, :] - x @ y.mT
    torch.testing.assert_close(score, score[..., :1].expand_as(score), rtol=0, atol=1e-9)


def test_codes_find_the_key_that_an_oracle_finds():
    """The last queries point at one key; eight candidates of 256 bits hold it, as all 200 candidates do."""
    q, k, v = tensors(length=200)
    q[..., 150:, :] = 6 * k[..., 20:21, :]
    coded, oracle = (
        coded_attention(q, k, v, 256, window=2, kept=1, candidates=c, causal=True)[..., 150:, :] for c in (8, 200)
    )
    torch.testing.assert_close(coded, oracle, rtol=0, atol=1e-12)


def test_half_precision_is_computed_in_single_precision():
    q, k, v = tensors(dtype=torch.float32)
    codes = KeyCodes.fitted(q, k, 64)
    low = coded_attention(*(x.bfloat16() for x in (q, k, v)), codes, kept=8, window=4)
    high = coded_attention(*(x.bfloat16().float() for x in (q, k, v)), codes, kept=8, window=4)
    assert low.dtype == torch.bfloat16
    torch.testing.assert_close(low, high.bfloat16(), rtol=0, atol=0)


def test_codes_of_one_seed_are_equal_and_survive_a_state_dict():
    one, other = (KeyCodes(frames(), 64, generator=torch.Generator().manual_seed(s)) for s in (3, 3))
    assert torch.equal(one.rows, other.rows)
    other.redraw(torch.Generator().manual_seed(4))
    assert not torch.equal(one.rows, other.rows)
    other.load_state_dict(one.state_dict())
    assert torch.equal(one.rows, other.rows)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kept": -1}, "kept must be"),
        ({"kept": [1, 2]}, "one number for each of the 4 heads, got 2"),
        ({"kept": 8, "candidates": 4}, "candidates must not be fewer than kept"),
        ({"window": -1}, "window must be"),
        ({"block": 0}, "block must be"),
        ({"codes": 0}, "codes must be"),
        ({"scale": -1.0}, "coded_attention: scale must be a positive number, got -1.0"),
        ({"scale": 1e300}, "coded_attention: scale must be a number between 1e-60 and 1e\\+60, got 1e\\+300"),
        ({"codes": KeyCodes(frames(2), 8)}, "codes are of 2 heads of width 16, and q has 4"),
    ],
)
def test_wrong_arguments_are_refused_in_words(options, words):
    q, k, v = tensors()
    with pytest.raises(ValueError, match=words):
        coded_attention(q, k, v, **options)


def test_more_queries_than_keys_are_no_causal_attention():
    q, k, v = tensors()
    with pytest.raises(ValueError, match="at least as many keys as queries, got 10 and 50"):
        coded_attention(q, k[..., :10, :], v[..., :10, :], causal=True)


def test_heads_with_other_numbers_of_keys_are_computed_as_by_themselves():
    q, k, v = tensors()
    codes, kept = KeyCodes.fitted(q, k, 64), [6, 2, 0, 6]
    options = {"window": 4, "block": 8, "causal": True, "key_mask": padded()}
    whole = coded_attention(q, k, v, codes, kept=kept, **options)
    for h, count in enumerate(kept):
        one = coded_attention(*(x[:, h : h + 1] for x in (q, k, v)), codes.of_heads([h]), kept=count, **options)
        torch.testing.assert_close(whole[:, h : h + 1], one, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("sampled", "close"), [(0, 1e-12), ([6, 0, 6, 3], 1e-5)])  # chances of draws are in float32
@pytest.mark.parametrize("causal", [True, False])
def test_counted_bits_select_what_products_of_signs_select(causal, sampled, close, monkeypatch):
    q, k, v = tensors()
    options = {"window": 4, "kept": 5, "block": 8, "causal": causal, "key_mask": padded(), "sampled": sampled}
    codes = KeyCodes.fitted(q, k, 100)
    counted = coded_attention(q, k, v, codes, **options)
    monkeypatch.setattr(_coded_blocks, "_counts_bits", lambda x: False)
    torch.testing.assert_close(coded_attention(q, k, v, codes, **options), counted, rtol=0, atol=close)


@pytest.mark.parametrize("block", [1, 8])
def test_sums_with_drawn_keys_are_unbiased(block):
    """Numerators and denominators of softmax attention, over 2000 draws; one false alarm in a million at 5 errors.

    Values are ones and coordinates; scores of a single head without a window are small, so that the output times the
    denominator can be read off: a sink of logit 0 takes the weight exp(0) of a total of 1 + sum.
    """
    q, k, _ = (0.7 * x[:1, :1, :40] for x in tensors())
    codes = KeyCodes(frames(1), 64, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    x, y = q * D**-0.25, k * D**-0.25
    chosen = KeySelection(3, 1, (6,), (2,), block, (5,))
    layout = BlockLayout.of(x, 40, None, chosen, True)
    found = []
    for seed in range(2000):
        codes.phases.copy_(torch.rand(1, generator=torch.Generator().manual_seed(seed), dtype=torch.float64))
        if block == 1:
            scores = (x @ y.mT).masked_fill(torch.ones(40, 40).triu(1).bool(), -torch.inf)
            coded = codes.scores(codes.queries(x), codes.keys(y))
            used = module.used_keys(scores, coded, ~layout.far(0, 40, 40), chosen)
            phases = layout.phases(codes, 0, 40)
            weights = module.attend_with_draws(scores, used, coded, chosen.sampled, phases, torch.exp)[0, 0, -1]
        else:
            rows = layout.blocks(x[..., 32:, :])
            places, drawn, shifts = _coded_blocks._selected(rows, codes.keys(y), codes, layout, 32, 40, None)
            scores = (x @ y.mT)[0, 0, -1]
            weights = torch.zeros(41, dtype=x.dtype)
            weights[places.flatten()] = 1.0
            weights[30:], weights[0] = 1.0, 1.0
            weights = weights.scatter_add(0, drawn.flatten(), shifts.flatten().exp())[:40] * scores.exp()
        found.append(torch.cat([weights.sum()[None], weights @ y[0, 0]]))
    found = torch.stack(found)
    exact = (x @ y.mT)[0, 0, -1].exp()
    expected = torch.cat([exact.sum()[None], exact @ y[0, 0]])
    errors = found.std(0) / math.sqrt(len(found))
    assert float(errors.min()) > 0
    assert float(((found.mean(0) - expected) / errors).abs().max()) < 5


def test_draws_are_the_same_twice_and_differ_between_queries():
    q, k, v = tensors()
    codes = KeyCodes.fitted(q, k, 64)
    options = {"window": 2, "kept": 2, "sampled": 4, "causal": True}
    once, again = (coded_attention(q, k, v, codes, **options) for _ in range(2))
    assert torch.equal(once, again)
    codes.phases += 0.3
    assert not torch.equal(coded_attention(q, k, v, codes, **options), once)
    left = torch.ones(1, 1, 3, LENGTH, dtype=torch.bool)
    places, _ = draw_keys(torch.zeros(1, 1, 3, LENGTH), left, (5,), phases_at(codes.phases[:1], torch.arange(3)[None]))
    assert len({tuple(row) for row in places[0, 0].tolist()}) == 3


def test_gradients_flow_through_drawn_keys():
    q, k, v = (x[:1, :1, :8].clone().requires_grad_() for x in tensors())
    codes = KeyCodes(frames(1), 64, generator=torch.Generator().manual_seed(0))
    for block in (1, 4):

        def attention(*rows, block=block):
            return coded_attention(*rows, codes, window=2, kept=1, sampled=3, causal=True, block=block)

        assert torch.autograd.gradcheck(attention, (q, k, v), eps=1e-7, atol=1e-5)


def test_draws_beside_sinks_and_padding():
    """Padding on the left changes no draw, and sinks take their part of the weight."""
    q, k, v = tensors()
    codes = KeyCodes.fitted(q, k, 64)
    options = {"window": 2, "kept": 2, "sampled": 6, "causal": True, "sinks": torch.zeros(HEADS)}
    there = torch.ones(2, LENGTH, dtype=torch.bool)
    there[:, :9] = False
    out = coded_attention(q, k, v, codes, key_mask=there, **options)[..., 9:, :]
    alone = coded_attention(*(x[..., 9:, :] for x in (q, k, v)), codes, **options)
    torch.testing.assert_close(out, alone, rtol=0, atol=1e-9)


@pytest.mark.parametrize("shared", ["keys", "queries"])
def test_a_batch_of_one_serves_all_of_the_other_side(shared):
    q, k, v = torch.randn(3, 2, 2, 10, 8, generator=torch.Generator().manual_seed(0))
    q, k, v = (q, k[:1], v[:1]) if shared == "keys" else (q[:1], k, v)
    out = coded_attention(q, k, v, kept=4, window=2)
    whole = coded_attention(*(x.expand(2, -1, -1, -1) for x in (q, k, v)), kept=4, window=2)
    torch.testing.assert_close(out, whole)


class Coded(torch.nn.Module):
    def __init__(self, codes, **options):
        super().__init__()
        self.codes, self.options = codes, options

    def forward(self, q, k, v):
        return coded_attention(q, k, v, codes=self.codes, causal=True, **self.options)


@pytest.mark.filterwarnings("ignore")  # torch warns of itself
def test_export_with_any_length():
    """Lengths below the window and the number of candidates, and beyond the example."""
    generator = torch.Generator().manual_seed(0)
    q, k, v = torch.randn(3, 1, 2, 50, 8, generator=generator)
    shapes = {name: {2: torch.export.Dim("length", min=4, max=4096)} for name in "qkv"}
    codes = KeyCodes.fitted(q, k, 32)
    module = Coded(codes, window=12, kept=16, anchors=1)
    exported = torch.export.export(module, (q, k, v), dynamic_shapes=shapes).module()
    for n in (5, 90):
        inputs = tuple(torch.randn(3, 1, 2, n, 8, generator=generator))
        assert torch.allclose(exported(*inputs), module(*inputs), atol=1e-5)
    with pytest.raises(ValueError, match="a graph for any length is exported with block=1, got block=4"):
        torch.export.export(Coded(codes, block=4), (q, k, v), dynamic_shapes=shapes)
