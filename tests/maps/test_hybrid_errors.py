"""Closed-form errors of hybrids: any bases and coefficients, rows shared or not, independent or orthogonal."""

import numpy as np
import pytest

from bochner import Approximation, kernels, maps, projections
from bochner.maps import NoClosedForm
from bochner.maps.coefficients import AngularCoefficient, FromMap, GaussianCoefficient
from support.checks import check_mean, z_score
from support.draws import squared_errors
from support.map_variances import rotated

D = 4
E1, ONES = np.eye(D)[0], np.ones(D) / 2
X = np.array([0.7 * E1, 0.6 * ONES, [0.25, -0.45, 0.1, 0.2]])
Y = np.array([0.3 * E1, -0.5 * ONES, [0.45, 0.15, -0.25, 0.05], [-0.2, 0.4, 0.05, -0.3]])
# longer vectors would have squared errors whose own variance no number of draws shows
X.setflags(write=False)
Y.setflags(write=False)
BIPOLAR = (maps.Hyperbolic(), maps.Trigonometric())
THREE = (maps.ComplexExponential((0.9, 1.1, 1j, 0.8 + 0.3j)), maps.Positive(), maps.Trigonometric())
POSITIVE_BUMP = FromMap(maps.Positive(), kernels.Gaussian(1.5), n=6, left=0.5, right=-0.5)
NESTED = FromMap(maps.AngularHybrid(3), kernels.Gaussian(), n=4, weight=-0.8, constant=0.9, left=0.7, right=0.7)
HYBRIDS = {
    "angular": maps.AngularHybrid(3),
    "gaussian": maps.GaussianHybrid(3, radius=1.2),
    "matrices": maps.GaussianHybrid(3, matrices=[1.0, [-1.0, 0.8, -1.2, 1.0]]),
    "two coefficients": maps.Hybrid(THREE, (AngularCoefficient(2), GaussianCoefficient(0.8, (0.5, -0.5, 0.4, 0.2), 3))),
    "positive bump": maps.Hybrid(BIPOLAR, (POSITIVE_BUMP,)),
    "nested": maps.Hybrid(BIPOLAR, (NESTED,)),
    "own rows": maps.AngularHybrid(3, shared=False),
    "optimal base": maps.Hybrid((maps.OptimalPositive(A=-0.05), maps.Trigonometric()), (AngularCoefficient(2),), False),
}
PROJECTIONS = (projections.IID(), projections.Orthogonal())


def case(name, projection, m=6):
    return Approximation(kernels.Softmax(), HYBRIDS[name], projection, m)


@pytest.mark.parametrize("projection", PROJECTIONS, ids=repr)
@pytest.mark.parametrize("name", HYBRIDS)
@pytest.mark.swept(3)
def test_errors_are_those_of_simulation(name, projection):
    """12 pairs, one and a half blocks; 800 draws, |z| < 5."""
    spec = case(name, projection)
    errors = squared_errors(spec, X, Y, 800)
    z = (errors.mean(0) - spec.mse(X, Y)) / (errors.std(0, ddof=1) / np.sqrt(len(errors)))
    assert np.abs(z).max() < 5


def test_shared_rows_matter():
    """The mutant that forgets the covariance of shared bases is rejected; it is largest where norms differ."""
    x, y = rotated(0.9 * np.eye(D)[0], 0.1 * np.eye(D)[1])
    spec, own = case("angular", PROJECTIONS[0], 24), case("own rows", PROJECTIONS[0], 24)
    errors = np.diagonal(squared_errors(spec, x, y, 400), axis1=1, axis2=2).mean(axis=1)
    check_mean(errors, spec.mse(x[:1], y[:1])[0, 0])
    assert abs(z_score(errors, own.mse(x[:1], y[:1])[0, 0])[0]) > 5


@pytest.mark.parametrize("diagonal", ["complex", "real"])
def test_clusters_have_the_errors_of_their_bases(diagonal):
    rng = np.random.default_rng(0)
    centers = 0.6 * rng.standard_normal((3, D))
    data = np.concatenate([c + 0.1 * rng.standard_normal((20, D)) for c in centers])
    spec = Approximation(kernels.Softmax(), maps.ClusterHybrid(3, 2, diagonal=diagonal, light=0.1), n_projections=6)
    plan = spec.plan(data, rng=0)
    errors = squared_errors(plan, X, Y, 1200)
    z = (errors.mean(0) - plan.mse(X, Y)) / np.maximum(errors.std(0, ddof=1) / np.sqrt(len(errors)), 1e-12)
    assert np.abs(z).max() < 5


@pytest.mark.parametrize("name", ["positive bump", "nested"])
def test_coefficients_from_maps_are_unbiased(name):
    """250 draws at 16 orientations of each pair."""
    spec, exact = case(name, PROJECTIONS[1]), case(name, PROJECTIONS[1]).kernel(X, Y)
    A, B = (np.concatenate([rotated(z, z)[0] for z in points]) for points in (X, Y))
    grams = np.array([spec.draw(D, rng=seed).gram(A, B) for seed in range(250)]).reshape(250, 3, 16, 4, 16)
    for (i, j), expected in np.ndenumerate(exact):
        check_mean(np.einsum("nkk->n", grams[:, i, :, j]) / 16, expected, f"mean at {i}, {j}:")


def test_orthogonal_signs_have_less_variance():
    """d = n = 8 at right angles: the variance of the coefficient is 0.52 times that of independent signs."""
    x, y = np.eye(8)[:1], np.eye(8)[1:2]
    coefficient = FromMap(maps.Sign(), kernels.Angular(), 8, weight=-0.5, constant=0.5)
    hybrid = maps.Hybrid(BIPOLAR, (coefficient,))
    drawn = [Approximation(kernels.Softmax(), hybrid, n_projections=1).draw(8, rng=seed) for seed in range(1000)]
    rho = [[phi.features.coefficients[0].features(v, key=v is y) for v in (x, y)] for phi in drawn]
    values = np.array([0.5 - float(a[0] @ b[0]) for a, b in rho])
    ratio = values.var() / (0.25 / 8)
    assert ratio < 0.7  # the variance of 1000 draws is known within 5 per cent
    with pytest.raises(NoClosedForm, match="no closed form"):
        drawn[0].spec.mse(x, y)


def test_a_coefficient_is_planned_with_its_map():
    coefficient = FromMap(maps.OptimalPositive(), kernels.Gaussian(2.0), 4, left=2.0)
    spec = Approximation(kernels.Softmax(), maps.Hybrid(BIPOLAR, (coefficient,)), n_projections=4)
    plan = spec.plan(X, Y, rng=0)
    assert not spec.planned
    assert plan.planned
    inside = Approximation(kernels.Gaussian(2.0), maps.OptimalPositive(), n_projections=4).plan(2 * X, Y)
    assert plan.map.coefficients[0].map.A == pytest.approx(inside.map.A)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: FromMap(maps.Sign(), kernels.Gaussian()), ValueError, r"FromMap: Sign\(\) needs .*, got Gaussian"),
        (lambda: FromMap(maps.Positive(), kernels.Gaussian(), 0), ValueError, "FromMap: n must be"),
        (
            lambda: FromMap(maps.Positive(), kernels.Gaussian(), weight=0),
            ValueError,
            "FromMap: weight must not be zero",
        ),
        (lambda: FromMap(maps.Positive(), kernels.Gaussian(), left="x"), TypeError, "FromMap: left must be a number"),
        (lambda: FromMap(None, kernels.Gaussian()), TypeError, "FromMap: map must be"),
    ],
)
def test_bad_arguments_are_refused_in_words(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_no_closed_form_names_what_has_one():
    spec = Approximation(kernels.Softmax(), maps.AngularHybrid(3), projections.Simplex(), 6)
    with pytest.raises(NoClosedForm, match=r"shared=False"):
        spec.mse(X)
