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
from scipy.special import gammaln

from bochner import Approximation, geometries, kernels, maps
from bochner.maps.coefficients import AngularCoefficient, NormalizedGaussianCoefficient
from bochner.maps.coefficients.base import DrawnCoefficient
from bochner.maps.complex_exponential import ComplexExponentialFeatures
from bochner.maps.discrete import PowerFeatures
from bochner.maps.draws import Draws
from bochner.maps.exponential import ExponentialFeatures, circle
from bochner.maps.features import parts_of, squared_norms
from bochner.maps.linear import transform
from bochner.projections import IID, Orthogonal, Quadrature
from bochner.projections.base import block_sizes, draw_blocks, named_streams
from bochner.radii import Chi
from bochner.rotations import StructuredGivens
from checks import check_mean

X = np.array([0.5, -0.3, 0.2, 0.4])
Y = np.array([0.1, 0.45, -0.25, 0.3])
XD = np.array([0.7, -0.5, 0.0, 0.9])
YD = np.array([-0.4, -0.8, 0.6, 0.5])
OPPOSITE = 0.5 * Y - X
X5, Y5 = np.array([0.5, -0.3, 0.2, 0.4, 0.3]), np.array([0.1, 0.45, -0.25, 0.3, -0.2])
COMPLEX = -0.05 + 0.08j
DIAGONAL = (1.1 + 0.3j, 0.2 + 0.9j, 0.8 - 0.4j, -0.3 + 1.1j)
GAUSSIAN, SOFTMAX = kernels.Gaussian(), kernels.Softmax()
PADDED = {"block": 8, "n_blocks": 15_000}  # five dimensions, in blocks of eight rows


# The laws


def check_unbiased(feature_map, kernel, x=X, y=Y, projection=None, *, block=1, n_blocks=100_000):
    """The mean over the independent blocks of one draw is the kernel; partners of a row are added."""
    m = block * n_blocks
    phi = Approximation(kernel, feature_map, projection or IID(), m).draw(len(x), rng=0)
    rows = (phi.queries(x[None]) * phi.keys(y[None])).reshape(-1, m).sum(axis=0) * m
    check_mean(rows.reshape(-1, block).mean(axis=1), kernel(x[None], y[None])[0, 0], f"{feature_map!r}:")


def redrawn(spec, x, y, draws):
    """The estimate of k(x, y) by each of many draws."""
    rng = np.random.default_rng(0)
    return np.array([spec.draw(len(x), rng=rng).gram(x[None], y[None])[0, 0] for _ in range(draws)])


def check_unbiased_over_redraws(spec, x=X, y=Y, draws=600):
    """The mean over redraws of everything is the kernel."""
    check_mean(redrawn(spec, x, y, draws), spec.kernel(x[None], y[None])[0, 0], f"{spec!r}:")


def check_coefficient(coefficient, expected, x, y):
    """The mean of lambda over its independent projections."""
    drawn = coefficient.draw(Draws(IID(), len(x), 1, None, 0), None)
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


class DroppedRoot(maps.GeneralizedExponential):
    """D = (1 - 4A)^{d/2}: the constant of a product of two features in each of them."""

    def draw(self, draws, kernel, data):
        features = super().draw(draws, kernel, data)
        log_D = features.nodes.dim / 4 * cmath.log(1 - 4 * self.A)
        features.constant, features.phase = features.constant + log_D.real, features.phase + log_D.imag
        return features


class DimensionOfTheData(maps.GeneralizedExponential):
    """D with the dimension of the data where rows live in the padded one."""

    def draw(self, draws, kernel, data):
        features = super().draw(draws, kernel, data)
        excess = (features.nodes.dim - draws.d) / 4 * cmath.log(1 - 4 * self.A)
        features.constant, features.phase = features.constant - excess.real, features.phase - excess.imag
        return features


class ChiOfTheWrongDimension(Orthogonal):
    """Lengths chi_d where directions live in the padded dimension."""

    def _draw(self, name, d, m, rng, kernel):
        directions, lengths = named_streams(rng)
        sizes = block_sizes(m, self.rotation.padded(d))
        radii = Chi().lengths(d, m, lengths)
        return draw_blocks(name, d, self.rotation, geometries.Orthogonal(), sizes, radii, directions)


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
    def draw(self, draws, kernel, data):
        features = super().draw(draws, kernel, data)
        features.__class__ = PlusSineFeatures
        return features


class Conjugated(maps.ComplexExponential):
    def draw(self, draws, kernel, data):
        features = super().draw(draws, kernel, data)
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
    def draw(self, draws, kernel, data):
        features = super().draw(draws, kernel, data)
        features.__class__ = NormsForSquaresFeatures
        return features


class AddedEpsilonFeatures(ExponentialFeatures):
    """Performer's features: a small number added to the exponential."""

    def __call__(self, X, *, key):
        return super().__call__(X, key=key) + 1e-6 / math.sqrt(self.width)


class AddedEpsilon(maps.Positive):
    def draw(self, draws, kernel, data):
        features = super().draw(draws, kernel, data)
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
        wrong = ChiOfTheWrongDimension(StructuredGivens())
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

    def _features(self, draws, data, shift, softmax):
        p = self.success
        table = draws.stream("table").geometric(p, (draws.m, draws.d))
        constants = -draws.d / 2 * math.log(p) - 0.5 * gammaln(table + 1.0).sum(axis=1)
        return PowerFeatures(table, constants, 0.5 * math.log1p(-p), shift, softmax=softmax, positive=self.positive)


class UnsignedPowers(PowerFeatures):
    """Powers of absolute values."""

    def scaled(self, X, *, key):
        mantissa, logarithm = super().scaled(X, key=key)
        return abs(mantissa), logarithm


class IgnoredSigns(maps.Poisson):
    def _features(self, draws, data, shift, softmax):
        features = super()._features(draws, data, shift, softmax)
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


class TauWithoutSigma(NormalizedGaussianCoefficient):
    """HRF Eq. 70 as printed: no sigma inside of cosine and sine."""

    def draw(self, draws, data):
        drawn = super().draw(draws, data)
        one = np.asarray(1.0)
        parts = vars(drawn) | {"left": one, "right": one}
        return DrawnCoefficient(**parts)


class TauOfTheBases(AngularCoefficient):
    """A stream that is used again: the signs of the bases' own rows."""

    def draw(self, draws, data):
        drawn = super().draw(draws, data)
        draws = draws.apart("")
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

    def _draw(self, name, d, m, rng, kernel):
        P = super()._draw(name, d, m, rng, kernel)
        P.origin_weight = 0.0
        return P


class UnsignedOrigin(Quadrature):
    """The node at zero with the absolute value of its weight: the square root of a negative number avoided."""

    def _draw(self, name, d, m, rng, kernel):
        P = super()._draw(name, d, m, rng, kernel)
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
    monkeypatch.setattr("bochner.approximation.feature_map.normalized_gram", mutant)
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
