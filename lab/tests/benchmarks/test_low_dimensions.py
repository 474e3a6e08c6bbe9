"""The exact process on a grid, which the benchmark of few columns is judged by."""

from __future__ import annotations

import numpy as np

from bochner.kernels import Matern
from bochner_lab.benchmarks.low_dimensions import exact_mean, full_size


def test_the_reference_is_the_dense_process():
    rng, kernel, noise, side = np.random.default_rng(0), Matern(1.5, 0.3), 0.1, 9
    K = kernel(np.column_stack(np.divmod(np.arange(side**2), side)) / (side - 1))
    y = rng.standard_normal(side**2)
    found, _ = exact_mean(kernel, noise, y.reshape(side, side))
    np.testing.assert_allclose(found.ravel(), K @ np.linalg.solve(K + noise * np.eye(side**2), y), atol=1e-6)


def test_a_small_case_is_within_the_tolerance():
    """The Fourier process against the exact one; no time is asserted."""
    *_, error = full_size(25, 100)
    assert error.met and "625 rows, against the exact process" in error.case
