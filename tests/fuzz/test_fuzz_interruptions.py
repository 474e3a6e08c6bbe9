"""Ctrl-C at random moments of public calls: nothing half-changed, nothing that waits for ever, BLAS as it was.

A timer raises KeyboardInterrupt in the main thread, as Ctrl-C does.  ``BOCHNER_INTERRUPTIONS`` says how often in all; `make
fuzz` asks for 2000.
"""

from __future__ import annotations

import copy
import faulthandler
import os
import pickle
import signal
import time
from pathlib import Path

import numpy as np
import pytest

import bochner
from bochner import Approximation, kernels, maps
from bochner.learn import GaussianProcess, KernelClassifier, KernelRidge
from bochner.linalg.engine import single_threaded_blas
from linalg.test_engine import blas_threads

TIMES = int(os.environ.get("BOCHNER_INTERRUPTIONS", "60"))
PATIENCE = 300
"""Seconds after which a call will never return: the process then ends with all stacks."""
RNG = np.random.default_rng(0)
X = RNG.standard_normal((20_000, 8))
Y = np.sin(X[:, 0]) + 0.1 * RNG.standard_normal(20_000)
SMALL = {"n_components": 64, "random_state": 0}
MODELS = {
    "ridge": KernelRidge(gamma=0.1, map=None, alpha=1.0, **SMALL),
    "automatic ridge": KernelRidge(**SMALL),
    "classifier": KernelClassifier(gamma=0.1, map=None, alpha=1.0, **SMALL),
    "process": GaussianProcess(optimize=False, **SMALL),
}
PHI = Approximation(kernels.Gaussian(2.0), n_projections=64).draw(8, rng=0)
POSITIVE = Approximation(kernels.Softmax(0.1), maps.Positive(), n_projections=64).draw(8, rng=0)


def method(name, rows):
    def call(subject, folder):
        y = Y[:rows] > 0 if isinstance(subject, KernelClassifier) else Y[:rows]
        getattr(subject, name)(X[:rows], y)

    return call


CALLS = {
    "queries": (PHI, lambda phi, folder: phi.queries(X)),
    "gram": (PHI, lambda phi, folder: phi.gram(X[:1500])),
    "normalised gram": (POSITIVE, lambda phi, folder: phi.gram(X[:1000], normalize=True)),
    "save": (PHI, lambda phi, folder: phi.save(folder / "phi.npz")),
    **{f"fit of a {name}": (model, method("fit", 1000)) for name, model in MODELS.items() if name != "automatic ridge"},
    "fit of an automatic ridge": (MODELS["automatic ridge"], method("fit", 150)),  # which tries many candidates
    **{
        f"partial fit of a {name}": (model, method("partial_fit", 4000))
        for name, model in MODELS.items()
        if hasattr(model, "partial_fit")
    },
}


def interrupted(call, delay):
    """Whether the call was interrupted after so many seconds; not so if it had ended before the signal was seen."""
    ended = False

    def stop(number, frame):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, delay)
        call()
        ended = True
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        return not ended
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return False


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timers that interrupt")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # raised where Python can only report it
@pytest.mark.parametrize("name", CALLS)
def test_an_interruption_changes_nothing(name, tmp_path, two_threads_of_blas):
    original, call = CALLS[name]
    if original in MODELS.values():
        original = copy.deepcopy(original)
        method("fit", 200)(original, tmp_path)
    trial = copy.deepcopy(original)
    call(trial, tmp_path)  # what is compiled once does not count
    start = time.perf_counter()
    call(copy.deepcopy(original), tmp_path)
    length, rng, hits = time.perf_counter() - start, np.random.default_rng(len(name)), 0
    kept = pickle.dumps(original)
    faulthandler.dump_traceback_later(PATIENCE, exit=True)
    try:
        for _ in range(max(TIMES // len(CALLS), 3)):
            trial = copy.deepcopy(original)
            hit = interrupted(lambda trial=trial: call(trial, tmp_path), float(rng.uniform(1e-6, length)))
            hits += hit
            if hit and name != "save":
                assert pickle.dumps(trial) == kept
            PHI.queries(X[:1000])  # the pool answers, and what the first instruction of an exit lost is found
            assert set(blas_threads()) == {2} and single_threaded_blas.inside == 0
            if name == "save":
                assert [path.name for path in Path(tmp_path).iterdir()] == ["phi.npz"]
                assert bochner.load(tmp_path / "phi.npz").spec == PHI.spec
            faulthandler.dump_traceback_later(PATIENCE, exit=True)
    finally:
        faulthandler.cancel_dump_traceback_later()
    assert hits
