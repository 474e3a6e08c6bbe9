"""Closed forms against plain simulation: rows drawn here, by NumPy alone.

Each check is a z-test at 5 of mean squared errors over independent redraws of all the rows (a false alarm once in 1.7
million, more often for skewed squares); points are short enough for the tails to be tame.
"""

from __future__ import annotations

import numpy as np
import pytest

from bochner import theory
from bochner.theory._pairs import COUPLINGS, block_counts
from support.checks import check_mean
from support.points import DIAGONAL, XD, YD, X, Y
from support.reference_formulas import sum_density

R, D = 60_000, 4
PAIR = theory.Pairs.of(X, Y)


def block(coupling, r, rng):
    """R draws of r coupled rows of law N(0, I_4)."""
    if coupling == "iid":
        return rng.standard_normal((R, r, D))
    q, upper = np.linalg.qr(rng.standard_normal((R, D, D)))
    rows = (q * np.sign(np.diagonal(upper, axis1=-2, axis2=-1))[:, None, :])[:, :r]
    if coupling == "simplex" and r > 1:
        centred = np.eye(r) - 1 / r
        rows = np.sqrt(r / (r - 1)) * centred @ rows
    return rows * np.sqrt(rng.chisquare(D, (R, r, 1)))


def rows_of(coupling, m, seed):
    rng = np.random.default_rng(seed)
    sizes = [size for size, count in block_counts(m, D).items() for _ in range(count)]
    return np.concatenate([block(coupling, r, rng) for r in sizes], axis=1)


@pytest.mark.parametrize("m", [4, 10])
@pytest.mark.parametrize("coupling", COUPLINGS)
def test_many_projections(coupling, m):
    x, y = 0.7 * X, 0.7 * Y
    pair = theory.Pairs.of(x, y)
    rows = rows_of(coupling, m, seed=m)
    plus, minus = rows @ (x + y), rows @ (x - y)
    length = (rows**2).sum(-1)
    A, k, N = -0.08 + 0.05j, np.exp(pair.log_gaussian), pair.x2 + pair.y2
    gerf = {}
    for s, projection in ((1, plus), (-1, minus)):
        B = np.sqrt(s * (1 - 4 * A) + 0j)
        gerf[s] = ((1 - 4 * A) ** (D / 2) * np.exp(2 * A * length + B * projection - (s + 1) / 2 * N)).real
    cases = {
        "trigonometric": (np.cos(minus), theory.trigonometric_log_relative_mse(pair.minus, m, D, coupling)),
        "positive": (np.exp(plus - N), theory.positive_log_relative_mse(pair.plus, m, D, coupling)),
        "hyperbolic": (np.exp(-N) * np.cosh(plus), theory.hyperbolic_log_relative_mse(pair.plus, m, D, coupling)),
        "gerf+": (gerf[1], theory.gerf_log_relative_mse(A, 1, pair.plus, m, D, coupling)),
        "gerf-": (gerf[-1], theory.gerf_log_relative_mse(A, -1, pair.minus, m, D, coupling)),
    }
    for name, (values, log_mse) in cases.items():
        check_mean((values.mean(1) / k - 1) ** 2, float(np.exp(log_mse)), name)


def test_complex_exponential():
    x, y = 0.6 * X, 0.6 * Y
    w = np.random.default_rng(1).standard_normal((400_000, D))
    z = theory.complex_argument(x, y, DIAGONAL)
    exponent = -(theory.complex_argument(x, 0 * y, DIAGONAL) ** 2).sum() / 2
    exponent -= (theory.complex_argument(0 * x, y, DIAGONAL) ** 2).sum() / 2
    value = np.exp(exponent + w @ z - x @ y)
    check_mean((value.real - 1) ** 2, float(np.exp(theory.complex_exponential_log_relative_mse(z))))
    pair = (value + np.exp(exponent - w @ z - x @ y)).real / 2
    check_mean((pair - 1) ** 2, float(np.exp(theory.complex_exponential_log_relative_mse(z, antithetic=True))))
    other = np.cos(w @ (x - y)) * np.exp((x @ x + y @ y) / 2 - x @ y)
    covariance = theory.shared_relative_covariance(z, theory.complex_argument(x, y, 1j), 1, D)
    check_mean((value.real - 1) * (other - 1), float(covariance))


def test_discrete_features():
    rng, n = np.random.default_rng(2), 400_000
    x, y = 0.6 * XD, 0.6 * YD
    product, scale = x * y, np.exp(-(x @ y))
    rate, p = 0.2, 0.7
    counts = rng.poisson(rate, (n, D))
    value = np.exp(rate * D) * np.prod((product / rate) ** counts, axis=1) * scale
    check_mean((value - 1) ** 2, float(np.exp(theory.poisson_log_relative_mse(x, y, rate))), "Poisson")
    counts = rng.geometric(p, (n, D)) - 1
    factorial = np.cumprod(np.maximum(np.arange(60), 1.0))[counts]
    value = p**-D * np.prod((product / (1 - p)) ** counts / factorial, axis=1) * scale
    check_mean((value - 1) ** 2, float(np.exp(theory.geometric_log_relative_mse(x, y, p))), "geometric")


@pytest.mark.parametrize("shared", [True, False])
def test_angular_hybrid(shared):
    rng, m, n = np.random.default_rng(3), 3, 4
    x, y = 0.9 * X, 0.5 * Y
    pair = theory.Pairs.of(x, y)
    w = rng.standard_normal((R, m, D))
    other = w if shared else rng.standard_normal((R, m, D))
    tau = rng.standard_normal((R, n, D))
    weight = 0.5 - (np.sign(tau @ x) * np.sign(tau @ y)).mean(1) / 2
    N = pair.x2 + pair.y2
    hyperbolic = np.exp(-N / 2) * np.cosh(w @ (x + y)).mean(1)
    trigonometric = np.exp(N / 2) * np.cos(other @ (x - y)).mean(1)
    value = (weight * hyperbolic + (1 - weight) * trigonometric) / np.exp(x @ y)
    check_mean((value - 1) ** 2, float(np.exp(theory.angular_hybrid_log_relative_mse(pair, m, n, D, shared=shared))))


@pytest.mark.parametrize("vertices, radii", [("simplex", "own"), ("simplex", "shared"), ("orthoplex", "own")])
def test_spherical_radial_rules(vertices, radii):
    rng, d = np.random.default_rng(4), 3
    z = np.array([1.2, -0.8, 0.6])
    q, upper = np.linalg.qr(rng.standard_normal((R, d, d)))
    rotation = q * np.sign(np.diagonal(upper, axis1=-2, axis2=-1))[:, None, :]
    if vertices == "simplex":
        centred = np.eye(d + 1) - 1 / (d + 1)
        corners = np.linalg.svd(centred)[0][:, :d] * np.sqrt((d + 1) / d)
        share = d / (d + 1)
    else:
        corners, share = np.eye(d), 1.0
    shape = (R, len(corners)) if radii == "own" else (R, 1)
    rho = np.sqrt(rng.chisquare(d + 2, shape)) * np.ones((1, len(corners)))
    projected = np.einsum("jk,nki,i->nj", corners, rotation, z) * rho
    value = 1 + (share / rho**2 * (np.cos(projected) - 1)).sum(1)
    kernel = np.exp(-z @ z / 2)
    check_mean(value, kernel, "mean")
    check_mean((value - kernel) ** 2, float(theory.spherical_radial_variance(z @ z, d, vertices, radii)), "variance")


def test_length_of_a_sum():
    rows = rows_of("simplex", 4, seed=9)
    w = np.linalg.norm(rows[:, 0] + rows[:, 1], axis=1)
    grid = np.linspace(0, 12, 4001)
    density = sum_density(grid, D, -1 / 3)
    for power in (1, 3):
        check_mean(w**power, float(np.trapezoid(grid**power * density, grid)))
