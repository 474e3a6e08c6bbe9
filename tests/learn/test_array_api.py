"""scikit-learn's array API dispatch: arrays of a library in, arrays of that library out."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from sklearn.base import clone

from bochner.learn import (
    GaussianProcess,
    GaussianProcessClassifier,
    KernelClassifier,
    KernelRidge,
    RandomFeatures,
    RandomProjection,
)

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 3))
Y = (X[:, 0] > 0).astype(int)
SMALL = {"n_components": 8, "random_state": 0}
ESTIMATORS = [
    RandomFeatures(**SMALL),
    RandomProjection(2, random_state=0),
    KernelRidge(**SMALL),
    KernelClassifier(**SMALL),
    KernelClassifier(method="nadaraya-watson", **SMALL),
    GaussianProcess(optimize=False, **SMALL),
    GaussianProcessClassifier(optimize=False, **SMALL),
]


@pytest.fixture
def dispatch(monkeypatch):
    pytest.importorskip("torch")
    import scipy._lib._array_api as switch

    monkeypatch.setattr(switch, "SCIPY_ARRAY_API", True)  # scikit-learn asks whether SciPy was started with it
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    with sklearn.config_context(array_api_dispatch=True):
        yield


def result_of(estimator, rows):
    return estimator.transform(rows) if hasattr(estimator, "transform") else estimator.predict(rows)


@pytest.mark.parametrize("dtype", ("float32", "float64"))
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_tensors_for_tensors(dispatch, estimator, dtype):
    import torch

    rows, targets = torch.asarray(X.astype(dtype)), torch.asarray(Y)
    fitted = clone(estimator).fit(rows, targets)
    result = result_of(fitted, rows)
    assert isinstance(result, torch.Tensor)
    expected = result_of(clone(estimator).fit(X.astype(dtype), Y), X.astype(dtype))
    assert str(result.dtype) == f"torch.{expected.dtype}"
    np.testing.assert_array_equal(result.numpy(), expected)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_arrays_for_arrays(dispatch, estimator):
    assert isinstance(result_of(clone(estimator).fit(X, Y), X), np.ndarray)


def test_names_of_classes_stay_in_numpy(dispatch):
    import torch

    names = np.array(["no", "yes"])[Y]
    predicted = KernelClassifier(**SMALL).fit(torch.asarray(X), names).predict(torch.asarray(X))
    assert isinstance(predicted, np.ndarray) and set(predicted) == {"no", "yes"}


def test_without_dispatch_tensors_are_data_like_any_other():
    torch = pytest.importorskip("torch")
    assert isinstance(RandomFeatures(**SMALL).fit(torch.asarray(X)).transform(torch.asarray(X)), np.ndarray)
