"""Missing targets, features that are not finite, sizes beyond all sums, and data frames: refused in words or served."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier

from bochner.learn import (
    AngularHash,
    GaussianProcess,
    GaussianProcessClassifier,
    KernelClassifier,
    KernelRidge,
    RandomFeatures,
    RandomProjection,
)

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 3))
Y = np.sin(X[:, 0])
WIDTH = {"n_components": 16, "random_state": 0}
REGRESSORS = [
    KernelRidge(**WIDTH),
    KernelRidge(gamma=0.1, map=None, alpha=1.0, **WIDTH),
    KernelRidge(method="nadaraya-watson", **WIDTH),
    GaussianProcess(**WIDTH),
    GaussianProcess(optimize=False, **WIDTH),
]
CLASSIFIERS = [
    KernelClassifier(**WIDTH),
    KernelClassifier(gamma=0.1, map=None, alpha=1.0, **WIDTH),
    KernelClassifier(method="nadaraya-watson", **WIDTH),
    GaussianProcessClassifier(**WIDTH),
]


def fitted(estimator, X=X, y=None, **options):
    y = ((Y > 0).astype(int) if is_classifier(estimator) else Y) if y is None else y
    return clone(estimator).fit(X, y, **options)


@pytest.mark.parametrize("missing", (None, float("nan"), "NA"), ids=str)
@pytest.mark.parametrize("estimator", [*REGRESSORS, *CLASSIFIERS], ids=str)
def test_a_missing_target_is_refused(estimator, missing):
    pandas = pytest.importorskip("pandas")
    y = np.where(Y > 0, "a", "b").astype(object) if is_classifier(estimator) else Y.astype(object)
    y[7] = pandas.NA if missing == "NA" else missing
    with pytest.raises(ValueError, match=rf"{type(estimator).__name__}: y has no value in row 7, and 1 of 60 rows"):
        fitted(estimator, y=y)


def test_a_batch_without_a_target_leaves_the_stream_as_it_was():
    stream = KernelRidge(gamma=0.1, map=None, alpha=1.0, **WIDTH).partial_fit(X, Y)
    before, y = stream.predict(X), Y.astype(object)
    y[3] = None
    with pytest.raises(ValueError, match="y has no value in row 3"):
        stream.partial_fit(X, y)
    np.testing.assert_array_equal(stream.predict(X), before)


def test_a_block_without_a_target_is_refused():
    da = pytest.importorskip("dask.array")
    from bochner import distributed

    y = Y.astype(object)
    y[33] = None
    rows, targets = da.from_array(X, chunks=(20, 3)), da.from_array(y, chunks=20)
    with pytest.raises(ValueError, match=r"KernelRidge: block 1 of 3 \(rows 20 to 39\): y has no value in row 13"):
        distributed.KernelRidge(gamma=0.1, map=None, alpha=1.0, **WIDTH).fit(rows, targets)


@pytest.mark.filterwarnings("ignore:overflow encountered", "ignore:invalid value encountered")
@pytest.mark.parametrize(
    "estimator", [e for e in (*REGRESSORS, *CLASSIFIERS) if getattr(e, "method", "") != "nadaraya-watson"], ids=str
)
def test_nothing_is_predicted_from_features_that_are_not_finite(estimator):
    given = {"gamma": 50.0, "map": None, "standardize": False}
    given |= {"optimize": False} if hasattr(estimator, "optimize") else {}
    rows, model = X[:5].copy(), fitted(clone(estimator).set_params(**given))
    rows[2, 1] = -1.7e308  # as "no data" in rasters, where they are of float32
    refused = r"features .* (not finite|leave the range of float64).* [Rr]escale the "
    with pytest.raises(ValueError, match=refused):
        model.predict(rows)
    with pytest.raises(ValueError, match=refused):
        fitted(clone(estimator).set_params(**given), np.vstack([rows, X[5:]]))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("estimator", [KernelRidge(), KernelClassifier(), RandomFeatures()], ids=str)
def test_landmarks_of_rows_that_overflow_at_unit_scale_are_refused_by_their_size(estimator):
    """The rows are finite, and the message must not say that they are not."""
    rows = X.astype(np.float32)
    rows[5, 1] = np.finfo(np.float32).min
    with pytest.raises(ValueError, match=r"rows divided by the lengthscale of Gaussian.* leave the range of float32"):
        estimator.set_params(gamma=1.0, map="landmarks").fit(rows, (Y > 0).astype(int))


@pytest.mark.parametrize("estimator", [REGRESSORS[0], REGRESSORS[1], *REGRESSORS[3:]], ids=str)
@pytest.mark.parametrize("size", (1e154, 1e300, 1e-160, 1e-300))
def test_targets_whose_squares_overflow_or_vanish_are_refused(estimator, size):
    with pytest.raises(ValueError, match=r"y has numbers of at most .* Multiply it by a constant"):
        fitted(estimator, y=size * Y)


@pytest.mark.parametrize("estimator", REGRESSORS, ids=str)
def test_weights_that_mean_nothing_are_refused(estimator):
    with pytest.raises(ValueError, match=r"sample_weight is zero in every row|at least one non-zero number"):
        fitted(estimator, sample_weight=np.zeros(60))
    with pytest.raises(ValueError, match=r"sample_weight has numbers of at most 1.0e\+300 in size"):
        fitted(estimator, sample_weight=np.full(60, 1e300))


def test_dates_are_refused():
    pandas = pytest.importorskip("pandas")
    days = np.arange(60).astype("datetime64[D]")
    for estimator in (AngularHash(n_bits=8), REGRESSORS[1], CLASSIFIERS[1]):
        with pytest.raises(TypeError, match=r"X must hold numbers, got datetime64\[D\]; encode dates"):
            fitted(estimator, X=np.column_stack([days, days]))
        with pytest.raises(ValueError, match=r"expected columns of numbers( or words)?, got 'day' of type datetime64"):
            fitted(estimator, X=pandas.DataFrame({"a": Y, "day": days}))


def test_targets_of_another_kind_are_refused():
    for estimator in (REGRESSORS[1], REGRESSORS[3], CLASSIFIERS[3]):
        with pytest.raises(TypeError, match=r"y must be dense, got a sparse matrix; pass y.toarray\(\)"):
            fitted(estimator, y=sparse.coo_array(Y[:, None]))
    labels = sparse.coo_array(np.column_stack([Y > 0, X[:, 1] > 0]).astype(int))
    assert fitted(CLASSIFIERS[1], y=labels).predict(X).shape == (60, 2)
    mixed = np.where(Y > 0, "a", "b").astype(object)
    mixed[Y <= 0] = 1
    for estimator in (CLASSIFIERS[1], CLASSIFIERS[3]):
        with pytest.raises(ValueError, match=r"y must have labels of one kind, got int and str"):
            fitted(estimator, y=mixed)


@pytest.mark.parametrize(
    "estimator",
    [
        *REGRESSORS,
        *CLASSIFIERS,
        RandomFeatures(**WIDTH),
        RandomProjection(2, random_state=0),
        AngularHash(16, random_state=0),
    ],
    ids=str,
)
def test_frames_of_polars_are_served_as_those_of_pandas(estimator):
    polars, pandas = pytest.importorskip("polars"), pytest.importorskip("pandas")
    names = ["a", "b", "c"]
    frames = pandas.DataFrame(X, columns=names), polars.DataFrame(X, names)
    models = [fitted(estimator, frame) for frame in frames]
    assert list(models[1].feature_names_in_) == names
    method = "predict" if hasattr(models[1], "predict") else "transform"
    theirs, ours = (getattr(model, method)(frame) for model, frame in zip(models, frames, strict=True))
    np.testing.assert_array_equal(np.asarray(theirs), np.asarray(ours))
    if isinstance(estimator, RandomFeatures | RandomProjection | AngularHash):  # machines read words, see test_cells.py
        with pytest.raises(ValueError, match=r"expected columns of numbers, got 'b' of type String"):
            fitted(estimator, polars.DataFrame(X, names).with_columns(b=polars.lit("x")))
