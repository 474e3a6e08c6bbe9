"""Ridge regression on features: equal to scikit-learn's, in every way of solving, streaming and choosing."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import LinAlgWarning
from sklearn.kernel_ridge import KernelRidge as ExactKernelRidge
from sklearn.linear_model import Ridge, RidgeCV
from sklearn.model_selection import LeaveOneOut, cross_val_predict

from bochner import kernels, projections
from bochner.learn import KernelRidge, RandomFeatures
from bochner.learn._linear.leave_one_out import gaps_of_rows
from bochner.learn._linear.spectrum import NormalEquations, gcv

RNG = np.random.default_rng(0)
X = RNG.standard_normal((150, 4))
Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2]]) + 0.1 * RNG.standard_normal((150, 2)) + 4.0
W = RNG.integers(0, 3, 150).astype(float)


def model(**parameters):
    return KernelRidge(
        **({"gamma": 0.2, "map": None, "alpha": 1.0, "n_components": 40, "random_state": 0} | parameters)
    )


def features(Z=X, n_components=40):
    return RandomFeatures(gamma=0.2, n_components=n_components, random_state=0).fit_transform(Z)


@pytest.mark.parametrize("solver", ("primal", "dual"))
@pytest.mark.parametrize("intercept", (True, False))
@pytest.mark.parametrize("n_components", (40, 200))
def test_equal_to_ridge_on_the_features(n_components, intercept, solver):
    ours = model(n_components=n_components, solver=solver, alpha=0.3, fit_intercept=intercept).fit(X, Y, W)
    Phi = features(n_components=n_components)
    ridge = Ridge(0.3, fit_intercept=intercept).fit(Phi, Y, W)
    np.testing.assert_allclose(ours.predict(X), ridge.predict(Phi), atol=1e-9)
    np.testing.assert_allclose(ours.coef_, ridge.coef_, atol=1e-8)
    np.testing.assert_allclose(ours.intercept_, ridge.intercept_, atol=1e-8)


def test_one_strength_for_each_target():
    Phi = features()
    ours, ridge = model(alpha=[0.01, 10.0]).fit(X, Y), Ridge([0.01, 10.0]).fit(Phi, Y)
    np.testing.assert_allclose(ours.coef_, ridge.coef_, atol=1e-8)
    np.testing.assert_array_equal(ours.alpha_, [0.01, 10.0])


@pytest.mark.parametrize("n_components", (40, 200))
def test_no_penalty_is_least_squares(n_components):
    Phi = features(n_components=n_components)
    centred = Phi - Phi.mean(axis=0)
    expected = np.linalg.pinv(centred, rcond=1e-7) @ (Y - Y.mean(axis=0))
    result = model(n_components=n_components, alpha=0.0).fit(X, Y)
    np.testing.assert_allclose(result.predict(X), centred @ expected + Y.mean(axis=0), atol=1e-5)


@pytest.mark.parametrize("solver", ("primal", "dual"))
def test_loo_is_leaving_out_each_row(solver):
    alphas = np.logspace(-4, 2, 7)
    Phi, y = features()[:30], Y[:30]
    errors = [((cross_val_predict(Ridge(a), Phi, y, cv=LeaveOneOut()) - y) ** 2).sum() for a in alphas]
    ours = model(alpha="loo", alphas=alphas, solver=solver).fit(X[:30], y)
    assert ours.alpha_ == alphas[np.argmin(errors)]


def test_loo_chooses_as_ridge_cv():
    alphas = np.logspace(-5, 2, 15)
    expected = RidgeCV(alphas).fit(features(), Y[:, 0]).alpha_
    assert model(alpha="loo", alphas=alphas).fit(X, Y[:, 0]).alpha_ == expected


@pytest.mark.parametrize("solver", ("primal", "dual"))
def test_loo_leaves_out_rows_of_small_weight_whole(solver):
    alphas, w = np.logspace(-4, 2, 7) / 30, np.linspace(0.2, 1, 30) / 30
    Phi, y = features()[:30], Y[:30]
    errors = np.zeros(7)
    for i in range(30):
        rest = np.arange(30) != i
        for k, a in enumerate(alphas):
            gap = Ridge(a).fit(Phi[rest], y[rest], w[rest]).predict(Phi[[i]]) - y[i]
            errors[k] += w[i] * (gap**2).sum()
    ours = model(alpha="loo", alphas=alphas, solver=solver).fit(X[:30], y, w)
    assert ours.alpha_ == alphas[np.argmin(errors)]


@pytest.mark.parametrize("solver", ("primal", "dual"))
@pytest.mark.parametrize("criterion", ("gcv", "loo"))
def test_criteria_do_not_see_the_unit_of_small_weights(criterion, solver):
    alphas = np.logspace(-6, 3, 19)
    ones = model(alpha=criterion, alphas=alphas, solver=solver).fit(X, Y)
    parts = model(alpha=criterion, alphas=alphas / 150, solver=solver).fit(X, Y, np.full(150, 1 / 150))
    np.testing.assert_allclose(parts.alpha_, ones.alpha_ / 150)


@pytest.mark.parametrize("method", ("ridge", "nadaraya-watson"))
def test_another_number_of_targets_in_a_later_piece_changes_nothing(method):
    ours = model(method=method).partial_fit(X, Y[:, :1])
    before = ours.predict(X)
    with pytest.raises(ValueError, match="KernelRidge: expected 1 target as in the first call, got 2"):
        ours.partial_fit(X, Y)
    ours.partial_fit(X[:0:-1], Y[:0:-1, :1])
    again = model(method=method).partial_fit(X, Y[:, :1]).partial_fit(X[:0:-1], Y[:0:-1, :1])
    assert not np.array_equal(ours.predict(X), before)
    np.testing.assert_array_equal(ours.predict(X), again.predict(X))


def test_a_strength_set_between_pieces_counts():
    ours = model(alpha=1.0).partial_fit(X[:70], Y[:70]).set_params(alpha=30.0).partial_fit(X[70:], Y[70:])
    np.testing.assert_allclose(ours.predict(X), model(alpha=30.0).fit(X, Y).predict(X), atol=1e-9)


def test_another_method_between_pieces_is_refused():
    ours = model().partial_fit(X, Y).set_params(method="nadaraya-watson")
    with pytest.raises(ValueError, match=r"KernelRidge: method='nadaraya-watson' cannot continue .* another method"):
        ours.partial_fit(X, Y)


@pytest.mark.parametrize("solver", ("primal", "dual"))
def test_gcv_is_its_formula(solver):
    alphas = np.logspace(-6, 3, 10)
    Phi, y = features() - features().mean(axis=0), Y - Y.mean(axis=0)
    scores = []
    for a in alphas:
        H = Phi @ np.linalg.solve(Phi.T @ Phi + a * np.eye(40), Phi.T)
        scores.append(150 * ((y - H @ y) ** 2).sum() / (150 - np.trace(H) - 1) ** 2)
    assert model(alpha="gcv", alphas=alphas, solver=solver).fit(X, Y).alpha_ == alphas[np.argmin(scores)]


def test_weights_count_as_repetitions_for_the_criteria_too():
    repeated = np.repeat(np.arange(150), W.astype(int))
    for criterion in ("gcv", "loo"):
        a = model(alpha=criterion).fit(X, Y, W)
        b = model(alpha=criterion).fit(X[repeated], Y[repeated])
        assert a.alpha_ == b.alpha_
        np.testing.assert_allclose(a.predict(X), b.predict(X), atol=1e-7)


@pytest.mark.parametrize("alpha", (0.3, "gcv"))
def test_partial_fit_is_one_fit(alpha):
    whole, stream = model(alpha=alpha, solver="primal").fit(X, Y, W), model(alpha=alpha)
    for rows in np.split(np.arange(150), [7, 20, 21, 100]):
        stream.partial_fit(X[rows], Y[rows], W[rows])
    np.testing.assert_allclose(stream.coef_, whole.coef_, atol=1e-8)
    assert stream.alpha_ == whole.alpha_


@pytest.mark.parametrize("n_components", (40, 200))
def test_partial_fit_goes_on_from_fit(n_components):
    whole = model(n_components=n_components).fit(X, Y)
    parts = model(n_components=n_components).fit(X[:100], Y[:100]).partial_fit(X[100:], Y[100:])
    np.testing.assert_allclose(parts.predict(X), whole.predict(X), atol=1e-8)


def test_a_fit_forgets_what_was_streamed():
    stream = model().partial_fit(X[:50], Y[:50] + 9).fit(X, Y)
    np.testing.assert_array_equal(stream.coef_, model().fit(X, Y).coef_)


def test_tends_to_exact_kernel_ridge():
    exact = ExactKernelRidge(alpha=0.1, kernel="rbf", gamma=0.2).fit(X, Y).predict(X)
    errors = [
        np.abs(model(alpha=0.1, fit_intercept=False, n_components=m).fit(X, Y).predict(X) - exact).max()
        for m in (64, 1024, 16384)
    ]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.05


@pytest.mark.parametrize(
    "parameters", ({"alpha": "gcv"}, {"n_components": 200}, {"method": "nadaraya-watson"}), ids=str
)
def test_sparse_data_and_threads_give_the_same(parameters):
    Z = X * (np.abs(X) > 0.5)
    dense = model(**parameters, n_jobs=1).fit(Z, Y)
    np.testing.assert_array_equal(dense.predict(Z), model(**parameters, n_jobs=2).fit(Z, Y).predict(Z))
    np.testing.assert_allclose(
        dense.predict(Z), model(**parameters).fit(sparse.csr_matrix(Z), Y).predict(Z), atol=1e-10
    )


def test_float32_stays_and_is_near_float64():
    single = model(alpha=0.01).fit(X.astype(np.float32), Y).predict(X.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, model(alpha=0.01).fit(X, Y).predict(X), atol=2e-3)


@pytest.mark.filterwarnings("ignore:KernelRidge. alpha=.* is below the rounding")
@pytest.mark.parametrize("alpha", (0.0, 1e-12, "gcv"))
def test_float32_with_a_tiny_penalty_does_not_break_down(alpha):
    wide = {"gamma": 1e-3, "n_components": 100, "solver": "primal"}  # eigenvalues far below float32's rounding
    prediction = model(**wide, alpha=alpha).fit(X.astype(np.float32), Y).predict(X.astype(np.float32))
    assert np.isfinite(prediction).all()


@pytest.mark.parametrize("solver", ("primal", "dual"))
@pytest.mark.parametrize("dtype", (np.float32, np.float64))
def test_no_penalty_on_features_that_are_nearly_dependent(dtype, solver):
    Z = np.random.default_rng(1).standard_normal((400, 3)).astype(dtype)
    y = np.sin(Z[:, 0] / 20)
    options = {
        "kernel": kernels.Gaussian(50.0),
        "map": None,
        "n_components": 128,
        "alpha": 0.0,
        "random_state": 0,
        "solver": solver,
    }
    with pytest.warns(LinAlgWarning, match=r"KernelRidge: alpha=0\.0 is below the rounding .* Raise alpha"):
        ours = KernelRidge(**options).fit(Z[:300], y[:300])
    np.testing.assert_allclose(ours.predict(Z[300:]), y[300:], atol=2e-3)


def test_shapes_of_targets():
    one, column = model().fit(X, Y[:, 0]), model().fit(X, Y[:, :1])
    assert one.predict(X).shape == (150,) and one.coef_.shape == (40,) and isinstance(one.intercept_, float)
    assert column.predict(X).shape == (150, 1) and column.coef_.shape == (1, 40) and column.intercept_.shape == (1,)


def test_progress_bar_is_drawn_when_asked(capfd, monkeypatch):
    from bochner import _progress

    monkeypatch.setattr(_progress, "SECONDS_BEFORE_SHOWN", 0.0)
    model(solver="primal").fit(X, Y)
    assert capfd.readouterr().err == ""
    model(solver="primal", verbose=1).fit(X, Y)
    assert "fit" in capfd.readouterr().err


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"alpha": -1.0}, r"KernelRidge: alpha must be a non-negative number or a list of them, got -1\.0\."),
        (
            {"alpha": "cv"},
            r"KernelRidge: alpha must be 'auto', a number, one for each target, 'loo' or 'gcv', got 'cv'\.",
        ),
        ({"alpha": [1.0, 2.0, 3.0]}, r"KernelRidge: alpha has 3 entries, one for each target, for 2 targets\."),
        ({"alpha": "gcv", "alphas": [0.0, 1.0]}, r"KernelRidge: alphas must be positive numbers, got \[0\.0, 1\.0\]\."),
        ({"solver": "svd"}, r"KernelRidge: solver must be one of 'auto', 'primal', 'dual', 'cg', got 'svd'\."),
        ({"method": "knn"}, r"KernelRidge: method must be one of 'ridge', 'nadaraya-watson', got 'knn'\."),
        (
            {"projection": projections.Quadrature(), "n_components": 41},
            r"KernelRidge: .*different features for queries",
        ),
    ],
    ids=str,
)
def test_refusals(parameters, message):
    fitted = model().fit(X, Y)
    before = fitted.predict(X)
    with pytest.raises(ValueError, match=message):
        fitted.set_params(**parameters).fit(X, Y)
    np.testing.assert_array_equal(fitted.predict(X), before)  # bad parameters change nothing


def test_loo_does_not_stream():
    assert not hasattr(model(alpha="loo"), "partial_fit")
    with pytest.raises(AttributeError, match="KernelRidge"):
        model(alpha="loo").partial_fit(X, Y)


def test_streams_keep_their_shape():
    with pytest.raises(ValueError, match=r"KernelRidge: y must have the shape of the first call, got 1 dimensions\."):
        model().partial_fit(X, Y).partial_fit(X, Y[:, 0])


def test_averages_have_no_coefficients():
    with pytest.raises(AttributeError, match=r"coefficients exist with method='ridge' only"):
        model(method="nadaraya-watson").fit(X, Y).coef_  # noqa: B018


def smooth_problem(noise):
    rng = np.random.default_rng(0)
    Z = rng.uniform(-1, 1, (4000, 2))
    return Z, np.sin(3 * Z[:, 0]) * Z[:, 1] + np.cos(2 * Z[:, 1] + Z[:, 0]) + noise * rng.standard_normal(4000)


@pytest.mark.parametrize("criterion", ("gcv", "loo"))
def test_float32_data_choose_the_strength_of_float64_data(criterion):
    Z, y = smooth_problem(0.01)
    single, double = (
        KernelRidge(gamma=1.0, map=None, n_components=256, alpha=criterion, random_state=0).fit(
            Z.astype(t), y.astype(t)
        )
        for t in (np.float32, np.float64)
    )
    assert single.alpha_ == double.alpha_
    np.testing.assert_allclose(single.predict(Z), double.predict(Z), atol=1e-4)


def test_float32_data_keep_a_small_fixed_strength():
    Z, y = smooth_problem(0.01)
    single, double = (
        KernelRidge(gamma=1.0, map=None, n_components=256, alpha=1e-5, random_state=0).fit(Z.astype(t), y.astype(t))
        for t in (np.float32, np.float64)
    )
    np.testing.assert_allclose(single.predict(Z), double.predict(Z), atol=1e-4)


def spectrum_of_one(total):
    """One feature of eigenvalue one, whose product with the target is one."""
    equations = NormalEquations(50, 50, np.ones((1, 1)), np.array([total]), 0, 1e-16, np.eye(1))
    return equations.spectrum()


def test_gcv_rejects_a_residual_that_rounding_made_negative():
    assert gcv(spectrum_of_one(0.9), 1e-9) == np.inf
    assert np.isfinite(gcv(spectrum_of_one(0.9), 10.0))


def test_loo_rejects_a_row_that_decides_its_own_fit():
    gaps = gaps_of_rows(spectrum_of_one(1.0), np.array([1e-14, 1.0]), np.ones((1, 1)), np.ones((1, 1)), None)[0, :, 0]
    assert not np.isfinite(gaps[0]) and np.isfinite(gaps[1])
