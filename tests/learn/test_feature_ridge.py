"""Ridge on given features: the solution and the choice of scikit-learn, in parts, for sparse rows and float32."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import RidgeClassifierCV, RidgeCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from bochner import Approximation, kernels
from bochner.learn import FeatureRidge, FeatureRidgeClassifier
from bochner.learn._linear.moments import Moments

rng = np.random.default_rng(0)
TALL = rng.standard_normal((600, 40)) * 2 + 5
WIDE = rng.standard_normal((90, 200)) @ np.diag(np.linspace(2, 0.1, 200))
for array in (TALL, WIDE):
    array.flags.writeable = False


def targets(X, t=1, noise=1.0):
    B = np.random.default_rng(1).standard_normal((X.shape[1], t)) / np.sqrt(X.shape[1])
    Y = X @ B + noise * np.random.default_rng(2).standard_normal((len(X), t))
    return Y[:, 0] if t == 1 else Y


@parametrize_with_checks(
    [
        FeatureRidge(),
        FeatureRidge(alpha=1.0),
        FeatureRidge(solver="cg"),
        FeatureRidgeClassifier(),
        FeatureRidgeClassifier(alpha=1.0),
    ]
)
@pytest.mark.filterwarnings("ignore:.* did not converge")
@pytest.mark.swept(4)
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("X", [TALL, WIDE], ids=["more rows", "fewer rows"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_solution_and_choice_are_those_of_ridge_cv(X, intercept, weighted):
    """All rows are judged here, by their squared errors; half decades are coarse enough for the same choice."""
    y, weights = targets(X), np.random.default_rng(3).integers(1, 4, len(X)) if weighted else None
    ours = FeatureRidge(fit_intercept=intercept).fit(X, y, sample_weight=weights)
    theirs = RidgeCV(alphas=ours.alpha_ * np.sqrt(10) ** np.arange(-4, 5), fit_intercept=intercept)
    theirs.fit(X, y, sample_weight=weights)
    assert ours.alpha_ / theirs.alpha_ <= np.sqrt(10) * 1.01 and theirs.alpha_ <= ours.alpha_ * 1.01
    fixed = RidgeCV(alphas=[ours.alpha_], fit_intercept=intercept).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(ours.coef_, fixed.coef_, atol=1e-9)
    np.testing.assert_allclose(ours.intercept_, fixed.intercept_, atol=1e-8)
    np.testing.assert_allclose(ours.predict(X), fixed.predict(X), atol=1e-8)


@pytest.mark.parametrize("intercept", [True, False])
def test_left_out_rows_of_the_dual_are_those_of_fits_without_them(intercept):
    from bochner.learn._linear.leave_one_out import fitted, gaps_of_each
    from bochner.learn._linear.spectrum import RowEquations

    y, weights = targets(WIDE, 2), np.random.default_rng(3).uniform(0.5, 2, len(WIDE))
    equations, _ = fitted(WIDE, y, weights, intercept=intercept)
    assert isinstance(equations, RowEquations)
    gaps = gaps_of_each(equations, weights, 3.0)
    for i in (0, 7):
        rest = np.arange(len(WIDE)) != i
        model = FeatureRidge(alpha=3.0, fit_intercept=intercept).fit(WIDE[rest], y[rest], sample_weight=weights[rest])
        np.testing.assert_allclose(gaps[i], y[i] - model.predict(WIDE[i : i + 1])[0], atol=1e-8)


def test_alphas_are_the_only_ones_to_choose_among():
    y = targets(TALL)
    assert FeatureRidge([1.0, 30.0, 1000.0, 1e5]).fit(TALL, y).alpha_ in (30.0, 1000.0)
    with pytest.warns(UserWarning, match=r"^FeatureRidge: alpha 0\.01 is at the edge of alphas; extend them"):
        FeatureRidge([0.001, 0.01]).fit(TALL, y)


def test_classes_are_those_of_ridge_classifier_cv():
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    ours, theirs = (
        kind(np.logspace(-1, 5, 10)).fit(X[:900], y[:900]) for kind in (FeatureRidgeClassifier, RidgeClassifierCV)
    )
    assert ours.alpha_ == theirs.alpha_ and ours.best_score_ == pytest.approx(theirs.best_score_, rel=1e-9)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-9)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    assert not hasattr(ours.set_params(alpha=1.0).fit(X[:900], y[:900]), "best_score_")


def test_leverages_of_some_rows_tell_the_error_of_all():
    """Half of the rows are judged here: their own mean would be off by several percent, whose difference decides."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1800, 200))
    y = X @ rng.standard_normal(200) + 40 * rng.standard_normal(1800)
    ours, theirs = (kind(np.logspace(2, 5, 7)).fit(X, y) for kind in (FeatureRidge, RidgeCV))
    assert ours.alpha_ == theirs.alpha_ and ours.best_score_ == pytest.approx(theirs.best_score_, rel=1e-3)


def test_probabilities_agree_with_classes():
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    ours = FeatureRidgeClassifier().fit(X[:900], y[:900])
    P = ours.predict_proba(X[900:])
    np.testing.assert_allclose(P.sum(axis=1), 1)
    assert (P.argmax(axis=1) == ours.predict(X[900:])).mean() > 0.999


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_parts_are_one_fit(dtype):
    X, Y = TALL.astype(dtype), targets(TALL, 2)
    whole = FeatureRidge(alpha=10.0).fit(X, Y)
    parts = FeatureRidge(alpha=10.0)
    for i in range(0, 600, 170):
        parts.partial_fit(X[i : i + 170], Y[i : i + 170])
    rtol = 1e-9 if dtype == np.float64 else 1e-4
    np.testing.assert_allclose(parts.coef_, whole.coef_, rtol=rtol, atol=rtol)
    np.testing.assert_allclose(parts.statistics_.upper.diagonal(), whole.statistics_.upper.diagonal(), rtol=rtol)
    assert whole.predict(X).dtype == dtype


def test_a_stream_chooses_alpha_on_its_first_rows():
    y = targets(TALL)
    stream = FeatureRidge().partial_fit(TALL[:300], y[:300]).partial_fit(TALL[300:], y[300:])
    whole = FeatureRidge(alpha=stream.alpha_).fit(TALL, y)
    np.testing.assert_allclose(stream.coef_, whole.coef_, atol=1e-9)
    assert "300 rows, in a fit to them alone" in stream.selection_.reason
    classes = FeatureRidgeClassifier().partial_fit(TALL[:300], y[:300] > 5, classes=[False, True])
    assert classes.partial_fit(TALL[300:], y[300:] > 5).coef_.shape == (1, 40)


def test_sparse_rows_are_dense_rows():
    X = np.where(np.random.default_rng(5).random(TALL.shape) < 0.2, TALL, 0)
    y = targets(X)
    for solver in ("auto", "cg"):
        dense = FeatureRidge(alpha=3.0, solver=solver).fit(X, y)
        thin = FeatureRidge(alpha=3.0, solver=solver).fit(sparse.csr_array(X), y)
        np.testing.assert_allclose(thin.coef_, dense.coef_, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(thin.predict(sparse.csr_array(X)), dense.predict(X), rtol=1e-4, atol=1e-4)


def test_products_of_float32_are_taken_where_regularisation_is_far_above_their_rounding():
    y = targets(TALL)
    noisy, clean = FeatureRidge(alpha=10.0), FeatureRidge(alpha=1e-4)
    assert not noisy.fit(TALL.astype(np.float32), y).model_.options.exact
    assert clean.fit(TALL.astype(np.float32), y).model_.options.exact
    assert noisy.fit(TALL, y).model_.options.exact


def test_the_rounding_of_products_is_below_its_estimate():
    from bochner.learn._feature_ridge import _blur
    from bochner.learn._row_source import ArrayRows

    low_rank = rng.standard_normal((3000, 5)) @ rng.standard_normal((5, 300))
    for X in (rng.standard_normal((3000, 300)), low_rank, rng.beta(2, 5, (3000, 300))):
        X32, y = X.astype(np.float32), np.zeros((3000, 1))
        parts = [(X32[i : i + 500], y[i : i + 500], None) for i in range(0, 3000, 500)]
        rough, exact = (Moments.collect(parts, 300, 1, exact=e).scatter for e in (False, True))
        rows = ArrayRows("test", X32, y)
        assert np.linalg.norm(rough - exact, 2) < _blur(rows.sample_weighted(2048, rng), rows)


def test_left_out_errors_of_float32_factors_are_those_of_float64():
    from bochner.learn._linear.leave_one_out import _SINGLE, gaps_of_one
    from bochner.learn._linear.spectrum import NormalEquations

    X, Y = TALL - TALL.mean(axis=0), targets(TALL, 2)
    Y = Y - Y.mean(axis=0)
    equations = NormalEquations.of(Moments.of(X, Y, None), about_mean=True)
    for alpha in (2 * _SINGLE * equations.trace, 100.0):
        exact, found = (gaps_of_one(equations, X, Y, None, alpha, single=single) for single in (False, True))
        assert 0 < np.abs(found - exact).max() < 1e-4 * np.abs(exact).max()
    small = 0.5 * _SINGLE * equations.trace
    np.testing.assert_array_equal(*(gaps_of_one(equations, X, Y, None, small, single=s) for s in (False, True)))


def test_few_values_of_alpha_are_tried(monkeypatch):
    """The search begins within a decade of its end, also where all features of a few rows would mislead it."""
    from bochner.learn._linear import leave_one_out

    tried, own = [], leave_one_out.fit_of_one
    monkeypatch.setattr(leave_one_out, "fit_of_one", lambda *a, **k: tried.append(a[3]) or own(*a, **k))
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2500, 1500)).astype(np.float32)
    y = X @ rng.standard_normal(1500) + 60 * rng.standard_normal(2500)
    model = FeatureRidge().fit(X, y)
    assert 3 <= len(tried) <= 5 and model.alpha_ in tried


def test_a_fit_holds_no_view_of_the_rows():
    """Rows fewer than features are kept; those of the user may change afterwards."""
    X, y = WIDE.copy(), targets(WIDE)
    model = FeatureRidge(alpha=1.0).fit(X, y)
    before = model.statistics_.upper.copy()
    X[:] = 0
    np.testing.assert_array_equal(model.statistics_.upper, before)


def test_intervals_pickles_and_compact():
    y = targets(TALL)
    model = FeatureRidge().fit(TALL[:400], y[:400])
    _, bounds = model.predict(TALL[400:], interval=0.9)
    inside = (bounds[:, 0] <= y[400:]) & (y[400:] <= bounds[:, 1])
    assert abs(inside.mean() - 0.9) < 5 * np.sqrt(0.9 * 0.1 * (1 / 200 + 1 / 400))
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(TALL), model.predict(TALL))
    np.testing.assert_array_equal(again.compact().predict(TALL), model.predict(TALL))
    with pytest.raises(ValueError, match=r"^FeatureRidge: a fit by conjugate gradients keeps no statistics"):
        again.partial_fit(TALL, y)


def test_refusals():
    y = targets(TALL)
    with pytest.raises(TypeError, match=r"^FeatureRidge\.from_spec: rows are the features"):
        FeatureRidge.from_spec(Approximation(kernels.Gaussian(), n_projections=8))
    with pytest.raises(ValueError, match=r"^FeatureRidgeClassifier: y has one class, .*True_?, and needs at least two"):
        FeatureRidgeClassifier().fit(TALL, y > -1e9)
    with pytest.raises(ValueError, match=r"^FeatureRidge: alpha must be 'auto', a number"):
        FeatureRidge(alpha="best").fit(TALL, y)
    with pytest.raises(ValueError, match=r"^FeatureRidgeClassifier: class_weight must be 'balanced', a dict or None"):
        FeatureRidgeClassifier(class_weight="heavy").fit(TALL, y > 5)


@pytest.mark.parametrize("size", [1e160, 1e300])
@pytest.mark.parametrize("estimator", [FeatureRidge(), FeatureRidgeClassifier()], ids=lambda e: type(e).__name__)
def test_features_whose_squares_overflow_are_refused(estimator, size):
    y = TALL[:, 0] > 5 if isinstance(estimator, FeatureRidgeClassifier) else TALL[:, 0]
    X = TALL.copy()
    X[7] *= size  # one row is enough
    with (
        np.errstate(over="ignore", invalid="ignore"),
        pytest.raises(ValueError, match="squares of the features overflow"),
    ):
        estimator.fit(X, y)
