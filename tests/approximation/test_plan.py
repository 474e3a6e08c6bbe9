"""Specification, plan, draw: constants are chosen once, and known before the draw."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bochner import Approximation, NoClosedForm, kernels, maps
from bochner.projections import IID, Orthogonal, Quadrature, Simplex
from bochner.rotations import Haar, Hadamard
from support.catalogue import ADAPTIVE_MAPS, MAPS, D, data, spec_of
from support.checks import check_mean
from support.map_variances import rotated

every_map = pytest.mark.parametrize("feature_map", MAPS, ids=repr)
adaptive_map = pytest.mark.parametrize("feature_map", ADAPTIVE_MAPS, ids=repr)


@every_map
def test_a_fitted_map_carries_its_plan(feature_map, seed):
    A, B = data(seed)
    spec = spec_of(feature_map, None, 5)
    phi = spec.fit(A, B, seed)
    assert phi.spec.planned and phi.spec == spec.plan(A, B, seed)


@every_map
def test_drawing_the_plan_is_fitting(feature_map, seed):
    A, B = data(seed)
    spec = spec_of(feature_map, None, 5)
    np.testing.assert_array_equal(spec.plan(A, B, seed).draw(D, seed).queries(A), spec.fit(A, B, seed).queries(A))


@every_map
def test_a_plan_keeps_its_constants_on_other_data(feature_map, seed):
    A, B = data(seed)
    plan = spec_of(feature_map, None, 5).plan(A, B, seed)
    assert plan.plan(3 * A) == plan


@pytest.mark.parametrize("feature_map", [maps.OptimalPositive(), maps.GeneralizedExponential("optimal"),
                                         maps.DenseExponential(), maps.Poisson(), maps.Geometric()], ids=repr)  # fmt: skip
def test_weights_of_rows_count_as_repetitions(feature_map, seed):
    A, counts = data(seed)[0] + 0.3, np.arange(len(data(seed)[0])) % 3
    spec = spec_of(feature_map, None, 5)
    weighted, plain = spec.plan(A, rng=seed, weights=counts).map, spec.plan(A, rng=seed).map
    repeated = spec.plan(np.repeat(A, counts, axis=0), rng=seed).map
    for name, value in vars(repeated).items():
        if isinstance(value, float | complex | tuple):
            tolerance = 0.2 if isinstance(feature_map, maps.Geometric) else 1e-9  # from random pairs, or from moments
            assert getattr(weighted, name) == pytest.approx(value, rel=tolerance)
    assert weighted != plain


@pytest.mark.parametrize(
    "options, message",
    [
        ({"weights": [1.0, 2.0]}, "weights must be 20 numbers that are not negative, one per row of X"),
        ({"weights": np.zeros(20)}, "and not all zero"),
        ({"weights": -np.ones(20)}, "not negative"),
        (
            {"weights": np.ones(20), "Y": np.ones((4, 3))},
            "weights are those of rows that are queries and keys; leave Y out",
        ),
    ],
)
def test_weights_that_fit_no_rows_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Approximation(kernels.Softmax(), maps.OptimalPositive()).plan(np.ones((20, 3)), **options)


@adaptive_map
def test_constants_can_be_printed_and_typed_again(feature_map, seed):
    plan = spec_of(feature_map, None, 5).plan(*data(seed), seed)
    names = vars(maps) | vars(maps.coefficients)
    assert eval(repr(plan.map), dict(names)) == plan.map


def test_the_constant_of_optimal_positive_features_is_shown(seed):
    A, B = data(seed)
    plan = spec_of(maps.OptimalPositive()).plan(A, B)
    V = np.mean(((A[:, None] + B[None]) ** 2).sum(axis=-1))
    rho = 1 / (1 - 8 * plan.map.A)
    assert 2 * V * rho**2 + (2 * V + D) * rho == pytest.approx(D)


def test_the_clusters_of_a_hybrid_are_shown(seed):
    plan = spec_of(maps.ClusterHybrid(2, 3)).plan(*data(seed), seed)
    assert np.shape(plan.map.query_centers) == (2, D) and np.shape(plan.map.diagonals) == (2, 3, D)


@every_map
@pytest.mark.parametrize(
    "projection", (IID(), Simplex(Hadamard()), Quadrature(Haar()), Quadrature(Haar(), origin="resample"))
)
def test_width_symmetry_and_sign_are_known_before_the_draw(feature_map, projection, seed):
    if not feature_map.uses_rows:
        projection = IID()
    plan = spec_of(feature_map, projection, 5).plan(*data(seed), seed)
    phi = plan.draw(D, seed)
    assert (plan.n_features_out, plan.symmetric, plan.positive) == (phi.n_features_out, phi.symmetric, phi.positive)


def test_what_depends_on_data_says_so_before_the_plan():
    with pytest.raises(
        ValueError, match=r"the width of GeneralizedExponential\(.*\) depends on .*; call plan\(X, Y\) first"
    ):
        spec_of(maps.GeneralizedExponential("optimal")).n_features_out  # noqa: B018


@adaptive_map
def test_the_error_is_that_of_the_plan(feature_map, seed):
    """Also on points that the constants were not chosen from."""
    A, B = data(seed)
    plan = spec_of(feature_map, IID(), 31).plan(A, B, seed)
    try:
        error = plan.mse(0.5 * A[:2], 0.5 * B[:2])
    except NoClosedForm:
        pytest.skip(f"no closed form for {feature_map!r}")
    other = replace(plan, map=feature_map).mse(0.5 * A[:2], 0.5 * B[:2])
    assert np.abs(error - other).max() > 1e-6 * error.max()


@pytest.mark.parametrize("width", (1, 2, 7, 101))
def test_any_width_of_cosines_is_met_exactly(width):
    spec = Approximation(kernels.Gaussian()).with_width(width, exactly=True)
    assert spec.n_features_out == width == spec.draw(3, 0).queries(np.ones((2, 3))).shape[1]


def test_a_width_is_not_exceeded():
    assert Approximation(kernels.Gaussian()).with_width(101).n_features_out == 100
    assert Approximation(kernels.Softmax(), maps.AngularHybrid(4)).with_width(101).n_features_out == 100
    with pytest.raises(
        ValueError, match=r"one row of AngularHybrid\(.*\) .* already makes 20 features, more than the width 19"
    ):
        Approximation(kernels.Softmax(), maps.AngularHybrid(4)).with_width(19)


@pytest.mark.parametrize("projection", (IID(), Orthogonal(Haar()), Simplex(Haar()), Quadrature(Haar())), ids=repr)
@pytest.mark.parametrize("kernel", (kernels.Softmax(), kernels.Matern(1.5)), ids=repr)
@pytest.mark.parametrize("rows", (1, 5))
@pytest.mark.swept(2)
def test_a_single_last_cosine_is_unbiased(rows, kernel, projection, seed):
    x, y = np.array([[0.9, -0.4, 0.3]]), np.array([[-0.2, 0.5, 0.6]])
    spec, rng = (
        Approximation(kernel, maps.Trigonometric(single_last=True), projection, rows),
        np.random.default_rng(seed),
    )
    A, B = rotated(x[0], y[0])  # all in each draw
    drawn = (spec.draw(3, rng) for _ in range(150 if rows == 1 else 300))
    values = np.array([np.sum(phi.queries(A) * phi.keys(B), axis=1).mean() for phi in drawn])
    check_mean(values, float(kernel(x, y)[0, 0]), repr(spec))


@pytest.mark.parametrize("dtype", (np.float32, np.float64))
@pytest.mark.parametrize("projection", (Orthogonal(Haar()), Quadrature(Haar())), ids=repr)
def test_a_single_last_cosine_is_the_same_by_tiles(projection, dtype, seed):
    phi = Approximation(kernels.Softmax(), maps.Trigonometric(single_last=True), projection, 5).draw(3, seed)
    X = np.random.default_rng(seed).standard_normal((30, 3)).astype(dtype)
    for key, features in ((False, phi.queries), (True, phi.keys)):
        np.testing.assert_allclose(features(X), phi.features(X, key=key), atol=60 * np.finfo(dtype).eps)
