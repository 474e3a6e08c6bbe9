"""Results do not depend on the threads of BLAS, nor on what other threads of the program do."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from bochner.learn import GaussianProcess, KernelClassifier, KernelRidge

RNG = np.random.default_rng(0)
X = RNG.standard_normal((240, 5))
Y = np.sin(X[:, 0]) + 0.1 * RNG.standard_normal(240)

PLAIN = {"kernel": "gaussian", "metric": None, "random_state": 0}
ESTIMATORS = {
    "ridge": KernelRidge(n_components=200, random_state=0),  # with the whole search
    "gcv": KernelRidge(n_components=300, alpha="gcv", **PLAIN),
    "loo": KernelRidge(n_components=200, alpha="loo", **PLAIN),
    "dual": KernelRidge(n_components=500, alpha="gcv", **PLAIN),
    "classifier": KernelClassifier(n_components=200, **PLAIN),
    "process": GaussianProcess(n_components=200, optimize=("noise", "amplitude"), random_state=0),
}
SCRIPT = """
import sys
sys.path[:0] = sys.argv[1:]
from learn.test_blas_threads import digests
print(digests())
"""


def predictions(name):
    return ESTIMATORS[name].fit(X, Y > 0 if name == "classifier" else Y).predict(X)


def digests():
    """Of the predictions of every estimator."""
    return {name: hashlib.sha256(predictions(name).tobytes()).hexdigest() for name in ESTIMATORS}


def test_the_threads_of_blas_change_no_bit():
    """A process that starts with two threads, as on a user's machine, and one thread here."""
    two = {"OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"}
    command = [sys.executable, "-c", SCRIPT, os.path.dirname(os.path.dirname(__file__))]
    done = subprocess.run(command, env=os.environ | two, capture_output=True, text=True, check=True)
    with threadpool_limits(1):
        assert done.stdout.strip() == str(digests())


@pytest.mark.parametrize("name", ("ridge", "gcv", "process"))
def test_fits_in_several_threads_are_those_of_one(name, two_threads_of_blas):
    expected = predictions(name)
    with ThreadPoolExecutor(3) as pool:
        for found in pool.map(predictions, [name] * 3):
            np.testing.assert_array_equal(found, expected)
