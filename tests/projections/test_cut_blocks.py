"""A block cut to a few rows of a large dimension is drawn without the others, with the same law."""

import numpy as np
import pytest

from bochner.projections import Orthogonal, Simplex, SimplexPlus

D, ROWS = 600, 6


def rows(projection, seed):
    return projection.sample(D, ROWS, rng=seed).to_dense()


def test_few_rows_of_a_large_dimension_do_not_pay_for_its_square():
    W = Orthogonal().sample(100_000, 4, rng=0)
    assert W.shape == (4, 100_000)  # the whole rotation would take 80 GB


def test_orthogonal_rows_are_orthogonal():
    W = rows(Orthogonal(), 0)
    gram = W @ W.T
    np.testing.assert_allclose(gram, np.diag(np.diag(gram)), atol=1e-9 * gram.max())


def test_simplex_rows_have_the_cosine_of_a_simplex():
    W = rows(Simplex(), 0)
    unit = W / np.linalg.norm(W, axis=1, keepdims=True)
    np.testing.assert_allclose(unit @ unit.T, np.where(np.eye(ROWS), 1, -1 / (ROWS - 1)), atol=1e-12)


def test_balanced_rows_add_up_to_zero():
    assert np.linalg.norm(rows(SimplexPlus(), 0).sum(axis=0)) < 1e-4 * np.sqrt(D)


@pytest.mark.parametrize("projection", [Orthogonal(), Simplex(), SimplexPlus()])
def test_entries_are_standard_normal(projection):
    """Means show a missing sign of the factors, squares a wrong length; entries of one draw are nearly independent."""
    first = np.array([rows(projection, seed)[:, 0] for seed in range(300)])
    for values, mean, variance in ((first, 0, 1), (first**2, 1, 2)):
        z = (values.mean(axis=0) - mean) / np.sqrt(variance / len(values))
        assert np.abs(z).max() < 5
