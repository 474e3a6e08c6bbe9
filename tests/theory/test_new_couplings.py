"""Errors of dense features with orthogonal rows and of rows of signs, against simulation."""

from functools import cache

import numpy as np
import pytest

from bochner import Approximation, kernels, maps, mechanism, theory
from bochner.maps import NoClosedForm
from bochner.projections import IID, Orthogonal, Simplex, SimplexPlus
from bochner.rotations import MultiHadamard
from bochner.theory._dense_exponential_errors import orthogonal_dense_covariance
from support.draws import squared_errors


def worst_z(errors, expected):
    return np.abs((errors.mean(0) - expected) / (errors.std(0, ddof=1) / np.sqrt(len(errors)))).max()


@pytest.mark.parametrize("d", [2, 3, 8, 64])
@pytest.mark.parametrize("constant", [0.0, -0.4])
def test_equal_constants_have_the_gap_of_isotropic_features(d, constant):
    """Whatever the constant: CRT Theorem 4.1, made exact."""
    x = np.zeros((3, d))
    x[:, 0] = [0.3, 1.0, 2.0]
    expected = theory.orthogonal_pair_covariance(*(3 * [(x**2).sum(-1)]), d).real
    got = orthogonal_dense_covariance(x**2, np.full(d, 1 - 4 * constant), d)
    np.testing.assert_allclose(got, expected, atol=2e-5 if d < 4 else 1e-7)


DENSE = maps.DenseExponential(A=(-0.4, -0.05, 0.0), center=False, balance=False)
X = np.array([[0.6, 0.0, 0.0], [0.3, 0.3, 0.3], [0.2, -0.4, 0.5]])  # an axis, ones, generic
Y = np.array([[0.3, 0.0, 0.0], [0.4, 0.2, -0.3]])


def test_dense_features_have_the_error_of_orthogonal_rows():
    """Three rows in d = 3; 6000 draws, |z| < 5.  Independent rows are rejected."""
    spec = Approximation(kernels.Softmax(), DENSE, Orthogonal(), 3)
    errors = squared_errors(spec, X, Y, 6000)
    assert worst_z(errors, spec.mse(X, Y)) < 5
    assert worst_z(errors, Approximation(kernels.Softmax(), DENSE, IID(), 3).mse(X, Y)) > 5


def test_only_positive_dense_features_have_it():
    with pytest.raises(ValueError, match="orthogonal rows need s = 1 and real A of at most zero"):
        theory.dense_exponential_log_relative_mse(X[0], X[1], [0.1, 0.0, 0.0], 1, 3, coupling="orthogonal")


Z = np.array([[1.8, 0, 0, 0], [0.9, 0.9, 0.9, 0.9], [0.5, -1.0, 0.3, 0.7], [1.2, 0.0, 1.2, 0.0]])


@cache
def errors_of_signs(m):
    """Squared errors of m rows of signs at the points Z, over 4000 draws."""
    spec = Approximation(kernels.Gaussian(), maps.Trigonometric(), Orthogonal(MultiHadamard()), m)
    return spec, squared_errors(spec, Z, np.zeros((1, 4)), 4000)


@pytest.mark.parametrize("m", [3, 4, 6])
def test_rows_of_signs_have_the_error_of_theory(m):
    """An axis, ones, generic and a comb; whole and cut blocks; 4000 draws, |z| < 5."""
    spec, errors = errors_of_signs(m)
    assert worst_z(errors, spec.mse(Z, np.zeros((1, 4)))) < 5


def test_rows_of_many_signs_have_the_error_of_theory():
    """At d = 512 weights of Gauss-Laguerre nodes overflow if they are not normalised; 400 draws, |z| < 5."""
    spec = Approximation(kernels.Gaussian(), maps.Trigonometric(), Orthogonal(MultiHadamard()), 8)
    points, origin = np.zeros((2, 512)), np.zeros((1, 512))
    points[0, 0], points[1] = 1.8, 1.5 / np.sqrt(512)
    assert worst_z(squared_errors(spec, points, origin, 400), spec.mse(points, origin)) < 5


def test_mutants_of_sign_rows_are_rejected():
    """Independent rows and Haar rows."""
    origin, (_, errors) = np.zeros((1, 4)), errors_of_signs(4)
    for projection in (IID(), Orthogonal()):
        assert (
            worst_z(errors, Approximation(kernels.Gaussian(), maps.Trigonometric(), projection, 4).mse(Z, origin)) > 5
        )


def test_padded_dimensions_are_those_of_zeros():
    spec = Approximation(kernels.Gaussian(), maps.Trigonometric(), Orthogonal(MultiHadamard()), 5)
    np.testing.assert_allclose(
        spec.mse(Z[:, :3], np.zeros((1, 3)))[:, 0], theory.sign_rows_mse(np.pad(Z[:, :3], ((0, 0), (0, 1))), 5)
    )


PAIRS = np.array([[0.05, 0, 0, 0, 0], [0.1, 0.1, 0.1, 0.1, 0.1]])  # an axis and ones, x = y


@pytest.mark.parametrize("m", [5, 8])
def test_balanced_rows_have_the_error_of_their_sampled_lengths(m):
    """Whole and cut blocks; 2500 draws, |z| < 5.  The error of a plain simplex, 20 times as large, is rejected."""
    spec = Approximation(kernels.Gaussian(), maps.Positive(), SimplexPlus(), m)
    errors = squared_errors(spec, PAIRS, PAIRS, 2500)
    assert worst_z(errors, spec.mse(PAIRS)) < 5
    assert worst_z(errors, Approximation(kernels.Gaussian(), maps.Positive(), Simplex(), m).mse(PAIRS)) > 5


def test_a_geometry_with_a_closed_form_agrees_with_its_sample():
    """The simplex, whose lengths are independent of its directions: within two per cent of the exact error."""
    from bochner.geometries import Simplex as Geometry
    from bochner.maps._error import _sampled

    V = np.array([0.01, 0.3, 1.0, 4.0])
    blocks = [_sampled(Geometry(), 6, 6, 1)]
    got = theory.sampled_positive_log_relative_mse(V, 6, 6, blocks)
    np.testing.assert_allclose(got, theory.positive_log_relative_mse(V, 6, 6, "simplex"), atol=0.02)


@pytest.mark.parametrize("name", ["hmd", "simrf+", "dense", "hrf-angular", "hrf-cluster"])
def test_integrals_are_refused_in_haste(name):
    """What `recommend` asks for: it simulates where the formula would take longer."""
    data = np.random.default_rng(0).standard_normal((20, 4)) / 4
    plan = mechanism(name, n_projections=6).plan(data)
    with pytest.raises(NoClosedForm, match="is an integral for each pair"):
        plan.mse(data, quick=True)
    assert plan.mse(data[:2]).shape == (2, 2)
