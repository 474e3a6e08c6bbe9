"""Variances with orthogonal and simplex rows."""

from __future__ import annotations

import numpy as np
import pytest

from bochner import Approximation, kernels, maps
from bochner.projections import Orthogonal, Simplex
from support.checks import check_mean
from support.map_variances import (
    GAUSSIAN,
    GERF,
    PAIRS,
    SOFTMAX,
    check_redraws,
    check_variance,
    coupled_mse,
    orthogonal_blocks,
    rel2_gerf,
    row_covariance,
    shrunk,
    simplex_blocks,
    single_rows,
    squared,
    value,
)
from support.points import X, Y

BLOCKS = 30_000
COUPLED = {"orthogonal": (Orthogonal(), orthogonal_blocks), "simplex": (Simplex(), simplex_blocks)}


@pytest.mark.parametrize("kernel", (GAUSSIAN, SOFTMAX), ids=repr)
@pytest.mark.parametrize("feature_map", (maps.Trigonometric(), maps.Positive()), ids=repr)
@pytest.mark.parametrize("coupling", COUPLED)
def test_whole_blocks(coupling, feature_map, kernel, seed):
    """Blocks of four rows, of which one large draw has many."""
    projection, blocks = COUPLED[coupling]
    s = 1 if isinstance(feature_map, maps.Positive) else -1
    spec = Approximation(kernel, feature_map, projection, 4 * BLOCKS)
    pairs = shrunk(0.5) if s == 1 else PAIRS
    for (x, y), rows in zip(pairs, single_rows(spec, pairs, seed), strict=True):
        mse = coupled_mse(kernel, s, blocks(4), x, y)
        check_variance(rows.reshape(-1, 4).mean(axis=1), value(kernel, x, y), mse, f"{spec!r} at {x}, {y}")


def cut(kind, r):
    """The projection with every block cut to r rows, of which one large draw has many."""

    class Cut(kind):
        def block_sizes(self, d, m):
            return (r,) * (m // r)

    return Cut()


@pytest.mark.parametrize("feature_map", (maps.Trigonometric(), maps.Positive()), ids=repr)
@pytest.mark.parametrize("coupling", COUPLED)
def test_cut_blocks(coupling, feature_map, seed):
    """Two or three rows of four dimensions, and ten rows as 4 + 4 + 2; a cut simplex block is an r-simplex."""
    projection, blocks = COUPLED[coupling]
    s = 1 if isinstance(feature_map, maps.Positive) else -1
    pairs = shrunk(0.5) if s == 1 else PAIRS

    def sums(law, r, rng):
        """(pairs, BLOCKS) sums over r rows."""
        rows = single_rows(Approximation(GAUSSIAN, feature_map, law, r * BLOCKS), pairs, rng)
        return rows.reshape(len(pairs), BLOCKS, r).sum(axis=2)

    rng = np.random.default_rng(seed)
    cuts = {r: sums(cut(type(projection), r), r, rng) for r in (2, 3)}
    ten = (sums(projection, 8, rng) + cuts[2]) / 10
    for k, (x, y) in enumerate(pairs):
        for m, estimates in ((2, cuts[2][k] / 2), (3, cuts[3][k] / 3), (10, ten[k])):
            mse = coupled_mse(GAUSSIAN, s, blocks(m), x, y)
            check_variance(estimates, value(GAUSSIAN, x, y), mse, f"{feature_map!r} {m} {coupling} rows at {x}, {y}")


@pytest.mark.parametrize("feature_map", (maps.Trigonometric(), maps.Positive()), ids=repr)
@pytest.mark.parametrize("coupling", COUPLED)
def test_ten_rows_drawn_again_and_again(coupling, feature_map, seed):
    """The same through the library's own cutting of the last block."""
    projection, blocks = COUPLED[coupling]
    s = 1 if isinstance(feature_map, maps.Positive) else -1
    spec = Approximation(GAUSSIAN, feature_map, projection, 10)
    assert spec.projection.sample(4, 10, 0).block_sizes == (4, 4, 2)
    x, y = np.array([0.3, 0.1, -0.2, 0.4]), np.array([0.2, -0.1, 0.1, 0.3])
    x, y = (0.6 * x, 0.6 * y) if s == 1 else (x, -y - 0.3)
    check_redraws(spec, x, y, coupled_mse(GAUSSIAN, s, blocks(10), x, y), seed, 700)


@pytest.mark.parametrize(
    ("A", "scale"), ((-0.15, 1.0), (-0.0869414031882, 1.0), (-0.05 + 0.08j, 1.0), (-0.3 - 0.2j, 1.0), (0.0, 0.5))
)
@pytest.mark.parametrize("s", (1, -1))
@pytest.mark.parametrize("coupling", COUPLED)
def test_the_covariance_of_coupled_rows_does_not_depend_on_A(coupling, s, A, scale, seed):
    """And is the known one, with M = 4 and with M = 3 rows a block."""
    projection, blocks = COUPLED[coupling]
    ((_, c),) = blocks(4)
    spec = Approximation(GAUSSIAN, GERF(A, s), projection, 4 * BLOCKS)
    x, y = (scale * X, scale * Y) if s == 1 else (X, Y)
    k = value(GAUSSIAN, x, y)
    errors = single_rows(spec, [(x, y)], seed).reshape(-1, 4) - k
    for M in (4, 3):
        part = errors[:, :M]
        covariance = (part.sum(axis=1) ** 2 - (part**2).sum(axis=1)) / (M * (M - 1))
        check_mean(covariance, row_covariance(s, c, x, y), f"{spec!r}: covariance of {M} rows,")
        variance = k**2 * (rel2_gerf(A, s, squared(x + s * y), 4) - 1)
        mse = variance / M + (1 - 1 / M) * row_covariance(s, c, x, y)
        check_mean(part.mean(axis=1) ** 2, mse, f"{spec!r}: squared error of {M} rows,")


@pytest.mark.parametrize("coupling", COUPLED)
def test_hyperbolic_rows_have_the_covariance_of_their_even_part(coupling, seed):
    """cosh is the mean over both signs: cosines c and -c; orthogonal rows have the covariance of Positive."""
    projection, blocks = COUPLED[coupling]
    ((_, c),) = blocks(4)
    spec = Approximation(GAUSSIAN, maps.Hyperbolic(), projection, 4 * BLOCKS)
    x, y = 0.8 * X, 0.8 * Y
    errors = single_rows(spec, [(x, y)], seed).reshape(-1, 4) - value(GAUSSIAN, x, y)
    covariance = (errors.sum(axis=1) ** 2 - (errors**2).sum(axis=1)) / 12
    check_mean(covariance, (row_covariance(1, c, x, y) + row_covariance(1, -c, x, y)) / 2, f"{spec!r}: covariance,")


def test_dot_products_by_rows_of_fixed_length(seed):
    """Haar rows without replacement: (d-m)(d p + (d-2) q^2) / (m (d-1)(d+2)), and no error with whole blocks."""
    x, y = np.array([1.0, 2.0, 0.0, -1.0]), np.array([0.5, -1.0, 2.0, 1.0])
    p, q = squared(x) * squared(y), x @ y
    spec = Approximation(kernels.Linear(), n_projections=3)
    check_redraws(spec, x, y, (4 * p + 2 * q**2) / (3 * 3 * 6), seed, 500)
    for m in (4, 12):
        phi = Approximation(kernels.Linear(), n_projections=m).draw(4, rng=seed)
        assert phi.gram(x[None], y[None])[0, 0] == pytest.approx(q, rel=1e-12)


# Hybrids
