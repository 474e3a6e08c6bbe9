"""The automatic mode: an honest criterion, what it chooses on data of known kind, and what it leaves alone."""

from __future__ import annotations

import logging
import pickle
import warnings
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import Ridge

from bochner import kernels, maps
from bochner.learn import GaussianProcess, KernelClassifier, KernelRidge, RandomFeatures, _search, _selection
from bochner.learn._chooser import refined_alpha
from bochner.learn._coordinates import RAW
from bochner.learn._linear.leave_one_out import (
    GramFit,
    Judged,
    about,
    best_of_many,
    fitted,
    gaps_of_one,
    new_to,
    of_new_rows,
    squares_of_chunks,
    units_of,
    wrong_classes,
)
from bochner.learn._row_source import Chunk, rows_in_memory

RNG = np.random.default_rng(0)
NARROW = {"n_components": 64, "map": None, "gamma": 0.1, "random_state": 0}
PLAIN = {"kernel": "gaussian", "metric": None, "random_state": 0}


def heavy(n, d=6, t=1):
    """Rows and targets with tails so heavy that a few rows decide their own fit."""
    rng = np.random.default_rng(1)
    X = rng.standard_t(1.5, (n, d))
    return X, np.tanh(X[:, :1]) + 0.1 * rng.standard_t(2.5, (n, t))


def brute(F, Y, alpha, weights, *, intercept):
    """Errors of rows that are left out one after another."""
    w = np.ones(len(F)) if weights is None else weights
    gaps = np.empty(Y.shape)
    for i in range(len(F)):
        kept = w.copy()
        kept[i] = 0
        fit = Ridge(alpha, fit_intercept=intercept, tol=1e-12).fit(F, Y, kept)
        gaps[i] = Y[i] - fit.predict(F[i : i + 1])[0]
    return gaps


def maps_of(X, width):
    return RandomFeatures(gamma=0.1, n_components=width, random_state=0).fit_transform(X)


def three_ways(F, Y, w, judged, alpha, *, intercept):
    """Scores of one alpha by a decomposition of features, by their Cholesky factor, and by their Gram matrix."""
    equations, means = fitted(F, Y, w, intercept=intercept)
    G, Z = about(means, F, Y)
    yield best_of_many(equations, G, Z, judged, np.array([alpha]))[0].error
    yield GramFit.of(F @ F.T, Y, w, intercept=intercept).score(judged, np.array([alpha])).error
    if len(F) >= F.shape[1]:
        yield judged.mean(judged.losses(gaps_of_one(equations, G, Z, w, alpha)))


@pytest.mark.parametrize("weighted", (False, True))
@pytest.mark.parametrize("intercept", (False, True))
@pytest.mark.parametrize("width", (10, 60))
def test_the_criterion_is_leaving_out_each_row_with_outliers(width, intercept, weighted):
    X, Y = heavy(40, t=2)
    F = maps_of(X, width)
    w = RNG.uniform(0.5, 4, 40) if weighted else None
    judged = Judged(Y, w, np.ones(2))
    for alpha in (1e-3, 0.1, 10.0):
        gaps = brute(F, Y, alpha, w, intercept=intercept)
        expected = np.average((gaps**2).mean(axis=1), weights=w)
        for found in three_ways(F, Y, w, judged, alpha, intercept=intercept):
            assert found == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("intercept", (False, True))
@pytest.mark.parametrize("n_classes", (2, 3))
def test_classes_are_judged_by_the_wrong_ones_that_were_left_out(n_classes, intercept):
    X, Y = heavy(60)
    labels = np.searchsorted(np.quantile(Y, np.linspace(0, 1, n_classes + 1)[1:-1]), Y[:, 0])
    signs = 2.0 * (labels[:, None] == np.arange(n_classes)) - 1
    signs = signs[:, 1:] if n_classes == 2 else signs
    F = maps_of(X, 10)
    gaps = brute(F, signs, 0.1, None, intercept=intercept)
    found = signs - gaps
    decided = found[:, 0] > 0 if n_classes == 2 else found.argmax(axis=1)
    expected = np.mean(decided != labels) + 0.1 * (gaps**2).mean()
    assert 0 < np.mean(decided != labels) < 1
    judged = Judged(signs, None, np.ones(signs.shape[1]), classes=True)
    for error in three_ways(F, signs, None, judged, 0.1, intercept=intercept):
        assert error == pytest.approx(expected, rel=1e-6)


def test_merged_classes_count_by_the_share_of_wrong_ones():
    assert wrong_classes(np.array([[0.5]]), np.array([[1.0]])).tolist() == [0.25]
    three = np.array([[0.0, 0.0, -1.0]])  # one of the first class, one of the second
    assert wrong_classes(three, np.array([[0.3, 0.1, 0.0]])).tolist() == [0.5]
    assert wrong_classes(three, np.array([[0.0, 0.1, 0.2]])).tolist() == [1.0]


def test_errors_are_in_units_of_the_variance():
    X, Y = heavy(200, t=2)
    Y = np.column_stack([1e3 * Y[:, 0], Y[:, 1]])
    fit = GramFit.of(kernels.Gaussian()(X), Y, None, intercept=True)
    assert fit.score(Judged.of(Y, None, classes=False), np.array([1e12])).error == pytest.approx(1, rel=0.02)
    np.testing.assert_allclose(units_of(Y, None, alike=True), np.sqrt(Y.var(axis=0).mean()))


def test_predictions_of_a_gram_matrix_are_those_of_its_features():
    X, Y = heavy(50, t=2)
    F, w = maps_of(X, 80), RNG.uniform(0.5, 2, 50)
    fit = GramFit.of(F[:40] @ F[:40].T, Y[:40], w[:40], intercept=True)
    expected = Ridge(0.3).fit(F[:40], Y[:40], w[:40]).predict(F[40:])
    np.testing.assert_allclose(fit.predict(F[40:] @ F[:40].T, 0.3), expected, rtol=1e-6)
    several = fit.predict(F[40:] @ F[:40].T, np.array([0.1, 0.3]))
    np.testing.assert_allclose(several[:, 1], expected, rtol=1e-6)


def test_a_small_alpha_does_not_magnify_the_rounding_of_the_mean():
    X = RNG.standard_normal((300, 2))
    Y, K = np.sign(np.sin(3 * X[:, :1])), kernels.Gaussian(4.0)(X)  # far more null vectors than others
    fit = GramFit.of(K, Y, None, intercept=True)
    c = fit.coefficients(1e-9)
    assert np.abs(c).max() > 1e6  # as large as alpha allows
    assert abs(c.sum()) < 1e-12 * np.abs(c).sum()
    assert np.abs(fit.predict(K, 1e-9)).max() < 3


def test_outliers_deceive_gcv_and_not_the_automatic_alpha():
    X, Y = heavy(700)
    given = {"gamma": 0.02, "map": None, "n_components": 300, "random_state": 0}
    error, *others = (
        np.mean((KernelRidge(**given, alpha=a).fit(X[:500], Y[:500]).predict(X[500:]) - Y[500:]) ** 2)
        for a in ("auto", *np.logspace(-6, 3, 10))
    )
    assert error < 1.1 * min(others)


@pytest.fixture(scope="module")
def chosen():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((700, 4)) * [1.0, 1.0, 300.0, 1.0]
    y = np.sin(3 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(700)
    return X, y, KernelRidge(n_components=200, random_state=0).fit(X, y)


def test_everything_is_chosen_and_said(chosen):
    X, y, model = chosen
    found = model.selection_
    assert model.score(X, y) > 0.95 and found.columns == "standardised" and model.coordinates_ is not None
    assert repr(model.kernel_) == found.kernel and model.alpha_ == found.alpha and found.n_components == 200
    assert {"random features", "landmarks", "exact"} <= set(found.candidates["map"])
    assert {"standardised", "as they are"} == set(found.candidates["columns"])
    assert {"Gaussian", "Matern(nu=1.5)", "Laplacian"} <= set(found.candidates["kernel"])
    assert {"none", "columns", "learned"} == set(found.candidates["metric"])
    errors = np.array(found.candidates["error"])
    assert errors.min() > 0 and len(errors) < 90
    for word in ("on 700 of 700 rows", "kernel, error", "median distance", "columns standardised", "metric"):
        assert word in found.reason
    assert found.reason in repr(found) and "standard_error" in repr(found) and found.edges == ()


def test_the_choice_goes_to_the_log_and_into_pickles(chosen, caplog):
    X, y, model = chosen
    with caplog.at_level(logging.INFO, logger="bochner"):
        KernelRidge(n_components=16, **PLAIN).fit(X[:50], y[:50])
    assert "KernelRidge: " in caplog.text and "candidates" in caplog.text
    copied = pickle.loads(pickle.dumps(model))
    assert copied.selection_ == model.selection_
    np.testing.assert_array_equal(copied.predict(X), model.predict(X))


def test_a_choice_is_made_again_with_the_same_seed(chosen):
    X, y, _ = chosen
    one, other = (KernelRidge(random_state=3).fit(X[:200], y[:200]) for _ in range(2))
    np.testing.assert_array_equal(one.predict(X), other.predict(X))
    assert one.selection_.candidates == other.selection_.candidates


def test_float32_chooses_as_float64(chosen):
    X, y, _ = chosen
    ours, theirs = (
        KernelRidge(random_state=0).fit(X[:300].astype(t), y[:300].astype(t)).selection_ for t in (np.float32, float)
    )
    assert (ours.map, ours.columns, ours.metric) == (theirs.map, theirs.columns, theirs.metric)
    assert ours.kernel.partition("(")[0] == theirs.kernel.partition("(")[0]
    assert ours.error == pytest.approx(theirs.error, rel=1e-2)


def test_what_is_given_stays(chosen):
    X, y, _ = chosen
    X, y = X[:400] / [1, 1, 300, 1], y[:400]
    given = {"gamma": 0.3, "standardize": True, "map": maps.Trigonometric(), "alpha": 0.5, "n_components": 20}
    model = KernelRidge("gaussian", metric=None, **given).fit(X, y)
    assert model.selection_ is None and model.alpha_ == 0.5 and model.kernel_ == kernels.Gaussian(1 / np.sqrt(0.6))
    alpha = KernelRidge(gamma=0.3, map=None, n_components=20, alphas=[0.03, 0.3, 3.0, 3e4]).fit(X, y)
    assert alpha.alpha_ in (0.03, 0.3, 3.0) and alpha.coordinates_ is None and alpha.selection_.map == "given"
    assert "alpha" in repr(alpha.selection_) and alpha.kernel_ == kernels.Gaussian(1 / np.sqrt(0.6))
    rows = KernelRidge(projection="simplex", alpha=1.0, n_components=20).fit(X, y)
    assert rows.selection_.map == "random features" and rows.alpha_ == 1.0
    assert set(rows.selection_.candidates["alpha"]) == {1.0}
    kernel = KernelRidge(kernels.Matern(1.5, 2.0), n_components=20).fit(X, y)
    assert kernel.kernel_ == kernels.Matern(1.5, 2.0) and kernel.selection_.columns == "as they are"
    assert KernelRidge("matern-3/2").fit(X, y).kernel_.nu == 1.5
    linear = KernelRidge(kernels.Linear()).fit(X, y)
    assert linear.kernel_ == kernels.Linear() and linear.selection_.metric == "given"
    robust = KernelRidge("gaussian", metric=None, standardize="robust").fit(X, y)
    assert robust.coordinates_.limit == 5.0 and robust.selection_.columns == "clipped"


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"standardize": "no"}, r"KernelRidge: standardize must be 'auto', True, False or 'robust', got 'no'"),
        ({"metric": "best"}, r"KernelRidge: metric must be "),
        ({"n_components": 0}, r"KernelRidge: n_components must be an integer of at least 1"),
        ({"metric": "learned", "gamma": 0.1}, r"metric='learned' is learned along with the bandwidth"),
    ],
    ids=str,
)
def test_refusals(parameters, message):
    with pytest.raises(ValueError, match=message):
        KernelRidge(**parameters).fit(np.eye(6), np.arange(6.0))


def test_columns_as_they_are_win_where_their_size_is_their_weight():
    X = RNG.standard_normal((300, 12)) * ([1.0] * 2 + [0.02] * 10)
    y = np.sin(2 * X[:, 0]) * X[:, 1]
    assert KernelRidge(**PLAIN).fit(X, y).selection_.columns == "as they are"


def test_clipped_columns_survive_wild_cells():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((400, 3))
    y, test = np.sin(2 * X[:, 0]), rng.standard_normal((200, 3))
    X[::40, 0] *= 1e4
    model = KernelRidge(**PLAIN).fit(X, y)
    assert model.selection_.columns == "clipped" and model.score(test, np.sin(2 * test[:, 0])) > 0.9


def test_maps_of_many_rows_and_of_first_parts(chosen):
    X, y, _ = chosen
    Z = np.repeat(RNG.standard_normal((30, 3)), 40, axis=0) + 0.01 * RNG.standard_normal((1200, 3))
    steep = KernelRidge(gamma=0.5, alpha=1e-3, n_components=100, random_state=0).fit(Z, np.sin(4 * Z[:, 0]))
    assert "landmarks" in steep.selection_.map
    with pytest.warns(UserWarning, match=r"chosen on the 100 rows of the first call of partial_fit; begin with more"):
        stream = KernelRidge(n_components=64, **PLAIN).partial_fit(X[:100], y[:100])
    before = stream.selection_
    assert before.map == "random features"
    stream.partial_fit(X[100:], y[100:])
    assert stream.selection_ is before and stream.alpha_ == before.alpha
    assert stream.score(X, y) > 0.5


def test_the_width_grows_while_the_error_falls(monkeypatch):
    monkeypatch.setattr("bochner.learn._chooser.EXACT_ROWS", 100)
    monkeypatch.setattr(_search, "_FIRST_WIDTH", 32)
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (2000, 2))
    rough, smooth = np.sin(7 * X[:, 0]) * np.cos(7 * X[:, 1]), X[:, 0]
    widths = [
        KernelRidge(**PLAIN).fit(X, y + 0.1 * rng.standard_normal(2000)).features_.n_features_out
        for y in (rough, smooth)
    ]
    assert widths[0] > 100 and widths[1] == 32


@pytest.mark.parametrize("width", (1, 2, 3, 7))
def test_any_width_works(width):
    X = RNG.standard_normal((60, 2))
    assert KernelRidge(n_components=width, random_state=0).fit(X, X[:, 0]).features_.n_features_out == width


def test_sparse_rows_and_classes(chosen):
    X, y, _ = chosen
    Z = sparse.csr_matrix(X * (np.abs(X) > 0.5 * np.abs(X).mean(axis=0)))
    model = KernelClassifier(n_components=64, class_weight="balanced", **PLAIN).fit(Z[:400], y[:400] > 0)
    assert model.score(Z[:400], y[:400] > 0) > 0.8
    assert model.coordinates_ is None or model.coordinates_.center is None


def test_wide_sparse_rows_have_the_exact_kernel():
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(5000, 0.02), 2)
    labels = rng.integers(2, size=150)
    counts = np.array([rng.multinomial(60, 0.3 * topics[c] + 0.7 * topics.mean(axis=0)) for c in labels])
    rows = sparse.csr_array(counts / np.linalg.norm(counts, axis=1)[:, None])
    model = KernelClassifier(random_state=0).fit(rows[:100], labels[:100])
    assert model.selection_.map == "exact" and model.score(rows[100:], labels[100:]) > 0.8


@pytest.mark.parametrize("share", [0.5, 0.25, 0.1, 1 / 3], ids=str)
def test_a_constant_errs_on_half_of_balanced_classes(share):
    for n in range(60, 240, 12):  # the weighted mean of the signs is zero, or what rounding makes of it
        signs = np.where(np.arange(n) < share * n, 1.0, -1.0)
        weights = np.where(signs > 0, 0.5 / (signs > 0).sum(), 0.5 / (signs < 0).sum()) * n
        judged = Judged.of(signs[:, None], weights, classes=True)
        assert judged.mean(judged.losses_of_a_constant()) == pytest.approx(0.6)


def test_failures_and_limits_are_announced(monkeypatch):
    X = np.random.default_rng(2).standard_normal((200, 3))
    with pytest.warns(UserWarning, match=r"KernelRidge: the fit explains nothing: its leave-one-out error is"):
        KernelRidge(**PLAIN).fit(X, np.random.default_rng(3).standard_normal(200))
    with pytest.warns(UserWarning, match=r"KernelClassifier: the fit explains nothing"):
        KernelClassifier(**PLAIN).fit(X, np.random.default_rng(3).integers(2, size=200))
    for module in (_search, _selection):
        monkeypatch.setattr(module, "SHORTEST", -1)
    with pytest.warns(UserWarning, match=r"KernelRidge: the bandwidth .* is at the limit of the search"):
        KernelRidge(**PLAIN).fit(X[:, :1], np.sin(8 * X[:, 0]) + 0.1 * X[:, 1])
    monkeypatch.undo()
    with warnings.catch_warnings():  # nothing about its own choices
        warnings.simplefilter("error")
        KernelRidge(random_state=0).fit(X, np.sin(X[:, 0]))
        KernelRidge(alphas=[1e-6, 1e-3, 1, 1e3], **NARROW).fit(
            X, np.sin(X[:, 0]) + X[:, 1] ** 2 + RNG.standard_normal(200)
        )
    for alphas, fit in (([0.1, 1e-2], "fit"), ([10.0, 100.0], "partial_fit")):
        with pytest.warns(UserWarning, match=r"KernelRidge: alpha .* is at the edge of alphas; extend them"):
            getattr(KernelRidge(alphas=alphas, **NARROW), fit)(X, np.sin(2 * X[:, 0]))


def test_a_rare_class_that_is_ranked_well_is_explained():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 3))
    s = X[:, 0] + 0.5 * np.sin(2 * X[:, 1])
    y = s + 0.1 * rng.standard_normal(300) > np.quantile(s, 0.985)  # five rows, whose number is most of the doubt
    assert not KernelClassifier(**PLAIN).fit(X, y).selection_.edges


@pytest.mark.parametrize("trend", (0.0, 2.0))
def test_rapid_changes_are_found(trend):
    x = np.random.default_rng(5).uniform(-1, 1, (500, 1))
    y = trend * x[:, 0] + np.sin(80 * x[:, 0])
    model = KernelRidge(random_state=0).fit(x[:400], y[:400])
    assert model.score(x[400:], y[400:]) > 0.95


@pytest.mark.parametrize("times", (2, 3))
def test_repeated_rows_change_nothing(times):
    rng = np.random.default_rng(0)
    X, T = rng.standard_normal((150, 5)), rng.standard_normal((300, 5))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(150)
    once = KernelRidge(**PLAIN).fit(X, y)
    often = KernelRidge(**PLAIN).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    weighted = KernelRidge(**PLAIN).fit(X, y, np.full(150, float(times)))
    np.testing.assert_allclose(often.predict(T), weighted.predict(T), rtol=1e-6, atol=1e-8)
    truth = np.sin(2 * T[:, 0]) + T[:, 1] * T[:, 2]
    assert often.score(T, truth) > once.score(T, truth) - 0.05
    repeated = (times - 1) * 150
    assert (
        f"{repeated} of {times * 150} rows repeat others, and equal rows are left out together"
        in often.selection_.reason
    )


@pytest.mark.parametrize("form", (np.asarray, sparse.csr_array), ids=("dense", "sparse"))
def test_equal_rows_are_merged(form):
    X = np.array([[1.0, 0.0], [2.0, 3.0], [1.0, -0.0], [2.0, 3.0], [0.0, 1.0]])
    rows = rows_in_memory("", form(X), np.arange(5.0)[:, None], np.array([1.0, 1.0, 3.0, 1.0, 1.0])).merged()
    np.testing.assert_array_equal(rows.dense(slice(None)), [[1, 0], [2, 3], [0, 1]])
    np.testing.assert_allclose(rows.targets[:, 0], [1.5, 2, 4])
    np.testing.assert_array_equal(rows.weights, [4, 2, 1])
    once = rows_in_memory("", form(X[[0, 1, 4]]), np.zeros((3, 1)))
    assert once.merged() is once


@pytest.mark.parametrize("alpha", ("auto", "loo", "gcv"))
def test_weights_that_are_no_counts_mean_the_same_at_any_scale(alpha):
    X = np.random.default_rng(2).standard_normal((150, 3))
    w = np.random.default_rng(3).uniform(0.5, 2, 150)
    y = np.sin(2 * X[:, 0]) + np.random.default_rng(4).standard_normal(150) / np.sqrt(w)
    options = {"n_components": 64, "map": None, "alpha": alpha, **PLAIN}
    small, large = (KernelRidge(**options).fit(X, y, c * w) for c in (0.1, 1000 * 0.1))
    assert large.alpha_ / small.alpha_ == pytest.approx(1000)
    np.testing.assert_allclose(small.predict(X), large.predict(X), rtol=1e-5, atol=1e-7)


def test_where_outliers_are_landmarks_the_other_rows_do_not_lower_alpha():
    X = np.random.default_rng(6).standard_normal((300, 2))
    model = KernelRidge(map="landmarks", gamma=0.1, alpha=1.0, n_components=32, random_state=0).fit(X, np.sin(X[:, 0]))
    rows, method = Chunk(X, np.sin(X[:, :1]), None), model.model_.options
    free, bounded = (
        refined_alpha(model.model_, model.features_, rows, 1.0, method, classes=False, floor=b) for b in (None, 1.0)
    )
    assert free.alpha < 0.9 <= bounded.alpha


def test_rows_of_weight_zero_are_absent():
    X = RNG.standard_normal((120, 3))
    y = np.sin(X[:, 0])
    X[60:], y[60:] = 1e6, -1e6
    fits = []
    for rows, weights in ((slice(60), None), (slice(None), np.repeat([1.0, 0.0], 60))):
        fits.append(KernelRidge(n_components=80, random_state=0, alpha=1.0).fit(X[rows], y[rows], weights))
        fits.append(GaussianProcess(n_components=40, map="landmarks", random_state=0).fit(X[rows], y[rows], weights))
    for absent, without in zip(fits[:2], fits[2:], strict=True):
        np.testing.assert_allclose(absent.predict(X[:60]), without.predict(X[:60]), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("n", (1, 2, 3, 10))
def test_few_rows_are_a_fit(n):
    X = np.random.default_rng(n).standard_normal((n, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = KernelRidge(random_state=0).fit(X, 3.0 + X[:, 0])
    T = np.random.default_rng(9).standard_normal((200, 2))
    assert np.abs(model.predict(T) - 3).max() < 6
    if n == 1:
        assert model.predict(X) == pytest.approx(3 + X[:, 0])


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
    np.testing.assert_array_equal(new_to(phi.features_, X), ~at_points)
    most = np.flatnonzero(np.cumsum(~at_points) <= 60)  # too few others: all of them judge
    assert new_to(phi.features_, X[most]).all()


def test_errors_of_landmarks_are_not_those_of_new_rows():
    """Nothing holds the coefficient of a landmark that is left out; other rows have the error of new ones."""
    rng = np.random.default_rng(1)
    X, test = rng.standard_normal((2, 1200, 8))
    y, expected = (np.sin(Z[:, 0]) + 0.3 * rng.standard_normal(len(Z)) for Z in (X, test))
    model = KernelRidge(map="landmarks", n_components=400, gamma=0.3, alpha=1e-6, random_state=0).fit(X, y)
    phi, alphas = model.features_, np.array([1e-6])
    equations, means = fitted(phi.queries(X), y[:, None], None, intercept=True)
    gaps = gaps_of_one(equations, *about(means, phi.queries(X), y[:, None]), None, 1e-6)
    new, every = (np.mean(gaps[rows] ** 2) for rows in (new_to(phi, X), slice(None)))
    truth = np.mean((model.predict(test) - expected) ** 2)
    assert every > 2 * truth and abs(new / truth - 1) < 0.2
    sums = squares_of_chunks(
        iter([Chunk(X[:700], y[:700, None], None), Chunk(X[700:], y[700:, None], None)]),
        phi=phi, spectrum=model.model_.equations.spectrum(), alphas=alphas, means=model.model_.means,
    )  # fmt: skip
    assert sums[:, 1].tolist() == [800, 400] and of_new_rows(sums) / 800 == pytest.approx(new, rel=1e-4)
    sums[0, 1] = 3  # too few of them
    assert of_new_rows(sums) / 1200 == pytest.approx(every, rel=1e-4)


def test_rare_classes_keep_their_ranking_under_class_weights():
    from sklearn.metrics import average_precision_score

    rng = np.random.default_rng(4)
    y = (rng.uniform(size=1600) < 0.05).astype(int)
    X = rng.standard_normal((1600, 4))
    X[y == 1] = 0.6 * X[y == 1] + [1.5, -1.0, 1.0, 0.0]
    with warnings.catch_warnings():
        warnings.simplefilter(
            "error"
        )  # a class that is ranked well is not unexplained, though few rows are predicted so
        plain, balanced = (
            average_precision_score(
                y[600:], KernelClassifier(class_weight=weight, **PLAIN).fit(X[:600], y[:600]).decision_function(X[600:])
            )
            for weight in (None, "balanced")
        )
    assert balanced > 0.85 * plain > 0.3  # a constant has 0.05


def test_candidates_are_excluded_on_few_rows_and_judged_on_more():
    rng = np.random.default_rng(6)
    X = rng.standard_normal((1000, 4))
    model = KernelRidge(metric=None, random_state=0).fit(X, np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(1000))
    rows = model.selection_.candidates["n_rows"]
    assert rows[0] == 400 and rows[-1] == 800 and set(rows) == {400, 800}


def test_the_span_of_wide_rows_keeps_distances():
    rng = np.random.default_rng(7)
    X, y = rng.standard_normal((60, 3000)), rng.standard_normal((60, 1))
    search = _search.Search(
        "test", Chunk(X, y, None), 60, kernels=(kernels.Gaussian(),), bandwidth=True, columns={RAW: None},
        metrics=(), classes=False, intercept=True, alphas=None, seed=0,
    )  # fmt: skip
    Z = search._close_rows(RAW, kernels.Gaussian())
    assert Z.shape == (60, 60)
    np.testing.assert_allclose(kernels.Gaussian(60.0)(Z), kernels.Gaussian(60.0)(X), rtol=1e-10)
    assert search._close_rows(RAW, kernels.Laplacian()).shape == X.shape


@pytest.mark.parametrize(("own", "said"), [(0.1, ", error 0.1 against 0.2 standardised"), (0.3, ""), (None, "")])
def test_errors_are_given_as_a_reason_only_where_they_are_one(own, said):
    trial = partial(SimpleNamespace, metric="none", map="exact", n_rows=100)
    best = trial(columns="as they are", error=own)
    tried = [trial(columns="standardised", error=0.2)] + ([] if own is None else [best])
    assert _selection._others(SimpleNamespace(tried=tried), "columns", best) == said
