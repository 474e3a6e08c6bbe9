"""On a cluster of processes every estimator gives what it gives on one machine, to rounding."""

from __future__ import annotations

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from bochner import distributed, kernels, learn

RNG, N = np.random.default_rng(0), 460
X = RNG.normal([0.0, 5.0, -3.0], size=(N, 3))
Y = np.stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2]], axis=1)
LABELS = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-1.0, 0.5])]
NOISY = Y[:, 0] + 0.1 * RNG.standard_normal(N)
WEIGHTS = RNG.integers(0, 3, N).astype(float)
BLOCKS = (140, 20, 180, 120)


def blocks(array):
    return da.from_array(array, chunks=(BLOCKS, *array.shape[1:]))


CASES = [
    ("RandomFeatures", {}, None, ("transform",)),
    ("RandomFeatures", {"gamma": "median"}, None, ("transform",)),
    ("RandomFeatures", {"kernel": "laplacian"}, None, ("transform",)),
    ("RandomProjection", {"n_components": 2}, None, ("transform",)),
    ("KernelRidge", {}, Y[:, 0], ("predict",)),
    ("KernelRidge", {"alpha": "gcv", "gamma": 0.3}, Y, ("predict",)),
    ("KernelRidge", {"standardize": True, "gamma": "scale", "map": None, "alpha": 1.0}, Y, ("predict",)),
    ("KernelRidge", {"solver": "cg", "gamma": 0.3, "alpha": 30.0}, Y, ("predict",)),
    ("KernelRidge", {"method": "nadaraya-watson", "map": "positive", "gamma": 0.05}, Y, ("predict",)),
    ("KernelClassifier", {"class_weight": "balanced", "metric": None}, LABELS, ("predict", "decision_function")),
    (
        "KernelClassifier",
        {"class_weight": {True: 3.0}, "metric": None},
        LABELS == "a",
        ("predict", "decision_function"),
    ),
    (
        "KernelClassifier",
        {"method": "nadaraya-watson", "map": "positive", "gamma": 0.05},
        LABELS,
        ("predict", "predict_proba"),
    ),
    ("KernelClassifier", {"metric": None}, (Y > 0).astype(int), ("predict", "decision_function")),
    (
        "KernelClassifier",
        {"class_weight": "balanced", "metric": None},
        (Y > 0).astype(int),
        ("predict", "decision_function"),
    ),
    ("KernelRidge", {"alpha": "loo", "gamma": 0.3}, Y, ("predict",)),
    ("GaussianProcess", {"optimize": ("noise", "amplitude")}, Y, ("predict",)),
    (
        "GaussianProcess",
        {"optimize_rows": 200, "normalize_y": True, "ard": True, "gamma": 0.1},
        NOISY,
        ("predict", "sample_y"),
    ),
]


def fitted(module, name, options, X, y):
    options = {"random_state": 0, **({} if "n_components" in options else {"n_components": 24}), **options}
    estimator = getattr(module, name)(**options)
    return estimator.fit(X) if y is None else estimator.fit(X, y)


def check_close(lazy, expected):
    assert dask.is_dask_collection(lazy)
    values = lazy.compute()
    assert (lazy.dtype, lazy.shape) == (values.dtype, values.shape) == (expected.dtype, expected.shape)
    if values.dtype.kind == "f":
        np.testing.assert_allclose(values, expected, atol=1e-6 * np.abs(expected).max())
    else:
        np.testing.assert_array_equal(values, expected)


@pytest.mark.parametrize("name, options, y, methods", CASES, ids=lambda v: str(v)[:60] if isinstance(v, dict) else "")
def test_equals_one_machine(client, name, options, y, methods):
    ours = fitted(distributed, name, options, blocks(X), None if y is None else blocks(y))
    single = fitted(learn, name, options, X, y)
    for method in methods:
        check_close(getattr(ours, method)(blocks(X)), getattr(single, method)(X))


def test_standard_deviations(client):
    ours = fitted(distributed, "GaussianProcess", {"optimize": False}, blocks(X), blocks(Y))
    expected = fitted(learn, "GaussianProcess", {"optimize": False}, X, Y).predict(X, return_std=True)
    for lazy, values in zip(ours.predict(blocks(X), return_std=True), expected, strict=True):
        check_close(lazy, values)


@pytest.mark.parametrize("method", ["ridge", "nadaraya-watson"])
def test_weights(client, method):
    options = {"random_state": 0, "n_components": 24, "method": method, "map": "positive", "gamma": "median"}
    ours = distributed.KernelRidge(**options).fit(blocks(X), blocks(Y), blocks(WEIGHTS))
    single = learn.KernelRidge(**options).fit(X, Y, WEIGHTS)
    check_close(ours.predict(blocks(X)), single.predict(X))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_precision_is_kept(dtype):
    ours = fitted(distributed, "RandomFeatures", {}, blocks(X.astype(dtype)), None)
    check_close(ours.transform(blocks(X.astype(dtype))), ours.transform(X.astype(dtype)))


def test_weights_of_a_process(client):
    options = {"n_components": 24, "optimize_rows": 200, "ard": True, "random_state": 0, "gamma": 0.1}
    ours = distributed.GaussianProcess(**options).fit(blocks(X), blocks(NOISY), blocks(WEIGHTS))
    single = learn.GaussianProcess(**options).fit(X, NOISY, WEIGHTS)
    check_close(ours.predict(blocks(X)), single.predict(X))


def test_processes_take_single_precision_in_double():
    rows = X.astype(np.float32)
    options = {"n_components": 24, "optimize": ("noise", "amplitude"), "random_state": 0, "gamma": 0.1}
    ours = distributed.GaussianProcess(**options).fit(blocks(rows), NOISY)
    single = learn.GaussianProcess(**options).fit(rows, NOISY)
    check_close(ours.predict(blocks(rows)), single.predict(rows))


def test_dataframes_of_unknown_lengths(client):
    frame = pd.DataFrame(X, columns=["u", "v", "w"]).assign(label=LABELS, target=Y[:, 0])
    lazy = dd.from_pandas(frame, npartitions=4)
    lazy = lazy[lazy.u > -2.0]  # lengths are now unknown to Dask
    kept = frame[frame.u > -2.0]
    columns = ["u", "v", "w"]
    ours = distributed.KernelRidge(n_components=24, gamma="median", random_state=0).fit(lazy[columns], lazy.target)
    single = learn.KernelRidge(n_components=24, gamma="median", random_state=0).fit(kept[columns], kept.target)
    assert list(ours.feature_names_in_) == columns
    np.testing.assert_allclose(ours.predict(lazy[columns]).compute(), single.predict(kept[columns]), rtol=1e-6)
    classes = distributed.KernelClassifier(n_components=24, random_state=0).fit(lazy[columns], lazy.label)
    assert list(classes.classes_) == ["a", "b", "c"]


def test_pieces_equal_the_whole(client):
    for name, y in (("KernelRidge", Y), ("GaussianProcess", Y), ("KernelClassifier", LABELS)):
        machine = {"map": None, "alpha": 1.0}
        options = {"gamma": 0.1, **({"optimize": ("noise", "amplitude")} if name == "GaussianProcess" else machine)}
        whole = fitted(learn, name, options, X, y)
        parts = fitted(distributed, name, options, blocks(X)[:240], blocks(y)[:240])
        parts.partial_fit(blocks(X)[240:], blocks(y)[240:])
        check_close(parts.predict(blocks(X)), whole.predict(X))


@pytest.mark.parametrize("weights", (None, WEIGHTS), ids=["plain", "weighted"])
@pytest.mark.parametrize("y", (Y[:, 0], Y, LABELS, (Y > 0).astype(int)), ids=["one", "two", "classes", "labels"])
def test_scores(y, weights):
    name = "KernelRidge" if y.dtype == float else "KernelClassifier"
    options = {"gamma": 0.1, "map": None, "alpha": 1.0}
    model = fitted(distributed, name, options, X, y)
    with dask.config.set(scheduler="synchronous"):
        score = model.score(blocks(X), blocks(y), None if weights is None else blocks(weights))
    assert np.isclose(score, fitted(learn, name, options, X, y).score(X, y, weights))


def test_blocks_go_on_from_few_rows_in_memory():
    with dask.config.set(scheduler="synchronous"):
        parts = distributed.KernelRidge(gamma=0.1, map=None, n_components=24, alpha=1.0, random_state=0).fit(
            X[:10], Y[:10]
        )
        parts.partial_fit(da.asarray(X[10:]), da.asarray(Y[10:]))
    whole = learn.KernelRidge(gamma=0.1, map=None, n_components=24, alpha=1.0, random_state=0).fit(X, Y)
    np.testing.assert_allclose(parts.predict(X), whole.predict(X), rtol=1e-6, atol=1e-8)


def test_classes_that_come_later():
    rows = np.argsort(LABELS, kind="stable")  # the first blocks do not have all of them
    A, y = X[rows], LABELS[rows]
    parts = distributed.KernelClassifier(gamma=0.1, map=None, n_components=24, alpha=1.0, random_state=0)
    with dask.config.set(scheduler="synchronous"):
        parts.partial_fit(da.asarray(A[:100]), da.asarray(y[:100]), classes=np.unique(y)).partial_fit(
            da.asarray(A[100:]), da.asarray(y[100:])
        )
    whole = learn.KernelClassifier(gamma=0.1, map=None, n_components=24, alpha=1.0, random_state=0).fit(A, y)
    np.testing.assert_array_equal(parts.predict(A), whole.predict(A))


def test_schedulers_change_no_bit(client):
    here = distributed.KernelRidge(n_components=24, random_state=0)
    with dask.config.set(scheduler="synchronous"):
        alone = here.fit(blocks(X), blocks(Y)).coef_
    np.testing.assert_array_equal(here.fit(blocks(X), blocks(Y)).coef_, alone)


def test_blocks_change_rounding_alone():
    with dask.config.set(scheduler="synchronous"):
        many = distributed.KernelRidge(n_components=24, random_state=0).fit(da.from_array(X, chunks=(23, 2)), Y).coef_
    np.testing.assert_allclose(many, learn.KernelRidge(n_components=24, random_state=0).fit(X, Y).coef_, rtol=1e-6)


def test_maps_that_adapt_look_at_all_rows_up_to_their_sample():
    options = {"kernel": kernels.Gaussian(3.0), "map": "optimal-positive", "n_components": 16, "random_state": 0}
    ours = distributed.RandomFeatures(**options).fit(blocks(X))
    np.testing.assert_allclose(
        ours.transform(blocks(X)).compute(), learn.RandomFeatures(**options).fit_transform(X), rtol=1e-6
    )


def test_rows_needed_for_the_johnson_lindenstrauss_width():
    wide = np.ones((500, 800))
    ours = distributed.RandomProjection(eps=0.4, random_state=0).fit(da.from_array(wide, chunks=(100, 800)))
    assert ours.n_components_ == learn.RandomProjection(eps=0.4, random_state=0).fit(wide).n_components_


def test_projections_back_to_rows():
    ours = distributed.RandomProjection(2, random_state=0).fit(blocks(X))
    projected = ours.transform(blocks(X))
    check_close(ours.inverse_transform(projected), ours.inverse_transform(ours.transform(X)))


def test_rows_in_memory_are_fitted_as_on_one_machine():
    for name, y in (("KernelRidge", Y), ("GaussianProcess", Y), ("KernelClassifier", LABELS)):
        ours, single = (fitted(module, name, {}, X[:120], y[:120]).predict(X) for module in (distributed, learn))
        np.testing.assert_array_equal(ours, single)


def test_sparse_blocks():
    from scipy import sparse

    rows = sparse.random(300, 20, 0.2, format="csr", random_state=0)
    y = np.asarray(rows.sum(axis=1)).ravel()
    lazy = da.from_array(rows.toarray(), chunks=(100, 20)).map_blocks(sparse.csr_array)
    options = {"n_components": 24, "gamma": 0.1, "map": None, "standardize": False, "alpha": 1.0, "random_state": 0}
    ours = distributed.KernelRidge(**options).fit(lazy, y)
    np.testing.assert_allclose(ours.coef_, learn.KernelRidge(**options).fit(rows, y).coef_, rtol=1e-6)
