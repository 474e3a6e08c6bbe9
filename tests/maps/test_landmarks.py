"""Landmarks: the trace identity, equality with scikit-learn's Nystroem, the law of the pivots, and hard data."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats
from sklearn.kernel_approximation import Nystroem

import bochner
from bochner import Approximation, catalogue, kernels, maps
from bochner.linalg.engine import single_threaded_blas
from bochner.maps import _landmarks, _pivots

PIVOTS = ("uniform", "rpcholesky", "kmeans")


def points(n=120, d=3, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


@pytest.mark.parametrize("pivots", PIVOTS)
@pytest.mark.parametrize("kernel", catalogue.kernels().values(), ids=repr)
def test_every_kernel_has_landmarks(kernel, pivots):
    X = points()
    phi = Approximation(kernel, maps.Landmarks(pivots), n_projections=60).fit(X, rng=0)
    assert phi.queries(X).shape == (120, 60) and phi.symmetric and not phi.spec.unbiased
    assert np.isfinite(phi.gram(X)).all()


@pytest.mark.parametrize("pivots", PIVOTS)
def test_the_trace_error_is_the_residual_diagonal(pivots):
    X, kernel = points(), kernels.Gaussian(2.0)
    phi = Approximation(kernel, maps.Landmarks(pivots), n_projections=20).fit(X, rng=0)
    residual = kernel(X) - phi.gram(X)
    assert np.diag(residual).sum() / np.trace(kernel(X)) == pytest.approx(phi.spec.map.trace_error, rel=1e-7)
    assert np.linalg.eigvalsh(residual).min() > -1e-9  # K minus its Nystrom approximation is positive semidefinite


def test_landmarks_are_exact_at_themselves():
    X, kernel = points(), kernels.Matern(1.5)
    phi = Approximation(kernel, maps.Landmarks(X[:30]), n_projections=30).fit(X, rng=0)
    np.testing.assert_allclose(phi.gram(X[:30], X), kernel(X[:30], X), atol=1e-9)


def test_equal_to_nystroem_for_the_same_landmarks():
    X = points(300, 4)
    theirs = Nystroem(kernel="rbf", gamma=0.2, n_components=50, random_state=0).fit(X)
    ours = Approximation(kernels.Gaussian().from_gamma(0.2), maps.Landmarks(theirs.components_), n_projections=50).fit(
        X
    )
    Z = theirs.transform(X)
    np.testing.assert_allclose(ours.gram(X), Z @ Z.T, atol=1e-8)


def test_the_error_of_a_plan_is_the_error_itself():
    X, Y, kernel = points(), points(40, seed=1), kernels.Gaussian(1.5)
    phi = Approximation(kernel, maps.Landmarks("rpcholesky"), n_projections=25).fit(X, rng=0)
    np.testing.assert_allclose(phi.spec.mse(Y), (phi.gram(Y) - kernel(Y)) ** 2, atol=1e-12)


@pytest.mark.parametrize(("batch", "update"), [(1, False), (64, False), (64, True)])
def test_the_law_of_the_pivots(batch, update, seed, monkeypatch):
    """Three pivots against their exact law, by a chi-squared test over ordered triples; false alarms 1e-6."""
    monkeypatch.setattr(_pivots, "_BATCH", batch)
    monkeypatch.setattr(_pivots._Search, "update_pays", lambda self, rate: update)
    X, unit, rng = points(5, 2), kernels.Gaussian(), np.random.default_rng(seed)
    K, draws = unit(X), 1200
    expected, counts = np.zeros((5, 5, 5)), np.zeros((5, 5, 5))
    for i, j in itertools.permutations(range(5), 2):
        first, second = np.diag(K), residual(K, [i])
        third = residual(K, [i, j])
        expected[i, j] = first[i] / first.sum() * second[j] / second.sum() * third / third.sum()
    for _ in range(draws):
        counts[tuple(_pivots.rpcholesky(unit, X.__getitem__, len(X), 3, rng))] += 1
    likely = draws * expected > 5
    assert not counts[expected < 1e-12].any()
    seen, law = np.append(counts[likely], counts[~likely].sum()), np.append(expected[likely], expected[~likely].sum())
    assert stats.chisquare(seen, draws * law / law.sum()).pvalue > 1e-6


def residual(K, chosen):
    """Diagonal of K that is left after these pivots."""
    left = np.diag(K - K[:, chosen] @ np.linalg.solve(K[np.ix_(chosen, chosen)], K[chosen])).clip(0)
    left[chosen] = 0
    return left


def test_stale_residuals_find_as_good_pivots_as_fresh_ones(monkeypatch):
    """The trace that pivots leave, on average: the law does not depend on how it is drawn."""
    X, unit = points(150, 3), kernels.Gaussian(2.0)
    left = {}
    for update in (False, True):
        monkeypatch.setattr(_pivots._Search, "update_pays", lambda self, rate, update=update: update)
        chosen = [_pivots.rpcholesky(unit, X.__getitem__, len(X), 40, np.random.default_rng(s)) for s in range(15)]
        assert all(len(set(pivots)) == 40 for pivots in chosen)
        left[update] = [np.log(residual(unit(X), list(pivots)).sum()) for pivots in chosen]
    assert abs(stats.ttest_ind(left[False], left[True]).statistic) < 5


@pytest.mark.parametrize("pivots", PIVOTS)
def test_duplicates_and_flat_kernels_do_no_harm(pivots):
    X = np.repeat(points(15), 8, axis=0)
    for kernel in (kernels.Gaussian(2.0), kernels.Gaussian(1e4), kernels.Linear()):
        phi = Approximation(kernel, maps.Landmarks(pivots), n_projections=15).fit(X, rng=0)
        assert np.abs(phi.gram(X) - kernel(X)).max() < 1e-3 * np.abs(kernel(X)).max()


def test_more_landmarks_than_points_leave_zero_columns():
    X = points(10)
    phi = Approximation(kernels.Gaussian(), maps.Landmarks(), n_projections=25).fit(X, rng=0)
    assert phi.n_features_out == 25 and not phi.queries(X)[:, 10:].any()
    np.testing.assert_allclose(phi.gram(X), kernels.Gaussian()(X), atol=1e-9)


@pytest.mark.parametrize("dtype", (np.float32, np.float64))
def test_float32_stays_float32(dtype):
    X = points().astype(dtype)
    phi = Approximation(kernels.Gaussian(2.0), maps.Landmarks(), n_projections=20).fit(X, rng=0)
    assert phi.queries(X).dtype == dtype
    np.testing.assert_allclose(phi.gram(X), phi.gram(X.astype(np.float64)), atol=2e-3 if dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("pivots", PIVOTS)
@pytest.mark.parametrize("lengthscale", (2.0, 50.0))
def test_float32_is_accurate_where_landmarks_nearly_repeat_each_other(pivots, lengthscale):
    """Whitening would multiply the rounding errors of kernel values: by ten millions where they are nearly constant."""
    X, kernel = points(400, 2).astype(np.float32), kernels.Gaussian(lengthscale)
    phi = Approximation(kernel, maps.Landmarks(pivots), n_projections=200).fit(X, rng=0)
    exact, torch = phi.gram(X.astype(np.float64)), pytest.importorskip("torch")
    for rows in (X, torch.from_numpy(X)):
        features = phi.queries(rows)
        assert features.dtype == rows.dtype
        np.testing.assert_allclose(np.asarray(features @ features.T), exact, atol=2e-5)


def test_given_landmarks_have_the_columns_of_the_data():
    with pytest.raises(ValueError, match="Landmarks: pivots must have the columns of the data, 3 of them, got 2"):
        Approximation(kernels.Gaussian(), maps.Landmarks(points(5, 2)), n_projections=5).fit(points(), rng=0)


def test_files_hold_landmarks(tmp_path):
    X = points()
    phi = Approximation(kernels.Gaussian(2.0), maps.Landmarks("rpcholesky"), n_projections=20).fit(X, rng=0)
    phi.save(tmp_path / "landmarks.npz")
    again = bochner.load(tmp_path / "landmarks.npz")
    assert again.spec == phi.spec
    np.testing.assert_array_equal(again.queries(X), phi.queries(X))


@pytest.mark.parametrize("name", ("landmarks", "landmarks-rpcholesky", "landmarks-kmeans"))
def test_estimators_take_landmarks_by_name(name):
    from bochner.learn import KernelRidge

    X = points(300, 2)
    y = np.sin(2 * X[:, 0]) + X[:, 1]
    model = KernelRidge(map=name, n_components=80, alpha=1e-6, random_state=0).fit(X[:200], y[:200])
    assert model.score(X[200:], y[200:]) > 0.99


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: maps.Landmarks("random"),
            ValueError,
            r"pivots must be one of 'uniform', 'rpcholesky', 'kmeans', got 'random'",
        ),
        (lambda: maps.Landmarks(3), ValueError, r"pivots must be a matrix of finite points as rows, got 3"),
        (lambda: maps.Landmarks([[np.nan]]), ValueError, r"pivots must be a matrix of finite points"),
        (lambda: maps.Landmarks(["x"]), TypeError, r"pivots must be a matrix of points as rows, got"),
        (lambda: Approximation(kernels.Gaussian(), maps.Landmarks()).draw(3), ValueError, r"has constants to choose"),
        (
            lambda: Approximation(kernels.Gaussian(), maps.Landmarks(points=np.ones((2, 4)))).draw(3),
            ValueError,
            r"the landmarks have 4 columns, the data has 3",
        ),
    ],
)
def test_bad_parameters_are_explained(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_tall_tiles_of_many_rows_have_the_features_of_each_row():
    X = np.random.default_rng(0).standard_normal((4100, 3))
    phi = Approximation(kernels.Gaussian(0.3), maps.Landmarks(), n_projections=600).fit(X, rng=0)
    assert phi._tile_rows(4100, 600 * 8) == 256 > phi._tile_rows(800, 600 * 8)
    some = [0, 255, 256, 2049, 4099]
    np.testing.assert_allclose(phi.queries(X)[some], [phi.queries(X[i : i + 1])[0] for i in some], atol=1e-9)


def test_blas_has_one_thread_while_landmarks_are_chosen(monkeypatch):
    inside, whitening = [], _landmarks.whitening

    def noted(*arguments):
        inside.append(single_threaded_blas.inside)
        return whitening(*arguments)

    monkeypatch.setattr(_landmarks, "whitening", noted)
    X = np.random.default_rng(0).standard_normal((30, 2))
    Approximation(kernels.Gaussian(1.0), maps.Landmarks(), n_projections=5).fit(X, rng=0)
    assert inside == [1] and single_threaded_blas.inside == 0
