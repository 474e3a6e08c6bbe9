"""Expectations: unbiased under every law, with honest standard errors, to a tolerance."""

from __future__ import annotations

import numpy as np
import pytest

from bochner import expectation, kernels
from bochner.projections import IID, Orthogonal, Quadrature, Simplex
from bochner.rotations import Haar, Kac, StructuredGivens
from support.checks import check_mean

PROJECTIONS = (None, IID(), Orthogonal(Kac()), Simplex(), Quadrature(Haar()), Orthogonal(StructuredGivens()), "halton")


def z_of(found, truth):
    return (found.value - truth) / found.standard_error


@pytest.mark.parametrize("projection", PROJECTIONS, ids=repr)
def test_gaussian(projection):
    v = np.linspace(-0.6, 0.6, 5)
    found = expectation(lambda X: np.exp(X @ v), 5, projection=projection, n_blocks=400, batched=True, rng=0)
    assert abs(z_of(found, np.exp(v @ v / 2))) < 5 and found.standard_error < 0.1


@pytest.mark.parametrize("projection", PROJECTIONS, ids=repr)
def test_sphere(projection):
    """E (u . v)^4 = 3/(d (d + 2)) for a unit vector v."""
    v = np.array([3.0, 0, -4, 0, 0]) / 5
    found = expectation(lambda u: (u @ v) ** 4, 5, law="sphere", projection=projection, n_blocks=300, rng=0)
    assert abs(z_of(found, 3 / 35)) < 5
    one = expectation(lambda u: u @ u, 5, law="sphere", projection=projection, n_blocks=2, rng=0)
    assert one.value == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("kernel", (kernels.Gaussian(2.0), kernels.Matern(nu=1.5), kernels.Laplacian(1.5)), ids=repr)
def test_spectral_law(kernel):
    x, y = np.array([0.3, -1.0, 0.5]), np.array([1.0, 0.2, 0.0])
    found = expectation(lambda W: np.cos(W @ (x - y)), 3, law=kernel, n_blocks=800, batched=True, rng=0)
    assert abs(z_of(found, float(kernel(x[None], y[None])[0, 0]))) < 5


def test_standard_error_is_that_of_repetitions():
    def run(seed):
        return expectation(lambda X: np.exp(X[:, 0]), 4, n_blocks=8, batched=True, rng=seed)

    found = [run(seed) for seed in range(500)]
    squares = [f.standard_error**2 for f in found]
    check_mean(squares, np.var([f.value for f in found], ddof=1), "squared standard error")


def test_values_may_be_arrays_and_batches_agree():
    one = expectation(lambda x: np.outer(x, x), 3, n_blocks=300, rng=0)
    many = expectation(lambda X: X[:, :, None] * X[:, None, :], 3, n_blocks=300, batched=True, rng=0)
    assert one.value.shape == one.standard_error.shape == (3, 3) and one.n_evaluations == 900
    np.testing.assert_allclose(one.value, many.value, rtol=1e-12)
    assert (np.abs(one.value - np.eye(3)) < 5 * one.standard_error).all()


def test_tolerance_adds_blocks_and_keeps_the_first():
    seen = []

    def f(X):
        seen.append(X)
        return np.exp(X[:, 0])

    few = expectation(f, 4, batched=True, n_blocks=16, rng=0)
    first = seen.copy()
    seen.clear()
    more = expectation(f, 4, batched=True, n_blocks=16, tolerance=few.standard_error / 3, rng=0)
    assert more.standard_error <= few.standard_error / 3 and more.n_blocks > few.n_blocks
    assert all((a == b).all() for a, b in zip(first, seen, strict=False))
    with pytest.warns(RuntimeWarning, match="20 blocks leave a standard error of .* raise max_blocks or n"):
        assert expectation(f, 4, batched=True, tolerance=1e-9, max_blocks=20, rng=0).n_blocks == 20


def test_orthogonal_points_beat_independent_ones():
    def error(projection):
        return expectation(
            lambda X: np.abs(X[:, 0]), 16, projection=projection, n_blocks=400, batched=True, rng=0
        ).standard_error

    assert error(None) < 0.8 * error(IID())


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"f": 3}, "f must be a function of one vector, got 3"),
        ({"f": lambda x: None}, "values of f: expected an array of real numbers"),
        ({"f": lambda x: np.nan if x[0] > 0 else 1.0}, r"f must return finite numbers, got nan at x = \["),
        (
            {"f": lambda X: np.full((3, 2), np.inf), "batched": True},
            r"f must return finite numbers, got \[inf, inf\] at",
        ),
        ({"law": "normal"}, "law must be 'gaussian', 'sphere' or a kernel, got 'normal'"),
        ({"d": 0}, "d must be an integer of at least 1"),
        ({"n_blocks": 1}, "n_blocks must be an integer of at least 2"),
        ({"n": 0}, "n must be an integer of at least 1"),
        ({"tolerance": 0}, "tolerance must be a positive number"),
        ({"max_blocks": 3}, "max_blocks must be an integer of at least 16, got 3"),
        ({"projection": 3}, "expectation: projection must be a projection such as"),
        ({"batched": True, "f": lambda X: 1.0}, "f must return one value per row, here 3"),
        ({"law": kernels.Laplacian(), "projection": "orthogonal"}, "product law"),
    ],
)
def test_arguments(arguments, message):
    arguments = {"f": np.sum, "d": 3} | arguments
    with pytest.raises((TypeError, ValueError), match=message):
        expectation(arguments.pop("f"), arguments.pop("d"), **arguments)
