"""Huber's loss and that of quantiles: the minimum that other optimisers find, and bad targets that change little."""

import pickle
import re

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import QuantileRegressor

from bochner.learn import KernelRidge


def table(n=200, d=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, d))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.standard_t(3, n)


def huber(r, c):
    return np.where(np.abs(r) <= c, r**2, 2 * c * np.abs(r) - c**2)


@pytest.mark.parametrize("n_components", [20, 400], ids=["more rows", "more features"])
@pytest.mark.parametrize("weighted", [False, True])
def test_hubers_loss_is_at_the_minimum_that_lbfgs_finds(n_components, weighted):
    X, y = table()
    y[:5] = 50
    w = np.random.default_rng(1).uniform(0.5, 2, len(y)) if weighted else np.ones(len(y))
    model = KernelRidge(
        "gaussian", gamma=0.5, map=None, n_components=n_components, alpha=0.1, loss="huber", random_state=0
    )
    model.fit(X, y, w if weighted else None)
    F, c = model.features_.queries(X), 1.35 * float(model.scale_[0])

    def objective(p):
        r = y - F @ p[1:] - p[0]
        value = w @ huber(r, c) + 0.1 * p[1:] @ p[1:]
        slope = -2 * w * np.clip(r, -c, c)
        return value, np.concatenate([[slope.sum()], F.T @ slope + 0.2 * p[1:]])

    best = minimize(
        objective, np.zeros(1 + F.shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": 5000, "ftol": 1e-14}
    )
    own = np.concatenate([[model.intercept_], model.coef_])
    assert objective(own)[0] == pytest.approx(best.fun, rel=2e-6)
    np.testing.assert_allclose(model.predict(X), F @ best.x[1:] + best.x[0], atol=5e-3)


@pytest.mark.parametrize("quantile", [0.2, 0.5, 0.9])
def test_quantiles_are_those_of_linear_programming(quantile):
    X, y = table(300)
    model = KernelRidge(
        "gaussian", gamma=0.5, map=None, n_components=8, alpha=1e-9, loss="quantile", quantile=quantile, random_state=0
    )
    model.fit(X, y)
    F = model.features_.queries(X)
    exact = QuantileRegressor(quantile=quantile, alpha=0).fit(F, y)

    def pinball(f):
        return np.mean(np.maximum(quantile * (y - f), (quantile - 1) * (y - f)))

    # a parabola within a hundredth of the scale costs at most half of that, times the scale, per row
    assert pinball(model.predict(X)) <= pinball(exact.predict(F)) + 0.005 * float(model.scale_[0])
    assert abs((y < model.predict(X)).mean() - quantile) < 9 / 300  # as many rows as parameters are on the plane


def test_bad_targets_change_little():
    rng = np.random.default_rng(0)
    X, T = rng.standard_normal((300, 3)), rng.standard_normal((500, 3))
    f = np.sin(2 * X[:, 0]) + X[:, 1]
    y = f + 0.1 * rng.standard_normal(300)
    bad = y.copy()
    bad[rng.choice(300, 3, replace=False)] = 100
    truth = np.sin(2 * T[:, 0]) + T[:, 1]
    good = KernelRidge(kernel="gaussian", random_state=0).fit(X, y).score(T, truth)
    robust = KernelRidge(kernel="gaussian", loss="huber", random_state=0).fit(X, bad)
    assert good > 0.95 and robust.score(T, truth) > good - 0.02
    assert re.search(r"alpha \d[\d.e-]{0,8} by the huber loss", robust.selection_.reason)
    with pytest.warns(UserWarning, match="explains nothing"):
        plain = KernelRidge(kernel="gaussian", random_state=0).fit(X, bad)
    assert plain.score(T, truth) < 0.5


def test_huber_without_outliers_is_least_squares():
    X, y = table()
    options = {"kernel": "gaussian", "gamma": 0.5, "alpha": 0.1, "map": None, "n_components": 20, "random_state": 0}
    squares = KernelRidge(**options).fit(X, y)
    robust = KernelRidge(loss="huber", epsilon=1e3, **options).fit(X, y)
    np.testing.assert_allclose(robust.predict(X), squares.predict(X), atol=1e-9)


def test_each_target_has_weights_of_its_own():
    X, y = table()
    Y = np.column_stack([y, -3 * y])
    options = {"kernel": "gaussian", "gamma": 0.5, "alpha": 0.1, "map": None, "n_components": 20, "random_state": 0}
    both = KernelRidge(loss="huber", **options).fit(X, Y)
    np.testing.assert_allclose(both.predict(X)[:, 1], -3 * both.predict(X)[:, 0], atol=1e-6)
    np.testing.assert_allclose(both.scale_[1], 3 * both.scale_[0])
    one = KernelRidge(loss="huber", **options).fit(X, y)
    np.testing.assert_allclose(both.predict(X)[:, 0], one.predict(X), atol=1e-9)
    again = pickle.loads(pickle.dumps(one))
    np.testing.assert_array_equal(again.predict(X), one.predict(X))
    np.testing.assert_array_equal(one.compact().predict(X), again.predict(X))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "hinge"}, "KernelRidge: loss must be one of"),
        ({"loss": "huber", "epsilon": 0.5}, "KernelRidge: epsilon must be a number above 1, got 0.5"),
        ({"loss": "quantile", "quantile": 1.0}, "KernelRidge: quantile must be a number between 0 and 1, got 1.0"),
        ({"loss": "huber", "alpha": "gcv"}, "KernelRidge: alpha must be 'auto' or a number for loss='huber'"),
        ({"loss": "huber", "solver": "cg"}, "KernelRidge: loss='huber' reweights the rows of method='ridge'"),
        ({"loss": "huber", "method": "nadaraya-watson"}, "KernelRidge: loss='huber' reweights the rows"),
    ],
)
def test_what_does_not_go_together_is_refused(options, message):
    X, y = table(20)
    with pytest.raises(ValueError, match=message):
        KernelRidge(**options).fit(X, y)


def test_streams_and_intervals_are_refused_in_words():
    X, y = table(40)
    model = KernelRidge("gaussian", gamma=0.5, alpha=0.1, loss="huber", random_state=0)
    with pytest.raises(AttributeError) as error:
        model.partial_fit(X, y)
    assert "loss='huber' needs all rows again" in str(error.value.__cause__)
    with pytest.raises(ValueError, match="loss='squared'"):
        model.fit(X, y).predict(X, interval=0.9)


def test_dask_collections_are_refused_in_words():
    array = pytest.importorskip("dask.array")
    from bochner import distributed

    X, y = table(40)
    with pytest.raises(ValueError, match="loss='huber' makes many passes over the rows"):
        distributed.KernelRidge("gaussian", loss="huber").fit(array.from_array(X), array.from_array(y))


@pytest.mark.parametrize("quantile", [0.1, 0.9])
@pytest.mark.swept(2)
def test_quantiles_of_few_rows_cover_new_targets(quantile):
    """Shares of new targets below the fit over 25 tables of 80 rows, by a z-test |z| < 5; without the move z is above 7."""
    shares = []
    for seed in range(25):
        rng = np.random.default_rng(seed)
        Z = rng.uniform(-2, 2, (480, 3))
        y = np.sin(2 * Z[:, 0]) + Z[:, 1] + (0.5 + 0.2 * Z[:, 2]) * rng.standard_normal(480)
        model = KernelRidge("gaussian", metric=None, loss="quantile", quantile=quantile, random_state=0)
        shares.append((y[80:] <= model.fit(Z[:80], y[:80]).predict(Z[80:])).mean())
    assert abs(np.mean(shares) - quantile) < 5 * np.std(shares) / np.sqrt(len(shares))
