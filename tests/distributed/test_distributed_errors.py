"""Errors name the block and its rows, and change nothing."""

from __future__ import annotations

import subprocess
import sys

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from bochner import distributed

X = np.random.default_rng(0).standard_normal((400, 3))
Y = X[:, 0]


def blocks(array):
    return da.from_array(array, chunks=(100, *array.shape[1:]))


def with_nan(rows):
    rows = rows.copy()
    rows[250, 1] = np.nan
    return rows


def of_wrong_width():
    """A collection whose third block has not the columns that its metadata says."""

    def cut(block, block_info=None):
        return block[:, :2] if block_info[0]["chunk-location"][0] == 2 else block

    return blocks(X).map_blocks(cut, dtype=float, meta=np.empty((0, 3)))


FITS = [
    ("RandomFeatures", lambda m, X: m.fit(X)),
    ("KernelRidge", lambda m, X: m.fit(X, blocks(Y))),
    ("KernelClassifier", lambda m, X: m.fit(X, blocks((Y > 0).astype(int)))),
    ("GaussianProcess", lambda m, X: m.fit(X, blocks(Y))),
]


@pytest.mark.parametrize("name, fit", FITS, ids=[name for name, _ in FITS])
@pytest.mark.parametrize(
    "rows, message",
    [
        (lambda: blocks(with_nan(X)), "Input X contains NaN"),
        (of_wrong_width, "X has 2 columns, and the collection says 3"),
    ],
    ids=["NaN", "width"],
)
@pytest.mark.swept(3)
def test_a_bad_block_is_named(client, name, fit, rows, message):
    model = getattr(distributed, name)(n_components=8)
    with pytest.raises(ValueError, match=rf"{name}: block 2 of 4 \(rows 200 to 299\): {message}"):
        fit(model, rows())
    assert not hasattr(model, "n_features_in_")


def test_targets_in_memory_of_several_kinds():
    model = distributed.KernelRidge(n_components=8, gamma=1.0, random_state=0)
    with pytest.raises(ValueError, match=r"KernelRidge: y must have the same number of entries in each row"):
        model.fit(blocks(X), [[1.0, 2.0], [1.0]] * 200)
    with pytest.raises(TypeError, match=r"KernelRidge: y must be dense, got a sparse matrix; pass y.toarray\(\)"):
        model.fit(blocks(X), sparse.csr_array(Y[:, None]))
    torch = pytest.importorskip("torch")
    expected = model.fit(blocks(X), Y).model_.solution.coefficients
    found = model.fit(blocks(X), torch.tensor(Y, requires_grad=True)).model_.solution.coefficients
    np.testing.assert_array_equal(found, expected)
    found = model.fit(blocks(X), Y.astype(object)).model_.solution.coefficients
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("rows", [lambda: blocks(with_nan(X)), of_wrong_width], ids=["NaN", "width"])
def test_a_bad_block_is_named_when_it_is_transformed(client, rows):
    model = distributed.RandomFeatures(n_components=8, gamma=1.0).fit(blocks(X))
    with pytest.raises(ValueError, match=r"RandomFeatures: block 2 of 4 \(rows 200 to 299\): .*(NaN|columns)"):
        model.transform(rows()).compute()


@pytest.fixture
def in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def test_a_block_of_unknown_rows_is_named(in_this_thread):
    frame = dd.from_pandas(pd.DataFrame(with_nan(X), columns=list("abc")), npartitions=4)
    frame = frame[frame.a > -10]
    with pytest.raises(ValueError, match=r"RandomFeatures: block 2 of 4: Input X contains NaN"):
        distributed.RandomFeatures(n_components=8).fit(frame)


def test_a_bad_target_is_named(in_this_thread):
    y = Y.copy()
    y[10] = np.inf
    with pytest.raises(ValueError, match=r"KernelRidge: block 0 of 4 \(rows 0 to 99\): Input y contains infinity"):
        distributed.KernelRidge(n_components=8).fit(blocks(X), blocks(y))


def test_a_negative_weight_is_named(in_this_thread):
    weights = np.ones(400)
    weights[399] = -1
    with pytest.raises(ValueError, match=r"block 3 of 4 \(rows 300 to 399\): sample_weight has negative numbers"):
        distributed.KernelRidge(n_components=8, gamma=1.0).fit(blocks(X), blocks(Y), blocks(weights))


def test_continuous_classes_are_named(in_this_thread):
    with pytest.raises(ValueError, match=r"KernelClassifier: block . of 4 .*Unknown label type: continuous"):
        distributed.KernelClassifier(n_components=8).fit(blocks(X), blocks(Y))


def test_a_class_that_was_not_there_is_named(in_this_thread):
    model = distributed.KernelClassifier(n_components=8).fit(blocks(X), blocks((Y > 0).astype(int)))
    with pytest.raises(ValueError, match=r"block . of 4 .*y has \[7\], which are not among the classes \[0, 1\]"):
        model.partial_fit(blocks(X), blocks(np.full(400, 7)))


def test_one_class(in_this_thread):
    with pytest.raises(ValueError, match=r"KernelClassifier: y has one class, .*1.*, and needs at least two"):
        distributed.KernelClassifier(n_components=8).fit(blocks(X), blocks(np.ones(400, int)))


@pytest.mark.parametrize(
    "y, error, message",
    [
        (Y[:50], ValueError, "KernelRidge: y has 50 rows, and X has 400"),
        (da.from_array(Y[:50]), ValueError, "KernelRidge: y has 50 rows, and X has 400"),
    ],
    ids=["array", "dask"],
)
def test_targets_of_another_length(y, error, message):
    with pytest.raises(error, match=message):
        distributed.KernelRidge().fit(blocks(X), y)


def unknown(array):
    rows = blocks(array)
    return rows[(rows[:, 0] if rows.ndim > 1 else rows) > -100]


def test_targets_of_unknown_length_need_the_same_blocks():
    with pytest.raises(ValueError, match="y has 1 blocks and X has 4, of lengths that are not known; repartition them"):
        distributed.KernelRidge().fit(unknown(X), da.from_array(Y))
    with pytest.raises(TypeError, match=r"y must be a Dask collection with the partitions of X, .* got ndarray"):
        distributed.KernelRidge().fit(unknown(X), Y)


def test_blocks_of_unknown_lengths_that_differ(in_this_thread):
    with pytest.raises(ValueError, match=r"block . of 4: y has .* rows, and X has 100"):
        distributed.KernelRidge(gamma=1.0, n_components=8).fit(unknown(X), blocks(Y)[blocks(Y) > 0])


def test_one_dimension():
    with pytest.raises(ValueError, match=r"RandomFeatures: expected a two-dimensional array, got .* shape \(400,\)"):
        distributed.RandomFeatures().fit(blocks(Y))


def test_a_bag_is_no_array():
    import dask.bag

    with pytest.raises(TypeError, match="RandomFeatures: expected a Dask array or dataframe, got Bag"):
        distributed.RandomFeatures().fit(dask.bag.from_sequence([1, 2]))


def test_other_columns_at_predict(in_this_thread):
    model = distributed.RandomFeatures(n_components=8).fit(blocks(X))
    with pytest.raises(ValueError, match="X has 2 features, but RandomFeatures is expecting 3 features as input"):
        model.transform(blocks(X[:, :2]))


def test_other_names_at_predict(in_this_thread):
    frame = dd.from_pandas(pd.DataFrame(X, columns=list("abc")), npartitions=2)
    model = distributed.RandomFeatures(n_components=8).fit(frame)
    with pytest.raises(ValueError, match="feature names"):
        model.transform(frame.rename(columns={"a": "z"}))


@pytest.mark.parametrize("name", ["RandomFeatures", "RandomProjection"])
def test_transform_before_fit(name):
    with pytest.raises(NotFittedError, match=f"This {name} instance is not fitted yet"):
        getattr(distributed, name)().transform(blocks(X))


@pytest.mark.parametrize("name", ["KernelRidge", "KernelClassifier", "GaussianProcess"])
def test_predict_before_fit(name):
    with pytest.raises(NotFittedError, match=f"This {name} instance is not fitted yet"):
        getattr(distributed, name)().predict(blocks(X))


def test_what_needs_all_rows_is_refused(in_this_thread):
    message = "KernelRidge: solver='dual' needs all rows in one place; on Dask collections use 'auto'"
    with pytest.raises(ValueError, match=message):
        distributed.KernelRidge(n_components=8, gamma=1.0, solver="dual").fit(blocks(X), blocks(Y))


def test_the_covariance_of_all_rows_is_refused(in_this_thread):
    model = distributed.GaussianProcess(n_components=8, optimize=False).fit(blocks(X), blocks(Y))
    with pytest.raises(ValueError, match="return_cov=True needs all rows in one place"):
        model.predict(blocks(X), return_cov=True)


def test_class_weights_of_several_labels_are_one_dict_for_each(in_this_thread):
    labels = (X > 0).astype(int)
    with pytest.raises(
        ValueError, match="class_weight must be 'balanced', None or a list of 3 dicts, one for each label"
    ):
        distributed.KernelClassifier(n_components=8, class_weight={0: 1.0}).fit(blocks(X), blocks(labels))


def test_balanced_weights_need_all_rows_at_once(in_this_thread):
    model = distributed.KernelClassifier(n_components=8, class_weight="balanced").fit(blocks(X), blocks((Y > 0) * 1))
    with pytest.raises(ValueError, match="class_weight='balanced' needs all rows at once"):
        model.partial_fit(blocks(X), blocks((Y > 0) * 1))


def test_balanced_weights_do_not_stream_from_the_start(in_this_thread):
    with pytest.raises(ValueError, match="class_weight='balanced' needs all rows at once"):
        distributed.KernelClassifier(class_weight="balanced").partial_fit(blocks(X), blocks((Y > 0) * 1))


def test_classes_of_the_first_call_stay(in_this_thread):
    model = distributed.KernelClassifier(n_components=8).partial_fit(blocks(X), blocks((Y > 0) * 1), [0, 1, 2])
    with pytest.raises(ValueError, match=r"classes must be those of the first call, \[0, 1, 2\], got \[0, 1\]"):
        model.partial_fit(blocks(X), blocks((Y > 0) * 1), [0, 1])


def test_several_labels_after_one_class(in_this_thread):
    model = distributed.KernelClassifier(n_components=8).fit(blocks(X), blocks((Y > 0) * 1))
    with pytest.raises(ValueError, match="y had one class per row in the first call, and has several labels now"):
        model.partial_fit(blocks(X), blocks((X > 0) * 1))


def test_other_shapes_of_targets_in_a_later_piece(in_this_thread):
    both = np.stack([Y, Y], axis=1)
    model = distributed.KernelRidge(n_components=8).fit(blocks(X), blocks(Y))
    with pytest.raises(ValueError, match="y must have the shape of the first call, got 2 dimensions"):
        model.partial_fit(blocks(X), blocks(both))
    for method in ("ridge", "nadaraya-watson"):
        model = distributed.KernelRidge(n_components=8, method=method).fit(blocks(X), blocks(both))
        with pytest.raises(ValueError, match="expected 2 targets as in the first call, got 3"):
            model.partial_fit(blocks(X), blocks(X))
    gp = distributed.GaussianProcess(n_components=8, optimize=False).fit(blocks(X), blocks(Y))
    with pytest.raises(ValueError, match="expected 1 targets as in the first call of partial_fit, got 2"):
        gp.partial_fit(blocks(X), blocks(both))


def test_without_dask_the_remedy_is_named():
    script = "import sys; sys.modules['dask'] = None\nimport bochner\nbochner.distributed"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert 'pip install "dask[array,dataframe]>=2024.8" "distributed>=2024.8"' in done.stderr


@pytest.mark.parametrize("name, options", [("KernelRidge", {}), ("GaussianProcess", {"optimize": False})])
def test_no_rows(in_this_thread, name, options):
    frame = dd.from_pandas(pd.DataFrame(X, columns=["a", "b", "c"]), npartitions=3)
    none = frame[frame.a > 100]
    with pytest.raises(ValueError, match=rf"{name}: Found array with 0 sample\(s\) while a minimum of 1 is required"):
        getattr(distributed, name)(n_components=8, gamma=1.0, **options).fit(none, none.a)


@pytest.mark.parametrize("method", ("ridge", "nadaraya-watson"))
def test_no_weight(in_this_thread, method):
    with pytest.raises(ValueError, match="KernelRidge: sample_weight is zero in every row"):
        distributed.KernelRidge(n_components=8, gamma=1.0, map="positive", method=method).fit(blocks(X), Y, 0 * Y)


def test_a_number_is_no_weight_of_rows(in_this_thread):
    with pytest.raises(ValueError, match="KernelRidge: sample_weight must have an entry for each row, got 2"):
        distributed.KernelRidge(n_components=8).fit(blocks(X), Y, 2.0)


@pytest.mark.parametrize("name", ("KernelRidge", "KernelClassifier", "GaussianProcess"))
def test_no_targets(in_this_thread, name):
    with pytest.raises(ValueError, match="requires y to be passed, but the target y is None"):
        getattr(distributed, name)(n_components=8).fit(blocks(X), None)


@pytest.mark.parametrize("name", ("RandomFeatures", "RandomProjection"))
def test_frames_of_all_rows_are_refused(in_this_thread, name):
    model = getattr(distributed, name)(n_components=2).set_output(transform="pandas")
    with pytest.raises(ValueError, match=f"{name}: transform_output='pandas' would gather all rows"):
        model.fit_transform(blocks(X))


@pytest.mark.parametrize("options", [{}, {"gamma": 1.0}, {"gamma": 1.0, "optimize": False}])
def test_a_process_without_rows_is_refused(in_this_thread, options):
    with pytest.raises(ValueError, match=r"GaussianProcess: Found array with 0 sample\(s\) while a minimum of 1"):
        distributed.GaussianProcess(n_components=8, **options).fit(blocks(X)[:0], blocks(Y)[:0])
