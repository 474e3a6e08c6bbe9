"""The exact kernel machine: the solution of scipy, whatever the solver, and options that it refuses."""

import pickle

import numpy as np
import pytest
from scipy import linalg

from bochner import kernels
from bochner.learn import KernelClassifier, KernelRidge
from bochner.learn._linear import kernel_equations

RNG = np.random.default_rng(0)
X = RNG.standard_normal((2000, 3))
Y = np.column_stack([np.sin(2 * X[:, 0]) + X[:, 1], X[:, 2]]) + 0.1 * RNG.standard_normal((2000, 2))
TEST = RNG.standard_normal((20, 3))
KERNEL = kernels.Gaussian(1.5)
GIVEN = {"kernel": KERNEL, "gamma": None, "map": "exact", "alpha": 0.1, "random_state": 0}


def solved(X, Y, w, alpha, *, intercept):
    """Coefficients and intercepts by one dense solve."""
    n = len(X)
    A = np.zeros((n + 1, n + 1))
    A[:n, :n] = KERNEL(X) + np.diag(alpha / w)
    A[:n, n] = A[n, :n] = float(intercept)
    A[n, n] = 1.0 - intercept
    found = linalg.solve(A, np.vstack([Y, np.zeros((1, Y.shape[1]))]), assume_a="sym")
    return found[:n], found[n]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_2000_rows_have_the_solution_of_scipy(intercept, weighted):
    w = RNG.uniform(0.5, 2, 2000) if weighted else np.ones(2000)
    model = KernelRidge(**GIVEN, fit_intercept=intercept).fit(X, Y, w if weighted else None)
    c, b = solved(X, Y, w, 0.1, intercept=intercept)
    np.testing.assert_allclose(model.predict(TEST), KERNEL(TEST, X) @ c + b, atol=1e-9)
    np.testing.assert_allclose(model.coef_.T, c, atol=1e-7)


def test_a_factor_in_float32_loses_nothing(monkeypatch):
    monkeypatch.setattr(kernel_equations, "DOUBLE_ROWS", 100)
    monkeypatch.setattr(kernel_equations, "_BLOCK", 256)
    c, b = solved(X[:600], Y[:600], np.ones(600), 0.1, intercept=True)
    model = KernelRidge(**GIVEN).fit(X[:600], Y[:600])
    np.testing.assert_allclose(model.predict(TEST), KERNEL(TEST, X[:600]) @ c + b, atol=1e-6)


@pytest.mark.parametrize("held", [0, 1 << 30], ids=["tiles again", "tiles held"])
def test_conjugate_gradients_reach_the_tolerance(monkeypatch, held):
    monkeypatch.setattr(kernel_equations, "HELD_BYTES", held)
    monkeypatch.setattr(kernel_equations, "_BLOCK", 256)
    w = RNG.uniform(0.5, 2, 900)
    c, b = solved(X[:900], Y[:900], w, 0.1, intercept=True)
    model = KernelRidge(**GIVEN, solver="cg").fit(X[:900], Y[:900], w)
    np.testing.assert_allclose(model.predict(TEST), KERNEL(TEST, X[:900]) @ c + b, atol=2e-3)


def test_rows_that_are_left_out_are_those_of_fits_without_them():
    n, rows = 60, np.array([3, 10, 59])
    w = RNG.uniform(0.5, 2, n)
    found = kernel_equations.solve_kernel("", KERNEL, X[:n], Y[:n], w, 0.1, intercept=True, left_out=rows)
    for i, errors in zip(rows, found.left_out, strict=True):
        kept = np.arange(n) != i
        c, b = solved(X[:n][kept], Y[:n][kept], w[kept], 0.1, intercept=True)
        np.testing.assert_allclose(errors, Y[i] - (KERNEL(X[i : i + 1], X[:n][kept]) @ c + b)[0], rtol=1e-7)


@pytest.mark.parametrize("alpha", [1e-2, 1e-4])
@pytest.mark.parametrize(("d", "lengthscale"), [(4, 1.5), (8, 2.5)])
@pytest.mark.swept(2)
def test_little_regularisation_does_not_drown_left_out_errors(alpha, d, lengthscale):
    """They are known within a factor of two; by probes alone, single rows made them 2.5 to 90 times too large."""
    rng = np.random.default_rng(0)
    rows, weights = rng.standard_normal((2000, d)), rng.standard_normal(d)
    y = (np.sin(rows @ weights) + 0.05 * rng.standard_normal(2000))[:, None]
    given = "", kernels.Gaussian(lengthscale), rows, y, None, alpha
    exact, probed = (
        kernel_equations.solve_kernel(*given, intercept=True, solver=solver, left_out=np.arange(2000)).left_out
        for solver in ("dual", "cg")
    )
    assert 0.5 < np.sqrt((probed**2).mean() / (exact**2).mean()) < 2


def test_errors_of_left_out_rows_by_probes_are_unbiased(monkeypatch):
    """The mean over 30 draws of the inverse's diagonal, 8 probes each, by z-tests |z| < 5 for 100 rows."""
    n, rows, w = 400, np.arange(100), np.random.default_rng(1).uniform(0.5, 2, 400)
    narrow = kernels.Gaussian(0.5)  # 33 landmarks leave much of it to the probes
    monkeypatch.setattr(kernel_equations, "_PROBES", 8)
    monkeypatch.setattr(kernel_equations, "_FLOAT32_TOLERANCE", 1e-6)
    draws = np.random.default_rng(0)
    monkeypatch.setattr(kernel_equations, "_signs", lambda n, k: draws.choice([-1.0, 1.0], (n, k)))
    given = ("", narrow, X[:n], Y[:n, :1], w, 0.3)
    exact, inverse = kernel_equations.solve_kernel(*given, intercept=False, left_out=rows), []
    for _ in range(30):
        found = kernel_equations.solve_kernel(*given, intercept=False, solver="cg", left_out=rows)
        inverse.append((exact.coefficients[rows] / w[rows, None] / found.left_out)[:, 0])
    expected = (exact.coefficients[rows] / w[rows, None] / exact.left_out)[:, 0]
    spread = np.std(inverse, axis=0, ddof=1) / np.sqrt(30)
    assert np.all(np.abs(np.mean(inverse, axis=0) - expected) < 5 * spread + 1e-4 * expected)


@pytest.mark.parametrize(
    ("kernel", "alpha", "dtype"), [(kernels.Gaussian(0.5), 0.3, np.float32), (kernels.Gaussian(50.0), 1e-6, np.float64)]
)
def test_preconditioner_inverts_landmarks_and_a_shift_in_the_precision_that_they_allow(kernel, alpha, dtype):
    found = kernel_equations.LandmarkPreconditioner.of(kernel, X[:400], np.ones(400), alpha, 3)
    F, R = found.F.astype(np.float64), np.random.default_rng(2).standard_normal((400, 3)) * [1.0, 1e-50, 1e50]
    inverse = np.linalg.inv(F @ F.T + found.shift * np.eye(400))
    assert found.F.dtype == dtype
    size = np.abs(R).max(axis=0) / found.shift
    np.testing.assert_allclose(found.solve(R, None) / size, inverse @ R / size, atol=1e-5)
    np.testing.assert_allclose(found.diagonal() * found.shift, np.diag(inverse) * found.shift, atol=1e-5)


def test_many_rows_have_intervals_by_probes(monkeypatch):
    monkeypatch.setattr(kernel_equations, "DIRECT_ROWS", 500)
    model = KernelRidge(**GIVEN).fit(X[:1000], Y[:1000, 0])
    monkeypatch.undo()
    same = KernelRidge(**GIVEN).fit(X[:1000], Y[:1000, 0])
    widths = [np.diff(one.predict(TEST, interval=0.9)[1], axis=1).mean() for one in (model, same)]
    assert abs(widths[0] / widths[1] - 1) < 0.05


def test_everything_left_open_and_saved():
    y = np.sin(6 * X[:, 0]) * X[:, 1] + 0.05 * RNG.standard_normal(2000)
    model = KernelRidge(kernel="gaussian", metric=None, map="exact", random_state=0).fit(X, y)
    assert model.score(TEST, np.sin(6 * TEST[:, 0]) * TEST[:, 1]) > 0.95
    assert model.selection_.map == "exact" and "held-out rows" in model.selection_.reason
    assert model.n_features_in_ == 3 and model.features_.n_features_out == 2000
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(TEST), model.predict(TEST))
    _, bounds = again.predict(TEST, interval=0.9)
    assert (bounds[:, 0] < bounds[:, 1]).all()
    np.testing.assert_array_equal(model.compact().predict(TEST), again.predict(TEST))


def test_alpha_alone_is_chosen_by_leave_one_out_errors():
    model = KernelRidge(**GIVEN | {"alpha": "auto"}).fit(X[:300], Y[:300, 0])
    same = KernelRidge(KERNEL, gamma=None, map="landmarks", n_components=300, random_state=0).fit(X[:300], Y[:300, 0])
    assert 0.3 < model.alpha_ / same.alpha_ < 3.2  # neighbours on the grid at most
    assert model.selection_.alpha == model.alpha_ and "leave-one-out" in model.selection_.reason


def test_classes_and_their_probabilities():
    labels = (X[:, 0] * X[:, 1] > 0).astype(int) + (X[:, 2] > 1)
    model = KernelClassifier(kernel="gaussian", gamma=0.5, map="exact", alpha=0.1, random_state=0).fit(
        X[:500], labels[:500]
    )
    assert model.score(X[500:], labels[500:]) > 0.85
    shares = model.predict_proba(TEST)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert model.predict_set(X[500:], coverage=0.9)[np.arange(1500), labels[500:]].mean() > 0.85
    np.testing.assert_array_equal(model.compact().predict_proba(TEST), shares)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 100}, "map='exact' has no width and no projection, got n_components=100"),
        ({"projection": "orthogonal"}, "map='exact' has no width and no projection"),
        ({"solver": "primal"}, "solver must be one of"),
        ({"alpha": "loo"}, "alpha must be 'auto' or a positive number for map='exact', got 'loo'"),
        ({"alpha": 0.0}, "alpha must be 'auto' or a positive number for map='exact', got 0.0"),
        ({"method": "nadaraya-watson"}, "map='exact' needs method='ridge'"),
        ({"loss": "huber"}, "loss='huber' reweights the rows"),
    ],
)
def test_what_does_not_go_together_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        KernelRidge(**GIVEN | options).fit(X[:20], Y[:20])


def test_streams_and_dask_are_refused_in_words():
    with pytest.raises(AttributeError) as error:
        KernelRidge(**GIVEN).partial_fit(X, Y)
    assert "map='exact' needs all rows at once" in str(error.value.__cause__)
    array = pytest.importorskip("dask.array")
    from bochner import distributed

    with pytest.raises(ValueError, match="map='exact' needs all rows in one place"):
        distributed.KernelRidge(**GIVEN).fit(array.from_array(X), array.from_array(Y[:, 0]))
