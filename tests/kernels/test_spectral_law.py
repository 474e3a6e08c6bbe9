"""The law of the random rows of each kernel: the mean of its estimator is the kernel.

Each check asks |z| < 5 of a mean over N independent rows (see `checks`).
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from bochner.kernels import (
    Additive,
    Angular,
    ArcCosine,
    Beta,
    Cauchy,
    Columns,
    ExponentialPower,
    Gaussian,
    GeneralizedCauchy,
    GeneralizedMatern,
    Kummer,
    Laplacian,
    Linear,
    LpExponential,
    Matern,
    Periodic,
    Product,
    RationalQuadratic,
    Softmax,
    Sum,
    Tricomi,
)
from support.checks import check_law, check_mean, probes

N = 40_000
RADIAL = [
    Gaussian(),
    Cauchy(),
    RationalQuadratic(0.3),
    RationalQuadratic(1.0),
    RationalQuadratic(5.0),
    Matern(0.2),
    Matern(0.5),
    Matern(1.0),
    Matern(1.5),
    Matern(2.5),
    Matern(7.0),
    ExponentialPower(0.2),
    ExponentialPower(0.7),
    ExponentialPower(1.0),
    ExponentialPower(1.9),
    ExponentialPower(2.0),
    GeneralizedCauchy(0.5, 0.3),
    GeneralizedCauchy(1.5, 2.0),
    GeneralizedMatern(0.7, 1.0),
    GeneralizedMatern(2.5, 1.6),
    Kummer(0.3, 2.0),
    Kummer(1.0, 0.5, 1.3),
    Tricomi(0.5, 1.5),
    Tricomi(2.0, 0.4, 1.0),
    Beta(1.0, 0.3),
    Beta(0.5, 2.0, 1.7),
]
PRODUCT_LAWS = [
    Laplacian(),
    LpExponential(1.0, 0.7),
    LpExponential(1.3),
    LpExponential(2.0, 0.5),
    LpExponential(0.4, 0.3),
    Periodic(1.0, 0.6),
    Product((Periodic(2.0), Gaussian(1.7))),
    Sum((Gaussian(0.4), Laplacian(2.0)), (1.0, 3.0)),
    Sum((Columns(Gaussian(0.5), (0,)), Cauchy())),
    Additive(Matern(1.5, 0.6)),
]
STEP = [lambda t: (np.sign(t) + 1) / 2, lambda t: np.maximum(t, 0), lambda t: np.maximum(t, 0) ** 2]
PRODUCTS = [  # a kernel, and what its estimator makes of (w . x, w . y, x, y)
    (Linear(), lambda u, v, x, y: u * v),
    (Softmax(), lambda u, v, x, y: np.exp(u + v - x @ x / 2 - y @ y / 2)),
    (Angular(), lambda u, v, x, y: np.sign(u) * np.sign(v)),
    *((ArcCosine(b), lambda u, v, x, y, f=STEP[b]: 2 * f(u) * f(v)) for b in range(3)),
]


def rows(kernel, d, seed):
    """N independent rows."""
    rng = np.random.default_rng([seed, d])
    if kernel.spectrum == "product":
        return kernel.sample_rows(d, N, rng)
    return kernel.sample_scales((N,), rng)[:, None] * rng.standard_normal((N, d))


@pytest.mark.parametrize("kernel", [*RADIAL, *PRODUCT_LAWS], ids=repr)
@pytest.mark.parametrize("d", (1, 2, 5, 16))
@pytest.mark.parametrize("norm", (0.3, 1.5))
def test_mean_of_cosines_is_the_kernel(kernel, d, norm, seed):
    W = rows(kernel, d, seed)
    for name, z in probes(d, norm, seed).items():
        check_mean(np.cos(W @ z), kernel([z], [np.zeros(d)]).item(), label=f"{kernel} on {name}")


@pytest.mark.parametrize(
    "kernel", [Gaussian(1.7), Matern(1.5, 0.6), RationalQuadratic(0.7, 2.0), Laplacian(1.4)], ids=repr
)
def test_scaled_inputs_carry_the_lengthscale(kernel, seed):
    W = rows(kernel, 3, seed)
    x, y = np.random.default_rng(seed).standard_normal((2, 1, 3))
    check_mean(np.cos((kernel.scaled(x) - kernel.scaled(y))[0] @ W.T), kernel(x, y).item())


@pytest.mark.parametrize("order", (1, 2, 3))
def test_rows_of_sets_of_columns(order, seed):
    """Every row has as many entries as the order, and the mean of cosines is the kernel."""
    kernel = Additive(Gaussian(0.7), order)
    W = kernel.sample_rows(3, N, seed)
    assert np.all(np.count_nonzero(W, axis=1) == order)
    for name, z in probes(3, 1.5, seed).items():
        check_mean(np.cos(W @ z), kernel([z], [np.zeros(3)]).item(), label=name)


@pytest.mark.parametrize("kernel, estimate", PRODUCTS, ids=lambda value: repr(value) if not callable(value) else "")
@pytest.mark.parametrize("d", (1, 2, 5, 16))
def test_mean_of_products_is_the_kernel(kernel, estimate, d, seed):
    W = rows(kernel, d, seed)
    y = np.random.default_rng([seed, d, 1]).standard_normal(d) / d**0.5
    for name, x in probes(d, 0.8, seed).items():
        check_mean(estimate(W @ x, W @ y, x, y), kernel([x], [y]).item(), label=f"{kernel} on {name}")


def test_softmax_scale_is_carried_by_scaled_inputs(seed):
    kernel = Softmax(0.3)
    W = rows(kernel, 4, seed)
    x, y = np.random.default_rng(seed).standard_normal((2, 1, 4))
    a, b = kernel.scaled(x)[0], kernel.scaled(y)[0]
    check_mean(np.exp(W @ (a + b) - a @ a / 2 - b @ b / 2), kernel(x, y).item())


def test_laws_of_scales(seed):
    """Squares of scales: inverse Gamma, Gamma and exponential; and Cauchy entries."""
    draw = lambda kernel: kernel.sample_scales(N, np.random.default_rng([seed, 7])) ** 2  # noqa: E731
    check_law(draw(Matern(1.5)), stats.invgamma(1.5, scale=1.5), "Matern")
    check_law(draw(RationalQuadratic(0.7)), stats.gamma(0.7, scale=1 / 0.7), "RationalQuadratic")
    check_law(draw(Cauchy()), stats.expon(scale=2), "Cauchy")
    check_law(
        draw(ExponentialPower(1.0)), stats.levy(scale=1.0), "ExponentialPower"
    )  # Levy: stable of index 1/2, times 2
    check_law(LpExponential(2.0).sample_rows(4, N // 4, seed).ravel(), stats.norm(scale=2**0.5), "LpExponential")
    check_law(Laplacian().sample_rows(4, N // 4, seed).ravel(), stats.cauchy(), "Laplacian")


@pytest.mark.parametrize(
    "kernel",
    [Matern(0.001), Matern(0.01), Matern(1.0), ExponentialPower(0.01), GeneralizedCauchy(0.01, 0.01)],
    ids=repr,
)
def test_scales_are_finite_and_positive_also_in_float32(kernel, seed):
    s = kernel.sample_scales(N, seed).astype(np.float32)
    assert np.all(np.isfinite(s) & (s > 0))


@pytest.mark.parametrize("kernel", [*RADIAL, *(k for k, _ in PRODUCTS)], ids=repr)
def test_scales_have_the_shape_and_type_asked_for(kernel):
    for shape, expected in (((2, 3), (2, 3)), (4, (4,)), ((), ())):
        s = np.asarray(kernel.sample_scales(shape, 0))
        assert s.shape == expected and s.dtype == np.float64


@pytest.mark.parametrize("kernel", [k for k in RADIAL if k not in (Gaussian(), ExponentialPower(2.0))], ids=repr)
def test_draws_follow_the_rules_of_streams(kernel):
    """One int, the same draw; one Generator twice, two draws."""
    rng = np.random.default_rng(0)
    np.testing.assert_array_equal(kernel.sample_scales(5, 0), kernel.sample_scales(5, 0))
    assert not np.array_equal(kernel.sample_scales(5, rng), kernel.sample_scales(5, rng))
    np.testing.assert_array_equal(Laplacian().sample_rows(2, 5, 0), Laplacian().sample_rows(2, 5, 0))
