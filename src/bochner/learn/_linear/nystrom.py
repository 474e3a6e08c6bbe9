r"""A preconditioner for S from a sample of the rows: what it leaves to conjugate gradients is well conditioned."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy import linalg

from ...approximation import FeatureMap
from ...linalg.engine import multiply
from .._row_source import RowSource
from .spectrum import blas_for
from .tiles import FeatureTiles

MOST_ROWS = 8192
"""Of a sample; its Gram matrix then has 512 MB."""
_BLOCK_NUMBERS = 1 << 25
"""Features that are held at a time while they are multiplied with each other: 256 MB."""
_PRODUCT, _FACTORISATIONS = 2.0, 4.0
"""Operations in float64 of the Gram matrix, per s^2 D, and of its factorisations, per s^3, in those of float32."""
_PROBES = 16
_CLOSE = 4.0
"""Shifts whose ratio is less share a factorisation."""


def sample_size(n: int, n_features: int, pass_cost: float) -> int:
    """Rows of a sample that costs about as much as eight passes over all rows.

    Parameters
    ----------
    n, n_features : int
        Number of rows n and of features D.
    pass_cost : float
        Operations of a pass, per row and feature.

    Examples
    --------
    >>> sample_size(200_000, 32_768, 114.0), sample_size(20_000, 4096, 114.0)
    (6752, 2105)
    """
    half = 4 * pass_cost * n
    return int(min(n, MOST_ROWS, (half / _PRODUCT) ** (1 / 2), (half * n_features / _FACTORISATIONS) ** (1 / 3)))


def building_cost(size: int, n_features: int) -> float:
    """Operations of `Preconditioner.of`."""
    return _PRODUCT * float(size) ** 2 * n_features + _FACTORISATIONS * float(size) ** 3


@dataclass(frozen=True)
class Preconditioner:
    r"""The inverse of :math:`M = \tilde F^T\tilde F + \mu`, with s scaled rows :math:`\tilde F` and :math:`\mu\ge\alpha`.

    Attributes
    ----------
    tiles : FeatureTiles
        Features F of the sample.
    centre : array (D,)
        Their mean, or zero without an intercept.
    roots : array (s,)
        Roots of the weights, scaled so that :math:`\tilde F^T\tilde F` has the size of S.
    factors : dict of float to array (s, s)
        Cholesky factors of :math:`\tilde F\tilde F^T + \mu`, by :math:`\mu`.
    shift : array (t,)
        :math:`\mu`, for each target.
    stretch : array (t,)
        How far M may exceed :math:`S + \alpha` in the directions that the sample does not see: :math:`\mu/\alpha`.

    Notes
    -----
    By Woodbury's formula :math:`M^{-1}r = (r - \tilde F^T(\tilde F\tilde F^T + \mu)^{-1}\tilde Fr)/\mu`.  A sample
    represents :math:`S + \mu` if it has more rows than :math:`S(S+\mu)^{-1}` has dimensions, its trace (Rudi, Carratino
    and Rosasco 2017, Section 3).  With half as many dimensions as rows the number of passes was smallest on the data that
    we tried, so :math:`\mu` is :math:`\alpha`, or as much more as this takes.  The difference in the formula cancels many
    digits where S is large, so the products are taken in float64 whatever the precision of the rows.
    """

    tiles: FeatureTiles = field(repr=False)
    centre: np.ndarray = field(repr=False)
    roots: np.ndarray = field(repr=False)
    factors: dict[float, np.ndarray] = field(repr=False)
    shift: np.ndarray
    stretch: np.ndarray

    @classmethod
    def of(
        cls, phi: FeatureMap, rows: RowSource, alpha: np.ndarray, size: int, *, weight: float, intercept: bool
    ) -> Preconditioner:
        """Of a sample of the rows, always the same one.

        Parameters
        ----------
        phi : FeatureMap
        rows : RowSource
        alpha : array (t,)
            Positive strengths.
        size : int
            Rows of the sample.
        weight : float
            Sum of the weights of all rows.
        intercept : bool
            Whether features are taken about their mean.
        """
        X, _, weights = rows.sample_weighted(size, np.random.default_rng(0))
        w = np.ones(len(X)) if weights is None else weights
        tiles, share = FeatureTiles(phi, X, exact=True), w / w.sum()
        centre = np.zeros(phi.n_features_out)
        if intercept:
            centre = tiles.sums(lambda F, i, j: share[i:j, None], 1)[:-1, 0]
        roots = np.sqrt(weight * share)
        K = _gram(tiles, centre, roots)
        with blas_for(len(K)):
            least, factor = _shift(K, float(alpha.min()), len(K) if len(K) == rows.count() else len(K) / 2)
            shift = least * _CLOSE ** np.maximum(np.floor(np.log(alpha / least) / np.log(_CLOSE)), 0.0)
            factors = {mu: factor if mu == least else linalg.cholesky(_plus(K, mu), lower=True) for mu in set(shift)}
        return cls(tiles, centre, roots, factors, shift, np.maximum(shift / alpha, 1.0))

    def solve(self, R: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """``M^{-1} R`` for residuals (D, k) of the targets of these numbers (k,)."""
        mu = self.shift[targets]
        u = self.roots[:, None] * (self.tiles.products(R) - self.centre @ R)
        with blas_for(len(u)):
            for shift in set(mu):
                which = mu == shift
                u[:, which] = linalg.cho_solve((self.factors[shift], True), u[:, which], check_finite=False)
        u *= self.roots[:, None]
        back = self.tiles.sums(lambda F, i, j: u[i:j], len(targets))
        return np.asarray((R - back[:-1] + np.outer(self.centre, back[-1])) / mu)


def _gram(tiles: FeatureTiles, centre: np.ndarray, roots: np.ndarray) -> np.ndarray:
    """Products of scaled rows with each other, in blocks of rows; the lower triangle."""
    s, step = len(roots), max(_BLOCK_NUMBERS // len(centre), 64)

    def block(i: int) -> np.ndarray:
        F = np.empty((min(step, s - i), len(centre)))
        F[:] = tiles.rows(i, i + len(F))
        F -= centre
        F *= roots[i : i + len(F), None]
        return F

    K = np.zeros((s, s))
    for i in range(0, s, step):
        rows = block(i)
        for j in range(0, i + 1, step):
            others = rows if i == j else block(j)
            multiply(rows, others.T, K[i : i + step, j : j + step])
    return K


def _shift(K: np.ndarray, alpha: float, dimensions: float) -> tuple[float, np.ndarray]:
    """The smallest shift from alpha on, up to a factor of two, that leaves K no more than these dimensions; its factor.

    The trace of the inverse is estimated with random signs: an error of a few per cent does not matter here.
    """
    signs = np.random.default_rng(1).choice([-1.0, 1.0], (len(K), _PROBES))

    def attempt(mu: float) -> np.ndarray | None:
        try:
            factor: np.ndarray = linalg.cholesky(_plus(K, mu), lower=True, overwrite_a=True, check_finite=False)
        except linalg.LinAlgError:  # K is singular, and the shift is within its rounding error
            return None
        inverse = (linalg.solve_triangular(factor, signs, lower=True, check_finite=False) ** 2).sum() / _PROBES
        return factor if len(K) - mu * inverse <= dimensions else None

    low, high, factor = alpha, alpha, attempt(alpha)
    while factor is None:  # up in large steps, and then back
        low, high = high, 100 * high
        factor = attempt(high)
    while high > 2 * low:
        middle = float(np.sqrt(low * high))
        found = attempt(middle)
        low, high, factor = (middle, high, factor) if found is None else (low, middle, found)
    return high, factor


def _plus(K: np.ndarray, mu: float) -> np.ndarray:
    shifted = K.copy()
    shifted.flat[:: len(K) + 1] += mu
    return shifted
