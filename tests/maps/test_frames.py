"""Frames and dense exponential features: exact identities, unbiasedness, variances, and mutants that must be rejected."""

from __future__ import annotations

import numpy as np
import pytest

from bochner import Approximation, kernels, maps, theory
from bochner.maps import Frame
from bochner.maps._frame import balanced
from bochner.projections import IID, Orthogonal, Quadrature, Simplex
from bochner.rotations import Haar, StructuredGivens
from support.checks import check_mean
from support.map_laws import grouped, redrawn
from support.map_variances import check_variance

SOFTMAX, GAUSSIAN = kernels.Softmax(0.8), kernels.Gaussian(1.3)
INNER = [
    maps.Positive(),
    maps.Hyperbolic(),
    maps.OptimalPositive(),
    maps.GeneralizedExponential("optimal"),
    maps.Trigonometric(),
    maps.ComplexExponential(0.9 + 0.3j),
    maps.Poisson(),
    maps.Geometric(),
    maps.AngularHybrid(3),
]
IN_FRAMES = [
    *(maps.Framed(m) for m in INNER),
    maps.Framed(maps.Positive(), center=False),
    maps.Framed(maps.Positive(), balance=False),
    maps.DenseExponential(),
    maps.DenseExponential(center=False),
    maps.DenseExponential(balance=False),
    maps.DenseExponential(s=(1, -1, 1)),
    maps.DenseExponential(False, False, A=(-0.1 + 0.02j, 0.05, -0.1 + 0.1j), s=(1, -1, 1)),
]


def two_sets(seed=0):
    """Queries and keys that differ in mean and in scale, in three dimensions."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((60, 3)) * (0.8, 0.4, 0.2) + (0.5, -0.3, 0.2)
    return X, rng.standard_normal((50, 3)) * (0.2, 0.5, 0.7) + (-0.2, 0.4, 0.3)


def estimates(spec, x, y, seed):
    """Independent ones, by redraws where all rows share coefficients."""
    shared = isinstance(getattr(spec.map, "map", None), maps.AngularHybrid)
    return redrawn(spec, x, y, 1000, seed) if shared else grouped(spec, x, y, 3000, seed)


@pytest.mark.parametrize("kernel", (SOFTMAX, GAUSSIAN), ids=repr)
@pytest.mark.parametrize("feature_map", IN_FRAMES, ids=repr)
def test_mean_and_variance_are_those_of_theory(feature_map, kernel, seed):
    """Twenty independent rows: the mean is the kernel, and the squared error what `mse` says."""
    X, Y = two_sets()
    plan = Approximation(kernel, feature_map, IID(), 20).plan(X, Y, seed)
    values, exact = estimates(plan, X[0], Y[0], seed), float(kernel(X[:1], Y[:1])[0, 0])
    check_mean(values, exact, repr(plan))
    check_variance(values, exact, float(plan.mse(X[:1], Y[:1])[0, 0]), repr(plan))


@pytest.mark.parametrize(
    "projection", (Orthogonal(Haar()), Simplex(Haar()), Orthogonal(StructuredGivens()), Quadrature()), ids=repr
)
@pytest.mark.parametrize(
    "feature_map",
    (maps.Framed(maps.Positive()), maps.DenseExponential(), maps.DenseExponential(s=(1, 1, -1))),
    ids=repr,
)
def test_any_rows_are_unbiased_in_a_frame(feature_map, projection, seed):
    """160 draws of eleven blocks, the last one cut."""
    X, Y = two_sets()
    plan = Approximation(SOFTMAX, feature_map, projection, 35).plan(X, Y, seed)
    assert plan.unbiased
    check_mean(redrawn(plan, X[0], Y[0], 160, seed), float(SOFTMAX(X[:1], Y[:1])[0, 0]), repr(plan))


@pytest.mark.parametrize("feature_map", IN_FRAMES, ids=repr)
def test_width_symmetry_and_sign_are_known_before_the_draw(feature_map):
    plan = Approximation(SOFTMAX, feature_map, IID(), 5).plan(*two_sets())
    phi = plan.draw(3, 0)
    assert (plan.n_features_out, plan.symmetric, plan.positive) == (phi.n_features_out, phi.symmetric, phi.positive)


@pytest.mark.parametrize("feature_map", (maps.Framed(maps.Positive()), maps.DenseExponential()), ids=repr)
def test_one_set_of_points_has_symmetric_features(feature_map):
    X, _ = two_sets()
    phi = Approximation(GAUSSIAN, feature_map, n_projections=5).fit(X, rng=0)
    assert phi.symmetric and phi.positive
    np.testing.assert_array_equal(phi.queries(X), phi.keys(X))


def test_the_balanced_frame_has_equal_diagonal_covariances():
    X, Y = two_sets()
    S_x, S_y = np.cov(X.T), np.cov(Y.T)
    M = balanced(S_x, S_y, np.zeros((3, 3)))
    inside_x, inside_y = M.T @ S_x @ M, np.linalg.inv(M) @ S_y @ np.linalg.inv(M).T
    np.testing.assert_allclose(inside_x, inside_y, atol=1e-5)
    np.testing.assert_allclose(inside_x, np.diag(np.diag(inside_x)), atol=1e-5)
    singular = np.linalg.svd(np.linalg.cholesky(S_x).T @ np.linalg.cholesky(S_y), compute_uv=False)
    np.testing.assert_allclose(np.sort(np.diag(inside_x)), np.sort(singular), rtol=1e-4)


def mean_log_second_moment(X, Y, frame, A):
    x, y = frame.inside(X, key=False), frame.inside(Y, key=True)
    relative = theory.dense_exponential_log_relative_mse(x[:, None], y[None], A)
    return np.logaddexp(0, relative).mean()


def test_no_random_gauge_is_better_than_the_balanced_frame(seed):
    """The theorem: among all a, b, M, with the best constants of each, the centred balanced frame is the best."""
    X, Y = two_sets()
    plan = Approximation(kernels.Softmax(), maps.DenseExponential()).plan(X, Y).map
    best, rng = mean_log_second_moment(X, Y, plan.frame, np.array(plan.A)), np.random.default_rng(seed)
    for _ in range(60):
        frame = Frame(
            X.mean(0) + 0.2 * rng.standard_normal(3),
            Y.mean(0) + 0.2 * rng.standard_normal(3),
            plan.frame.matrix @ (np.eye(3) + 0.2 * rng.standard_normal((3, 3))),
        )
        other = Approximation(kernels.Softmax(), maps.DenseExponential(frame=frame)).plan(X, Y).map
        assert mean_log_second_moment(X, Y, frame, np.array(other.A)) > best - 1e-6


def test_equal_constants_are_optimal_positive_features():
    X, Y = two_sets()
    A = -0.13
    dense = maps.DenseExponential(False, False, A=(A,) * 3)
    one, two = (Approximation(SOFTMAX, m, IID(), 9).draw(3, 0) for m in (dense, maps.GeneralizedExponential(A, 1)))
    np.testing.assert_allclose(one.gram(X, Y), two.gram(X, Y), rtol=1e-12)


def test_signs_of_minus_one_are_cosines():
    X, Y = two_sets()
    dense = maps.DenseExponential(False, False, A=(0.0,) * 3, s=(-1,) * 3)
    one, two = (Approximation(GAUSSIAN, m, IID(), 9).draw(3, 0) for m in (dense, maps.Trigonometric()))
    np.testing.assert_allclose(one.gram(X, Y), two.gram(X, Y), atol=1e-12)


def test_a_frame_fitted_elsewhere_is_kept():
    X, Y = two_sets()
    frame = Frame(np.ones(3), np.zeros(3), np.diag([1.0, 2.0, 3.0]))
    assert Approximation(SOFTMAX, maps.DenseExponential(frame=frame)).plan(X, Y).map.frame == frame
    assert Approximation(SOFTMAX, maps.Framed(frame=frame)).plan(X, Y).map.frame == frame


def test_a_frame_shortens_sums_of_points_far_from_zero():
    X = 0.3 * np.random.default_rng(0).standard_normal((80, 4)) + 1.0
    plain, framed = (Approximation(SOFTMAX, m).mse(X).mean() for m in (maps.OptimalPositive(), maps.Framed()))
    assert framed < plain / 20


# Mutants


class ForgottenOffset(Frame):
    """b . x is not given back."""

    def offset(self, X, *, key):
        return super().offset(X, key=key) if key else 0 * super().offset(X, key=key)


class NotInverted(Frame):
    """Keys meet M in place of its inverse, transposed."""

    def inside(self, X, *, key):
        return (X - (self.key_center if key else self.query_center)) @ self.matrix


class InvertedScaling(Frame):
    """Queries meet the inverse and keys M: the scaling of public code, upside down."""

    def inside(self, X, *, key):
        return super().inside(X, key=key) if key else (X - self.query_center) @ self.inverse


@pytest.mark.parametrize("mutant", (ForgottenOffset, NotInverted, InvertedScaling))
def test_wrong_frames_are_rejected(mutant, seed):
    X, Y = two_sets()
    right = Approximation(SOFTMAX, maps.DenseExponential(), IID(), 20).plan(X, Y).map
    wrong = mutant(right.frame.query_center, right.frame.key_center, right.frame.matrix)
    plan = Approximation(SOFTMAX, maps.DenseExponential(A=right.A, frame=wrong), IID(), 20)
    x, y = np.array([1.3, -0.9, 0.5]), np.array([-0.5, 1.2, 1.4])
    with pytest.raises(AssertionError, match="wrong frame"):
        check_mean(estimates(plan, x, y, seed), float(SOFTMAX(x[None], y[None])[0, 0]), "wrong frame:")


# Errors


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: Frame("x", [0.0], [[1.0]]),
            TypeError,
            r"Frame: query_center must be an array of real numbers, got 'x'",
        ),
        (
            lambda: Frame([0.0], [0.0, 1.0], [[1.0]]),
            ValueError,
            r"key_center must be a vector of 1 numbers, got shape \(2,\)",
        ),
        (lambda: Frame([0.0, 0.0], [0.0, 0.0], [[1.0, 1.0], [1.0, 1.0]]), ValueError, r"invertible 2 x 2 matrix"),
        (lambda: Frame([np.nan], [0.0], [[1.0]]), ValueError, r"query_center must be finite"),
        (lambda: maps.Framed(maps.Sign()), ValueError, r"Framed: Sign\(\) cannot be used in a frame"),
        (lambda: maps.Framed(maps.Framed()), ValueError, r"cannot be used in a frame"),
        (lambda: maps.Framed(frame=3), TypeError, r"frame must be a frame such as maps\.Frame\(a, b, M\), got 3"),
        (lambda: maps.DenseExponential(center=1), TypeError, r"center must be True or False, got 1"),
        (lambda: maps.DenseExponential(A=(0.2,)), ValueError, r"real parts below 1/8"),
        (lambda: maps.DenseExponential(A="x"), TypeError, r"A must be a sequence of numbers"),
        (lambda: maps.DenseExponential(s=(1, 0)), ValueError, r"s must be a sequence of 1 and -1"),
        (
            lambda: Approximation(SOFTMAX, maps.DenseExponential(False, False, A=(0.0, 0.0))).draw(3),
            ValueError,
            r"A has 2 entries, the data has 3 columns",
        ),
    ],
)
def test_bad_parameters_are_explained(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_dense_features_are_the_default_of_softmax_and_refuse_dimensions_that_are_too_large():
    spec = Approximation(kernels.Softmax(), n_projections=4)
    assert spec.map == maps.DenseExponential() and spec.projection == Simplex()
    with pytest.raises(ValueError, match=r"fitted up to d = 4096, got d = 5000; use OptimalPositive\(\)"):
        spec.plan(np.zeros((2, 5000)))
