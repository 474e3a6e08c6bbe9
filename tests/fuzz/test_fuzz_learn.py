"""Estimators: parameters, data, and what a refused fit leaves behind."""

from __future__ import annotations

import copy
import functools
import inspect
from typing import Any

import numpy as np
import pytest

from bochner import learn
from fuzz.exploring import explore
from fuzz.targets import Good, Target, constant, public, target_of
from fuzz.values import N, rows


def labels() -> np.ndarray:
    return np.arange(N) % 2


def targets() -> np.ndarray:
    return rows()[:, 0]


def width(kind: type) -> int:
    return 2 if kind in (learn.RandomProjection, learn.KernelPCA) else 8


def small(kind: type, **parameters: Any) -> Any:
    """An estimator that fits in milliseconds."""
    few = {"n_neighbors": 2, "n_components": width(kind), "random_state": 0}
    taken = inspect.signature(kind).parameters
    few = {
        name: value
        for name, value in few.items()
        if name in taken and (name, kind) != ("n_components", learn.AngularHash)
    }
    return kind(**few | parameters)


def good(kind: type) -> Good:
    classifies = "Classifier" in kind.__name__
    y = labels if classifies else targets
    return {"X": rows, "y": y, "n_samples": constant(2)}


def use(kind: type, **parameters: Any) -> Any:
    """Answers of a fitted estimator: of whatever kind it gives."""
    y = good(kind)["y"]()
    estimator = small(kind, **parameters).fit(rows(), y)
    return [
        getattr(estimator, name)(rows())
        for name in ("transform", "predict", "predict_proba", "kneighbors")
        if hasattr(estimator, name)
    ]


ESTIMATORS = dict(public(learn))


def constructor(name: str, kind: Any) -> Target:
    parameters = target_of(name, kind, {}).good
    numbers = {
        "n_components": 8,
        "noise": 0.1,
        "amplitude": 1.0,
        "alpha": 1.0,
        "n_restarts": 0,
        "eps": 0.1,
        "n_neighbors": 2,
        "n_candidates": 5,
        "n_probes": 2,
        "gamma": 0.5,
    }
    known = {name: constant(numbers.get(name)) for name in parameters if name not in ("n_jobs", "verbose")}
    return Target(name, lambda **given: use(kind, **given), known)


CONSTRUCTORS = [constructor(name, kind) for name, kind in ESTIMATORS.items()]

METHODS = (
    *("fit", "partial_fit", "fit_transform", "transform", "inverse_transform", "predict", "predict_proba"),
    *("predict_log_proba", "decision_function", "sample_y", "kneighbors"),
)


@functools.cache
def estimator_of(kind: type, fitted: bool) -> Any:
    """A new or a fitted estimator, made when it is first asked for."""
    return small(kind).fit(rows(), good(kind)["y"]()) if fitted else small(kind)


def method_target(kind: type, method: str, *, fitted: bool) -> Target:
    """A method of a new estimator, or of a copy of a fitted one; what a refused fit leaves is compared."""
    known = good(kind) | {"sample_weight": constant(None), "classes": constant(None)}
    if method == "inverse_transform":
        known["X"] = known["Z"] = lambda: rows(N, width(kind))
    signature = target_of(method, getattr(small(kind), method), known)
    parameters = {name: value for name, value in signature.good.items() if name in known}

    def ask(subject: Any = None, **arguments: Any) -> Any:
        return getattr(estimator_of(kind, fitted) if subject is None else subject, method)(**arguments)

    return Target(
        f"{'fitted ' if fitted else ''}{kind.__name__}.{method}",
        ask,
        parameters,
        subject=(lambda: copy.deepcopy(estimator_of(kind, fitted))) if "fit" in method else None,
        required=tuple(dict.fromkeys((*signature.required, *(["y"] if "y" in parameters else [])))),
    )


NEW, FITTED = (
    [
        method_target(kind, name, fitted=fitted)
        for kind in ESTIMATORS.values()
        for name in METHODS
        if hasattr(small(kind), name)
    ]
    for fitted in (False, True)
)


@pytest.mark.parametrize("target", [*CONSTRUCTORS, *NEW, *FITTED], ids=str)
@pytest.mark.swept(2)
def test_hostile_arguments(target):
    explore(target.name, target.spoils(), target.check)


@pytest.mark.parametrize("target", FITTED, ids=str)
@pytest.mark.swept(2)
def test_good_arguments_are_accepted(target):
    target.ask({})


@pytest.mark.filterwarnings("ignore:X has feature names")
@pytest.mark.parametrize("target", [t for t in FITTED if "fit" not in t.name.rpartition(".")[2]], ids=str)
def test_makes_of_the_same_numbers(target):
    for name, make in target.makes():
        target.check_make(name, make)
