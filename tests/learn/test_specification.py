"""From an estimator's parameters to features: bandwidths, names, widths, and what is said when they do not fit."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import pdist

from bochner import Approximation, kernels, maps, projections
from bochner.learn import KernelClassifier, KernelRidge, RandomFeatures
from support.checks import check_mean
from support.map_variances import rotated

X = 2.0 * np.random.default_rng(0).standard_normal((60, 5)) + 1.0
X.flags.writeable = False


def fitted(*arguments, **parameters):
    parameters.setdefault("n_components", 32)
    return RandomFeatures(*arguments, random_state=0, **parameters).fit(X)


SCALE = 1 / (5 * X.var())
MEDIAN, MEDIAN_L1 = np.median(pdist(X)), np.median(pdist(X, "cityblock"))


@pytest.mark.parametrize(
    "kernel, gamma, expected",
    [
        ("gaussian", 0.5, kernels.Gaussian(1.0)),
        ("gaussian", "scale", kernels.Gaussian(1 / np.sqrt(2 * SCALE))),
        ("gaussian", None, kernels.Gaussian(1 / np.sqrt(2 * SCALE))),
        ("gaussian", "median", kernels.Gaussian(MEDIAN)),
        ("matern-3/2", 2.0, kernels.Matern(1.5, 0.5)),
        ("rational-quadratic", 2.0, kernels.RationalQuadratic(1.0, 0.5)),
        ("cauchy", 4.0, kernels.Cauchy(0.5)),
        ("laplacian", 4.0, kernels.Laplacian(0.25)),
        ("laplacian", "scale", kernels.Laplacian(5 * X.std())),
        ("laplacian", "median", kernels.Laplacian(MEDIAN_L1)),
        ("softmax", 0.3, kernels.Softmax(0.3)),
        ("softmax", "median", kernels.Softmax(1 / MEDIAN**2)),
        ("arc-cosine-1", None, kernels.ArcCosine(1)),
        (kernels.Gaussian(3.0), None, kernels.Gaussian(3.0)),
        (kernels.Matern(2.5), 0.5, kernels.Matern(2.5, 1.0)),
    ],
    ids=str,
)
def test_gamma(kernel, gamma, expected):
    result = fitted(kernel, gamma=gamma).kernel_
    assert type(result) is type(expected)
    width, own = (getattr(k, "lengthscale", getattr(k, "scale", 1.0)) for k in (result, expected))
    assert np.isclose(width, own, rtol=1e-12)


def test_gamma_as_the_formula_says():
    x, y = X[:3], X[3:5]
    squares = ((x[:, None] - y) ** 2).sum(axis=-1)
    np.testing.assert_allclose(fitted(gamma=0.07).kernel_(x, y), np.exp(-0.07 * squares))
    np.testing.assert_allclose(fitted("cauchy", gamma=0.07).kernel_(x, y), 1 / (1 + 0.07 * squares))
    manhattan = np.abs(x[:, None] - y).sum(axis=-1)
    np.testing.assert_allclose(fitted("laplacian", gamma=0.07).kernel_(x, y), np.exp(-0.07 * manhattan))


@pytest.mark.parametrize("gamma", ("scale", "median"))
def test_rules_see_the_same_in_sparse_data(gamma):
    data = sparse.random(50, 8, 0.3, "csr", random_state=0)
    a, b = (RandomFeatures(gamma=gamma, random_state=0).fit(Z).kernel_ for Z in (data, data.toarray()))
    assert np.isclose(a.lengthscale, b.lengthscale)


def test_weights_and_a_large_mean_leave_the_variance_as_it_is():
    data = (1e4 + np.random.default_rng(0).standard_normal((200, 3))).astype(np.float32)
    expected = RandomFeatures().fit(data).kernel_.lengthscale
    for Z in (data, sparse.csr_matrix(data)):
        found = (
            KernelRidge(gamma="scale", map=None, n_components=8, alpha=1.0)
            .fit(Z, data[:, 0], np.full(200, 2.0))
            .kernel_.lengthscale
        )
        assert np.isclose(found, expected, rtol=1e-6)


def test_a_sparse_matrix_is_not_made_dense_for_maps_that_adapt(monkeypatch):
    from bochner.learn import _row_source

    monkeypatch.setattr(_row_source, "_DENSE_NUMBERS", 100 * 8)
    shapes, original = [], _row_source.SparseRows.dense
    monkeypatch.setattr(
        _row_source.SparseRows, "dense", lambda self, rows: shapes.append(len(rows)) or original(self, rows)
    )
    data = sparse.random(1000, 8, 0.3, "csr", random_state=0)
    fitted = RandomFeatures(map=maps.OptimalPositive(), random_state=0).fit(data)
    assert max(shapes) == 100
    monkeypatch.setattr(_row_source.SparseRows, "dense", original)
    Phi = fitted.transform(data[:50])  # unbiased whichever rows the constant is chosen from
    assert np.abs(Phi @ Phi.T - fitted.kernel_(data[:50].toarray())).mean() < 0.2


@pytest.mark.parametrize("value", (1.0, 0.1))
@pytest.mark.parametrize("gamma", ("scale", "median"))
def test_rules_on_constant_data_are_one(gamma, value):
    kernel = RandomFeatures(gamma=gamma).fit(np.full((7, 3), value)).kernel_
    assert np.isclose(kernel.lengthscale, 1 / np.sqrt(2) if gamma == "scale" else 1.0)


def test_median_of_mostly_equal_rows_is_the_smallest_distance():
    data = np.zeros((20, 2))
    data[0] = [3.0, 4.0]
    assert RandomFeatures(gamma="median").fit(data).kernel_.lengthscale == 5.0


@pytest.mark.parametrize(
    "parameters, width",
    [
        ({}, 64),
        ({"projection": projections.Quadrature(origin="resample")}, 65),
        ({}, 1),
        ({}, 37),
        ({"projection": projections.Quadrature(origin="resample")}, 64),
        ({"map": "positive"}, 37),
        ({"map": "hyperbolic"}, 38),
        ({"map": "hyperbolic"}, 39),
        ({"map": "poisson"}, 37),
        ({"kernel": None, "map": maps.Pointwise(np.tanh)}, 37),
        ({"kernel": "linear"}, 3),
        ({"kernel": "laplacian", "projection": "iid"}, 10),
        ({"projection": "sobol"}, 10),
        ({"projection": "simplex+"}, 10),
    ],
    ids=str,
)
def test_the_width_is_what_was_asked_for(parameters, width):
    assert fitted(**parameters, n_components=width).transform(X).shape == (60, width)


@pytest.mark.parametrize(
    "parameters, message",
    [
        (
            {"n_components": 1, "map": "hyperbolic"},
            r"n_components=1 is too small: one row of Hyperbolic\(.*makes 2 features; raise",
        ),
        ({"n_components": 0}, r"RandomFeatures: n_components must be an integer of at least 1, got 0\."),
        ({"kernel": "gaussia"}, r"RandomFeatures: unknown kernel 'gaussia'\. Did you mean 'gaussian'\?"),
        ({"map": "relu"}, r"RandomFeatures: Rectified\(order=1\) cannot estimate Gaussian"),
        ({"projection": "haar"}, r"RandomFeatures: unknown projection 'haar'\."),
        ({"gamma": "auto"}, r"RandomFeatures: gamma must be 'scale', 'median' or a positive number, got 'auto'\."),
        ({"gamma": -1.0}, r"RandomFeatures: gamma must be a positive number, got -1\.0\."),
        ({"kernel": "linear", "gamma": 1.0}, r"RandomFeatures: Linear\(\) has no bandwidth for gamma=1\.0 to set"),
        ({"kernel": kernels.Gaussian(2.0), "gamma": 1.0}, r"gamma=1\.0 and Gaussian\(lengthscale=2\.0\) both set"),
        ({"kernel": None, "map": maps.Pointwise(np.tanh), "gamma": 1.0}, r"gamma=1\.0 needs a kernel"),
        (
            {"projection": "quadrature"},
            r"different features for queries and keys.*use a symmetric map such as Trigonometric",
        ),
        (
            {"projection": "quadrature", "map": "positive"},
            r"RandomFeatures: .* different features for queries and keys",
        ),
        ({"map": "angular-hybrid", "n_components": 36}, r"different features for queries and keys"),
        ({"n_jobs": 0}, r"RandomFeatures: n_jobs must be an integer of at least 1, got 0\."),
    ],
    ids=str,
)
def test_refusals(parameters, message):
    with pytest.raises(ValueError, match=message):
        fitted(**parameters)


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"kernel": 3}, r"RandomFeatures: kernel must be a kernel such as kernels\.Gaussian\(\) or its name, got 3\."),
        ({"map": 3}, r"RandomFeatures: map must be a map such as maps\.Trigonometric\(\), its name or None, got 3\."),
        ({"projection": 3}, r"RandomFeatures: projection must be a projection such as"),
        ({"n_components": 8.0}, r"RandomFeatures: n_components must be an integer"),
    ],
    ids=str,
)
def test_refused_types(parameters, message):
    with pytest.raises(TypeError, match=message):
        fitted(**parameters)


@pytest.mark.parametrize("width", (1, 5))
def test_odd_widths_are_unbiased(width):
    x, y = np.array([0.3, -0.4]), np.array([1.0, 0.2])
    Z = np.concatenate(rotated(x, y))  # 16 orientations in each draw
    features = (RandomFeatures(gamma=0.5, n_components=width, random_state=k).fit_transform(Z) for k in range(200))
    estimates = np.array([np.sum(Phi[:16] * Phi[16:], axis=1).mean() for Phi in features])
    check_mean(estimates, kernels.Gaussian(1.0)(x[None], y[None])[0, 0])


def test_columns_that_no_row_fills_are_zero():
    wide = fitted(map="hyperbolic", n_components=39).transform(X)
    np.testing.assert_array_equal(wide[:, 38], 0)
    np.testing.assert_array_equal(wide[:, :38], fitted(map="hyperbolic", n_components=38).transform(X))


def test_a_specification_becomes_parameters():
    spec = Approximation(kernels.Matern(1.5, 2.0), projection=projections.Simplex(), n_projections=20)
    model = KernelRidge.from_spec(spec, alpha="gcv", random_state=0).fit(X, X[:, 0])
    assert model.features_.spec == spec and model.alpha == "gcv"


def test_the_bandwidth_of_a_specification_is_not_searched_for():
    model = KernelClassifier.from_spec(Approximation(kernels.Gaussian(), n_projections=8), random_state=0)
    model.fit(X, X[:, 0] > 0)
    assert model.kernel_ == kernels.Gaussian() and model.coordinates_ is None
    assert model.selection_.map == "given"


def test_a_specification_is_not_a_name():
    with pytest.raises(TypeError, match=r"KernelRidge\.from_spec: spec must be"):
        KernelRidge.from_spec("orf")
