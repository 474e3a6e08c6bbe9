"""The non-uniform Fourier transform, against sums written out."""

import numpy as np
import pytest

import bochner
from bochner.linalg import nonuniform
from bochner.linalg.nonuniform import NonuniformTransform

SIZES = [(5,), (3, 4), (1, 7), (2, 1, 3)]


def exponentials(transform, angles, sign):
    """e^(sign i j.theta) of all kept frequencies, (n, number of them), and how often each counts in a real function."""
    J = np.stack(np.meshgrid(*transform.frequencies(), indexing="ij"), axis=-1).reshape(-1, transform.d)
    return np.exp(sign * 1j * angles @ J.T), np.where(J[:, -1] > 0, 2.0, 1.0)


@pytest.mark.parametrize("largest", SIZES, ids=str)
def test_sums_and_values_are_those_of_the_definition(largest, seed):
    rng, transform = np.random.default_rng(seed), NonuniformTransform(largest)
    angles, values = rng.uniform(-20, 20, (60, len(largest))), rng.standard_normal((60, 2))
    E, _ = exponentials(transform, angles, -1)
    sums = transform.sums(angles, values)
    expected = values.T @ E
    np.testing.assert_allclose(sums.reshape(2, -1), expected, atol=1e-9 * np.abs(expected).max())
    E, twice = exponentials(transform, angles, 1)
    expected = (E @ (twice * sums.reshape(2, -1)).T).real
    np.testing.assert_allclose(transform.values(angles, sums), expected, atol=1e-9 * np.abs(expected).max())


def test_sums_do_not_depend_on_threads_and_add_up_over_parts(seed, monkeypatch):
    monkeypatch.setattr(nonuniform, "_TILE", 64)
    rng, transform = np.random.default_rng(seed), NonuniformTransform((40, 33))
    angles, values = rng.uniform(0, 7, (1000, 2)), rng.standard_normal((1000, 1))
    with bochner.threads(1):
        alone = transform.sums(angles, values)
    with bochner.threads(3):
        np.testing.assert_array_equal(transform.sums(angles, values), alone)
    parts = transform.sums(angles[:300], values[:300]) + transform.sums(angles[300:], values[300:])
    np.testing.assert_allclose(parts, alone, atol=1e-9)
    assert transform.sums(angles[:0], values[:0]).shape == (1, 81, 34)
