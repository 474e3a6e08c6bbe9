"""Approximate rotations are held to their known defects, so that a wrong one fails as well.

Exact references: one and two HD blocks and HMD on an axis, uniform-angle butterflies on an axis, fourth moments of
every rotation.  Table references: biases measured for the formulas, given there to three digits.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from bochner.projections import Orthogonal, Simplex
from bochner.rotations import Butterfly, Haar, Hadamard, Kac, MultiHadamard, StructuredGivens
from support.catalogue import ROTATIONS
from support.checks import check_mean, probes, z_score

X = np.array([1.0, 2.0, 0.0, -1.0])
Y = np.array([0.5, -1.0, 2.0, 1.0])
T_HAAR, T_ONE, T_TWO, T_TREE = 25 / 3, 9.875, 7.5625, 7.359375
KAC_THETA = 2 * 9 / (8 * 3)  # (d-2)(2d+1) / (2d(d-1)) at d = 4
T_START = float(np.sum(X**2 * Y**2))

FOURTH_MOMENTS = {
    repr(Hadamard(1)): T_ONE,
    repr(Hadamard(2)): T_TWO,
    repr(Hadamard(3)): T_HAAR + (-2 / 4) ** 3 * (T_START - T_HAAR),
    repr(MultiHadamard(1)): T_ONE,
    repr(Kac(2.0)): T_HAAR + KAC_THETA ** Kac(2.0).steps(4) * (T_START - T_HAAR),
    repr(Kac()): T_HAAR + KAC_THETA ** Kac().steps(4) * (T_START - T_HAAR),
    repr(StructuredGivens("uniform", mix=False)): T_TREE,
    repr(Butterfly("uniform", mix=False)): T_TREE,
} | {repr(R): T_HAAR for R in ROTATIONS if R.isotropy == "exact"}


@pytest.mark.parametrize("rotation", [R for R in ROTATIONS if repr(R) in FOURTH_MOMENTS], ids=repr)
def test_fourth_moment_is_the_known_one(rotation, seed):
    """T = E sum_i (Rx)_i^2 (Ry)_i^2, in closed form for each construction (formulas, section 6)."""
    R = rotation.sample(4, 20000, seed).to_dense()
    check_mean(np.sum((R @ X) ** 2 * (R @ Y) ** 2, axis=1), FOURTH_MOMENTS[repr(rotation)], f"{rotation}: T")


def test_kac_after_five_steps(seed):
    five = Kac(5 / (4 * np.log(4)))
    assert five.steps(4) == 5
    R = five.sample(4, 20000, seed).to_dense()
    check_mean(np.sum((R @ X) ** 2 * (R @ Y) ** 2, axis=1), 7.60164388, "Kac, 5 steps: T")


def test_kac_row_second_moment(seed):
    """d E[(r_i.x)(r_i.y)] = x.y + ((d-2)/(d-1))^k (d x_i y_i - x.y)."""
    five = Kac(5 / (4 * np.log(4)))
    R = five.sample(4, 20000, seed).to_dense()
    for i in range(4):
        expected = X @ Y + (2 / 3) ** 5 * (4 * X[i] * Y[i] - X @ Y)
        check_mean(4 * (R[:, i] @ X) * (R[:, i] @ Y), expected, f"Kac row {i}")


def chi_mean(f, d):
    """E f(R), R ~ chi_d, by quadrature on the quantiles."""
    u = (np.arange(200000) + 0.5) / 200000
    return np.mean(f(stats.chi(d).ppf(u)))


def signs_mean(z, d):
    """E cos of a row of independent signs over sqrt(d) and a chi_d length, times z e1: one HD block, or HMD."""
    return chi_mean(lambda r: np.cos(r * z / np.sqrt(d)), d)


def two_blocks_mean(z, d):
    """The same for two HD blocks: an entry is the sum of d signs, over d."""
    k = np.arange(d + 1)
    return sum(
        p * chi_mean(lambda r, s=s: np.cos(r * z * s), d)
        for p, s in zip(stats.binom.pmf(k, d, 0.5), 2 * k / d - 1, strict=True)
    )


def circle_products_mean(z, d):
    """The same for uniform angles: an entry of a row is a product of log2(d) independent cosines."""
    angles = np.random.default_rng(1234).uniform(0, 2 * np.pi, (int(np.log2(d)), 2_000_000))
    lengths = np.sqrt(np.random.default_rng(4321).chisquare(d, 2_000_000))
    values = np.cos(lengths * z * np.prod(np.cos(angles), axis=0))
    return values.mean()


def test_the_exact_references_agree_with_the_formulas():
    assert signs_mean(1.5, 8) == pytest.approx(0.11099, abs=2e-5)
    assert two_blocks_mean(1.5, 8) - np.exp(-1.125) == pytest.approx(0.031, abs=2e-3)
    assert circle_products_mean(1.5, 16) - np.exp(-1.125) == pytest.approx(0.20, abs=7e-3)


EXACT_ON_AXIS = [
    (Hadamard(1), signs_mean),
    (MultiHadamard(1), signs_mean),
    (Hadamard(2), two_blocks_mean),
    (StructuredGivens("uniform", mix=False), circle_products_mean),
    (Butterfly("uniform", mix=False), circle_products_mean),
]


def cosine_means(projection, d, z, n_blocks, seed):
    """Block averages of cos(w . z), independent."""
    return np.cos(projection.sample(d, n_blocks * d, seed)(z)).reshape(n_blocks, d).mean(axis=1)


@pytest.mark.parametrize(
    ("rotation", "reference"), EXACT_ON_AXIS, ids=lambda value: repr(value) if not callable(value) else ""
)
@pytest.mark.parametrize("d", (8, 16))
def test_bias_on_an_axis_is_exactly_the_known_one(rotation, reference, d, seed):
    values = cosine_means(Orthogonal(rotation), d, 1.5 * np.eye(d)[0], 6000, seed)
    check_mean(values, reference(1.5, d), f"{rotation} d={d}: E cos")


# Bias at |z| = 1.5 along e1; the table's standard error is 5e-4, and it is rounded to 5e-4 (5e-3 for two digits).
@pytest.mark.parametrize("rotation", [Hadamard(1), MultiHadamard(1)], ids=repr)
@pytest.mark.parametrize("label", ("ones", "generic"))
def test_bias_of_signs_is_the_known_one_in_every_direction(rotation, label, seed):
    """E_R prod_k cos(R z_k / sqrt(d)): a row is a vector of independent signs (formulas, section 5.1)."""
    z = probes(8, 1.5, seed)[label]
    expected = chi_mean(lambda r: np.prod(np.cos(np.multiply.outer(r, z) / np.sqrt(8)), axis=-1), 8)
    check_mean(cosine_means(Orthogonal(rotation), 8, z, 6000, seed), expected, f"{rotation} {label}: E cos")


TABLE = [
    (Kac(2.0), {8: 0.026, 16: 0.040}, 5e-4),
    (Kac(1.0), {8: 0.126, 16: 0.189}, 5e-4),
    (Hadamard(2), {8: 0.031, 16: 0.016}, 5e-4),
    (Hadamard(3), {8: -0.014, 16: -0.003}, 5e-4),
    (Hadamard(1), {8: -0.21, 16: -0.23}, 5e-3),
    (MultiHadamard(1), {8: -0.21, 16: -0.23}, 5e-3),
    (Butterfly("uniform", mix=False), {8: 0.11, 16: 0.20}, 5e-3),
    (StructuredGivens("uniform", mix=False), {8: 0.11, 16: 0.20}, 5e-3),
    (Haar(), {8: 0.0, 16: 0.0}, 0.0),
    (Butterfly(), {8: 0.0, 16: 0.0}, 0.0),
    (StructuredGivens(), {8: 0.0, 16: 0.0}, 0.0),
]


@pytest.mark.parametrize(
    ("rotation", "bias", "rounding"), TABLE, ids=lambda value: repr(value) if hasattr(value, "isotropy") else ""
)
@pytest.mark.parametrize("d", (8, 16))
def test_bias_agrees_with_the_table(rotation, bias, rounding, d, seed):
    _, mean, error = z_score(cosine_means(Orthogonal(rotation), d, 1.5 * np.eye(d)[0], 6000, seed), 0.0)
    tolerance = 5 * np.hypot(error, 5e-4 if rounding else 0.0) + rounding
    assert abs(mean - np.exp(-1.125) - bias[d]) < tolerance


FAST_SIMPLEX = [
    (Hadamard(1), 0.107),
    (Hadamard(2), 0.006),
    (Hadamard(3), -0.0013),
    (MultiHadamard(1), 0.006),
    (Kac(2.0), 0.0025),
]


@pytest.mark.parametrize(
    ("rotation", "bias"), FAST_SIMPLEX, ids=lambda value: repr(value) if hasattr(value, "isotropy") else ""
)
def test_fast_simplex_bias_agrees_with_the_table(rotation, bias, seed):
    """Positive features along e1, d = 8, v = 0.8 (formulas, section 5.4; standard errors there up to 0.0018)."""
    products = Simplex(rotation).sample(8, 8 * 20000, seed)(0.8 * np.eye(8)[0])
    _, mean, error = z_score(np.exp(products).reshape(-1, 8).mean(axis=1), 0.0)
    assert abs(mean - np.exp(0.32) - bias) < 5 * np.hypot(error, 0.0018) + 5e-4
