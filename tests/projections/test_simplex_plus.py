"""SimRF+: sums that vanish, lengths that are fresh, errors that are known."""

from __future__ import annotations

import numpy as np
import pytest

from bochner.geometries._geometry import balance
from bochner.projections import Orthogonal, Simplex, SimplexPlus
from support.checks import Z_MAX


def lengths(blocks, r, seed):
    return np.sqrt(np.random.default_rng(seed).chisquare(r, (blocks, r)))


@pytest.mark.parametrize("r", (1, 2, 3, 4, 6, 20))
def test_sums_reach_their_minimum(r, seed):
    norms = lengths(300, r, seed)
    U = balance(norms)
    np.testing.assert_allclose(np.linalg.norm(U, axis=-1), 1, rtol=1e-12)
    residual = np.linalg.norm((norms[..., None] * U).sum(axis=1), axis=-1)
    minimum = np.maximum(2 * norms.max(axis=1) - norms.sum(axis=1), 0)
    done = residual <= minimum + 1.01e-6 * norms.mean(axis=1)
    assert done.all()


def test_blocks_are_swept_as_if_alone(seed):
    norms = lengths(20, 5, seed)
    together = balance(norms)
    for block, alone in enumerate(norms):
        np.testing.assert_array_equal(balance(alone[None])[0], together[block])


def test_nothing_to_turn_against():
    assert np.isfinite(balance(np.array([[1.0, 1.0, 1.0, 1e-300]]))).all()


def test_error_of_positive_features_is_the_known_one(seed):
    """Scaled error at d = m = 6, v = 0.5 (formulas, section 4): 0.00565, Simplex 0.01012, Orthogonal 0.0568."""
    rng = np.random.default_rng(seed)
    v = 0.5 * np.eye(6)[0]
    for projection, known in ((SimplexPlus(), 0.00565), (Simplex(), 0.01012), (Orthogonal(), 0.0568)):
        P = projection.sample(6, 6 * 20000, rng)
        errors = (np.exp(P(v)).reshape(-1, 6).mean(axis=1) - np.exp(0.125)) ** 2
        standard_error = errors.std() / np.sqrt(len(errors))
        assert abs(errors.mean() - known) < Z_MAX * standard_error + 0.01 * known
