"""Saved estimators: pickles and files of skops hold plain data under public names, and outlive this version."""

from __future__ import annotations

import copy
import pickle
import pickletools
from pathlib import Path

import numpy as np
import pytest

from bochner import kernels, maps
from bochner.learn import (
    GaussianProcess,
    GaussianProcessClassifier,
    KernelClassifier,
    KernelRidge,
    RandomFeatures,
    RandomProjection,
)

FILES = Path(__file__).parent / "files"
RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 3))
Y = (X[:, 0] > 0).astype(int)
SMALL = {"n_components": 8, "random_state": 0}
ESTIMATORS = {
    "random_features": RandomFeatures(**SMALL),
    "random_projection": RandomProjection(2, random_state=0),
    "kernel_ridge": KernelRidge(alpha="gcv", **SMALL),
    "dual_ridge": KernelRidge(n_components=70, random_state=0),
    "kernel_average": KernelRidge(method="nadaraya-watson", **SMALL),
    "kernel_classifier": KernelClassifier(map="positive", projection="simplex", **SMALL),
    "gaussian_process": GaussianProcess(normalize_y=True, **SMALL),
    "gaussian_process_classifier": GaussianProcessClassifier(optimize=False, **SMALL),
}


def result_of(estimator):
    return estimator.transform(X) if hasattr(estimator, "transform") else estimator.predict(X)


@pytest.fixture(params=ESTIMATORS)
def fitted(request):
    return copy.deepcopy(ESTIMATORS[request.param]).fit(X, Y)


def test_pickles_name_no_private_module(fitted):
    names = [argument for _, argument, _ in pickletools.genops(pickle.dumps(fitted)) if isinstance(argument, str)]
    assert not [name for name in names if name.startswith("bochner") and "._" in name]


def test_skops_saves_and_loads(fitted):
    sio = pytest.importorskip("skops.io")
    data = sio.dumps(fitted)
    types = sio.get_untrusted_types(data=data)
    assert types == [f"bochner.learn.{type(fitted).__name__}"]
    np.testing.assert_array_equal(result_of(sio.loads(data, trusted=types)), result_of(fitted))


def test_loaded_estimators_go_on(fitted):
    if not hasattr(fitted, "partial_fit"):
        pytest.skip("takes no rows in parts")
    copied = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(result_of(copied.partial_fit(X, Y)), result_of(fitted.partial_fit(X, Y)))


def test_loading_solves_nothing(monkeypatch):
    from bochner.learn._linear.ridge import RidgeModel

    saved = pickle.dumps(copy.deepcopy(ESTIMATORS["kernel_ridge"]).fit(X, Y))
    monkeypatch.setattr(RidgeModel, "_solve", None)
    assert pickle.loads(saved).predict(X).shape == (60,)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_files_of_format_1(name):
    """Written by running this file, once for each format; the predictions beside them are those of that day."""
    sio = pytest.importorskip("skops.io")
    path = FILES / f"{name}.1.skops"
    loaded = sio.load(path, trusted=sio.get_untrusted_types(file=path))
    np.testing.assert_allclose(result_of(loaded), np.load(FILES / f"{name}.1.npy"), rtol=1e-9, atol=1e-12)


def test_a_later_format_is_refused():
    state = copy.deepcopy(ESTIMATORS["kernel_ridge"]).fit(X, Y).__getstate__()
    with pytest.raises(
        ValueError, match="KernelRidge: this estimator was saved in format 2, and this bochner reads 1 to 1"
    ):
        KernelRidge.__new__(KernelRidge).__setstate__(state | {"bochner.format": 2})


@pytest.mark.parametrize(
    "change, message",
    [
        ({"bochner.kind": "os.system"}, "there is no 'os.system'"),
        ({"more": 1}, "unexpected keyword argument 'more'"),
    ],
)
def test_a_damaged_state_is_refused(change, message):
    state = copy.deepcopy(ESTIMATORS["kernel_ridge"]).fit(X, Y).__getstate__()
    state["model_"] = state["model_"] | change
    with pytest.raises(ValueError, match=f"KernelRidge: this estimator's file is damaged: .*{message}"):
        KernelRidge.__new__(KernelRidge).__setstate__(state)


def test_parameters_of_ones_own_stay():
    model = KernelRidge(kernels.Matern(1.5), map=maps.Trigonometric(), alpha=[0.5], **SMALL)
    copied = pickle.loads(pickle.dumps(model))
    assert copied.get_params() == model.get_params()


if __name__ == "__main__":
    import skops.io

    from bochner.learn._state import FORMAT

    for name, estimator in ESTIMATORS.items():
        saved = copy.deepcopy(estimator).fit(X, Y)
        skops.io.dump(saved, FILES / f"{name}.{FORMAT}.skops")
        np.save(FILES / f"{name}.{FORMAT}.npy", result_of(saved))
