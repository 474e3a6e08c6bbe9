"""What padding does to the rows of a block, and Hadamard and butterfly rotations without it."""

from __future__ import annotations

import numpy as np
import pytest

from bochner.projections import Orthogonal, Simplex
from bochner.rotations import (
    Butterfly,
    FoldedWalsh,
    Hadamard,
    StructuredGivens,
    UnpaddedButterfly,
    UnpaddedHadamard,
)
from bochner.rotations._unpadded import CutLevel


def squared_cosines(rotation, d, draws=200):
    """Mean squared cosine of all pairs of d rows of a block, for each draw."""
    found = []
    for seed in range(draws):
        W = Orthogonal(rotation, "fixed").sample(d, d, rng=seed).to_dense()
        W /= np.linalg.norm(W, axis=1, keepdims=True)
        found.append((((W @ W.T) ** 2).sum() - d) / (d * (d - 1)))
    return np.array(found)


@pytest.mark.parametrize("rotation", (Hadamard(), StructuredGivens()), ids=repr)
def test_padded_rows_keep_a_part_of_the_orthogonality(rotation):
    """About (1 - d/d')/d, as for Haar matrices of size d' cut to d columns; exact up to terms of order 1/d^2."""
    d = 48
    found = squared_cosines(rotation, d)
    error = found.std(ddof=1) / np.sqrt(len(found))
    assert abs(found.mean() - (1 - d / 64) / d) < 5 * error + 2 / d**2


@pytest.mark.parametrize("d", (3, 5, 12, 20, 31, 33, 48))
@pytest.mark.parametrize("rotation", (UnpaddedHadamard(), UnpaddedButterfly()), ids=repr)
def test_unpadded_rows_are_orthogonal(d, rotation):
    assert squared_cosines(rotation, d, draws=3).max() < 1e-14


@pytest.mark.parametrize(
    "padded, unpadded",
    ((Hadamard(), UnpaddedHadamard()), (Butterfly("tree", mix=False, products=2), UnpaddedButterfly(2))),
    ids=repr,
)
def test_powers_of_two_are_those_of_the_padded_rotation(padded, unpadded):
    one, other = (R.sample(16, 2, rng=0).to_dense() for R in (padded, unpadded))
    assert (one == other).all()


@pytest.mark.parametrize("d", (3, 5, 6, 15))
def test_one_butterfly_is_the_product_of_the_cut_factors(d):
    """QBF Section 9.1: factors of the next power of two without their last rows and columns, lone cosines replaced by 1."""
    drawn = UnpaddedButterfly(1).sample(d, rng=0)
    expected = np.eye(d)
    for level, stage in enumerate(drawn.stages):
        half, size = 1 << level, 1 << (d - 1).bit_length()
        factor = np.zeros((size, size))
        for group, start in enumerate(range(0, size, 2 * half)):
            angle = stage.angles[0, group] if group < stage.angles.shape[1] else 0.7  # all its pairs are deleted
            for i in range(start, start + half):
                factor[i, i] = factor[i + half, i + half] = np.cos(angle)
                factor[i, i + half], factor[i + half, i] = -np.sin(angle), np.sin(angle)
        factor = factor[:d, :d]
        alone = np.count_nonzero(factor, axis=0) == 1
        factor[alone, alone] = 1.0
        expected = factor @ expected
    assert np.allclose(drawn.to_dense()[0], expected, atol=1e-14)


@pytest.mark.parametrize("d", (5, 12))
def test_full_groups_of_a_butterfly_have_uniform_rows(d):
    """The first row meets a partner at every level: it is uniform, with fourth moments 3/(d(d + 2)) in every coordinate."""
    rows = np.concatenate([UnpaddedButterfly(1).sample(d, 4000, rng=seed).to_dense()[:, 0] for seed in range(5)])
    for power, expected in ((2, 1 / d), (4, 3 / (d * (d + 2)))):
        values = rows**power  # (20000, d)
        z = (values.mean(0) - expected) / (values.std(0) / np.sqrt(len(values)))
        assert (np.abs(z) < 5).all()


def test_angles_of_cut_levels_are_checked():
    with pytest.raises(ValueError, match="CutLevel: these numbers do not make an orthogonal factor: There are pairs"):
        CutLevel(1, np.zeros((1, 2)), 5)
    with pytest.raises(ValueError, match="UnpaddedButterfly: products must be at most"):
        UnpaddedButterfly(1000)


@pytest.mark.parametrize("d", (12, 20, 33))
def test_unpadded_rows_spread_over_all_coordinates(d):
    """No direction keeps more than its share: the fourth moment of entries is near that of uniform rows, 3/(d(d + 2))."""
    R = np.concatenate([UnpaddedHadamard().sample(d, 200, rng=seed).to_dense() for seed in range(5)])  # (1000, d, d)
    assert np.allclose((R**2).mean(axis=(0, 1)), 1 / d)
    assert ((R**4).mean(axis=(0, 1)) * d * (d + 2) / 3 < 1.25).all()


def test_signs_are_checked():
    with pytest.raises(ValueError, match="FoldedWalsh: these numbers do not make an orthogonal factor: Signs are"):
        FoldedWalsh(np.zeros((1, 5), np.int8), False)
    with pytest.raises(TypeError, match="FoldedWalsh: last must be True or False"):
        FoldedWalsh(np.ones((1, 5), np.int8), 1)
    with pytest.raises(ValueError, match="UnpaddedHadamard: blocks must be at most"):
        UnpaddedHadamard(1000)


@pytest.mark.parametrize("d, m", ((20, 70), (5000, 40)))
@pytest.mark.parametrize("projection", (Orthogonal(Hadamard()), Simplex(UnpaddedHadamard())), ids=repr)
def test_some_rows_without_the_others(projection, d, m):
    """Within a block and across blocks, in one go and, in the large dimension, in several."""
    P = projection.sample(d, m, rng=0)
    room = np.full((m - 10, 2, d), np.nan)
    assert P.rows(3, m - 7, room[:, 0]) is not None and np.isnan(room[:, 1]).all()
    np.testing.assert_allclose(room[:, 0], P.combine(np.eye(m))[3 : m - 7], atol=1e-12)
    assert (P.rows(3, m - 7) == room[:, 0]).all()
