"""RandomFeatureAttention stands in for nn.MultiheadAttention, and keeps its draw."""

from __future__ import annotations

import copy
import io

import pytest
import torch
from torch import nn

from bochner import Approximation, kernels, maps, projections
from bochner.nn import AttentionState, RandomFeatureAttention, Rotary
from support.attention import check_close

SPECS = [
    None,
    Approximation(kernels.Softmax(), maps.Positive(), n_projections=32),
    Approximation(kernels.Softmax(), maps.Positive(), projections.Quadrature(), n_projections=32),
    Approximation(kernels.Softmax(), maps.AngularHybrid(2), n_projections=64),
    Approximation(kernels.Softmax(), maps.ClusterHybrid(2, 2), n_projections=64),
    Approximation(kernels.Softmax(), maps.Geometric(positive=True), n_projections=32),
    Approximation(kernels.Gaussian(2.0), maps.Positive(), n_projections=32),
]
OPTIMAL = Approximation(kernels.Softmax(), maps.OptimalPositive(), n_projections=256)
"""One constant for each head, chosen from data, and the draw in one matrix."""
pytestmark = pytest.mark.filterwarnings("ignore::bochner.nn.DenominatorWarning")


def inputs(seed=0, dtype=torch.float32):
    return torch.randn(2, 9, 32, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def module(spec=None, seed=0, **options):
    torch.manual_seed(seed)
    return RandomFeatureAttention(32, 4, batch_first=True, spec=spec, **options)


def twin(exact, m=4096, seed=0, **options):
    """The module with the parameters of exact attention and many features."""
    spec = Approximation(kernels.Softmax(), maps.OptimalPositive(), n_projections=m)
    ours = RandomFeatureAttention(
        32, 4, batch_first=exact.batch_first, spec=spec, generator=torch.Generator().manual_seed(seed), **options
    )
    missing = ours.load_state_dict(exact.state_dict(), strict=False)
    assert not missing.unexpected_keys and all(key.startswith("features.") for key in missing.missing_keys)
    return ours


def exact_attention(**options):
    torch.manual_seed(0)
    attention = nn.MultiheadAttention(32, 4, **options)
    for parameter in attention.parameters():  # short queries and keys, whose kernel is easy
        nn.init.normal_(parameter, std=0.08)
    return attention


@pytest.mark.parametrize(
    "options",
    [{}, {"is_causal": True}, {"average_attn_weights": False}, {"key_padding_mask": True}, {"need_weights": False}],
    ids=str,
)
@pytest.mark.parametrize("batch_first", [False, True])
def test_call_is_that_of_exact_attention(options, batch_first):
    exact, x = exact_attention(batch_first=batch_first), inputs()
    options = dict(options)
    if options.pop("key_padding_mask", False):
        options["key_padding_mask"] = torch.arange(9 if batch_first else 2).expand(2 if batch_first else 9, -1) >= 1
    if options.get("is_causal"):
        options["attn_mask"] = nn.Transformer.generate_square_subsequent_mask(9 if batch_first else 2)
    expected, found = exact(x, x, x, **options), twin(exact)(x, x, x, **options)
    check_close(found[0], expected[0], 0.05)
    assert (found[1] is None) == (expected[1] is None)
    if found[1] is not None:
        assert found[1].shape == expected[1].shape
        check_close(found[1], expected[1], 0.05)


def test_no_batch():
    exact, x = exact_attention(), inputs()[0]
    mask = torch.arange(9) > 6
    expected, found = (attention(x, x, x, key_padding_mask=mask) for attention in (exact, twin(exact)))
    check_close(found[0], expected[0], 0.05)
    assert found[1].shape == expected[1].shape


def test_keys_and_values_of_other_widths():
    exact, x = exact_attention(kdim=8, vdim=5, bias=False, batch_first=True), inputs()
    key, value = x[..., :8], x[..., :5]
    ours = twin(exact, kdim=8, vdim=5, bias=False)
    check_close(ours(x, key, value)[0], exact(x, key, value)[0], 0.05)


@pytest.mark.parametrize("is_causal", [False, True])
def test_weights_give_the_output(is_causal):
    """The returned matrix is the one that was applied: without projections of values the output is its product."""
    attention, x = module(), inputs()
    attention.in_proj_weight.data[64:], attention.in_proj_bias.data[64:] = torch.eye(32), 0
    nn.init.eye_(attention.out_proj.weight)
    out, weights = attention(x, x, x, is_causal=is_causal, average_attn_weights=False)
    values = x.unflatten(-1, (4, 8)).transpose(1, 2)
    check_close(out, (weights @ values).transpose(1, 2).flatten(2), 1e-5)
    assert not is_causal or (weights.triu(1) == 0).all()


@pytest.mark.parametrize("per_head", [False, True])
@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_a_checkpoint_keeps_the_draw(spec, per_head):
    first, second, x = module(spec, 0, per_head=per_head), module(spec, 1, per_head=per_head), inputs()
    expected = first(x, x, x, need_weights=False)[0]
    file = io.BytesIO()
    torch.save(first.state_dict(), file)
    file.seek(0)
    second.load_state_dict(torch.load(file, weights_only=True))
    assert torch.equal(second(x, x, x, need_weights=False)[0], expected)
    assert all(torch.equal(a, b) for a, b in zip(first.buffers(), second.buffers(), strict=True))


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_copies_and_pickles(spec):
    first, x = module(spec), inputs()
    expected = first(x, x, x, need_weights=False)[0]
    file = io.BytesIO()
    torch.save(first, file)
    file.seek(0)
    for other in (copy.deepcopy(first), torch.load(file, weights_only=False)):
        assert torch.equal(other(x, x, x, need_weights=False)[0], expected)


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_redraw_is_explicit_and_in_place(spec):
    attention, x = module(spec), inputs()

    def call():
        return attention(x, x, x, need_weights=False)[0]

    before = call()
    assert torch.equal(call(), before)
    held = dict(attention.features.named_buffers())
    attention.redraw(torch.Generator().manual_seed(5))
    after = call()
    assert not torch.equal(after, before)
    if "matrix" in held:
        assert held["matrix"] is attention.features.matrix
    attention.redraw(torch.Generator().manual_seed(6))
    attention.redraw(torch.Generator().manual_seed(5))
    assert torch.equal(call(), after)


def test_the_generator_decides_the_draw():
    one, two, three = (module(SPECS[1], generator=torch.Generator().manual_seed(s)).features.matrix for s in (3, 3, 4))
    assert torch.equal(one, two) and not torch.equal(one, three)


def test_heads_share_rows_or_not():
    shared, own = module(SPECS[1]).features.matrix, module(SPECS[1], per_head=True).features.matrix
    assert len(shared) == 1 and len(own) == 4 and not torch.equal(own[0], own[1])


def test_statistics_are_those_of_each_head_and_of_the_first_batch():
    attention, x = module(OPTIMAL), inputs()
    attention.in_proj_weight.data[:8] *= 4  # queries of the first head are longer
    attention(x, x, x)
    chosen = attention.features.matrix.clone()
    slopes = chosen[:, :8].norm(dim=1).mean(dim=-1)
    assert slopes[0] > 1.2 * slopes[1:].max()
    attention(10 * x, 10 * x, 10 * x)
    assert torch.equal(attention.features.matrix, chosen)
    attention.fit_statistics(10 * x)
    assert not torch.equal(attention.features.matrix, chosen)


def test_statistics_leave_padding_out():
    one, two, x = module(OPTIMAL), module(OPTIMAL), inputs()
    mask = torch.arange(9).expand(2, 9) >= 5
    one.fit_statistics(x[:, :5], x[:, :5])
    x[:, 5:] = 1e4
    two.fit_statistics(x[:, :5], x, key_padding_mask=mask)
    assert torch.equal(one.features.matrix, two.features.matrix)


def test_numbers_in_the_padding_do_not_matter_in_the_first_batch():
    clean, dirty, x = module(), module(), inputs()
    mask = torch.arange(9).expand(2, 9) >= 5
    y = x.masked_fill(mask[..., None], torch.nan)
    found, expected = dirty(y, y, y, key_padding_mask=mask)[0], clean(x, x, x, key_padding_mask=mask)[0]
    assert torch.equal(found[:, :5], expected[:, :5])


@pytest.mark.parametrize("n, p", [(0, 0), (3, 0), (0, 3)])
def test_empty_sequences(n, p):
    attention, exact, x = module(), nn.MultiheadAttention(32, 4, batch_first=True), inputs()
    for a, b in zip(attention(x[:, :n], x[:, :p], x[:, :p]), exact(x[:, :n], x[:, :p], x[:, :p]), strict=True):
        assert a.shape == b.shape and a.isfinite().all()
    assert attention.features.waits  # constants are chosen from data, when there are any
    assert attention(x, x, x)[0].isfinite().all() and not attention.features.waits


def test_a_causal_mask_for_each_head():
    exact, x = exact_attention(batch_first=True), inputs()
    mask = torch.ones(9, 9, dtype=torch.bool).triu(1).expand(8, 9, 9)
    check_close(twin(exact)(x, x, x, attn_mask=mask)[0], exact(x, x, x, attn_mask=mask)[0], 0.05)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64], ids=str)
def test_casting_keeps_the_draw(dtype):
    attention, x = module(OPTIMAL), inputs()
    expected = attention(x, x, x)[0]
    rows = attention.features.matrix.clone()
    attention.to(dtype)
    found = attention(x.to(dtype), x.to(dtype), x.to(dtype))[0]
    assert found.dtype == dtype and torch.equal(attention.features.matrix, rows)
    check_close(found, expected, 0.05)


def test_autocast():
    attention, x = module(), inputs()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = attention(x, x, x, need_weights=False)[0]
    assert out.dtype == torch.bfloat16 and out.isfinite().all()


@pytest.mark.parametrize("causal", [False, True])
def test_gradients_may_be_taken_within_autocast(causal):
    attention, gradients = module(), []
    for inside in (False, True):
        x = inputs().requires_grad_()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = attention(x, x, x, need_weights=False, is_causal=causal)[0].float().square().sum()
            if inside:
                loss.backward()
        if not inside:
            loss.backward()
        gradients.append(x.grad)
    check_close(gradients[1], gradients[0], 0.02)  # outside of attention, products are in bfloat16


@pytest.mark.parametrize("rotary", [None, Rotary(8)], ids=["plain", "rotary"])
def test_decoding_equals_the_parallel_result(rotary):
    attention, x, state = module(rotary=rotary), inputs(), AttentionState()
    whole = attention(x, x, x, need_weights=False, is_causal=True)[0]
    steps = [attention(t, t, t, need_weights=False, is_causal=True, state=state)[0] for t in x.split(1, dim=1)]
    check_close(torch.cat(steps, dim=1), whole, 1e-5)


def test_rotary_positions_are_relative():
    rotary = Rotary(8)
    q, k = torch.randn(2, 1, 8, dtype=torch.float64)
    rotary.double()
    products = [(rotary(q, t + 3) * rotary(k, t)).sum() for t in (0, 5, 100)]
    assert torch.allclose(products[0], torch.stack(products[1:]), atol=1e-6)


def test_learned_scale_has_a_gradient_and_starts_at_the_usual_scale():
    plain, learned, x = module(SPECS[1]), module(SPECS[1], learned_scale=True), inputs()
    learned.load_state_dict(plain.state_dict(), strict=False)
    out = learned(x, x, x, need_weights=False)[0]
    check_close(out, plain(x, x, x, need_weights=False)[0], 1e-5)
    out.square().sum().backward()
    assert learned.log_scale.grad.shape == (4, 1, 1) and (learned.log_scale.grad != 0).all()


@pytest.mark.parametrize("training", [True, False])
def test_transformer_layers_of_torch_use_it(training):
    """In evaluation these layers would compute exact attention from our parameters, if they could."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(32, 4, 16, dropout=0.0, batch_first=True)
    layer.self_attn = module()
    encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False).train(training)
    attention, x = encoder.layers[0].self_attn, inputs()
    mask = nn.Transformer.generate_square_subsequent_mask(9)
    with torch.set_grad_enabled(training):
        before = encoder(x, mask=mask, is_causal=True)
        attention.redraw()
        after = encoder(x, mask=mask, is_causal=True)
    assert not torch.equal(before, after)


def test_training_lowers_a_loss():
    attention, x = module(SPECS[1]), inputs()
    optimizer = torch.optim.Adam(attention.parameters(), 1e-2)
    losses = []
    for _ in range(20):
        loss = (attention(x, x, x, need_weights=False, is_causal=True)[0] - x.flip(-1)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.8 * losses[0]


def test_statistics_meet_every_place_of_the_sequences():
    """Long queries at one place of 49 are seen, however the rows that are looked at are chosen."""
    x = torch.zeros(64, 49, 32)
    chosen = []
    for place in range(0, 49, 7):
        attention = module(OPTIMAL)
        attention.fit_statistics(x.index_fill(1, torch.tensor([place]), 3.0))
        chosen.append([plan.map.A for plan in attention.features.plans])
    # of 1024 rows about 21 are of that place: fewer than a fifth of them once in a million
    assert torch.tensor(chosen).max() < 0.2 * torch.tensor(chosen).mean() < 0
