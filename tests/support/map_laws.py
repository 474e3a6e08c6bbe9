"""Checks of maps that raise: right maps pass them, and mutants must not."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from bochner import Approximation, kernels, maps
from bochner.maps import Draws
from bochner.projections import IID
from support.checks import check_mean
from support.points import X, Y

OPPOSITE = 0.5 * Y - X
X5, Y5 = np.array([0.5, -0.3, 0.2, 0.4, 0.3]), np.array([0.1, 0.45, -0.25, 0.3, -0.2])
COMPLEX = -0.05 + 0.08j
DIAGONAL = (1.1 + 0.3j, 0.2 + 0.9j, 0.8 - 0.4j, -0.3 + 1.1j)
GAUSSIAN, SOFTMAX = kernels.Gaussian(), kernels.Softmax()
PADDED = {"block": 8, "n_blocks": 15_000}  # five dimensions, in blocks of eight rows


# The laws


def check_unbiased(feature_map, kernel, x=X, y=Y, projection=None, *, block=1, n_blocks=100_000):
    """The mean over the independent blocks of one draw is the kernel; partners of a row are added."""
    spec = Approximation(kernel, feature_map, projection or IID(), block)
    check_mean(grouped(spec, x, y, n_blocks), kernel(x[None], y[None])[0, 0], f"{feature_map!r}:")


def grouped(spec, x, y, n, seed=0):
    """The estimates of k(x, y) by groups of rows of one large draw: those of n draws where all blocks are whole."""
    m = n * spec.n_projections
    phi = replace(spec, n_projections=m).draw(len(x), rng=seed)
    rows = (phi.queries(x[None]) * phi.keys(y[None])).reshape(-1, m).sum(axis=0) * m
    return rows.reshape(n, -1).mean(axis=1)


def redrawn(spec, x, y, draws, seed=0):
    """The estimate of k(x, y) by each of many draws."""
    rng = np.random.default_rng(seed)
    return np.array([spec.draw(len(x), rng=rng).gram(x[None], y[None])[0, 0] for _ in range(draws)])


def check_unbiased_over_redraws(spec, x=X, y=Y, draws=600):
    """The mean over redraws of everything is the kernel."""
    check_mean(redrawn(spec, x, y, draws), spec.kernel(x[None], y[None])[0, 0], f"{spec!r}:")


def check_coefficient(coefficient, expected, x, y):
    """The mean of lambda over its independent projections."""
    drawn = coefficient.draw(Draws(IID(), len(x), 1, None))
    products = drawn.features(x[None], key=False) * drawn.features(y[None], key=True)
    rows = products.reshape(-1, coefficient.n).sum(axis=0) * coefficient.n
    check_mean(drawn.a + drawn.s * rows, expected, f"{coefficient!r}:")


def check_normalized(feature_map):
    """Rows of the normalised Gram matrix are those of the plain one over their sums, from the same features."""
    rng = np.random.default_rng(0)
    queries, keys = 0.5 * rng.standard_normal((6, 4)), 0.5 * rng.standard_normal((9, 4))
    phi = Approximation(SOFTMAX, feature_map, n_projections=64).fit(queries, keys, rng=0)
    plain = phi.gram(queries, keys)
    ratio = plain / plain.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(phi.gram(queries, keys, normalize=True), ratio, rtol=1e-9, atol=1e-12)


def check_exact_at_equal_points(projection, m):
    """Cosines of zero are one, with any nodes whose weights add to one."""
    phi = Approximation(GAUSSIAN, maps.Trigonometric(), projection, m).draw(4, rng=0)
    np.testing.assert_allclose(phi.gram(X[None], X[None]), 1.0, rtol=1e-12)


def check_quadrature_variance(projection):
    """One rule in d = 8 at distance 1: the closed form has 0.00151601 (tests of `Quadrature`)."""
    x = np.full(8, 1 / math.sqrt(8))
    values = redrawn(Approximation(GAUSSIAN, maps.Trigonometric(), projection, 9), x, 0 * x, 600)
    check_mean((values - math.exp(-0.5)) ** 2, 0.00151601, f"{projection!r}: squared error,")


# Exponentials of quadratics
