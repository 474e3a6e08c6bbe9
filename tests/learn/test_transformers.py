"""RandomFeatures and RandomProjection: drop-ins for scikit-learn's."""

from __future__ import annotations

import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import DataDimensionalityWarning, NotFittedError
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.random_projection import GaussianRandomProjection

from bochner import kernels, maps, projections, rotations
from bochner.learn import KernelClassifier, KernelRidge, RandomFeatures, RandomProjection

RNG = np.random.default_rng(0)
X = RNG.standard_normal((80, 6))
Y = np.sin(X[:, 0])

ALL = [
    RandomFeatures(n_components=20, random_state=0),
    RandomFeatures("softmax", gamma="median", projection="simplex", n_components=20, random_state=0),
    RandomFeatures(projection=projections.Orthogonal(rotations.StructuredGivens()), n_components=20, random_state=0),
    RandomFeatures(None, map=maps.Pointwise(np.tanh), n_components=20, random_state=0),
    KernelRidge(n_components=20, random_state=0),
    KernelClassifier(n_components=20, random_state=0),
    KernelClassifier(method="nadaraya-watson", n_components=20, random_state=0),
    RandomProjection(3, random_state=0),
]


def result_of(estimator, Z=X):
    return estimator.transform(Z) if hasattr(estimator, "transform") else estimator.predict(Z)


@pytest.mark.parametrize("estimator", ALL, ids=str)
@pytest.mark.parametrize("through", ("pickle", "joblib"))
def test_round_trip(estimator, through, tmp_path):
    fitted = clone(estimator).fit(X, Y > 0)
    if through == "pickle":
        copy = pickle.loads(pickle.dumps(fitted))
    else:
        joblib.dump(fitted, tmp_path / "model")
        copy = joblib.load(tmp_path / "model")
    np.testing.assert_array_equal(result_of(copy), result_of(fitted))


@pytest.mark.parametrize("estimator", ALL, ids=str)
def test_threads_do_not_change_a_bit(estimator):
    results = [result_of(clone(estimator).set_params(n_jobs=n).fit(X, Y > 0)) for n in (1, 2, -1, None)]
    for other in results[1:]:
        np.testing.assert_array_equal(results[0], other)


@pytest.mark.parametrize("estimator", ALL, ids=str)
def test_fit_changes_no_parameter(estimator):
    fitted = clone(estimator)
    before = {name: repr(value) for name, value in fitted.get_params().items()}
    fitted.fit(X, Y > 0)
    assert {name: repr(value) for name, value in fitted.get_params().items()} == before


@pytest.mark.parametrize("estimator", ALL, ids=str)
def test_sparse_rows_and_float32(estimator):
    Z = X * (np.abs(X) > 0.7)
    if estimator.get_params().get("method") == "ridge":
        # clipped and compressed columns, which it would try, are centred, and sparse rows never are
        estimator = clone(estimator).set_params(standardize=True)
    fitted = clone(estimator).fit(Z, Y > 0)
    other = clone(estimator).fit(sparse.csr_matrix(Z), Y > 0)
    np.testing.assert_allclose(result_of(other, sparse.csr_matrix(Z)), result_of(fitted, Z), atol=1e-9)
    if hasattr(fitted, "transform"):
        single = clone(estimator).fit(Z.astype(np.float32)).transform(sparse.csr_matrix(Z.astype(np.float32)))
        assert single.dtype == np.float32
        np.testing.assert_allclose(single, result_of(fitted, Z), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("estimator", ALL, ids=str)
def test_a_fit_that_fails_changes_nothing(estimator):
    fitted = clone(estimator).fit(X, Y > 0)
    before = result_of(fitted)
    with pytest.raises(ValueError, match="n_components must be an integer of at least 1, got -1"):
        fitted.set_params(n_components=-1).fit(X[:, :4], Y > 0)
    assert fitted.n_features_in_ == 6
    np.testing.assert_array_equal(result_of(fitted), before)


def test_in_place_of_rbf_sampler():
    for transformer in (RBFSampler(gamma=0.1, random_state=0), RandomFeatures(gamma=0.1, random_state=0)):
        pipeline = make_pipeline(StandardScaler(), transformer, Ridge(0.1))
        name = type(transformer).__name__.lower()
        search = GridSearchCV(pipeline, {f"{name}__gamma": [0.05, 0.1], f"{name}__n_components": [100, 200]}, cv=3)
        assert search.fit(X, Y).best_score_ > 0.6


def test_kernels_and_maps_can_be_searched():
    grid = {
        "kernel": ["gaussian", kernels.Matern(1.5)],
        "projection": ["orthogonal", projections.IID()],
        "gamma": ["scale", 0.1],
    }
    search = GridSearchCV(KernelRidge(n_components=64, random_state=0), grid, cv=2).fit(X, Y)
    assert len(search.cv_results_["params"]) == 8


def test_a_column_of_categories_is_refused_with_a_remedy():
    table = pd.DataFrame({"size": [1.0, 2.0], "colour": pd.Categorical(["red", "blue"])})
    with pytest.raises(
        ValueError, match=r"RandomFeatures: .* got 'colour' of type category; encode it, .*OneHotEncoder"
    ):
        RandomFeatures().fit(table)


def test_names_and_frames():
    fitted = RandomFeatures(n_components=4, random_state=0).set_output(transform="pandas").fit(pd.DataFrame(X))
    frame = fitted.transform(pd.DataFrame(X))
    assert list(frame.columns) == [f"randomfeatures{k}" for k in range(4)]
    assert list(fitted.get_feature_names_out()) == list(frame.columns)


def test_seeds():
    def transform(state):
        return RandomFeatures(n_components=8, random_state=state).fit(X).transform(X)

    np.testing.assert_array_equal(transform(3), transform(3))
    assert not np.array_equal(transform(3), transform(4))
    np.testing.assert_array_equal(transform(np.random.RandomState(3)), transform(np.random.RandomState(3)))
    np.testing.assert_array_equal(transform(np.random.default_rng(3)), transform(np.random.default_rng(3)))
    one = np.random.default_rng(3)
    assert not np.array_equal(transform(one), transform(one))


@pytest.mark.parametrize("estimator", ALL, ids=str)
def test_errors_in_the_wording_of_scikit_learn(estimator):
    with pytest.raises(NotFittedError, match=rf"This {type(estimator).__name__} instance is not fitted yet"):
        result_of(clone(estimator))
    fitted = clone(estimator).fit(X, Y > 0)
    with pytest.raises(ValueError, match=rf"X has 5 features, but {type(estimator).__name__} is expecting 6 features"):
        result_of(fitted, X[:, :5])
    with pytest.raises(ValueError, match=r"Input X contains NaN"):
        result_of(fitted, np.full((2, 6), np.nan))


@pytest.mark.parametrize(
    "projection", (None, "iid", projections.Orthogonal(rotations.Hadamard(), radii="fixed")), ids=str
)
def test_projection_is_its_components(projection):
    fitted = RandomProjection(4, projection=projection, random_state=0).fit(X)
    assert fitted.components_.shape == (4, 6)
    np.testing.assert_allclose(fitted.transform(X), X @ fitted.components_.T, atol=1e-12)


@pytest.mark.parametrize("computed", (False, True))
def test_inverse_of_a_projection(computed):
    fitted = RandomProjection(4, compute_inverse_components=computed, random_state=0).fit(X)
    Z = fitted.transform(X)
    back = fitted.inverse_transform(Z)
    np.testing.assert_allclose(fitted.transform(back), Z, atol=1e-10)
    np.testing.assert_allclose(back, Z @ np.linalg.pinv(fitted.components_).T, atol=1e-10)
    assert hasattr(fitted, "inverse_components_") == computed
    np.testing.assert_allclose(fitted.inverse_transform(sparse.csr_matrix(Z)), back, atol=1e-10)


def test_an_inverse_belongs_to_its_fit():
    fitted = RandomProjection(3, compute_inverse_components=True, random_state=0).fit(X)
    fitted.set_params(compute_inverse_components=False, random_state=1).fit(X)
    assert not hasattr(fitted, "inverse_components_")
    fitted.set_params(compute_inverse_components=True)
    Z = fitted.transform(X)
    np.testing.assert_allclose(fitted.transform(fitted.inverse_transform(Z)), Z)


def test_automatic_width_is_that_of_scikit_learn():
    wide = RNG.standard_normal((10, 300))
    ours, theirs = RandomProjection(eps=0.4).fit(wide), GaussianRandomProjection(eps=0.4).fit(wide)
    assert ours.n_components_ == theirs.n_components_ == ours.transform(wide).shape[1]


def test_a_whole_rotation_keeps_all_distances():
    Z = RandomProjection(6, random_state=0).fit_transform(X)
    np.testing.assert_allclose(Z @ Z.T, X @ X.T, atol=1e-10)


def test_refusals_of_projections():
    with pytest.raises(
        ValueError, match=r"eps=0\.1 and 80 rows lead to a target dimension of \d+, and X has 6 columns; raise"
    ):
        RandomProjection().fit(X)
    with pytest.raises(ValueError, match=r"RandomProjection: n_components must be an integer or 'auto', got 'all'\."):
        RandomProjection("all").fit(X)
    with pytest.raises(ValueError, match=r"RandomProjection: eps must be a positive number, got 0\."):
        RandomProjection(eps=0).fit(X)
    with pytest.raises(ValueError, match=r"inverse_transform expects 3 columns, those of transform, got 6\."):
        RandomProjection(3).fit(X).inverse_transform(X)
    with pytest.warns(DataDimensionalityWarning, match=r"n_components=9 is above the 6 columns of X"):
        RandomProjection(9).fit(X)


@pytest.mark.parametrize("estimator", ALL, ids=str)
def test_masked_entries_are_refused(estimator):
    masked = np.ma.array(X, mask=X > 2)
    with pytest.raises(ValueError, match=rf"{type(estimator).__name__}: expected an array without missing numbers"):
        clone(estimator).fit(masked, Y > 0)
