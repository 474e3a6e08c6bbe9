"""Tail bounds and uniform convergence of bounded positive features, against exact probabilities and simulations."""

from __future__ import annotations

import numpy as np
import pytest

from bochner import Approximation, kernels, maps, projections, theory
from bochner.theory._concentration import _uniform, log_supremum

X, Y = np.array([1.0, 2, 0, -1]), np.array([0.5, -1, 2, 1])


def test_tail_bound_covers_the_exact_probabilities():
    origin = theory.Pairs.of(np.zeros(1), np.zeros(1))
    assert theory.log_tail_bound(origin, 31.0, 1, -1023.75, 1) > np.log(0.01468)
    assert theory.log_tail_bound(theory.Pairs.of(np.zeros(20), np.zeros(20)), 1500.0, 1, -0.5, 20) > np.log(2.3e-5)


def test_tail_bound_is_sharper_with_the_true_supremum_and_falls_with_m():
    pair = theory.Pairs.of(X / 4, Y / 4)
    sharp, plain = (theory.log_tail_bound(pair, 0.5, 100, -0.2, 4, sharp=s) for s in (True, False))
    assert sharp <= plain
    assert theory.log_tail_bound(pair, 0.5, 200, -0.2, 4) < sharp
    assert np.isfinite(theory.log_tail_bound(theory.Pairs.of(X * 10, Y * 10), 0.5, 100, -0.2, 4096))


def test_supremum_is_attained():
    A, pair = -0.2, theory.Pairs.of(X / 4, Y / 4)
    w = np.sqrt(1 - 4 * A) * (X + Y) / 4 / (-4 * A)  # where the exponent is stationary
    value = 2 * np.log1p(-4 * A) + 2 * A * w @ w + np.sqrt(1 - 4 * A) * w @ (X + Y) / 4 - pair.x2 - pair.y2
    assert float(log_supremum(pair, A, 4)) == pytest.approx(float(value))
    with pytest.raises(ValueError, match="A must be negative"):
        log_supremum(pair, 0.0, 4)


def test_legendre_transform_by_quadrature():
    A, x, y, epsilon = -0.2, np.array([0.3, 0.5]), np.array([0.4, -0.1]), 0.3
    nodes, weights = np.polynomial.hermite_e.hermegauss(50)
    w = np.stack(np.meshgrid(nodes, nodes), axis=-1).reshape(-1, 2)
    p = np.outer(weights, weights).ravel() / weights.sum() ** 2
    Z = (1 - 4 * A) * np.exp(2 * A * (w**2).sum(1) + np.sqrt(1 - 4 * A) * w @ (x + y) - x @ x - y @ y)
    level = np.exp(-((x - y) @ (x - y)) / 2)
    assert p @ Z == pytest.approx(level, rel=1e-9)
    t = np.geomspace(0.1, 20, 801)
    rate = np.max(t * (level + epsilon) - np.log(np.exp(np.outer(t, Z)) @ p))
    found = theory.log_orthogonal_tail_bound(theory.Pairs.of(x, y), epsilon, 3, A, 2)
    assert float(found) == pytest.approx(-3 * rate, rel=1e-5)


@pytest.mark.parametrize("rows", [projections.IID(), projections.Orthogonal(), projections.Simplex()], ids=repr)
def test_upper_tail_of_coupled_rows_is_covered(rows):
    """600 draws of 8 rows in blocks of 4: frequencies are below the bound or within five standard errors."""
    x, y, A = X[None] / 4, Y[None] / 4 + 0.2, -0.1
    plan = Approximation(kernels.Gaussian(), maps.GeneralizedExponential(A, 1), rows, 8)
    rng = np.random.default_rng(0)
    errors = np.array([plan.draw(4, rng).gram(x, y).item() for _ in range(600)]) - kernels.Gaussian()(x, y).item()
    epsilon = np.quantile(errors, [0.6, 0.9, 0.99])
    bound = np.exp(theory.log_orthogonal_tail_bound(theory.Pairs.of(x[0], y[0]), epsilon, 8, A, 4))
    share = np.array([(errors >= e).mean() for e in epsilon])
    assert (share <= bound + 5 * np.sqrt(bound / 600)).all() and (bound < 1).all()


def test_legendre_bound_is_sharper_than_hoeffding_and_exact_at_the_top():
    pair, A = theory.Pairs.of(X / 4, Y / 4), -0.2
    epsilon = np.array([0.01, 0.1, 0.5, 2.0])
    sharp, hoeffding = (f(pair, epsilon, 50, A, 4) for f in (theory.log_orthogonal_tail_bound, theory.log_tail_bound))
    assert (sharp <= hoeffding - np.log(2) + 1e-9).all() and (np.diff(sharp) < 0).all()
    beyond = np.exp(log_supremum(pair, A, 4)) + 0.1
    assert theory.log_orthogonal_tail_bound(pair, float(beyond), 1, A, 4) == -np.inf
    with pytest.raises(ValueError, match="A must be a number between -1e100 and -1e-100, or features are unbounded"):
        theory.log_orthogonal_tail_bound(pair, 0.1, 1, 0.1, 4)
    with pytest.raises(ValueError, match=r"A must be one number, got shape \(2,\)"):
        theory.log_orthogonal_tail_bound(pair, 0.1, 1, [-0.1, -0.2], 4)


@pytest.mark.parametrize("A, R", [(-0.1, 1.0), (-2.0, 3.0)])
def test_suprema_in_a_ball(A, R):
    """No feature product, and no gradient of the error, exceeds what the net assumes; the former is attained."""
    d, rng = 3, np.random.default_rng(0)
    rho, B = R * d**-0.25, np.sqrt(1 - 4 * A)
    log_net, rate = _uniform("test", 0.5, R, A, d)
    top = np.sqrt(0.5**2 / (2 * rate))
    lipschitz = np.expm1((log_net - np.log(2)) / (2 * d)) * 0.5 / (4 * np.sqrt(2) * rho)

    def product(w, x, y):
        return (1 - 4 * A) ** (d / 2) * np.exp(
            2 * A * (w**2).sum(-1) + B * (w * (x + y)).sum(-1) - ((x**2).sum(-1) + (y**2).sum(-1)) / 2
        )

    x = np.array([rho, 0, 0])
    assert product(B * x / (-2 * A), x, x) == pytest.approx(float(top))
    x, y = (
        rho * v / np.maximum(np.linalg.norm(v, axis=-1, keepdims=True), 1) for v in rng.standard_normal((2, 20000, d))
    )
    w = 3 * rho / np.sqrt(-A) * rng.standard_normal((20000, d))
    Z, K = product(w, x, y)[:, None], np.exp((x * y).sum(-1))[:, None]
    gradient = np.concatenate([Z * (B * w - x) - K * y, Z * (B * w - y) - K * x], axis=1)
    assert (Z <= top * (1 + 1e-12)).all()
    assert (np.linalg.norm(gradient, axis=1) <= lipschitz).all()


def test_uniform_projections_solve_the_bound():
    epsilon = np.array([0.2, 0.5])
    m = theory.uniform_projections(epsilon, 0.5, -1.0, 2, probability=0.1)
    for e, count in zip(epsilon, m, strict=True):
        assert theory.log_uniform_tail_bound(e, 0.5, int(count), -1.0, 2) <= np.log(0.1)
        assert theory.log_uniform_tail_bound(e, 0.5, int(count) - 2, -1.0, 2) > np.log(0.1)
    spec = Approximation(kernels.Softmax(), maps.GeneralizedExponential(-1.0, 1), projections.IID(), int(m[1]))
    points = 0.5 * 2**-0.25 * np.stack([np.cos(angle := np.linspace(0, 6, 30)), np.sin(angle)], axis=1)
    assert np.abs(spec.draw(2, rng=0).gram(points) - kernels.Softmax()(points)).max() < 0.5
    assert theory.uniform_projections(0.1, 1e100, -1.0, 2) == np.inf
