"""Broken coefficients, quadratures and stabilisers, which the checks must reject; and the right ones, which pass."""

from __future__ import annotations

import numpy as np
import pytest

from bochner import Approximation, maps
from bochner.maps._features import parts_of
from bochner.maps.coefficients import AngularCoefficient, DrawnCoefficient, NormalizedGaussianCoefficient
from bochner.projections import IID, Orthogonal, Quadrature
from bochner.rotations import StructuredGivens
from support.map_laws import (
    COMPLEX,
    DIAGONAL,
    GAUSSIAN,
    OPPOSITE,
    PADDED,
    SOFTMAX,
    X5,
    Y5,
    check_coefficient,
    check_exact_at_equal_points,
    check_normalized,
    check_quadrature_variance,
    check_unbiased,
    check_unbiased_over_redraws,
)
from support.points import XD, YD, X, Y


class TauWithoutSigma(NormalizedGaussianCoefficient):
    """HRF Eq. 70 as printed: no sigma inside of cosine and sine."""

    def draw(self, draws):
        drawn = super().draw(draws)
        one = np.asarray(1.0)
        parts = vars(drawn) | {"left": one, "right": one}
        return DrawnCoefficient(**parts)


class TauOfTheBases(AngularCoefficient):
    """A stream that is used again: the signs of the bases' own rows."""

    def draw(self, draws):
        drawn = super().draw(draws)
        draws._prefix = ""
        return DrawnCoefficient(**(vars(drawn) | {"tau": draws.independent_rows("base", self.n)}))


def known_coefficient(sigma, radius, x, y):
    return (1 - np.exp(-(sigma**2) * np.sum((x - y) ** 2) / 2)) / (1 - np.exp(-2 * sigma**2 * radius**2))


def bipolar(coefficient):
    return maps.Hybrid([maps.Hyperbolic(), maps.Trigonometric()], [coefficient])


def test_tau_without_sigma_is_rejected():
    x, y = X / np.linalg.norm(X), Y / np.linalg.norm(Y)
    with pytest.raises(AssertionError, match=r"TauWithoutSigma.*expected"):
        check_coefficient(TauWithoutSigma(0.8, 1.0, 100_000), known_coefficient(0.8, 1.0, x, y), x, y)


def test_a_wrong_coefficient_leaves_the_hybrid_unbiased():
    """So the mean of the hybrid is no test of its coefficient."""
    check_unbiased_over_redraws(Approximation(SOFTMAX, bipolar(TauWithoutSigma(0.8, 1.0, 4)), IID(), 3))


def test_coefficients_that_share_the_rows_of_the_bases_are_rejected():
    spec = Approximation(SOFTMAX, bipolar(TauOfTheBases(1)), IID(), 1)
    with pytest.raises(AssertionError, match=r"TauOfTheBases.*expected"):
        check_unbiased_over_redraws(spec, X, OPPOSITE)


# Nodes of a quadrature


class WithoutOrigin(Quadrature):
    """The node at zero is dropped."""

    def _draw(self, d, m, rng, kernel):
        P = super()._draw(d, m, rng, kernel)
        P.origin, P.origin_weight = False, 0.0
        return P


class UnsignedOrigin(Quadrature):
    """The node at zero with the absolute value of its weight: the square root of a negative number avoided."""

    def _draw(self, d, m, rng, kernel):
        P = super()._draw(d, m, rng, kernel)
        P.origin_weight = abs(P.origin_weight)
        return P


def test_a_dropped_origin_is_rejected():
    """Its weight has mean zero, so the mean does not show it; points without variance and the variance do."""
    check_unbiased_over_redraws(Approximation(GAUSSIAN, maps.Trigonometric(), WithoutOrigin(), 5), X, -X)
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        check_exact_at_equal_points(WithoutOrigin(), 10)
    with pytest.raises(AssertionError, match="squared error"):
        check_quadrature_variance(WithoutOrigin())


@pytest.mark.parametrize("feature_map", (maps.Trigonometric(), maps.Positive()), ids=repr)
def test_an_unsigned_origin_is_rejected(feature_map):
    with pytest.raises(AssertionError, match=r"UnsignedOrigin.*expected"):
        check_unbiased_over_redraws(Approximation(GAUSSIAN, feature_map, UnsignedOrigin(), 5))


# Stabilisers


def maximum_of_each_key(features, X, Y):
    """Keys divided by their own largest feature: a weight of the key, which does not cancel."""
    mantissa, logarithm = parts_of(features, Y, key=True)
    keys = mantissa * np.exp(logarithm - logarithm.max(axis=-1, keepdims=True))
    weights = features(X, key=False) @ keys.T
    return weights / weights.sum(axis=-1, keepdims=True)


def maximum_of_each_feature(features, X, Y):
    """Taken from the keys and not given to the queries."""
    mantissa, logarithm = parts_of(features, Y, key=True)
    keys = mantissa * np.exp(logarithm - logarithm.max(axis=0))
    weights = features(X, key=False) @ keys.T
    return weights / weights.sum(axis=-1, keepdims=True)


def epsilon_after_the_maximum(features, X, Y):
    """A global maximum, which cancels, and Performer's epsilon, which does not."""
    (_, keys), (_, queries) = parts_of(features, Y, key=True), parts_of(features, X, key=False)
    weights = (np.exp(queries - queries.max(axis=-1, keepdims=True)) + 1e-4) @ (np.exp(keys - keys.max()) + 1e-4).T
    return weights / weights.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize("mutant", (maximum_of_each_key, maximum_of_each_feature, epsilon_after_the_maximum))
def test_stabilisers_that_do_not_cancel_are_rejected(mutant, monkeypatch):
    def broken(phi, xp, X, Y):
        return mutant(phi.features, phi.spec.at_unit_scale(X), phi.spec.at_unit_scale(Y))

    monkeypatch.setattr("bochner.approximation._feature_map.normalized", broken)
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        check_normalized(maps.Positive())


# What is right passes


def test_the_mean_accepts_what_is_right():
    for s in (1, -1):
        for A in (-0.15, 0.03, COMPLEX):
            check_unbiased(maps.GeneralizedExponential(A, s), GAUSSIAN)
        for A in (-0.15, COMPLEX):
            padded = Orthogonal(StructuredGivens())
            check_unbiased(maps.GeneralizedExponential(A, s), GAUSSIAN, X5, Y5, padded, **PADDED)
    check_unbiased(maps.ComplexExponential(DIAGONAL), SOFTMAX)
    check_unbiased(maps.Positive(), SOFTMAX, 1.5 * X, -1.5 * X)
    for kernel in (GAUSSIAN, SOFTMAX):
        check_unbiased(maps.Geometric(success=0.7), kernel)
        check_unbiased(maps.Poisson(rate=0.33), kernel, XD, YD)


def test_redraws_accept_what_is_right():
    check_unbiased_over_redraws(Approximation(SOFTMAX, bipolar(AngularCoefficient(1)), IID(), 1), X, OPPOSITE)
    for feature_map in (maps.Trigonometric(), maps.Positive()):
        check_unbiased_over_redraws(Approximation(GAUSSIAN, feature_map, Quadrature(), 5))
    check_exact_at_equal_points(Quadrature(), 10)
    check_quadrature_variance(Quadrature())


def test_the_coefficient_accepts_what_is_right():
    x, y = X / np.linalg.norm(X), Y / np.linalg.norm(Y)
    check_coefficient(NormalizedGaussianCoefficient(0.8, 1.0, 100_000), known_coefficient(0.8, 1.0, x, y), x, y)


@pytest.mark.parametrize(
    "feature_map",
    (maps.Positive(), maps.OptimalPositive(), maps.Hyperbolic(), maps.Trigonometric(), maps.AngularHybrid(4),
     maps.ComplexExponential(DIAGONAL), maps.Poisson(), maps.Geometric(positive=True)),
    ids=repr,
)  # fmt: skip
def test_ratios_accept_what_is_right(feature_map):
    check_normalized(feature_map)
