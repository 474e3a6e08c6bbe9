"""Broken maps, printed in papers, seen in public code or nearly written here: the laws of maps must reject them all.

Most break the mean, and one check sees it: the mean over independent rows, blocks or redraws is the kernel at |z| < 5.
Some do not, and need another law: a wrong coefficient leaves a hybrid unbiased, and so does a lost node at zero of a
quadrature; a stabiliser that does not cancel shows in ratios alone.
"""

from __future__ import annotations

import cmath
import math

import numpy as np
import pytest

from bochner import maps
from bochner.maps._complex import ComplexExponentialFeatures
from bochner.maps._discrete import PowerFeatures
from bochner.maps._exponential import ExponentialFeatures, circle
from bochner.maps._features import squared_norms, transform
from bochner.projections import Orthogonal
from bochner.radii import Chi
from bochner.rotations import StructuredGivens
from support.map_laws import COMPLEX, DIAGONAL, GAUSSIAN, PADDED, SOFTMAX, X5, Y5, check_unbiased
from support.points import XD, YD, X


class DroppedRoot(maps.GeneralizedExponential):
    """D = (1 - 4A)^{d/2}: the constant of a product of two features in each of them."""

    def draw(self, draws, kernel):
        features = super().draw(draws, kernel)
        log_D = features.nodes.dim / 4 * cmath.log(1 - 4 * self.A)
        features.constant, features.phase = features.constant + log_D.real, features.phase + log_D.imag
        return features


class DimensionOfTheData(maps.GeneralizedExponential):
    """D with the dimension of the data where rows live in the padded one."""

    def draw(self, draws, kernel):
        features = super().draw(draws, kernel)
        excess = (features.nodes.dim - draws.d) / 4 * cmath.log(1 - 4 * self.A)
        features.constant, features.phase = features.constant - excess.real, features.phase - excess.imag
        return features


class ChiOfTheWrongDimension(Chi):
    """Lengths chi_d where directions live in the padded dimension: d = 5 for 8."""

    def unit_lengths(self, dim, sizes, rng):
        return super().unit_lengths(5, sizes, rng)


def plus_sine(parts, count, key):
    """Keys (Re, Im) like queries, as if the product were conjugated."""
    mantissa, logarithm = parts
    signs = np.repeat((1.0, -1.0 if key else 1.0), count)
    return mantissa * signs, logarithm


class PlusSineFeatures(ExponentialFeatures):
    def scaled(self, X, *, key):
        return plus_sine(super().scaled(X, key=key), len(self.nodes), key)


class ConjugatedFeatures(ComplexExponentialFeatures):
    def scaled(self, X, *, key):
        return plus_sine(super().scaled(X, key=key), len(self.nodes), key)


class PlusSineKeys(maps.GeneralizedExponential):
    def draw(self, draws, kernel):
        features = super().draw(draws, kernel)
        features.__class__ = PlusSineFeatures
        return features


class Conjugated(maps.ComplexExponential):
    def draw(self, draws, kernel):
        features = super().draw(draws, kernel)
        features.__class__ = ConjugatedFeatures
        return features


class NormsForSquaresFeatures(ComplexExponentialFeatures):
    """HRF Eq. 89-92 as printed: |Ax|^2 where the sum of squares is not conjugated."""

    def scaled(self, X, *, key):
        T = self.right if key else self.left
        a, b = transform(T.real, X), transform(T.imag, X)
        logarithm = self.half_log_weights + self.nodes.project(a)
        logarithm = logarithm - (squared_norms(a) + squared_norms(b)) / 2
        return circle(self.nodes, self.nodes.project(b), logarithm, key=key, skip_sine=0)


class NormsForSquares(maps.ComplexExponential):
    def draw(self, draws, kernel):
        features = super().draw(draws, kernel)
        features.__class__ = NormsForSquaresFeatures
        return features


class AddedEpsilonFeatures(ExponentialFeatures):
    """Performer's features: a small number added to the exponential."""

    def __call__(self, X, *, key):
        return super().__call__(X, key=key) + 1e-6 / math.sqrt(self.width)


class AddedEpsilon(maps.Positive):
    def draw(self, draws, kernel):
        features = super().draw(draws, kernel)
        features.__class__ = AddedEpsilonFeatures
        return features


@pytest.mark.parametrize("A", (-0.15, 0.03, COMPLEX))
@pytest.mark.parametrize("s", (1, -1))
def test_a_dropped_root_is_rejected(A, s):
    with pytest.raises(AssertionError, match=r"DroppedRoot.*expected"):
        check_unbiased(DroppedRoot(A, s), GAUSSIAN)


@pytest.mark.parametrize("A", (-0.15, COMPLEX))
@pytest.mark.parametrize("s", (1, -1))
def test_the_wrong_dimension_under_padding_is_rejected(A, s):
    """Of the constant, and of the lengths: A multiplies the square of the length in the padded dimension."""
    with pytest.raises(AssertionError, match=r"DimensionOfTheData.*expected"):
        check_unbiased(DimensionOfTheData(A, s), GAUSSIAN, X5, Y5, Orthogonal(StructuredGivens()), **PADDED)
    with pytest.raises(AssertionError, match="expected"):
        wrong = Orthogonal(StructuredGivens(), ChiOfTheWrongDimension())
        check_unbiased(maps.GeneralizedExponential(A, s), GAUSSIAN, X5, Y5, wrong, **PADDED)


@pytest.mark.parametrize("s", (1, -1))
def test_omitted_conjugate_handling_is_rejected(s):
    with pytest.raises(AssertionError, match=r"PlusSineKeys.*expected"):
        check_unbiased(PlusSineKeys(COMPLEX, s), GAUSSIAN)


def test_conjugated_complex_exponentials_are_rejected():
    with pytest.raises(AssertionError, match=r"Conjugated.*expected"):
        check_unbiased(Conjugated(DIAGONAL), SOFTMAX)


def test_norms_for_squares_are_rejected():
    with pytest.raises(AssertionError, match=r"NormsForSquares.*expected"):
        check_unbiased(NormsForSquares(DIAGONAL), SOFTMAX)
    with pytest.raises(AssertionError, match=r"NormsForSquares.*expected"):
        check_unbiased(NormsForSquares((1.0, 1j, 1.0, 1j)), SOFTMAX)


def test_an_added_epsilon_is_rejected():
    """Even a millionth, where positive features have no variance: x = -y."""
    with pytest.raises(AssertionError, match=r"AddedEpsilon.*expected"):
        check_unbiased(AddedEpsilon(), SOFTMAX, 1.5 * X, -1.5 * X)


# Tables of integers


class StartsAtOne(maps.Geometric):
    """NumPy's geometric law as it comes: the number of trials, not of failures."""

    def _table(self, rng, shape):
        return rng.geometric(self.success, shape)


class UnsignedPowers(PowerFeatures):
    """Powers of absolute values."""

    def scaled(self, X, *, key):
        mantissa, logarithm = super().scaled(X, key=key)
        return abs(mantissa), logarithm


class IgnoredSigns(maps.Poisson):
    def draw(self, draws, kernel):
        features = super().draw(draws, kernel)
        features.__class__ = UnsignedPowers
        return features


@pytest.mark.parametrize("kernel", (GAUSSIAN, SOFTMAX), ids=repr)
def test_a_geometric_law_that_starts_at_one_is_rejected(kernel):
    with pytest.raises(AssertionError, match=r"StartsAtOne.*expected"):
        check_unbiased(StartsAtOne(success=0.7), kernel)


@pytest.mark.parametrize("kernel", (GAUSSIAN, SOFTMAX), ids=repr)
def test_ignored_signs_are_rejected(kernel):
    with pytest.raises(AssertionError, match=r"IgnoredSigns.*expected"):
        check_unbiased(IgnoredSigns(rate=0.33), kernel, XD, YD)
    check_unbiased(IgnoredSigns(rate=0.33), kernel, abs(XD), abs(YD))  # negative entries are what the check needs


# Coefficients of hybrids
