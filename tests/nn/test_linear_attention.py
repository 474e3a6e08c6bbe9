"""Linear attention equals attention by its definition, with the same features, on every path."""

from __future__ import annotations

import pytest
import torch

from bochner import Approximation, kernels, maps, projections
from bochner.nn import DenominatorWarning, linear_attention
from support.attention import check_close, dense, fitted, in_parts, lower, positive, tokens
from support.catalogue import HOMOGENEOUS_MAPS, MAPS, POINTWISE, spec_of

SIGNED = "ignore::bochner.nn.DenominatorWarning"
ATTENTION_MAPS = [m for m in MAPS if m is not POINTWISE] + [maps.Pointwise(torch.tanh)]


def drawn(feature_map, q, k, projection=None, m=24):
    root = q.shape[-1] ** -0.25
    if feature_map in dict(HOMOGENEOUS_MAPS) or not isinstance(feature_map, maps.Pointwise):
        return spec_of(feature_map, projection, m).fit(q * root, k * root, rng=0)
    return Approximation(None, feature_map, projection, m).fit(q * root, k * root, rng=0)


def check_against_dense(phi, q, k, v, visible, **options):
    """Equal on rows whose denominator does not cancel to nothing."""
    expected, condition = dense(phi, q, k, v, visible)
    found = linear_attention(q, k, v, features=phi, **options)
    sound = condition > 1e-4
    assert sound.double().mean() > 0.9
    check_close(found[sound], expected[sound], 1e-8)


@pytest.mark.filterwarnings(SIGNED)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("feature_map", ATTENTION_MAPS, ids=str)
def test_equals_the_definition_on_every_map(feature_map, causal):
    q, k, v = tokens(2)
    phi = drawn(feature_map, q, k)
    check_against_dense(phi, q, k, v, lower(23) if causal else None, causal=causal, chunk_size=5)


@pytest.mark.filterwarnings(SIGNED)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    "projection",
    [projections.IID(), projections.Simplex(), projections.SimplexPlus(), projections.Quadrature(), projections.QMC()],
    ids=str,
)
def test_equals_the_definition_on_every_coupling(projection, causal):
    q, k, v = tokens(2)
    phi = drawn(maps.Positive(), q, k, projection, 40)
    check_against_dense(phi, q, k, v, lower(23) if causal else None, causal=causal)


@pytest.mark.parametrize("feature_map", [maps.Positive(), maps.OptimalPositive(), maps.Hyperbolic()], ids=str)
def test_equals_the_normalised_gram_matrix(feature_map):
    q, k, v = tokens(2, size=8.0)  # plain exponentials would lose all digits
    phi = fitted(feature_map, q, k)
    root = 3**-0.25
    check_close(linear_attention(q, k, v, features=phi), phi.gram(q * root, k * root, normalize=True) @ v, 1e-10)


def test_gaussian_kernel():
    q, k, v = tokens(2)
    phi = Approximation(kernels.Gaussian(1.5), maps.Positive(), n_projections=16).draw(3, rng=0)
    check_against_dense(phi, q, k, v, lower(23), causal=True)


@pytest.mark.parametrize("chunk", [1, 2, 7, 64])
@pytest.mark.parametrize("causal", [False, True])
def test_chunk_size_changes_nothing(causal, chunk):
    q, k, v = tokens(2)
    phi = positive()
    whole = linear_attention(q, k, v, features=phi, causal=causal, chunk_size=23)
    check_close(linear_attention(q, k, v, features=phi, causal=causal, chunk_size=chunk), whole, 1e-13)


def test_scale_is_that_of_exact_attention():
    q, k, v = tokens(2, d=4)
    check_close(
        linear_attention(q, k, v, features=positive(4), scale=0.3), dense(positive(4), q, k, v, scale=0.3)[0], 1e-12
    )
    tensor = torch.tensor(0.3, dtype=torch.float64)
    check_close(
        linear_attention(q, k, v, features=positive(4), scale=tensor), dense(positive(4), q, k, v, scale=0.3)[0], 1e-12
    )


def test_leading_axes_broadcast():
    q, k, v = tokens(2, 4)
    k, v = k[:, :1], v[:, :1]
    expected = dense(positive(), q, k.expand(2, 4, 23, 3), v.expand(2, 4, 23, 4), lower(23))[0]
    check_close(linear_attention(q, k, v, features=positive(), causal=True), expected, 1e-12)


def test_one_sequence_without_a_batch():
    q, k, v = tokens()
    check_close(linear_attention(q, k, v, features=positive()), dense(positive(), q, k, v)[0], 1e-12)


def test_queries_and_keys_of_different_lengths():
    q, k, v = tokens(2, keys=31)
    check_close(linear_attention(q, k, v, features=positive(), chunk_size=8), dense(positive(), q, k, v)[0], 1e-12)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("left", [False, True])
def test_padding_changes_nothing(causal, left):
    q, k, v = tokens(2)
    mask = torch.ones(2, 23, dtype=torch.bool)
    rows = slice(0, 6) if left else slice(17, 23)
    mask[1, rows] = False
    visible = (lower(23) if causal else torch.ones(23, 23)) * mask[:, None, :]
    expected = dense(positive(), q, k, v, visible)[0]
    k[1, rows], v[1, rows] = torch.nan, torch.inf
    found = linear_attention(q, k, v, features=positive(), causal=causal, key_mask=mask, chunk_size=5)
    sees = visible.sum(-1) > 0
    check_close(found[sees], expected[sees], 1e-12)
    assert (found[~sees] == 0).all()


def test_padding_of_a_mask_with_one_axis():
    q, k, v = tokens(2)
    mask = torch.arange(23) < 9
    expected = dense(positive(), q, k[:, :9], v[:, :9])[0]
    check_close(linear_attention(q, k, v, features=positive(), key_mask=mask), expected, 1e-12)


@pytest.mark.filterwarnings(SIGNED)
@pytest.mark.parametrize("feature_map", [maps.Positive(), maps.AngularHybrid(2)], ids=str)
@pytest.mark.parametrize(
    "lengths",
    [[0, 0, 1, 1, 5, 5, 6, 19, 19, 31], [31] * 10, [0] * 10, [7, 3, 31, 0, 2, 2, 9, 30, 1, 4]],
    ids=["increasing", "all", "none", "any order"],
)
@pytest.mark.parametrize("chunk", [3, 64])
def test_prefix_lengths(feature_map, lengths, chunk):
    q, k, v = tokens(2, length=10, keys=31, size=0.2)
    phi, lengths = fitted(feature_map, q, k, m=64), torch.tensor(lengths)
    visible = torch.arange(31) < lengths[:, None]
    expected = dense(phi, q, k, v, visible)[0]
    found = linear_attention(q, k, v, features=phi, prefix_lengths=lengths, chunk_size=chunk)
    check_close(found[:, lengths > 0], expected[:, lengths > 0], 1e-9)
    assert (found[:, lengths == 0] == 0).all()


def test_prefix_lengths_of_each_member():
    q, k, v = tokens(2, 3, length=10, keys=31)
    lengths = torch.randint(1, 32, (2, 10), generator=torch.Generator().manual_seed(0))
    visible = (torch.arange(31) < lengths[..., None])[:, None]
    mask = torch.ones(2, 1, 31, dtype=torch.bool)
    found = linear_attention(q, k, v, features=positive(), prefix_lengths=lengths, key_mask=mask)
    check_close(found, dense(positive(), q, k, v, visible)[0], 1e-12)


@pytest.mark.parametrize("causal", [False, True])
def test_packed_sequences_do_not_see_each_other(causal):
    q, k, v = tokens(2)
    borders = torch.tensor([0, 4, 4, 15, 23])
    found = linear_attention(q, k, v, features=positive(), causal=causal, cu_seqlens=borders)
    for a, b in ((0, 4), (4, 15), (15, 23)):
        alone = linear_attention(q[:, a:b], k[:, a:b], v[:, a:b], features=positive(), causal=causal)
        check_close(found[:, a:b], alone, 1e-13)


def test_packed_queries_and_keys_with_borders_of_their_own():
    q, k, v = tokens(2, length=6, keys=10)
    pair = torch.tensor([0, 2, 6]), torch.tensor([0, 7, 10])
    found = linear_attention(q, k, v, features=positive(), cu_seqlens=pair)
    check_close(found[:, 2:], linear_attention(q[:, 2:], k[:, 7:], v[:, 7:], features=positive()), 1e-13)


def test_denominators_that_are_not_positive_are_reported():
    q, k, v = tokens(2, size=4.0)
    phi = fitted(maps.Trigonometric(), q, k, m=4)
    expected, _ = dense(phi, q, k, v)
    weights = phi.queries(q * 3**-0.25) @ phi.keys(k * 3**-0.25).mT
    bad = weights.sum(-1) <= 0
    with pytest.warns(DenominatorWarning, match=rf"{int(bad.sum())} of 46 rows .* positive map") as caught:
        found = linear_attention(q, k, v, features=phi)
    assert caught[0].filename == __file__
    check_close(found, expected, 1e-6)
    with pytest.raises(ArithmeticError, match="denominator that is not positive"):
        linear_attention(q, k, v, features=phi, nonpositive="raise")
    rows = linear_attention(q, k, v, features=phi, nonpositive="nan").isnan().all(-1)
    assert torch.equal(rows, bad)


@pytest.mark.filterwarnings(SIGNED)
@pytest.mark.parametrize("feature_map", [maps.Positive(), maps.OptimalPositive(), maps.AngularHybrid(2)], ids=str)
@pytest.mark.parametrize("cut", [[1] * 23, [5, 1, 10, 7]], ids=["steps", "pieces"])
def test_decoding_equals_the_parallel_result(feature_map, cut):
    q, k, v = tokens(2, size=0.3)
    phi = fitted(feature_map, q, k, m=64)
    whole = linear_attention(q, k, v, features=phi, causal=True)
    found, state = in_parts(q, k, v, cut, features=phi, causal=True)
    check_close(found, whole, 1e-10)
    assert state.length == 23


def test_state_holds_the_keys_of_a_memory():
    q, k, v = tokens(2)
    _, state = linear_attention(q[:, :0], k, v, features=positive(), return_state=True)
    check_close(linear_attention(q, None, None, features=positive(), state=state), dense(positive(), q, k, v)[0], 1e-12)
    assert state.length == 23


def test_state_of_beams():
    q, k, v = tokens(3)
    _, state = linear_attention(q, k, v, features=positive(), causal=True, return_state=True)
    order = torch.tensor([2, 2, 0])
    copy, chosen = state.clone(), state.select(order)
    found, after = linear_attention(q, k, v, features=positive(), causal=True, state=chosen, return_state=True)
    kk, vv = torch.cat([k[order], k], dim=1), torch.cat([v[order], v], dim=1)
    visible = torch.cat([torch.ones(23, 23), lower(23)], dim=1)
    check_close(found, dense(positive(), q, kk, vv, visible)[0], 1e-12)
    assert (
        torch.equal(copy.sums.values, state.sums.values) and state.length == chosen.length == 23 and after.length == 46
    )


@pytest.mark.parametrize("near", [{}, {"window": 3, "anchors": 1}], ids=["features", "near"])
def test_a_state_that_is_given_does_not_change(near):
    q, k, v = tokens(2)
    options = {"features": positive(), "causal": True, **near}
    _, state = linear_attention(q, k, v, return_state=True, **options)
    copy = state.clone()
    first, after = linear_attention(q, k, v, state=state, return_state=True, **options)
    assert torch.equal(linear_attention(q, k, v, state=state, **options), first) and after.length == 46
    for a, b in zip((*state.sums, *(state.near or ())), (*copy.sums, *(copy.near or ())), strict=True):
        assert torch.equal(a, b)


@pytest.mark.filterwarnings("ignore:linear_attention. the predicted")
def test_equal_arguments_give_equal_results():
    q, k, v = tokens(2, length=32, dtype=torch.float32)
    torch.manual_seed(1)
    first = linear_attention(q, k, v)
    torch.manual_seed(2)
    assert torch.equal(linear_attention(q, k, v), first)
