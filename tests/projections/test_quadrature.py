"""Spherical-radial rules: exactness, means, the node at zero, and the variance in closed form."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import hyp1f1

from bochner.projections import Quadrature
from bochner.rotations import Butterfly, Haar, Hadamard, StructuredGivens
from support.catalogue import QUADRATURES
from support.checks import Z_MAX, check_mean, probes
from support.projection_laws import block_means


def rule(P, f, v):
    """The rule's value of E f(w . v), with reflected nodes and the node at zero."""
    u = P(v)
    return ((f(u) + f(-u)) / 2) @ P.weights + P.origin_weight * f(np.zeros(1))[0]


@pytest.mark.parametrize("projection", QUADRATURES, ids=repr)
@pytest.mark.parametrize("d", (1, 2, 3, 5, 16))
def test_whole_rules_are_exact_up_to_degree_three(projection, d, seed):
    """For any rotation and any radii; not in degree four."""
    P = projection.sample(d, 2 * projection.rows_per_rule(d), seed)
    v = probes(d, 1.5, seed)["generic"]
    for f, expected in ((lambda u: u**0, 1.0), (lambda u: u, 0.0), (lambda u: u**2, 2.25), (lambda u: u**3, 0.0)):
        assert rule(P, f, v) == pytest.approx(expected, abs=1e-10)
    assert abs(rule(P, lambda u: u**4, v) - 3 * 2.25**2) > 1e-3


@pytest.mark.parametrize("projection", [p for p in QUADRATURES if p.unbiased], ids=repr)
@pytest.mark.parametrize("d", (1, 2, 3, 8))
def test_signed_rules_are_unbiased_for_any_number_of_rows(projection, d, seed):
    Z = probes(d, 1.5, seed)
    rows = projection.rows_per_rule(d)
    whole = block_means(projection, d, rows, np.stack(list(Z.values())), np.cos, 4000, seed)
    for k, label in enumerate(Z):
        check_mean(whole[:, k], np.exp(-1.125), f"{projection} d={d} {label}: E cos")
    rng = np.random.default_rng(seed)
    for m in {1, max(rows - 1, 1), rows + 2}:  # cut rules, drawn again and again
        values = np.array([rule(projection.sample(d, m, rng), np.cos, Z["e1"]) for _ in range(300)])
        check_mean(values, np.exp(-1.125), f"{projection} d={d} m={m} e1: E cos")


def test_cosine_of_zero_is_exact():
    P = Quadrature().sample(5, 17, 0)
    assert rule(P, np.cos, np.zeros(5)) == pytest.approx(1, abs=1e-14)


def gaussian_variance(d, z):
    """Variance of one simplex rule on cos, own radii (formulas, section 9)."""
    k, t = np.exp(-(z**2) / 2), z**2 / 2

    def F(s):
        return hyp1f1((d - 2) / 2, d / 2, -s)

    phi = (np.arange(4000) + 0.5) * np.pi / 4000
    weight = np.sin(phi) ** (d - 1)
    s = np.sin(phi)
    pair = np.average((hyp1f1(d, d / 2, -t * (1 + s / d)) + hyp1f1(d, d / 2, -t * (1 - s / d))) / 2, weights=weight)
    h2 = (1.5 - 2 * F(t) + F(4 * t) / 2) / (d * (d - 2))
    h11 = (pair - 2 * k + 1) / d**2
    return d**2 / (d + 1) * h2 + d**3 / (d + 1) * h11 - (1 - k) ** 2


def test_the_variance_formula_has_its_known_values():
    assert gaussian_variance(8, 0.5) == pytest.approx(1.0779e-5, rel=1e-3)
    assert gaussian_variance(8, 1.0) == pytest.approx(0.00151601, rel=1e-5)
    assert gaussian_variance(8, 2.0) == pytest.approx(0.0479738, rel=1e-5)


@pytest.mark.parametrize("n_rules", (1, 3))
@pytest.mark.parametrize("z", (1.0, 2.0))
def test_variance_is_the_closed_form_and_rules_are_independent(n_rules, z, seed):
    v = z * probes(8, 1.0, seed)["generic"]
    values = block_means(Quadrature(), 8, 9 * n_rules, v[None], np.cos, 20000, seed)[:, 0]
    check_mean((values - np.exp(-(z**2) / 2)) ** 2, gaussian_variance(8, z) / n_rules, f"variance at z = {z}")


@pytest.mark.parametrize("d", (8, 64))
def test_resampling_is_biased_as_known(d, seed):
    """P(a_0^2 >= 0), E[a_0^2 | >= 0], and the bias that more rules do not remove (formulas E17)."""
    probability, conditional, bias = {8: (0.558, 0.132, 0.062), 64: (0.508, 0.0176, 0.010)}[d]
    n = 20000

    def origins(origin):
        weights = Quadrature(Hadamard(1), origin=origin).sample(d, n * (d + 1), seed).weights
        return 1 - n * weights.reshape(n, d + 1).sum(axis=1)

    signed, kept = origins("signed"), origins("resample")
    check_mean(signed, 0.0, "E a_0^2")
    assert abs(np.mean(signed >= 0) - probability) < Z_MAX * np.sqrt(0.25 / n) + 5e-4
    assert kept.min() >= 0
    assert abs(kept.mean() - conditional) < Z_MAX * kept.std() / np.sqrt(n) + 5e-4
    v = 2 * probes(d, 1.0, seed)["generic"]
    blocks = 4000 if d == 8 else 1000
    values = block_means(Quadrature(origin="resample"), d, 2 * (d + 1), v[None], np.cos, blocks, seed)
    error = values.std() / np.sqrt(blocks)
    assert abs(values.mean() - np.exp(-2) - bias) < Z_MAX * error + 5e-4
    if d == 8:
        assert values.mean() - np.exp(-2) > Z_MAX * error


def test_which_rules_claim_to_be_unbiased():
    assert Quadrature().unbiased and Quadrature(vertices="orthoplex").unbiased
    assert Quadrature(Butterfly("tree"), "orthoplex").unbiased and Quadrature(StructuredGivens(), "orthoplex").unbiased
    assert not Quadrature(Butterfly("tree")).unbiased
    assert not Quadrature(Hadamard(3), "orthoplex").unbiased
    assert not Quadrature(Haar(), origin="resample").unbiased


def test_butterfly_bias_on_simplex_vertices(seed):
    """A single uniform-angle butterfly is biased by 0.05 to 0.07 on simplex vertices (formulas, section 9), three
    products by at most 0.003; a single one with exact rows is biased too, since vertices are no axes."""
    z = 2 * np.eye(8)[:1]

    def bias(rotation):
        values = block_means(Quadrature(rotation), 8, 9, z, np.cos, 40000, seed)
        return values.mean() - np.exp(-2), values.std() / 200

    single, error = bias(Butterfly("uniform", mix=False))
    assert 0.05 - Z_MAX * error < single < 0.07 + Z_MAX * error
    three, error = bias(Butterfly("uniform", mix=False, products=3))
    assert abs(three) < 0.003 + Z_MAX * error
    tree, error = bias(Butterfly("tree", mix=False))
    assert abs(tree) > Z_MAX * error
