"""Lengths in opposite pairs: each keeps its law, pairs stay within their block, and the error is the one of theory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from bochner import Approximation, kernels, maps
from bochner.maps import NoClosedForm
from bochner.projections import Orthogonal, Simplex
from bochner.radii import Chi, Coupled
from bochner.rotations import Haar, StructuredGivens
from support.checks import check_law, check_mean
from support.map_laws import grouped, redrawn
from support.map_variances import check_variance


@pytest.mark.parametrize("dim", (1, 3, 16))
def test_every_length_keeps_its_law(dim, seed):
    lengths = Coupled().lengths(dim, (5,) * 4000, np.random.default_rng(seed)).reshape(-1, 5)
    for k in range(5):
        check_law(lengths[:, k], stats.chi(dim), f"row {k} of {dim} dimensions")


def test_pairs_have_opposite_ranks_within_their_block(seed):
    sizes = (4, 4, 3)
    r = Coupled().lengths(6, sizes, np.random.default_rng(seed))
    u = stats.chi(6).cdf(r)
    for start in (0, 2, 4, 6, 8):
        assert u[start] + u[start + 1] == pytest.approx(1, abs=1e-9)


def test_the_odd_last_row_is_independent(seed):
    r = Coupled().lengths(6, (3,) * 4000, np.random.default_rng(seed)).reshape(-1, 3)
    ranks = stats.chi(6).cdf(r) - 0.5
    check_mean(ranks[:, 2] * ranks[:, 1], 0.0, "last row")
    check_mean(ranks[1:, 0] * ranks[:-1, 2], 0.0, "next block")


SCALES = [  # laws of the squares of scales
    (kernels.Matern(1.5), stats.invgamma(1.5, scale=1.5)),
    (kernels.RationalQuadratic(0.7), stats.gamma(0.7, scale=1 / 0.7)),
    (kernels.Cauchy(), stats.expon(scale=2)),
]


@pytest.mark.parametrize(
    "kernel, law", SCALES, ids=lambda value: repr(value) if isinstance(value, kernels.Kernel) else ""
)
def test_scales_of_other_kernels_have_opposite_ranks_too(kernel, law, seed):
    sizes = (3,) * 2000
    drawn = Coupled().scales(sizes, kernel, np.random.default_rng(seed)).reshape(-1, 3)
    ranks = law.cdf(drawn**2)
    np.testing.assert_allclose(ranks[:, 0] + ranks[:, 1], 1, atol=1e-9)
    np.testing.assert_allclose(kernel.opposite_scales(drawn[:, 1]), drawn[:, 0], rtol=1e-6)
    check_mean((ranks[:, 2] - 0.5) * (ranks[:, 1] - 0.5), 0.0, "last row")


@pytest.mark.parametrize("kernel", (kernels.Matern(1.5), kernels.Cauchy()), ids=repr)
def test_close_points_of_other_kernels_gain(kernel, seed):
    """Variances of 8 rows at unit distance in 8 dimensions are 0.55 to 0.60 of those of independent lengths."""
    rng, n = np.random.default_rng(seed), 4000
    coupled, plain = (
        np.cos(rows.sample(8, 8 * n, rng, kernel=kernel).to_dense()[:, 0]).reshape(n, 8).mean(axis=1).var()
        for rows in (Orthogonal(Haar(), radii="coupled"), Orthogonal(Haar()))
    )
    assert coupled < 0.8 * plain


def test_opposite_scales_are_finite_also_of_the_heaviest_tails(seed):
    kernel = kernels.Matern(0.001)
    opposite = kernel.opposite_scales(kernel.sample_scales(1000, seed)).astype(np.float32)
    assert np.all(np.isfinite(opposite) & (opposite > 0))


def test_a_kernel_that_does_not_know_the_law_of_its_scales_keeps_independent_ones(seed):
    class Own(kernels.Matern):
        def opposite_scales(self, scales):
            return None

    own, plain = (law.scales((4,), Own(1.5), np.random.default_rng(seed)) for law in (Coupled(), Chi()))
    np.testing.assert_array_equal(own, plain)


@pytest.mark.parametrize("rows", (4, 7))
@pytest.mark.parametrize("distance", (0.5, 2.0))
def test_the_error_of_cosines_is_that_of_theory(rows, distance, seed):
    """Whole and cut blocks of four rows."""
    spec = Approximation(kernels.Gaussian(), maps.Trigonometric(), Orthogonal(Haar(), radii="coupled"), rows)
    x, y = np.full(4, distance / 2), np.zeros(4)
    values = grouped(spec, x, y, 8000, seed) if rows == 4 else redrawn(spec, x, y, 2000, seed)
    check_variance(values, np.exp(-(distance**2) / 2), float(spec.mse(x[None], y[None])[0, 0]), repr(spec))


@pytest.mark.parametrize("d", (4, 8, 16, 32))
def test_close_points_gain(d):
    x, y = np.full((1, d), d**-0.5), np.zeros((1, d))
    coupled, plain = (
        Approximation(kernels.Gaussian(), maps.Trigonometric(), Orthogonal(Haar(), radii), d).mse(x, y)
        for radii in ("coupled", "kernel")
    )
    assert 0.5 < coupled / plain < 0.8


@pytest.mark.parametrize("rotation", (Haar(), StructuredGivens()), ids=repr)
@pytest.mark.parametrize("kernel", (kernels.Gaussian(), kernels.Matern(1.5), kernels.Cauchy()), ids=repr)
def test_nothing_becomes_biased(kernel, rotation, seed):
    """Whole blocks of four rows, and a cut one."""
    spec = Approximation(kernel, maps.Trigonometric(), Orthogonal(rotation, radii="coupled"), 4)
    x, y = np.full(4, 0.6), np.zeros(4)
    expected = float(kernel(x[None], y[None])[0, 0])
    assert spec.unbiased
    check_mean(grouped(spec, x, y, 8000, seed), expected, repr(spec))
    check_mean(redrawn(replace(spec, n_projections=6), x, y, 300, seed), expected, f"six rows of {spec!r}")


def test_where_no_closed_form_is_known_it_is_said():
    for feature_map, rows in (
        (maps.Positive(), Orthogonal(radii="coupled")),
        (maps.Trigonometric(), Simplex(radii="coupled")),
    ):
        with pytest.raises(NoClosedForm, match="no closed form is known"):
            Approximation(kernels.Softmax(), feature_map, rows).mse(np.ones((2, 3)))


@pytest.mark.parametrize("d", (3, 200, 784, 4096))
def test_the_closed_form_holds_in_large_dimensions_and_for_many_pairs(d):
    """Many pairs are interpolated; every pair alone is not.  Orthogonal rows of large blocks hardly depend on lengths."""
    X = np.random.default_rng(0).standard_normal((20, d)) / np.sqrt(d)
    spec = Approximation(kernels.Gaussian(), maps.Trigonometric(), Orthogonal(Haar(), radii="coupled"), d)
    errors = spec.mse(X, 2 * X)
    alone = [[float(spec.mse(x[None], 2 * y[None])[0, 0]) for y in X[:3]] for x in X[:3]]
    np.testing.assert_allclose(errors[:3, :3], alone, rtol=1e-6, atol=1e-12)
    assert (errors >= 0).all() and (errors < 1 / d).all()


class AcrossBlocks(Coupled):
    """Pairs that ignore where blocks end: a row beside one of another block."""

    def unit_lengths(self, dim, sizes, rng):
        return super().unit_lengths(dim, (sum(sizes),), rng)


def test_pairs_across_blocks_are_rejected(seed):
    """With blocks of three rows every second pair would lie across: the error is not the one of theory."""
    x, y = np.full(3, 1 / np.sqrt(3)), np.zeros(3)
    right = Approximation(kernels.Gaussian(), maps.Trigonometric(), Orthogonal(Haar(), Coupled()), 6)
    wrong = Approximation(kernels.Gaussian(), maps.Trigonometric(), Orthogonal(Haar(), AcrossBlocks()), 6)
    error = float(right.mse(x[None], y[None])[0, 0])
    check_variance(grouped(right, x, y, 20_000, seed), np.exp(-0.5), error, "within blocks")
    with pytest.raises(AssertionError, match="squared error"):
        check_variance(grouped(wrong, x, y, 20_000, seed), np.exp(-0.5), error, "across blocks")
