"""Standardised columns: a change of coordinates that is the same in memory, in parts, from sparse rows and on a cluster."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bochner.learn import KernelClassifier, KernelRidge
from bochner.learn._column_moments import ColumnMoments
from bochner.learn._coordinates import Coordinates
from bochner.learn._row_source import rows_in_memory

RNG = np.random.default_rng(0)
X = RNG.standard_normal((150, 4)) * [1.0, 1e3, 1e-3, 1.0] + [0.0, 1e5, 0.0, -2.0]
X[:, 3] = 7.0
Y = np.sin(X[:, 0]) + (X[:, 1] - 1e5) / 1e3
SMALL = {"gamma": 0.3, "alpha": 0.01, "map": "trigonometric", "n_components": 40, "random_state": 0}


def weighted_std(Z, w):
    return np.sqrt(np.average((Z - np.average(Z, axis=0, weights=w)) ** 2, axis=0, weights=w))


@pytest.mark.parametrize("dtype", (np.float32, np.float64))
@pytest.mark.parametrize("kind", (np.asarray, sparse.csr_array, sparse.csr_matrix), ids=("dense", "array", "matrix"))
def test_column_moments_are_those_of_numpy(kind, dtype):
    Z, w = (X * (RNG.random(X.shape) < 0.5)).astype(dtype), RNG.integers(0, 3, 150).astype(float)
    parts = [ColumnMoments.of(kind(Z[part]), w[part]) for part in np.split(np.arange(150), [1, 1, 80])]
    found = sum(parts[1:], parts[0])
    np.testing.assert_allclose(found.mean, np.average(Z.astype(float), axis=0, weights=w))
    np.testing.assert_allclose(found.deviation, weighted_std(Z.astype(float), w))


@pytest.mark.parametrize("machine", (KernelRidge, KernelClassifier))
def test_equal_to_a_pipeline(machine):
    y = Y if machine is KernelRidge else Y > 0
    ours = machine(**SMALL, standardize=True).fit(X, y)
    theirs = make_pipeline(StandardScaler(), machine(**SMALL, standardize=False)).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-6)
    assert ours.coordinates_(X).std(axis=0).tolist() == pytest.approx([1, 1, 1, 0])


def test_sparse_rows_are_scaled_and_stay_sparse():
    Z = sparse.csr_matrix(X * (RNG.random(X.shape) < 0.5))
    ours = KernelRidge(**SMALL, standardize=True).fit(Z, Y)
    moved = ours.coordinates_(Z)
    assert sparse.issparse(moved) and moved.nnz == Z.nnz
    np.testing.assert_allclose(moved.toarray(), StandardScaler(with_mean=False).fit_transform(Z).toarray())
    np.testing.assert_allclose(ours.predict(Z), ours.predict(Z.toarray()), atol=1e-8)


def test_streams_use_the_first_part_and_pickles_keep_it():
    stream = KernelRidge(**SMALL, standardize=True).partial_fit(X[:100], Y[:100])
    np.testing.assert_allclose(stream.coordinates_.center, X[:100].mean(axis=0))
    stream = pickle.loads(pickle.dumps(stream)).partial_fit(X[100:], Y[100:])
    np.testing.assert_allclose(stream.coordinates_.center, X[:100].mean(axis=0))
    theirs = KernelRidge(**SMALL).fit(stream.coordinates_(X), Y)
    np.testing.assert_allclose(stream.predict(X), theirs.predict(stream.coordinates_(X)), atol=1e-6)


def test_rows_without_weight_do_not_count():
    w = (np.arange(150) < 100).astype(float)
    few, all_rows = (KernelRidge(**SMALL, standardize=True).fit(*data) for data in ((X[:100], Y[:100]), (X, Y, w)))
    np.testing.assert_allclose(all_rows.predict(X), few.predict(X), atol=1e-6)


def test_rules_for_the_bandwidth_see_standardised_rows():
    kernel = KernelRidge(**SMALL | {"gamma": "scale"}, standardize=True).fit(X[:, :3], Y).kernel_
    assert kernel.lengthscale == pytest.approx(np.sqrt(1.5))


def test_coordinates_follow_each_other():
    first, scale, M = Coordinates(np.ones(4), np.arange(4.0)), np.array([2.0, 1.0, 0.5, 1.0]), RNG.normal(size=(4, 2))
    both = first.followed_by(scale).followed_by(M).followed_by(np.array([3.0, 1.0]))
    np.testing.assert_allclose(both(X), (first(X) * scale) @ M * [3.0, 1.0])
    assert both.n_columns(4) == 2 and both(X.astype(np.float32)).dtype == np.float32
    flat = Coordinates(None, scale, M)
    np.testing.assert_allclose(flat(sparse.csr_matrix(X)), flat(X))


def test_columns_that_overflow_are_refused():
    with pytest.raises(ValueError, match=r"KernelRidge: squares of the columns overflow; rescale them, or pass"):
        KernelRidge(**SMALL, standardize=True).fit(X * 1e200, Y)
    tiny = Coordinates.standard(rows_in_memory("", np.array([[1e-40], [-1e-40]], np.float32)))
    assert np.isfinite(tiny(np.ones((1, 1), np.float32))).all()


def test_a_word_that_is_none_is_refused():
    with pytest.raises(ValueError, match="KernelRidge: standardize must be"):
        KernelRidge(**SMALL, standardize="yes").fit(X, Y)


def test_bounds_keep_predictions_at_the_edge():
    rng = np.random.default_rng(10)
    X = rng.standard_normal((30, 1))
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(30)
    model = KernelRidge(random_state=0).fit(X, y)
    edge, room = X.max(), 0.1 * np.ptp(X)
    far = model.predict([[edge + room], [edge + 3.0], [100.0]])
    np.testing.assert_allclose(far, far[0])
    assert np.abs(model.predict(np.linspace(-5, 5, 101)[:, None])).max() < 10  # without bounds, above a hundred
    np.testing.assert_array_equal(model.coordinates_.bounds[1], edge + room)


def test_columns_of_long_tails_are_compressed_and_others_are_not():
    """The standardised third moment of a lognormal column falls from above 5 to below 1.5; blocks and normal ones stay."""
    rng = np.random.default_rng(0)
    Z = np.column_stack([np.exp(1.2 * rng.standard_normal(500)), rng.standard_normal(500), rng.integers(2, size=500)])
    found = Coordinates.compressing(Z, ((2, 3),))
    assert found is not None and found.compressed.tolist() == [True, False, False]
    moved = found(Z)
    skewness = [abs(np.mean(((part[:, 0] - part[:, 0].mean()) / part[:, 0].std()) ** 3)) for part in (Z, moved)]
    assert skewness[0] > 5 and skewness[1] < 1.5
    np.testing.assert_allclose(moved[:, :2].std(axis=0), 1)
    np.testing.assert_allclose(np.corrcoef(moved[:, 1], Z[:, 1])[0, 1], 1)
    assert Coordinates.compressing(Z[:, 1:]) is None
    assert found(Z.astype(np.float32)).dtype == np.float32


def test_compressed_columns_are_chosen_where_logarithms_count_and_saved():
    rng = np.random.default_rng(0)
    Z = np.exp(1.5 * rng.standard_normal((400, 3)))
    y = np.sin(2 * np.log(Z[:, 0])) + np.log(Z[:, 1])
    model = KernelRidge("gaussian", metric=None, random_state=0).fit(Z[:300], y[:300])
    assert model.selection_.columns == "compressed" and model.score(Z[300:], y[300:]) > 0.8
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(Z), model.predict(Z))


@pytest.mark.filterwarnings("error")
def test_the_largest_number_of_float32_is_bounded_without_an_overflow():
    """As "no data" in rasters; a tenth beyond the range of such a column is not a float32 any more."""
    Z = X.astype(np.float32)
    Z[5, 1] = np.finfo(np.float32).min
    assert np.isfinite(KernelRidge(n_components=8, random_state=0).fit(Z, Y).predict(Z)).all()
