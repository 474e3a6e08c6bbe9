"""The recommended mechanism is the best there is, or nearly so, where the best is known by simulation."""

from __future__ import annotations

import json
import warnings
from itertools import islice

import numpy as np
import pytest

import bochner
from bochner import Approximation, kernels, maps
from bochner.approximation import squared_errors
from bochner.reporting import label
from bochner.selection import _recommend, applicable
from bochner.selection._applicable import planned, rows_within
from bochner.selection._sample import Sample
from support.checks import check_mean

WIDTH = 48


def cloud(n, d, size, seed):
    return size * np.random.default_rng(seed).standard_normal((n, d)) / np.sqrt(d)


def sphere(n, d, radius, seed):
    X = cloud(n, d, 1.0, seed)
    return radius * X / np.linalg.norm(X, axis=1, keepdims=True)


def clusters(n, d, seed):
    rng = np.random.default_rng(seed)
    return sphere(4, d, 1.5, seed)[rng.integers(4, size=n)] + 0.2 * rng.standard_normal((n, d))


def orthant(n, d, seed):
    return np.abs(cloud(n, d, 1.2, seed))


PROBLEMS = {
    "points close together": (cloud(30, 5, 0.6, 0), None, kernels.Gaussian()),
    "points far apart": (cloud(30, 6, 2.5, 1), None, kernels.Gaussian()),
    "many dimensions": (cloud(30, 24, 1.0, 2), None, kernels.Gaussian()),
    "opposite keys": (cloud(30, 6, 0.5, 3) + 1, cloud(40, 6, 0.5, 4) - 1, kernels.Gaussian(2.0)),
    "short vectors, softmax": (sphere(30, 8, 0.5, 5), sphere(40, 8, 0.5, 6), kernels.Softmax()),
    "unit sphere, softmax": (sphere(30, 8, 1.0, 7), None, kernels.Softmax()),
    "clusters": (clusters(30, 8, 8), None, kernels.Gaussian(2.0)),
    "positive orthant": (orthant(30, 6, 9), None, kernels.Gaussian()),
    "heavy tails": (cloud(30, 4, 1.0, 10), None, kernels.Matern(1.5)),
    "dot products": (cloud(30, 8, 1.0, 11), None, kernels.ArcCosine(1)),
}


def true_errors(specs, X, Y, n_draws, seed):
    """Relative Frobenius errors over independent redraws, with no help of theory."""
    exact = (specs[0].kernel(X, Y) ** 2).sum()
    rngs = np.random.default_rng(seed).spawn(len(specs))
    draws = (squared_errors(s.plan(X, Y, 0), X, Y, n_draws, rng) for s, rng in zip(specs, rngs, strict=True))
    return np.array([np.sqrt(np.mean([squares.sum() for squares in redraws]) / exact) for redraws in draws])


def regret(X, Y, kernel):
    """Error of the recommended over that of the best mechanism whose bias does not stay, found in rounds of simulation."""
    chosen = bochner.recommend(X, Y, kernel, WIDTH, rng=1).best
    near = [spec for spec in applicable(kernel, X, WIDTH, Y) if spec.unbiased or spec.projection.consistent]
    Y = X if Y is None else Y
    for n_draws, factor in ((6, 1.5), (30, 1.15), (300, 1.0)):
        errors = true_errors(near, X, Y, n_draws, seed=n_draws)
        found = errors[near.index(chosen)] / errors.min()
        near = [s for s, error in zip(near, errors, strict=True) if error <= factor * errors.min() or s == chosen]
    return found


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.swept(8)
def test_the_recommended_mechanism_is_within_a_tenth_of_the_best(problem):
    assert regret(*PROBLEMS[problem]) <= 1.1


X = cloud(60, 4, 1.0, 0)


@pytest.fixture(scope="module")
def advice():
    return bochner.recommend(X, kernel=kernels.Gaussian(), n_features=32, rng=0)


def test_ranking_is_by_error_at_equal_width(advice):
    bounds = [candidate.bound for candidate in advice.ranking]
    assert bounds == sorted(bounds)
    assert all(candidate.n_features <= 32 for candidate in advice.ranking)
    assert advice.best == advice.ranking[0].spec
    assert {c.source for c in advice.ranking} == {"theory", "simulation"}
    assert all(c.seconds_per_row > 0 and c.worst > 0 for c in advice.ranking)


def test_two_names_of_one_mechanism_are_ranked_once(advice):
    labels = [candidate.label for candidate in advice.ranking]
    assert (
        "OptimalPositive(), Orthogonal()" in labels and "GeneralizedExponential('optimal'), Orthogonal()" not in labels
    )
    errors = [(c.n_features, f"{c.error:.10g}", f"{c.worst:.10g}") for c in advice.ranking]
    assert len(errors) == len(set(errors))


def test_the_same_seed_gives_the_same_ranking(advice):
    again = bochner.recommend(X, kernel=kernels.Gaussian(), n_features=32, rng=0)
    assert [c.spec for c in again.ranking] == [c.spec for c in advice.ranking]
    assert [c.error for c in again.ranking] == [c.error for c in advice.ranking]


def test_theory_is_that_of_the_plan(advice):
    for candidate in advice.ranking:
        if candidate.source == "theory":
            K = candidate.spec.kernel(X)
            expected = np.sqrt(candidate.plan.mse(X).sum() / (K**2).sum())
            np.testing.assert_allclose(candidate.error, expected, rtol=1e-10)
            assert candidate.plan.planned and candidate.plan.projection == candidate.spec.projection


def test_the_diagonal_weighs_what_it_does_in_the_whole_matrix():
    X, kernel = cloud(400, 3, 1.0, 1), kernels.Gaussian()
    samples = [Sample.of(X, None, kernel, np.random.default_rng(seed), rows=20) for seed in range(300)]
    check_mean([(s.weights * s.exact).sum() for s in samples], kernel(X).mean())


def test_it_prints_as_a_table_with_reasons(advice):
    text = str(advice)
    assert text == repr(advice) and "mechanism" in text and advice.ranking[0].label in text
    assert "Recommended: Approximation(" in text and "|x|^2 averages" in text
    assert f"... and {len(advice.ranking) - 12} more" in text
    order = [candidate.bound for candidate in advice.ranking]
    assert "In the order of the error plus two standard errors." in text and order == sorted(order)
    assert any("Independent rows have an error of" in reason for reason in advice.reasons)
    json.dumps(advice.as_dict())


def test_short_positive_vectors_are_told_why_simplex():
    X = sphere(60, 16, 0.7, 3)
    advice = bochner.recommend(X, kernel=kernels.Softmax(), n_features=32, positive=True, rng=0)
    assert "Simplex" in label(advice.best.projection)
    assert any("so simplex rows win" in reason for reason in advice.reasons)


def test_reasons_name_the_kind_of_features_that_the_data_chose():
    near = bochner.recommend(cloud(40, 4, 0.5, 0) + 1, kernel=kernels.Softmax(), n_features=16, rng=0)
    assert any(reason.startswith("Cosines are the most accurate") for reason in near.reasons)
    opposite = cloud(40, 4, 0.3, 1) + 1
    far = bochner.recommend(opposite, -opposite, kernel=kernels.Softmax(), n_features=16, positive=True, rng=0)
    assert any(reason.startswith("Exponentials are the most accurate") for reason in far.reasons)


def test_reasons_say_what_the_frame_did():
    X = cloud(90, 4, 0.6, 0) + 1
    advice = bochner.recommend(X, kernel=kernels.Softmax(), n_features=32, positive=True, rng=0)
    assert isinstance(advice.best.map, maps.DenseExponential)
    sums = ((X[:, None] + X) ** 2).sum(axis=2)[~np.eye(90, dtype=bool)].mean()
    share = 100 * (4 * X.mean(axis=0) ** 2).sum() / sums
    assert f"Centring removed {share:.0f} % of |x + y|^2." in advice.reasons


def test_reasons_say_how_the_frame_balanced_queries_and_keys():
    X, Y = 3 * cloud(40, 4, 1.0, 0), cloud(40, 4, 1.0, 1) / 3
    advice = bochner.recommend(X, Y, kernel=kernels.Softmax(), n_features=32, positive=True, rng=0)
    assert any("alancing multiplied queries by 0.2" in reason for reason in advice.reasons)


def steep(n, seed):
    return np.random.default_rng(seed).standard_normal((n, 8)) * np.geomspace(1, 1e-3, 8)


def test_landmarks_are_ranked_by_their_error_on_rows_that_are_not_landmarks():
    X, kernel = steep(1000, 0), kernels.Gaussian()
    advice = bochner.recommend(X, kernel=kernel, n_features=64, rng=0)
    best = advice.ranking[0]
    assert isinstance(best.spec.map, maps.Landmarks) and best.source == "theory" and not best.unbiased
    sample = advice.predictor.sample
    assert not (sample.X[:, None] == best.plan.map.points).all(axis=2).any()
    assert best.error == pytest.approx(sample.relative(best.plan.mse(sample.X)))
    fresh = steep(500, 1)
    again = np.linalg.norm(best.spec.fit(X, rng=3).gram(fresh) - kernel(fresh)) / np.linalg.norm(kernel(fresh))
    assert again / 3 < best.error < 3 * again  # a few outliers dominate; judged at the landmarks it would be zero
    assert any("Landmarks are the most accurate: few eigenvectors" in reason for reason in advice.reasons)
    assert max(width for width, _ in advice.curves([32, 128])[best.label]) == 64


def test_landmarks_need_more_rows_than_those_judged():
    few, tolerance = steep(150, 0), steep(300, 0)
    kinds = [
        {type(c.spec.map) for c in advice.ranking}
        for advice in (
            bochner.recommend(few, kernel=kernels.Matern(1.5), n_features=64, rng=0),
            bochner.recommend(tolerance, kernel=kernels.Matern(1.5), n_features=64, tolerance=0.4, rng=0),
        )
    ]
    assert all(maps.Landmarks not in kind for kind in kinds)


def test_mechanisms_whose_bias_stays_are_measured_and_never_recommended():
    X = sphere(60, 16, 0.7, 3)
    biased = {spec for spec in applicable(kernels.Softmax(), X, 32) if not spec.projection.consistent}
    assert "GaussHermite" in {type(spec.projection).__name__ for spec in biased}
    ranking = bochner.recommend(X, kernel=kernels.Softmax(), n_features=32, rng=0).ranking
    assert not biased & {candidate.spec for candidate in ranking}


def test_positive_and_symmetric_features_alone():
    positive = bochner.recommend(X, kernel=kernels.Gaussian(), n_features=32, positive=True, rng=0)
    assert all(c.positive for c in positive.ranking)
    assert positive.best.fit(X, rng=0).queries(X).min() > 0
    symmetric = bochner.recommend(X, kernel=kernels.Gaussian(), n_features=32, symmetric=True, rng=0)
    assert all(c.symmetric for c in symmetric.ranking) and len(symmetric.ranking) > len(positive.ranking)
    with pytest.raises(ValueError, match=r"Matern\(.*\) has no positive features; leave positive=True out"):
        bochner.recommend(X, kernel=kernels.Matern(1.5), n_features=32, positive=True)


def test_tolerance_chooses_the_number_of_features():
    advice = bochner.recommend(X, kernel=kernels.Matern(1.5), tolerance=0.2, rng=0)
    best = advice.ranking[0]
    assert best.bound <= 1.02 * 0.2 and best.n_features == min(c.n_features for c in advice.ranking)
    (error,) = true_errors([advice.best], X, X, 100, seed=4)
    assert 0.14 < error < 0.214  # reached, and not by twice the features; 100 draws have a standard error of 2 %
    finer = bochner.recommend(X, kernel=kernels.Matern(1.5), tolerance=0.08, rng=0)
    assert finer.ranking[0].n_features > 2.5 * best.n_features  # no error falls faster than 1/m


def test_a_tolerance_out_of_reach_is_said():
    with pytest.warns(UserWarning, match=r"no mechanism reaches the tolerance 0.001 with \d+ features"):
        advice = bochner.recommend(X, kernel=kernels.Matern(1.5), n_features=64, tolerance=0.001, rng=0)
    assert advice.warnings and advice.ranking[0].error > 0.001 and "Warning: no mechanism" in str(advice)


def test_a_tolerance_near_zero_is_out_of_reach():
    with pytest.warns(UserWarning, match="no mechanism reaches the tolerance 1e-300"):
        bochner.recommend(X, kernel=kernels.Laplacian(), n_features=256, tolerance=1e-300, rng=0)


def test_long_vectors_under_softmax_are_said():
    message = r"\|x\|\^2 averages 180.*softmax features cannot estimate this kernel; normalise or lower the scale"
    with pytest.warns(UserWarning, match=message):
        bochner.recommend(sphere(30, 8, np.sqrt(180), 0), kernel=kernels.Softmax(), n_features=64, rng=0)


def test_a_nearly_diagonal_matrix_is_said():
    with pytest.warns(UserWarning, match=r"the Gram matrix is nearly diagonal; standardise the columns or lengthen"):
        bochner.recommend(cloud(30, 6, 12.0, 0), kernel=kernels.Matern(2.5), n_features=32, tolerance=0.01, rng=0)


CLASSES = [vars(kernels)[name] for name in kernels.__all__ if isinstance(vars(kernels)[name], type)]
STRETCHED = [name for cls in CLASSES for name, kernel in cls.variants().items() if kernel.has_bandwidth]


@pytest.mark.parametrize("name", [None, *STRETCHED])
@pytest.mark.swept(3)
def test_recommend_speaks_of_the_kernel_that_the_estimator_fits(name, monkeypatch):
    from bochner.learn import KernelRidge

    monkeypatch.setattr(_recommend, "planned", lambda *given: islice(planned(*given), 2))  # the kernel is that of all
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        advice = bochner.recommend(X, kernel=name, n_features=16, rng=0)
    fitted = KernelRidge(name or "gaussian", gamma=None, map=None, n_components=16, alpha=1.0, random_state=0).fit(
        X, X[:, 0]
    )
    assert advice.best.kernel == fitted.kernel_


def test_recommend_and_the_estimators_agree_on_kernels_without_a_bandwidth():
    advice = bochner.recommend(X, kernel="arc-cosine-1", n_features=16, rng=0)
    assert advice.best.kernel == kernels.ArcCosine(1)


def test_plot_draws_a_curve_for_each_mechanism(advice):
    ax = advice.plot(n_features=[16, 32], top=3)
    assert len(ax.get_lines()) == 3 and ax.get_xlabel() == "features"
    points = advice.curves([16, 64], top=1)[advice.ranking[0].label]
    assert points[0][1] > points[1][1]


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match=r"X must be a matrix of at least two points as rows, got shape \(1, 4\)"):
        bochner.recommend(X[:1])
    with pytest.raises(ValueError, match="Y must have X's columns"):
        bochner.recommend(X, X[:, :2])
    with pytest.raises(ValueError, match="unknown kernel 'gauss'"):
        bochner.recommend(X, kernel="gauss")
    with pytest.raises(TypeError, match="kernel must be a kernel such as"):
        bochner.recommend(X, kernel=3)
    with pytest.raises(ValueError, match="n_features must be an integer of at least 1"):
        bochner.recommend(X, n_features=0)
    with pytest.raises(ValueError, match="tolerance must be a positive number"):
        bochner.recommend(X, tolerance=-1.0)
    with pytest.raises(ValueError, match="overflows float64 on these data; normalise the rows or lower the scale"):
        bochner.recommend(100 * X, kernel=kernels.Softmax(), rng=0)
    with pytest.raises(ValueError, match="n_features=1 is too few for any mechanism"):
        bochner.recommend(X, kernel=kernels.Matern(1.5), n_features=1)


@pytest.mark.parametrize("d", [3, 1100])
def test_every_applicable_mechanism_fits_in_the_width(d):
    X = np.ones((20, d)) + cloud(20, d, 1.0, 0)
    specs = list(applicable(kernels.Gaussian(), X, 40))
    assert len(specs) == len(set(specs)) > 20
    for spec in (
        specs if d < 1000 else {type(spec.map): spec for spec in specs}.values()
    ):  # plans of long rows take long
        assert spec.plan(X, rng=0).n_features_out <= 40


def test_quadrature_takes_whole_rules_where_one_fits():
    spec = Approximation(kernels.Gaussian(), projection=bochner.projections.Quadrature())
    assert rows_within(spec, 100, 5) % 6 == 0 and 0 < rows_within(spec, 40, 50) < 51
