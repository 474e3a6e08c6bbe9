"""A failure or an interruption at any point of a fit leaves every estimator exactly as it was."""

from __future__ import annotations

import contextlib
import copy
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest

import bochner
from bochner.learn import (
    GaussianProcess,
    GaussianProcessClassifier,
    KernelClassifier,
    KernelRidge,
    RandomFeatures,
    RandomProjection,
    _row_source,
)
from support.checks import THOROUGH

LAYERS = tuple(
    f"{Path(bochner.__file__).parent}/{layer}/"
    for layer in ("learn", "approximation", "maps", "projections", "kernels", "linalg")
)
RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 3))
Y = (X[:, 0] > 0).astype(float)
MORE, MORE_Y = RNG.standard_normal((90, 3)), np.arange(90) % 2.0

SMALL = {
    "n_components": 16,
    "random_state": 0,
    "n_jobs": 1,
}  # one thread: the number of calls in it is then the same every time
PLAIN = SMALL | {"kernel": "gaussian", "metric": None}
ESTIMATORS = {
    "features": RandomFeatures(**SMALL),
    "features of a Generator": RandomFeatures(**SMALL | {"random_state": np.random.default_rng(0)}),
    "ridge of a RandomState": KernelRidge(**PLAIN | {"random_state": np.random.RandomState(0)}),
    "projection": RandomProjection(2, random_state=0, n_jobs=1, compute_inverse_components=True),
    "ridge": KernelRidge(**SMALL),
    "ridge by gcv": KernelRidge(alpha="gcv", **PLAIN),
    "ridge by loo": KernelRidge(alpha="loo", **PLAIN),
    "dual ridge": KernelRidge(solver="dual", **PLAIN),
    "ridge by conjugate gradients": KernelRidge(solver="cg", **PLAIN),
    "kernel average": KernelRidge(method="nadaraya-watson", **SMALL),
    "classifier": KernelClassifier(class_weight={0.0: 1.0, 1.0: 2.0}, **PLAIN),
    "votes": KernelClassifier(method="nadaraya-watson", **SMALL),
    "process": GaussianProcess(optimize=("noise", "amplitude"), **SMALL),
    "process with a search": GaussianProcess(optimize_rows=30, **SMALL),
    "process classifier": GaussianProcessClassifier(optimize=False, **SMALL),
}
STREAMING = [name for name, estimator in ESTIMATORS.items() if hasattr(estimator, "partial_fit")]


@contextlib.contextmanager
def interrupted(exception, at):
    """Raise at the start of the call number ``at`` of a function of these layers, in this thread; count the calls."""
    calls = [0]

    def trace(frame, event, argument):
        if event == "call" and frame.f_code.co_filename.startswith(LAYERS):
            calls[0] += 1
            if calls[0] == at:
                sys.settrace(None)
                raise exception("interrupted")

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield calls
    finally:
        sys.settrace(before)


def length_of(fit, estimator):
    """How many functions of these layers a fit enters, of a copy of the estimator."""
    trial = copy.deepcopy(estimator)
    with interrupted(RuntimeError, at=-1) as calls:
        fit(trial)
    return calls[0]


def places(length):
    """Calls to interrupt: the first ones, then some of the whole, the last included."""
    first, some = (8, 25) if THOROUGH else (4, 8)
    return sorted({*range(1, first), *np.linspace(first, length, some).astype(int).tolist()})


def check_untouched(estimator, fit):
    """Interrupt ``fit`` in many places; the estimator must be the same afterwards, bit for bit."""
    fit(copy.deepcopy(estimator))  # what is cached or compiled once does not count
    for k, at in enumerate(places(length_of(fit, estimator))):
        trial = copy.deepcopy(estimator)  # as cold as the one whose calls were counted
        names, before = set(vars(trial)), pickle.dumps(trial)
        with interrupted((KeyboardInterrupt, RuntimeError)[k % 2], at):
            with pytest.raises((KeyboardInterrupt, RuntimeError), match="interrupted"):
                fit(trial)
        assert set(vars(trial)) == names
        assert pickle.dumps(trial) == before


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.swept(3)
def test_an_interrupted_fit_leaves_a_new_estimator_unfitted(name):
    check_untouched(copy.deepcopy(ESTIMATORS[name]), lambda estimator: estimator.fit(X, Y))


@pytest.mark.filterwarnings("ignore:.* explains nothing")
@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.swept(3)
def test_an_interrupted_fit_leaves_the_former_one(name):
    check_untouched(copy.deepcopy(ESTIMATORS[name]).fit(X, Y), lambda estimator: estimator.fit(MORE, MORE_Y))


@pytest.mark.parametrize("name", STREAMING)
@pytest.mark.swept(3)
def test_an_interrupted_partial_fit_leaves_the_former_one(name):
    check_untouched(copy.deepcopy(ESTIMATORS[name]).fit(X, Y), lambda estimator: estimator.partial_fit(MORE, MORE_Y))


@pytest.mark.parametrize("name", STREAMING)
def test_partial_fit_of_a_copy_leaves_the_original(name):
    estimator = copy.deepcopy(ESTIMATORS[name]).fit(X, Y)
    before = pickle.dumps(estimator)
    copy.copy(estimator).partial_fit(MORE, MORE_Y)
    assert pickle.dumps(estimator) == before


@pytest.mark.parametrize("exception", (MemoryError, KeyboardInterrupt))
@pytest.mark.parametrize("name", STREAMING)
def test_rows_count_once_after_a_failure_in_the_middle_of_the_chunks(name, exception, monkeypatch):
    monkeypatch.setattr(_row_source, "_CHUNK_NUMBERS", 19 * 20)  # five chunks
    estimator = copy.deepcopy(ESTIMATORS[name]).fit(X, Y)
    expected = copy.deepcopy(estimator).partial_fit(MORE, MORE_Y).predict(X)
    length = length_of(lambda trial: trial.partial_fit(MORE, MORE_Y), estimator)
    with interrupted(exception, at=length * 6 // 10), pytest.raises(exception, match="interrupted"):
        estimator.partial_fit(MORE, MORE_Y)
    np.testing.assert_array_equal(estimator.partial_fit(MORE, MORE_Y).predict(X), expected)
