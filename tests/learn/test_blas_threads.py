"""Results do not depend on the threads of BLAS, nor on what other threads of the program do."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from bochner.learn import GaussianProcess, KernelClassifier, KernelRidge

RNG = np.random.default_rng(0)
X = RNG.standard_normal((900, 5))
Y = np.sin(X[:, 0]) + 0.1 * RNG.standard_normal(900)

ESTIMATORS = {
    "ridge": KernelRidge(n_components=500, random_state=0),
    "gcv": KernelRidge(n_components=500, alpha="gcv", random_state=0),
    "loo": KernelRidge(n_components=300, alpha="loo", random_state=0),
    "dual": KernelRidge(n_components=1000, alpha="gcv", random_state=0),
    "classifier": KernelClassifier(n_components=300, random_state=0),
    "process": GaussianProcess(n_components=300, optimize=("noise", "amplitude"), random_state=0),
}
SCRIPT = """
import hashlib, sys
sys.path[:0] = sys.argv[1:]
from learn.test_blas_threads import ESTIMATORS, X, Y
for name, estimator in ESTIMATORS.items():
    y = Y > 0 if name == "classifier" else Y
    print(name, hashlib.sha256(estimator.fit(X, y).predict(X).tobytes()).hexdigest())
"""


def predictions(name):
    return ESTIMATORS[name].fit(X, Y > 0 if name == "classifier" else Y).predict(X)


def test_the_threads_of_blas_change_no_bit():
    here = os.path.dirname(os.path.dirname(__file__))
    found = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT, here],
            env={**os.environ, "OMP_NUM_THREADS": n, "OPENBLAS_NUM_THREADS": n},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for n in ("1", "2")
    ]
    assert found[0] == found[1] != ""


@pytest.mark.parametrize("name", ("ridge", "gcv", "process"))
def test_fits_in_several_threads_are_those_of_one(name, two_threads_of_blas):
    expected = predictions(name)
    with ThreadPoolExecutor(3) as pool:
        for found in pool.map(predictions, [name] * 3):
            np.testing.assert_array_equal(found, expected)
