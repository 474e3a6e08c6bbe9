"""Saved estimators: pickles and files of skops hold plain data under public names, and outlive this version."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import pickletools
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from bochner import kernels, maps
from bochner.learn import (
    AngularHash,
    GaussianProcess,
    GaussianProcessClassifier,
    KernelClassifier,
    KernelPCA,
    KernelRidge,
    RandomFeatures,
    RandomProjection,
    _state,
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
    "kernel_pca": KernelPCA(2, n_features=8, random_state=0),
    "angular_hash": AngularHash(8, random_state=0),
}
FORMATS = [(path.stem.split(".")[0], path.stem.split(".")[1]) for path in sorted(FILES.glob("*.skops"))]


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


@pytest.mark.parametrize("name, version", FORMATS)
def test_files_of_every_format_load(name, version):
    """Written by running this file, once for each format; the predictions beside them are those of that day."""
    sio = pytest.importorskip("skops.io")
    path = FILES / f"{name}.{version}.skops"
    loaded = sio.load(path, trusted=sio.get_untrusted_types(file=path))
    np.testing.assert_allclose(result_of(loaded), np.load(FILES / f"{name}.{version}.npy"), rtol=1e-9, atol=1e-12)


def test_every_format_has_files():
    assert {version for _, version in FORMATS} == {str(n) for n in range(1, _state.FORMAT + 1)}
    assert {name for name, version in FORMATS if version == str(_state.FORMAT)} == set(ESTIMATORS)


def test_no_private_name_is_stored(fitted):
    """scikit-learn's own names apart: they are checked by scikit-learn."""
    stored = fitted.__getstate__()
    assert {name for name in stored if name.startswith("_")} <= {"_n_features_out", "_sklearn_version"}
    assert not fitted.get_params().keys() & _state._ATTRIBUTES.values()


@pytest.mark.parametrize("kind", _state._SCHEMA)
def test_the_schema_stores_every_field(kind):
    cls, fields = _state._SCHEMA[kind]
    own = getattr(cls, "_fields", None) or [field.name for field in dataclasses.fields(cls)]
    assert sorted(attribute for _, attribute in _state._pairs(fields)) == sorted(own)


class Renamed(NamedTuple):
    """The scaling of targets, after a refactoring that renamed the class and a field."""

    center: np.ndarray
    scale: np.ndarray


def test_files_outlive_renamed_classes_and_fields(monkeypatch):
    saved = pickle.dumps(copy.deepcopy(ESTIMATORS["gaussian_process"]).fit(X, Y))
    old = pickle.loads(saved).scaling_
    monkeypatch.setitem(_state._SCHEMA, "Scaling", (Renamed, "shift=center scale"))
    monkeypatch.setattr(_state, "_ATTRIBUTES", _state._ATTRIBUTES | {"_one": "single_target"})
    loaded = pickle.loads(saved)
    assert isinstance(loaded.scaling_, Renamed)
    np.testing.assert_array_equal(loaded.scaling_.center, old.shift)
    assert loaded._one is True
    again = loaded.__getstate__()["scaling_"]
    assert list(again) == ["bochner.kind", "shift", "scale"]
    assert again["bochner.kind"] == "Scaling"


def test_a_later_format_is_refused():
    state = copy.deepcopy(ESTIMATORS["kernel_ridge"]).fit(X, Y).__getstate__()
    with pytest.raises(
        ValueError, match="KernelRidge: this estimator was saved in format 3, and this bochner reads 1 to 2"
    ):
        KernelRidge.__new__(KernelRidge).__setstate__(state | {"bochner.format": 3})


@pytest.mark.parametrize(
    "change, message",
    [
        ({"bochner.kind": "os.system"}, "there is no 'os.system'"),
        ({"more": 1}, "RidgeModel has no field 'more'"),
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
    import zipfile

    import skops.io

    for name, estimator in ESTIMATORS.items():
        saved = copy.deepcopy(estimator).fit(X, Y)
        skops.io.dump(saved, FILES / f"{name}.{_state.FORMAT}.skops", compression=zipfile.ZIP_DEFLATED, compresslevel=9)
        np.save(FILES / f"{name}.{_state.FORMAT}.npy", result_of(saved))
