"""What padding does to the rows of a block, and Hadamard rotations without it."""

from __future__ import annotations

import numpy as np
import pytest

from bochner.projections import Orthogonal, Simplex
from bochner.rotations import FoldedWalsh, Hadamard, StructuredGivens, UnpaddedHadamard


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
def test_unpadded_rows_are_orthogonal(d):
    assert squared_cosines(UnpaddedHadamard(), d, draws=3).max() < 1e-14


def test_powers_of_two_are_those_of_hadamard():
    one, other = (R.sample(16, 2, rng=0).to_dense() for R in (Hadamard(), UnpaddedHadamard()))
    assert (one == other).all()


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
