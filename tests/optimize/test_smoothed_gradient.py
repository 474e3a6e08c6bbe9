"""Smoothed gradients: laws on every rotation, exactness, failures, and workers that change nothing."""

from __future__ import annotations

import math
import tracemalloc
from multiprocessing.pool import ThreadPool

import numpy as np
import pytest

from bochner import theory
from bochner.optimize import EvaluationError, EvaluationWarning, smoothed_gradient
from bochner.projections import IID, Orthogonal, Quadrature, Simplex
from bochner.rotations import Haar, Hadamard, Kac, StructuredGivens
from support.catalogue import ROTATIONS
from support.checks import check_mean, probes

D, SIGMA = 8, 0.5
SLOPE = np.array([0.5, -1.0, 0.3, 0.2, 1.5, 0.0, -0.7, 0.4])
_A = np.random.default_rng(3).standard_normal((D, D)) / 4
HESSIAN = _A + _A.T
EXACT = [R for R in ROTATIONS if R.isotropy == "exact"]


def quadratic(X):
    return 0.7 + X @ SLOPE + np.einsum("ni,ij,nj->n", X, HESSIAN, X) / 2


def redrawn(projection, n, estimator="antithetic", f=quadratic, repeats=400, theta=None):
    """Gradients of independent draws, (repeats, d)."""
    rng, theta = np.random.default_rng(0), np.zeros(D) if theta is None else theta
    options = dict(sigma=SIGMA, projection=projection, n_directions=n, estimator=estimator, rng=rng, batched=True)
    return np.array([smoothed_gradient(f, theta, **options).gradient for _ in range(repeats)])


def check_mean_and_error(found, expected, label):
    """The mean along three directions, and the squared error."""
    for name, v in probes(D, 1.0).items():
        check_mean(found @ v, SLOPE @ v, f"{label} {name}")
    check_mean(((found - SLOPE) ** 2).sum(axis=1), float(expected), f"{label} squared error")


@pytest.mark.parametrize("rotation", ROTATIONS, ids=repr)
def test_mean_and_error_on_every_rotation(rotation):
    found = redrawn(Orthogonal(rotation), D)
    check_mean_and_error(found, theory.smoothing_gradient_mse(SLOPE, D, coupling="orthogonal"), repr(rotation))


@pytest.mark.parametrize("estimator", ("antithetic", "forward", "plain"))
@pytest.mark.parametrize("n", (3, D, 20))
@pytest.mark.parametrize("projection", (IID(), Orthogonal(Haar()), Orthogonal(StructuredGivens())), ids=repr)
def test_mean_and_error_of_every_estimator(projection, n, estimator):
    coupling = "iid" if projection == IID() else "orthogonal"
    expected = theory.smoothing_gradient_mse(
        SLOPE, n, coupling=coupling, estimator=estimator, sigma=SIGMA, hessian=HESSIAN, value=0.7
    )
    check_mean_and_error(redrawn(projection, n, estimator), expected, f"{projection!r} {n} {estimator}")


@pytest.mark.parametrize(
    "projection", [*(Orthogonal(R) for R in EXACT), Simplex(), Quadrature(Haar(), "orthoplex")], ids=repr
)
@pytest.mark.parametrize("estimator", ("antithetic", "forward"))
def test_unbiased_where_f_is_curved(projection, estimator):
    """The smoothing of exp(b . x) is exp(b . x + sigma^2 |b|^2/2)."""
    b = 2 * SLOPE / np.linalg.norm(SLOPE)
    found = redrawn(projection, D, estimator, lambda X: np.exp(X @ b), 600)
    for name, v in probes(D, 1.0).items():
        check_mean(found @ v, b @ v * math.exp(SIGMA**2 * 4 / 2), f"{projection!r} {name}")


@pytest.mark.parametrize("rotation", [R for R in ROTATIONS if R.padded(D) == D], ids=repr)
@pytest.mark.parametrize("n", (D, 3 * D))
def test_fixed_lengths_recover_a_linear_function(rotation, n):
    projection = Orthogonal(rotation, radii="fixed")
    found = smoothed_gradient(
        lambda x: 3 + SLOPE @ x, np.ones(D), sigma=2.0, projection=projection, n_directions=n, rng=0
    )
    np.testing.assert_allclose(found.gradient, SLOPE, atol=1e-12)


def test_orthoplex_nodes_recover_a_quadratic_function_and_are_unbiased():
    projection = Quadrature(Haar(), "orthoplex")
    assert projection.unbiased
    found = smoothed_gradient(quadratic, np.ones(D), sigma=2.0, projection=projection, batched=True, rng=0)
    np.testing.assert_allclose(found.gradient, SLOPE + HESSIAN @ np.ones(D), atol=1e-12)


def test_standard_error_from_independent_blocks():
    rng, n = np.random.default_rng(1), 3 * D + 2
    options = dict(sigma=SIGMA, projection=Orthogonal(), n_directions=n, rng=rng, batched=True)
    squares = [smoothed_gradient(quadratic, np.zeros(D), **options).standard_error ** 2 for _ in range(500)]
    check_mean(squares, float(theory.smoothing_gradient_mse(SLOPE, n, coupling="orthogonal")), "a cut block")
    options |= {"projection": IID(), "n_directions": 40}
    squares = [smoothed_gradient(quadratic, np.zeros(D), **options).standard_error ** 2 for _ in range(500)]
    check_mean(squares, float(theory.smoothing_gradient_mse(SLOPE, 40)), "IID")


def test_standard_error_of_one_block_overstates():
    options = dict(sigma=SIGMA, projection=Orthogonal(), n_directions=D, batched=True)
    squares = [smoothed_gradient(quadratic, np.zeros(D), rng=s, **options).standard_error ** 2 for s in range(100)]
    assert np.mean(squares) > float(theory.smoothing_gradient_mse(SLOPE, D, coupling="orthogonal"))
    assert math.isnan(smoothed_gradient(quadratic, np.zeros(D), rng=0, **options | {"n_directions": 1}).standard_error)


@pytest.mark.parametrize("d", (1, 2, 5, 253))
@pytest.mark.parametrize("rotation", (Haar(), Kac(), Hadamard(), StructuredGivens()), ids=repr)
def test_any_dimension(d, rotation):
    P = Orthogonal(rotation)
    found = smoothed_gradient(np.sum, np.zeros(d), sigma=0.1, projection=P, n_directions=2 * d, rng=0)
    assert found.gradient.shape == (d,) and found.n_evaluations == 4 * d
    assert P.padded(d) == d or rotation.powers_of_two


def test_batches_workers_and_serial_agree(seed):
    def f(x):
        return float(np.sin(x).sum())

    theta = np.linspace(-1, 1, 20)
    options = dict(sigma=0.3, n_directions=50, rng=seed)
    serial = smoothed_gradient(f, theta, **options).gradient
    for workers in (1, 2, 5):
        with ThreadPool(workers) as pool:
            assert (smoothed_gradient(f, theta, map=pool.map, **options).gradient == serial).all()
    batched = smoothed_gradient(lambda X: np.sin(X).sum(axis=1), theta, batched=True, **options).gradient
    np.testing.assert_allclose(batched, serial, rtol=1e-12)


class FakeClient:
    """The two methods of a Dask client that are used."""

    def map(self, function, items, pure):
        assert pure is False
        return [lambda x=x: function(x) for x in items]

    def gather(self, futures):
        return [future() for future in futures]


def test_dask_client():
    options = dict(sigma=0.3, rng=0)
    plain = smoothed_gradient(np.sum, np.zeros(4), **options)
    assert (smoothed_gradient(np.sum, np.zeros(4), map=FakeClient(), **options).gradient == plain.gradient).all()


def fails_on_one_side(x):
    if x[0] > 1.2:
        raise ZeroDivisionError("too far")
    return math.nan if x[1] > 1.2 else float(SLOPE @ x)


@pytest.mark.parametrize("batched", (False, True))
def test_failures_are_left_out_with_their_partners(batched):
    f = (lambda X: np.array([fails_on_one_side(x) for x in X])) if batched else fails_on_one_side
    n = 40
    options = dict(sigma=1.0, projection=IID(), n_directions=n, rng=0)
    W = IID().sample(D, n, np.random.default_rng(0)).to_dense()
    bad = (np.abs(W[:, :2]) > 1.2).any(axis=1)
    with pytest.warns(EvaluationWarning, match=r"of 80 evaluations failed .* the first: "):
        found = smoothed_gradient(f, np.zeros(D), batched=batched, **options)
    assert found.n_directions == n - bad.sum() and found.n_failed >= bad.sum() > 0
    expected = (W[~bad] @ SLOPE) @ W[~bad] / (~bad).sum()
    np.testing.assert_allclose(found.gradient, expected, atol=1e-12)


def test_everything_failed():
    with pytest.raises(EvaluationError, match=r"every direction has a failed evaluation.*ZeroDivisionError: division"):
        smoothed_gradient(lambda x: 1 / 0, np.zeros(3), sigma=1.0)
    with pytest.raises(EvaluationError, match="the evaluation at x failed"):
        smoothed_gradient(lambda x: math.nan if not x.any() else 1.0, np.zeros(3), sigma=1.0, estimator="forward")


def test_memory_is_linear():
    """d = n = 4096: all directions would take 134 MB."""

    def gradient():
        return smoothed_gradient(
            lambda X: X[:, 0], np.zeros(4096), sigma=1.0, projection=Orthogonal(Hadamard()), batched=True
        )

    gradient()
    tracemalloc.start()
    gradient()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12e6, peak


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"sigma": 0}, "smoothed_gradient: sigma must be a positive number, got 0"),
        ({"estimator": "central"}, "estimator must be one of 'antithetic', 'forward', 'plain', got 'central'"),
        ({"n_directions": 0}, "n_directions must be an integer of at least 1, got 0"),
        ({"theta": np.zeros((2, 2))}, r"theta must be a vector, an array of shape \(d,\), got shape \(2, 2\)"),
        ({"theta": [math.nan, 1.0]}, "theta: expected finite numbers"),
        ({"projection": 3}, "projection must be a projection such as projections.Orthogonal"),
        ({"projection": "orthogonl"}, "orthogonal"),
        ({"f": 3}, "f must be a function of one vector, got 3"),
        ({"map": 3}, "map must have the signature of the built-in map"),
        ({"map": lambda f, items: [1.0]}, "map must return one result per point"),
        ({"map": map, "batched": True}, "pass batched=True or map=, not both"),
        ({"f": lambda X: X, "batched": True}, r"f must return one value per row, shape \(4,\), got \(4, 2\)"),
    ],
)
def test_arguments(arguments, message):
    arguments = {"f": np.sum, "theta": np.zeros(2), "sigma": 1.0} | arguments
    with pytest.raises((TypeError, ValueError), match=message):
        smoothed_gradient(arguments.pop("f"), arguments.pop("theta"), **arguments)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("unit", [2.0**-1000, 2.0**1000])
def test_the_unit_of_the_values_changes_nothing(unit):
    """Squares of large values overflowed, and the standard error was NaN; those of small ones vanished."""
    one, other = (
        smoothed_gradient(f, np.ones(3), sigma=0.1, n_directions=6, rng=0)
        for f in (lambda x: float(x @ x), lambda x: unit * float(x @ x))
    )
    np.testing.assert_array_equal(other.gradient, unit * one.gradient)
    assert other.standard_error == unit * one.standard_error > 0
