"""A block that is cut keeps random rows of its rotation (OMC Eq. 6): its error is that of Theorem 5.1."""

import numpy as np
import pytest

from bochner import Approximation, kernels, maps, theory
from bochner.projections import Orthogonal, Simplex
from bochner.rotations import Butterfly, Haar, Hadamard, Kac, MultiHadamard, StructuredGivens

SAFE = (
    Haar(),
    Hadamard(1),
    Hadamard(2),
    Hadamard(),
    MultiHadamard(),
    Kac(),
    StructuredGivens(),
    StructuredGivens("tree", mix=False),
    Butterfly(),
    Butterfly("tree", mix=False, products=3),
)
SPREAD = np.zeros(256)
SPREAD[::64] = 0.5
SPREAD.setflags(write=False)


def squared_errors(rotation, x, m, seeds, *, first=False):
    """Squared errors of |x|^2 over draws; ``first`` keeps the first rows, as a block without an order does."""
    projection = Orthogonal(rotation, "fixed")
    found = []
    for seed in seeds:
        P = projection.sample(len(x), m, rng=seed)
        if first:
            P = projection.restore(len(x), m, {k: a for k, a in P.to_arrays().items() if k != "order"})
        found.append((np.sum(P(x[None]) ** 2) / m - x @ x) ** 2)
    return np.array(found)


def z_score(sample, value):
    return (sample.mean() - value) / (sample.std(ddof=1) / np.sqrt(len(sample)))


@pytest.mark.parametrize("blocks", [1, 3])
def test_hadamard_has_the_error_of_the_theorem_where_first_rows_repeat_each_other(blocks):
    """x is one half at every 64th of 256 coordinates; 600 draws, false alarm 6e-7.  First rows are rejected."""
    T = theory.hadamard_fourth_moment(SPREAD, SPREAD, blocks)
    expected = float(theory.subsampled_dot_product_mse(SPREAD, SPREAD, 64, T))
    assert abs(z_score(squared_errors(Hadamard(blocks), SPREAD, 64, range(600)), expected)) < 5
    assert z_score(squared_errors(Hadamard(blocks), SPREAD, 64, range(600), first=True), expected) > 5
    assert expected < 0.36  # independent rows have 0.5


def hard_inputs(d):
    """500 pairs: axes, sums of axes at all dyadic distances, combs, Walsh functions, sparse and generic vectors."""
    rng = np.random.default_rng(0)
    eye, ones = np.eye(d), np.ones(d)
    walsh = [1 - 2.0 * (np.array([bin(i & j).count("1") for j in range(d)]) % 2) for i in range(d)]
    combs = [(np.arange(d) % step == 0) * 1.0 for step in (2, 4, 8)]
    pairs = [eye[0] + eye[2**k] for k in range(int(np.log2(d)))]
    structured = [*eye, ones, *walsh, *combs, *pairs]
    count = 500 - 2 * len(structured)
    sparse = rng.standard_normal((count, d)) * (rng.random((count, d)) < rng.choice((0.1, 0.3, 1.0), (count, 1)))
    X = np.array([*structured, *structured, *sparse])
    return X, np.concatenate([X[: len(structured)], np.roll(X[len(structured) :], 1, axis=0)])


def excess_of_fourth_moment(rotation, d=16, draws=300):
    """z-scores of T over its bound (|x|^2|y|^2 + 2(x.y)^2)/d: below it no number of random rows is worse than iid ones."""
    X, Y = hard_inputs(d)
    R = rotation.sample(d, draws, rng=1).to_dense()
    T = ((R @ X.T) ** 2 * (R @ Y.T) ** 2).sum(axis=1)
    bound = ((X**2).sum(1) * (Y**2).sum(1) + 2 * (X * Y).sum(1) ** 2) / d
    return (T.mean(0) - bound) / np.maximum(T.std(0, ddof=1) / np.sqrt(draws), 1e-9 * (1 + bound))


@pytest.mark.parametrize("rotation", SAFE, ids=repr)
def test_safe_rotations_are_never_worse_than_independent_rows(rotation):
    """500 inputs, |z| < 5: false alarm below 2e-4 for each rotation."""
    assert rotation.safe
    assert excess_of_fourth_moment(rotation).max() < 5


@pytest.mark.parametrize(
    "rotation", [StructuredGivens("uniform", mix=False), Butterfly("uniform", mix=False), Kac(0.2)]
)
def test_rotations_that_can_be_worse_do_not_claim_to_be_safe(rotation):
    assert not rotation.safe
    assert excess_of_fourth_moment(rotation).max() > 5


@pytest.mark.parametrize("rotation", [Hadamard(), Kac(), StructuredGivens()], ids=repr)
def test_every_row_of_a_cut_block_is_kept_equally_often(rotation):
    """First of two kept rows out of 8, 4000 draws: a chi-square with 7 degrees of freedom, below its 1 - 1e-7 quantile."""
    kept = np.array([Orthogonal(rotation).sample(8, 10, rng=seed).order[:2] for seed in range(1000)])
    for column in kept.T:
        counts = np.bincount(column, minlength=8)
        assert ((counts - 125) ** 2 / 125).sum() < 47


def test_whole_blocks_and_haar_rows_have_no_order():
    assert Orthogonal(Hadamard()).sample(8, 16, rng=0).order is None
    assert not Orthogonal()._has_order(8, 10)


def test_a_cut_simplex_stays_a_simplex():
    P = Simplex(Hadamard()).sample(16, 21, rng=0)
    U = P.to_dense() / P.radii[:, None]
    np.testing.assert_allclose((U @ U.T)[16:, 16:], np.where(np.eye(5), 1, -0.25), atol=1e-12)


@pytest.mark.parametrize("rotation", [Hadamard(), Butterfly(), Kac()], ids=repr)
def test_all_paths_of_a_cut_block_agree(rotation):
    P = Orthogonal(rotation).sample(16, 21, rng=0)
    W, rng = P.to_dense(), np.random.default_rng(0)
    X, Z, out = rng.standard_normal((40, 16)), rng.standard_normal((40, 21)), np.empty((40, 21))
    P.transform(X, out)
    back = np.empty((40, 16))
    P.transform_back(Z, back)
    for found, expected in ((out, X @ W.T), (back, Z @ W), (P.rows(3, 20), W[3:20]), (P.combine(Z), Z @ W)):
        np.testing.assert_allclose(found, expected, atol=1e-12)


DOT = (
    Haar(),
    Hadamard(1),
    Hadamard(2),
    MultiHadamard(),
    Kac(1.0),
    Kac(),
    StructuredGivens(),
    Butterfly("tree", mix=False),
)


@pytest.mark.parametrize("radii", ["fixed", "kernel"])
@pytest.mark.parametrize("m", [3, 11])
@pytest.mark.parametrize("rotation", DOT, ids=repr)
@pytest.mark.swept(3)
def test_errors_of_dot_products_are_closed_forms(rotation, m, radii):
    """Axis, comb, ones and generic rows in d = 6, padded to 8 by most; 1500 draws, |z| < 5 in 16 entries of 32 cases."""
    X = np.array([np.eye(6)[0], np.ones(6), [1, 0, 0, 1, 0, 0], [0.5, -1, 2, 0.3, 0.1, -0.7]])
    spec = Approximation(kernels.Linear(), maps.Identity(), Orthogonal(rotation, radii), m)
    errors = np.array([(spec.draw(6, rng=seed).gram(X) - X @ X.T) ** 2 for seed in range(1500)])
    se = np.maximum(errors.std(0, ddof=1) / np.sqrt(len(errors)), 1e-12)
    assert np.abs((errors.mean(0) - spec.mse(X)) / se).max() < 5
