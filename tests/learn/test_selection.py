"""The automatic mode: an honest criterion, what it chooses on data of known kind, and what it leaves alone."""

from __future__ import annotations

import logging
import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import Ridge

from bochner import kernels, maps
from bochner.learn import GaussianProcess, KernelClassifier, KernelRidge, _selection_search
from bochner.learn._feature_parameters import FeatureParameters
from bochner.learn._linear.criteria import left_out_of_chunks, new_rows
from bochner.learn._row_source import Chunk
from bochner.learn._selection_criterion import best_of_many, fitted, score_of, units_of
from bochner.learn._selection_search import Freedom, weighted_median_distance
from bochner.learn._strength_search import refined_alpha

RNG = np.random.default_rng(0)
NARROW = {"n_components": 64, "map": None, "gamma": 0.1, "random_state": 0}


def heavy(n, d=6, t=1):
    """Rows and targets with tails so heavy that a few rows decide their own fit."""
    rng = np.random.default_rng(1)
    X = rng.standard_t(1.5, (n, d))
    return X, np.tanh(X[:, :1]) + 0.1 * rng.standard_t(2.5, (n, t))


def brute(F, Y, alpha, weights, *, intercept, whole):
    """Errors of rows that are left out one after another."""
    w = np.ones(len(F)) if weights is None else weights
    gaps = np.empty(Y.shape)
    for i in range(len(F)):
        kept = w.copy()
        kept[i] -= w[i] if whole else min(w[i], 1)
        fit = Ridge(alpha, fit_intercept=intercept, tol=1e-12).fit(F, Y, kept)
        gaps[i] = Y[i] - fit.predict(F[i : i + 1])[0]
    return gaps


@pytest.mark.parametrize("whole", (False, True))
@pytest.mark.parametrize("weighted", (False, True))
@pytest.mark.parametrize("intercept", (False, True))
@pytest.mark.parametrize("width", (10, 60))
def test_the_criterion_is_leaving_out_each_row_with_outliers(width, intercept, weighted, whole):
    X, Y = heavy(40, t=2)
    F = maps_of(X, width)
    w = RNG.integers(1, 4, 40).astype(float) if weighted else None
    equations, judged = fitted(F, Y, w, np.ones(2), intercept=intercept, whole=whole, classes=False)
    for alpha in (1e-3, 0.1, 10.0):
        gaps = brute(F, Y, alpha, w, intercept=intercept, whole=whole)
        expected = np.average((gaps**2).mean(axis=1), weights=w)
        assert best_of_many(equations, judged, np.array([alpha]))[0].error == pytest.approx(expected, rel=1e-6)
        if width == 10:
            assert score_of(equations, judged, alpha).error == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("width", (10, 60))
def test_the_criterion_of_float32_features_is_leaving_out_each_row(width):
    X, Y = heavy(40)
    Y[3] = 1e5  # beside the heavy tails, a target that is another thing altogether
    F, Y = maps_of(X, width).astype(np.float32), Y.astype(np.float32)
    equations, judged = fitted(F, Y, None, np.ones(1), intercept=False, whole=True, classes=False)
    for alpha in (1e-3, 10.0):
        gaps = brute(F.astype(float), Y.astype(float), alpha, None, intercept=False, whole=True)
        assert best_of_many(equations, judged, np.array([alpha]))[0].error == pytest.approx((gaps**2).mean(), rel=1e-6)


@pytest.mark.parametrize("intercept", (False, True))
@pytest.mark.parametrize("n_classes", (2, 3))
def test_classes_are_judged_by_the_wrong_ones_that_were_left_out(n_classes, intercept):
    X, Y = heavy(60)
    labels = np.searchsorted(np.quantile(Y, np.linspace(0, 1, n_classes + 1)[1:-1]), Y[:, 0])
    signs = 2.0 * (labels[:, None] == np.arange(n_classes)) - 1
    signs = signs[:, 1:] if n_classes == 2 else signs
    F = maps_of(X, 10)
    equations, judged = fitted(F, signs, None, np.ones(signs.shape[1]), intercept=intercept, whole=True, classes=True)
    gaps = brute(F, signs, 0.1, None, intercept=intercept, whole=True)
    found = signs - gaps
    decided = found[:, 0] > 0 if n_classes == 2 else found.argmax(axis=1)
    expected = np.mean(decided != labels) + 0.1 * (gaps**2).mean()
    assert 0 < np.mean(decided != labels) < 1
    assert score_of(equations, judged, 0.1).error == pytest.approx(expected, rel=1e-6)
    assert best_of_many(equations, judged, np.array([0.1]))[0].error == pytest.approx(expected, rel=1e-6)


def maps_of(X, width):
    from bochner.learn import RandomFeatures

    return RandomFeatures(gamma=0.1, n_components=width, random_state=0).fit_transform(X)


def test_errors_are_in_units_of_the_variance():
    X, Y = heavy(200, t=2)
    Y = np.column_stack([1e3 * Y[:, 0], Y[:, 1]])
    units = units_of(Y, None, alike=False)
    equations, judged = fitted(maps_of(X, 8), Y, None, units, intercept=True, whole=False, classes=False)
    assert best_of_many(equations, judged, np.array([1e12]))[0].error == pytest.approx(1, rel=0.02)
    np.testing.assert_allclose(units_of(Y, None, alike=True), np.sqrt(Y.var(axis=0).mean()))


def test_outliers_deceive_gcv_and_not_the_automatic_strength():
    X, Y = heavy(700)
    given = {"gamma": 0.02, "map": None, "n_components": 300, "random_state": 0}
    errors = {
        alpha: np.mean((KernelRidge(**given, alpha=alpha).fit(X[:500], Y[:500]).predict(X[500:]) - Y[500:]) ** 2)
        for alpha in ("auto", "gcv")
    }
    best = min(
        np.mean((KernelRidge(**given, alpha=a).fit(X[:500], Y[:500]).predict(X[500:]) - Y[500:]) ** 2)
        for a in np.logspace(-6, 3, 10)
    )
    assert errors["auto"] < 1.1 * best


@pytest.fixture(scope="module")
def chosen():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1500, 4)) * [1.0, 1.0, 300.0, 1.0]
    y = np.sin(3 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(1500)
    return X, y, KernelRidge(n_components=200, random_state=0).fit(X, y)


def test_everything_is_chosen_and_said(chosen):
    X, y, model = chosen
    found = model.selection_
    assert model.score(X, y) > 0.9 and found.standardize and model.coordinates_ is not None
    assert model.kernel_.lengthscale == found.bandwidth and model.alpha_ == found.alpha
    assert {"random features", "landmarks"} == set(found.candidates["map"])
    assert {True, False} == set(found.candidates["standardize"])
    errors = np.array(found.candidates["error"])
    assert errors.min() > 0 and len(errors) < 25
    for word in (
        "by leave-one-out error on 1500 of 1500 rows",
        "spectrum is",
        "median distance",
        "columns standardised",
    ):
        assert word in found.reason
    assert found.reason in repr(found) and "standard_error" in repr(found)


def test_the_choice_goes_to_the_log_and_into_pickles(chosen, caplog):
    X, y, model = chosen
    with caplog.at_level(logging.INFO, logger="bochner"):
        KernelRidge(random_state=0, n_components=16).fit(X[:50], y[:50])
    assert "KernelRidge: " in caplog.text and "candidates" in caplog.text
    copied = pickle.loads(pickle.dumps(model))
    assert copied.selection_ == model.selection_
    np.testing.assert_array_equal(copied.predict(X), model.predict(X))


def test_float32_chooses_as_float64(chosen):
    X, y, model = chosen
    single = KernelRidge(n_components=200, random_state=0).fit(X.astype(np.float32), y.astype(np.float32))
    ours, theirs = single.selection_, model.selection_
    assert (ours.map, ours.standardize) == (theirs.map, theirs.standardize)
    assert ours.bandwidth == pytest.approx(theirs.bandwidth, rel=1e-4)
    assert ours.alpha == pytest.approx(theirs.alpha)


def test_what_is_given_stays(chosen):
    X, y, _ = chosen
    model = KernelRidge(gamma=0.3, standardize=True, map=maps.Trigonometric(), alpha=0.5, n_components=20).fit(X, y)
    assert model.selection_ is None and model.alpha_ == 0.5 and model.kernel_ == kernels.Gaussian(1 / np.sqrt(0.6))
    alpha = KernelRidge(gamma=0.3, map=None, n_components=20, alphas=[0.03, 0.3, 3.0, 3e4]).fit(X, y)
    assert alpha.alpha_ in (0.03, 0.3, 3.0) and alpha.coordinates_ is None and alpha.selection_.map == "given"
    assert "alpha" in repr(alpha.selection_)
    rows = KernelRidge(projection="simplex", alpha=1.0, n_components=20).fit(X, y)
    assert rows.selection_.map == "random features" and rows.alpha_ == 1.0
    assert set(rows.selection_.candidates["alpha"]) == {1.0}
    kernel = KernelRidge(kernels.Matern(1.5, 2.0), n_components=20).fit(X, y)
    assert kernel.kernel_ == kernels.Matern(1.5, 2.0) and not kernel.selection_.standardize
    assert KernelRidge(kernels.Linear(), n_components=20).fit(X, y).selection_.bandwidth is None


def test_columns_as_they_are_win_where_their_size_is_their_weight():
    X = RNG.standard_normal((300, 12)) * ([1.0] * 2 + [0.02] * 10)
    y = np.sin(2 * X[:, 0]) * X[:, 1]
    assert not KernelRidge(random_state=0).fit(X, y).selection_.standardize


def test_landmarks_for_steep_spectra_and_random_features_in_first_parts(chosen):
    X, y, _ = chosen
    Z = np.repeat(RNG.standard_normal((30, 3)), 40, axis=0) + 0.01 * RNG.standard_normal((1200, 3))
    steep = KernelRidge(gamma=0.5, alpha=1e-3, n_components=100, random_state=0).fit(Z, np.sin(4 * Z[:, 0]))
    assert steep.selection_.map == "landmarks" and "spectrum is steep" in steep.selection_.reason
    stream = KernelRidge(n_components=64, random_state=0).partial_fit(X[:100], y[:100])
    before = stream.selection_
    assert before.map == "random features"
    stream.partial_fit(X[100:], y[100:])
    assert stream.selection_ is before and stream.alpha_ == before.alpha
    assert stream.score(X, y) > 0.5


def test_more_rows_have_a_second_round(chosen, monkeypatch):
    X, y, _ = chosen
    monkeypatch.setattr(_selection_search, "FIRST_ROWS", 500)
    found = KernelRidge(n_components=100, random_state=0).fit(X, y).selection_
    assert set(found.candidates["n_rows"]) == {500, 1500}
    X = X / X.std(axis=0) * [1.0, 1.0, 1.0, 1.6]  # nearly the same, standardised or not: judged by more rows again
    found = KernelRidge(n_components=100, random_state=0).fit(X, y).selection_
    tried = zip(found.candidates["standardize"], found.candidates["n_rows"], strict=True)
    assert {standardize for standardize, n in tried if n == 1500} == {True, False}


def test_sparse_rows_and_classes(chosen):
    X, y, _ = chosen
    Z = sparse.csr_matrix(X * (np.abs(X) > 0.5 * np.abs(X).mean(axis=0)))
    model = KernelClassifier(n_components=64, random_state=0, class_weight="balanced").fit(Z[:400], y[:400] > 0)
    assert model.score(Z[:400], y[:400] > 0) > 0.8
    assert model.coordinates_ is None or model.coordinates_.centre is None


def test_the_edge_of_the_search_warns(monkeypatch):
    X = RNG.standard_normal((200, 3))
    monkeypatch.setattr(_selection_search, "_MOST_STEPS", 1)
    with pytest.warns(UserWarning, match=r"KernelRidge: the bandwidth .* is at the edge of the grid"):
        KernelRidge(random_state=0).fit(X[:, :1], np.sin(8 * X[:, 0]) + 0.1 * X[:, 1])
    monkeypatch.undo()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        KernelRidge(random_state=0).fit(X, np.sin(X[:, 0]))
        KernelRidge(alphas=[1e-6, 1e-3, 1, 1e3], **NARROW).fit(
            X, np.sin(X[:, 0]) + X[:, 1] ** 2 + RNG.standard_normal(200)
        )
    for alphas, fit in (([0.1, 1e-2], "fit"), ([10.0, 100.0], "partial_fit")):
        with pytest.warns(UserWarning, match=r"KernelRidge: alpha .* is at the edge of alphas; extend them"):
            getattr(KernelRidge(alphas=alphas, **NARROW), fit)(X, np.sin(2 * X[:, 0]))


@pytest.mark.parametrize("trend", (0.0, 2.0))
def test_rapid_changes_are_found(trend):
    x = np.random.default_rng(5).uniform(-1, 1, (500, 1))
    y = trend * x[:, 0] + np.sin(80 * x[:, 0])
    model = KernelRidge(random_state=0).fit(x[:400], y[:400])
    assert model.score(x[400:], y[400:]) > 0.95


def test_weights_are_repetitions_for_the_median_too():
    X, w = RNG.standard_normal((30, 2)), RNG.integers(1, 4, 30)
    repeated = np.repeat(X, w, axis=0)
    expected = weighted_median_distance(repeated, None, "cityblock")
    assert weighted_median_distance(X, w.astype(float), "cityblock") == pytest.approx(expected)
    assert weighted_median_distance(np.ones((3, 2)), None, "euclidean") == 1.0


@pytest.mark.parametrize("alpha", ("auto", "loo", "gcv"))
def test_weights_that_are_no_counts_mean_the_same_at_any_scale(alpha):
    X = np.random.default_rng(2).standard_normal((150, 3))
    w = np.random.default_rng(3).uniform(0.5, 2, 150)
    y = np.sin(2 * X[:, 0]) + np.random.default_rng(4).standard_normal(150) / np.sqrt(w)
    options = {"n_components": 64, "random_state": 0, "map": None, "alpha": alpha}
    small, large = (KernelRidge(**options).fit(X, y, c * w) for c in (0.1, 100 * np.sqrt(10)))
    assert large.alpha_ / small.alpha_ == pytest.approx(1000 * np.sqrt(10))
    np.testing.assert_allclose(small.predict(X), large.predict(X), rtol=1e-5, atol=1e-7)


def test_where_outliers_are_landmarks_the_other_rows_do_not_lower_the_strength():
    X = np.random.default_rng(6).standard_normal((300, 2))
    model = KernelRidge(map="landmarks", gamma=0.1, alpha=1.0, n_components=32, random_state=0).fit(X, np.sin(X[:, 0]))
    freedom = Freedom("", FeatureParameters(), False, ("given",), {False: None}, None, True, False, False, False)
    rows = Chunk(X, np.sin(X[:, :1]), None)
    free, bounded = (
        refined_alpha(model.model_, model.features_, rows, 1.0, freedom, at_least_start=b) for b in (False, True)
    )
    assert free.alpha < 0.9 <= bounded.alpha


def test_whole_numbers_that_are_hardly_counts_warn():
    X = RNG.standard_normal((60, 2))
    with pytest.warns(UserWarning, match=r"whole numbers of at least 3, .* divide them by their mean"):
        KernelRidge(n_components=16, random_state=0).fit(X, X[:, 0], RNG.integers(3, 9, 60))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        KernelRidge(n_components=16, random_state=0).fit(X, X[:, 0], np.arange(60))


def test_rows_of_weight_zero_are_absent():
    X, y = RNG.standard_normal((120, 3)), RNG.standard_normal(120)
    X[60:], y[60:] = 1e6, -1e6
    fits = []
    for rows, weights in ((slice(60), None), (slice(None), np.repeat([1.0, 0.0], 60))):
        fits.append(KernelRidge(n_components=80, random_state=0).fit(X[rows], y[rows], weights))
        fits.append(GaussianProcess(n_components=40, map="landmarks", random_state=0).fit(X[rows], y[rows], weights))
    for absent, without in zip(fits[:2], fits[2:], strict=True):
        np.testing.assert_allclose(absent.predict(X[:60]), without.predict(X[:60]), rtol=1e-6, atol=1e-9)


def test_a_single_row_is_a_fit():
    assert KernelRidge().fit(np.ones((1, 2)), [3.0]).predict(np.ones((1, 2))) == pytest.approx([3.0])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_that_are_landmarks_do_not_judge(dtype):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 3)).astype(dtype)
    phi = KernelRidge(map="landmarks", n_components=100, alpha=1.0, gamma=0.3, random_state=0).fit(X, X[:, 0])
    moved = phi._moved_features()
    at_points = moved.features.at_points(moved.at_unit_scale(X))
    residuals = 1 - (phi.features_.queries(X.astype(np.float64)) ** 2).sum(axis=1)
    assert at_points.sum() == 100 and residuals[at_points].max() < 1e-5
    np.testing.assert_array_equal(moved.features.at_points(moved.at_unit_scale(sparse.csr_array(X))), at_points)
    _, judged = fitted(X, X, None, np.ones(3), intercept=True, whole=False, classes=False)
    assert len(judged.new_to(phi.features_, X).targets) == 200
    np.testing.assert_array_equal(judged.new_to(phi.features_, X).features, judged.features[~at_points])
    most = np.flatnonzero(np.cumsum(~at_points) <= 60)  # too few others: all of them judge
    known = judged.taken(most)
    assert known.new_to(phi.features_, X[most]) is known


def test_errors_of_landmarks_are_not_those_of_new_rows():
    """Nothing holds the coefficient of a landmark that is left out; other rows have the error of new ones."""
    rng = np.random.default_rng(1)
    X, test = rng.standard_normal((2, 1200, 8))
    y, expected = (np.sin(Z[:, 0]) + 0.3 * rng.standard_normal(len(Z)) for Z in (X, test))
    model = KernelRidge(map="landmarks", n_components=400, gamma=0.3, alpha=1e-6, random_state=0).fit(X, y)
    phi = model.features_
    equations, judged = fitted(phi.queries(X), y[:, None], None, np.ones(1), intercept=True, whole=False, classes=False)
    new, every = (score_of(equations, rows, 1e-6).error for rows in (judged.new_to(phi, X), judged))
    truth = np.mean((model.predict(test) - expected) ** 2)
    assert every > 2 * truth and abs(new / truth - 1) < 0.2
    alphas = np.array([1e-6])
    sums = left_out_of_chunks(
        iter([Chunk(X[:700], y[:700, None], None), Chunk(X[700:], y[700:, None], None)]),
        phi=phi, spectrum=model.model_.equations.spectrum(), alphas=alphas, means=model.model_.means,
    )  # fmt: skip
    assert sums[:, 1].tolist() == [800, 400] and new_rows(sums) / 800 == pytest.approx(new, rel=1e-4)
    sums[0, 1] = 3  # too few of them
    assert new_rows(sums) / 1200 == pytest.approx(every, rel=1e-4)


def test_candidates_are_judged_by_rows_that_are_landmarks_of_none(chosen, monkeypatch):
    tried = []
    monkeypatch.setattr(_selection_search.Search, "_selection", lambda self, best, seconds: tried.extend(self.tried))
    rng = np.random.default_rng(0)
    sample = Chunk(rng.standard_normal((500, 2)), rng.standard_normal((500, 1)), None)
    freedom = _selection_search.Freedom(
        "test", _selection_search.FeatureParameters(kernels.Gaussian(), n_components=300), True,
        ("random features", "landmarks"), {False: None}, None, True, False, False, False,
    )  # fmt: skip
    _selection_search.Search(freedom, sample, 500, 0).run()
    assert {len(trial.score.losses) for trial in tried} == {250} and {trial.width for trial in tried} == {250}
