"""Sparse rows: the same results as dense ones, without making them dense."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from bochner import Approximation, kernels, maps, projections, rotations, threads
from bochner.learn import GaussianProcess, KernelClassifier, KernelRidge, RandomFeatures, RandomProjection

RNG = np.random.default_rng(0)
SPARSE = sparse.random(90, 400, 0.02, "csr", random_state=0)
SPARSE.data -= 0.3
DENSE = SPARSE.toarray()
Y = RNG.standard_normal(90)
GIVENS = projections.Orthogonal(rotations.StructuredGivens())
SPECS = [
    Approximation(kernels.Gaussian(3.0), n_projections=9),
    Approximation(kernels.Gaussian(tuple(1 + RNG.random(400))), n_projections=9),
    Approximation(kernels.Matern(1.5, 2.0), projection=projections.Quadrature(), n_projections=801),
    Approximation(kernels.Gaussian(3.0), projection=GIVENS, n_projections=9),
    Approximation(kernels.Laplacian(5.0), n_projections=9),
    Approximation(kernels.Softmax(0.5), maps.Positive(), n_projections=9),
    Approximation(kernels.Softmax(0.5), maps.Hyperbolic(), n_projections=9),
    Approximation(kernels.Softmax(0.5), maps.OptimalPositive(), GIVENS, 9),
    Approximation(kernels.Gaussian(3.0), maps.GeneralizedExponential(-0.1 + 0.1j, -1), n_projections=9),
    Approximation(kernels.Gaussian(3.0), maps.DenseExponential(), n_projections=9),
    Approximation(kernels.Gaussian(3.0), maps.Poisson(), n_projections=9),
    Approximation(kernels.ArcCosine(1), n_projections=9),
    Approximation(kernels.Angular(), n_projections=9),
    Approximation(kernels.Linear(), n_projections=9),
    Approximation(kernels.Gaussian(3.0), maps.Landmarks(), n_projections=20),
    Approximation(kernels.Matern(0.5, tuple(1 + RNG.random(400))), maps.Landmarks(), n_projections=20),
    Approximation(kernels.ArcCosine(1), maps.Landmarks(), n_projections=20),
]


@pytest.fixture
def never_dense(monkeypatch):
    """Fail if more than a few rows of a sparse matrix are made dense."""
    from scipy.sparse import _compressed, _csr

    original = _csr._csr_base.toarray if "toarray" in vars(_csr._csr_base) else _compressed._cs_matrix.toarray

    def few(self, *arguments, **options):
        assert self.shape[0] <= 40, f"{self.shape[0]} rows were made dense"
        return original(self, *arguments, **options)

    monkeypatch.setattr(_compressed._cs_matrix, "toarray", few)


@pytest.mark.parametrize("dtype", (np.float32, np.float64))
@pytest.mark.parametrize("spec", SPECS, ids=lambda s: f"{type(s.kernel).__name__}-{type(s.map).__name__}")
def test_features_of_sparse_rows(spec, dtype):
    phi, X = spec.fit(DENSE, rng=0), DENSE.astype(dtype)
    for method in (phi.queries, phi.keys):
        expected, found = method(X), method(sparse.csr_array(X))
        assert found.dtype == dtype and type(found) is np.ndarray
        np.testing.assert_allclose(found, expected, rtol=0, atol=300 * np.finfo(dtype).eps * np.abs(expected).max())
    logarithms = [phi.log_features(rows, key=True).values() for rows in (X, sparse.csr_array(X))]
    np.testing.assert_allclose(*logarithms, rtol=0, atol=300 * np.finfo(dtype).eps * np.abs(logarithms[0]).max())


@pytest.mark.parametrize(
    "estimator",
    [
        RandomFeatures(n_components=30, random_state=0),
        RandomFeatures(gamma=0.1, n_components=30, projection=GIVENS, random_state=0),
        RandomFeatures("softmax", gamma=0.1, map="positive", n_components=30, random_state=0),
        RandomProjection(20, random_state=0),
        KernelRidge(gamma=0.1, n_components=30, alpha=0.1, map="trigonometric", random_state=0),
        KernelRidge(method="nadaraya-watson", gamma=0.1, map="positive", n_components=30, random_state=0),
        KernelClassifier(gamma=0.1, n_components=30, alpha=0.1, map="trigonometric", random_state=0),
        GaussianProcess(gamma=0.1, n_components=30, noise=0.1, amplitude=1.0, optimize=False, random_state=0),
    ],
    ids=lambda e: type(e).__name__,
)
def test_estimators_never_make_sparse_rows_dense(estimator, never_dense):
    targets = Y > 0 if isinstance(estimator, KernelClassifier) else Y
    results = []
    for X in (DENSE, SPARSE, sparse.csr_array(SPARSE)):
        fitted = estimator.fit(X, targets)
        results.append(fitted.transform(X) if hasattr(fitted, "transform") else fitted.predict(X).astype(float))
    np.testing.assert_allclose(results[1], results[0], rtol=0, atol=1e-9)
    np.testing.assert_array_equal(results[1], results[2])


@pytest.mark.parametrize("kernel", ("gaussian", "arc-cosine-1"))
def test_spreads_of_a_gaussian_process_on_landmarks(kernel):
    model = GaussianProcess(kernel, map="landmarks", n_components=20, optimize=False, random_state=0).fit(DENSE, Y)
    np.testing.assert_allclose(
        model.predict(SPARSE, return_std=True), model.predict(DENSE, return_std=True), rtol=0, atol=1e-8
    )


@pytest.mark.parametrize("spec", [SPECS[0], SPECS[3], SPECS[14]], ids=["dense", "fast", "landmarks"])
def test_threads_do_not_change_a_bit(spec, monkeypatch):
    from bochner.linalg import engine

    monkeypatch.setattr(engine.rows_per_tile, "__defaults__", (1 << 10,))
    phi, results = spec.fit(DENSE, rng=0), []
    for n in (1, 2, 3):
        with threads(n):
            results.append(phi.queries(SPARSE))
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


def test_other_formats_types_and_repeated_entries():
    phi = SPECS[5].draw(400, rng=0)
    repeated = sparse.csr_array(([1.0, 2.0, 3.0], [7, 7, 5], [0, 2, 3, 3]), shape=(3, 400))
    np.testing.assert_allclose(phi.queries(repeated), phi.queries(repeated.toarray()))
    assert repeated.nnz == 3  # the user's own matrix is left as it is
    whole = sparse.coo_array((DENSE * 10).astype(np.int64))
    np.testing.assert_allclose(phi.queries(whole * 0.01), phi.queries(whole.toarray() * 0.01))
    assert phi.queries(sparse.csc_matrix(DENSE > 0.5)).dtype == np.float64


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (SPARSE[:, :10], ValueError, "FeatureMap.queries: expected an array whose last axis is 400, got"),
        (SPARSE * np.nan, ValueError, "FeatureMap.queries: expected finite numbers, got NaN or infinity in a sparse"),
        (
            SPARSE.astype(complex),
            TypeError,
            "FeatureMap.queries: expected a sparse matrix of real numbers, got complex",
        ),
    ],
)
def test_bad_sparse_rows_are_explained(X, error, message):
    with pytest.raises(error, match=message):
        SPECS[0].draw(400, rng=0).queries(X)
