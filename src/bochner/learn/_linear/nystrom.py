r"""A preconditioner for S from a sample of the rows: what it leaves to conjugate gradients is well conditioned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError

from ...approximation import FeatureMap
from ...linalg.cholesky import Cholesky
from ...linalg.engine import multiply
from .._row_source import Chunk, RowSource
from .spectrum import plus
from .tiles import FeatureTiles

MOST_ROWS = 8192  # largest number of rows of a sample; its Gram matrix then has 512 MB
_BLOCK_NUMBERS, _HELD_NUMBERS = 1 << 24, 1 << 26
"""Features multiplied with each other at a time, 128 MB; most features, or rows, kept for all passes, 256 MB in float32."""
_PRODUCT, _FACTORISATIONS = 2.5, 4.5
"""Operations in float64 of both Gram matrices, per s^2 D, and of their factorisations, per s^3, in those of float32."""
_PROBES, _CALIBRATION = 16, 1000
"""Random vectors of an estimated trace or leverage, and rows from which probabilities are scaled."""
_CLOSE = 4.0  # shifts whose ratio is less share a factorisation


@dataclass(frozen=True)
class WeightedRows:
    """Rows X (s, d), and weights (s,) with which they stand for all rows; two samples of different rows add."""

    X: np.ndarray
    weights: np.ndarray

    def __add__(self, other: WeightedRows) -> WeightedRows:
        return WeightedRows(np.concatenate([self.X, other.X]), np.concatenate([self.weights, other.weights]))


def sample_size(n: int, n_columns: int, n_features: int, pass_cost: float) -> int:
    """Rows of a sample that costs about as much as eight passes over all rows.

    Parameters
    ----------
    n, n_columns, n_features : int
        Number of rows n, of their columns d and of features D.
    pass_cost : float
        Operations of a pass, per row and feature.

    Examples
    --------
    >>> sample_size(200_000, 64, 32_768, 114.0), sample_size(20_000, 64, 4096, 114.0)
    (6039, 1909)
    """
    half, fits = 4 * pass_cost * n, max(min(MOST_ROWS, _HELD_NUMBERS // n_columns), 64)
    return int(min(n, fits, (half / _PRODUCT) ** (1 / 2), (half * n_features / _FACTORISATIONS) ** (1 / 3)))


def building_cost(size: int, n_features: int) -> float:
    """Operations of `sampled`, without its pass."""
    return _PRODUCT * float(size) ** 2 * n_features + _FACTORISATIONS * float(size) ** 3


@dataclass(frozen=True)
class Preconditioner:
    r"""The inverse of :math:`M = \tilde F^T\tilde F + \mu`, with s scaled rows :math:`\tilde F` and :math:`\mu\ge\alpha`.

    Notes
    -----
    By Woodbury's formula :math:`M^{-1}r = (r - \tilde F^T(\tilde F\tilde F^T + \mu)^{-1}\tilde Fr)/\mu`.  A sample
    represents :math:`S + \mu` if it has more rows than :math:`S(S+\mu)^{-1}` has dimensions, its trace (Rudi, Carratino
    and Rosasco 2017, Section 3).  With half as many dimensions as rows the number of passes was smallest on the data that
    we tried, so :math:`\mu` is :math:`\alpha`, or as much more as this takes.  The difference in the formula cancels many
    digits where S is large, so the products are taken in float64 whatever the precision of the rows.
    """

    tiles: FeatureTiles = field(repr=False)  # features F of the sample
    centre: np.ndarray = field(repr=False)  # (D,): their mean, or zero without an intercept
    # (s,): roots of the weights, scaled so that \tilde F^T\tilde F has the size of S
    roots: np.ndarray = field(repr=False)
    factors: dict[float, Cholesky] = field(repr=False)  # factors of \tilde F\tilde F^T + mu, by mu
    shift: np.ndarray  # (t,): mu, for each target
    stretch: np.ndarray  # (t,): how far M may exceed S + alpha in the directions that the sample does not see: mu/alpha

    @classmethod
    def of(
        cls, phi: FeatureMap, sample: WeightedRows, alpha: np.ndarray, *, intercept: bool, dimensions: float = 0.5
    ) -> Preconditioner:
        r"""Return the preconditioner of a sample whose weights add up to those of all rows.

        Parameters
        ----------
        phi : FeatureMap
        sample : WeightedRows
        alpha : array (t,)
            Positive regularisation, one for all targets or one for each.
        intercept : bool
            Whether features are taken about their mean.
        dimensions : float
            Largest number of dimensions that :math:`\mu` may leave, per row of the sample.
        """
        w, few = sample.weights, len(sample.X) * phi.n_features_out <= _HELD_NUMBERS
        tiles = FeatureTiles(phi, sample.X, exact=True, held=phi.queries(sample.X) if few else None)
        centre, roots = np.zeros(phi.n_features_out), np.sqrt(w)
        if intercept:
            share = w[:, None] / w.sum()
            centre = tiles.sums(lambda F, i, j: share[i:j], 1)[:-1, 0]
        K = _gram(tiles, centre, roots)
        least, factor = _shift(K, float(alpha.min()), dimensions * len(K))
        shift = least * _CLOSE ** np.maximum(np.floor(np.log(alpha / least) / np.log(_CLOSE)), 0.0)
        factors = {mu: factor if mu == least else Cholesky.of(plus(K, mu), overwrite=True) for mu in set(shift)}
        return cls(tiles, centre, roots, factors, shift, np.maximum(shift / alpha, 1.0))

    def solve(self, R: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """``M^{-1} R`` for residuals (D, k) of the targets of these numbers (k,)."""
        mu = self.shift[targets]
        u = self.roots[:, None] * (self.tiles.products(R) - self.centre @ R)
        for shift in set(mu):
            which = mu == shift
            u[:, which] = self.factors[shift].solve(u[:, which])
        u *= self.roots[:, None]
        return np.asarray((R - self._back(u)) / mu)

    def _back(self, u: np.ndarray) -> np.ndarray:
        """Centred features, transposed, times u (s, k)."""
        sums = self.tiles.sums(lambda F, i, j: u[i:j], u.shape[1])
        return np.asarray(sums[:-1] - np.outer(self.centre, sums[-1]))

    def probes(self) -> np.ndarray:
        r"""Random columns g (D, 16) of covariance :math:`M^{-1}`, so that :math:`E(\phi^Tg)^2=\phi^TM^{-1}\phi`."""
        rng, target = np.random.default_rng(2), int(np.argmin(self.shift))
        noise = np.sqrt(self.shift[target]) * rng.standard_normal((len(self.centre), _PROBES))
        rows = self._back(self.roots[:, None] * rng.standard_normal((len(self.roots), _PROBES)))
        return self.solve(rows + noise, np.full(_PROBES, target))

    def leverage(self, X: np.ndarray, weights: np.ndarray | None, probes: np.ndarray) -> np.ndarray:
        """Estimated leverage of rows that are not in the sample, (n,): between zero and one."""
        V = FeatureTiles(self.tiles.phi, X, exact=True).products(probes) - self.centre @ probes
        scores = (V**2).mean(axis=1) * (1.0 if weights is None else weights)
        return np.asarray(scores / (1 + scores))


def sampled(
    phi: FeatureMap, rows: RowSource, alpha: np.ndarray, size: int, *, weight: float, intercept: bool
) -> Preconditioner:
    """The preconditioner of a sample of about so many rows, always the same one.

    Rows far from all others have directions of their own, which a uniform sample would miss.  So half of the sample is
    uniform, and half of it is drawn by leverage, which is estimated in a pass over the rows, from a uniform sample of
    half the size.

    Parameters
    ----------
    phi : FeatureMap
    rows : RowSource
    alpha : array (t,)
        Positive regularisation, one for all targets or one for each.
    size : int
        Rows of the sample.
    weight : float
        Sum of the weights of all rows.
    intercept : bool
        Whether features are taken about their mean.
    """
    if size >= rows.count():
        everything = _uniform(rows, size, weight, seed=0)
        return Preconditioner.of(phi, everything, alpha, intercept=intercept, dimensions=1.0)
    pilot = Preconditioner.of(phi, _uniform(rows, size // 2, weight, seed=0), alpha, intercept=intercept)
    probes = pilot.probes()
    some, _, weights = rows.sample_weighted(_CALIBRATION, np.random.default_rng(3))
    scores = pilot.leverage(some, weights, probes)
    work = partial(_drawn, pilot=pilot, probes=probes, mean=float(scores.mean()) or 1.0, share=size / rows.count())
    drawn: WeightedRows = rows.reduce(work, width=_PROBES)
    return Preconditioner.of(phi, drawn, alpha, intercept=intercept)


def _uniform(rows: RowSource, size: int, weight: float, *, seed: int) -> WeightedRows:
    X, _, weights = rows.sample_weighted(size, np.random.default_rng(seed))
    w = np.ones(len(X)) if weights is None else weights
    return WeightedRows(X, w * (weight / w.sum()))


def _drawn(
    chunks: Iterator[Chunk], *, pilot: Preconditioner, probes: np.ndarray, mean: float, share: float
) -> WeightedRows:
    """A share of the rows: half of a row's probability is common to all, half of it goes by leverage."""
    rng, found = np.random.default_rng(4), WeightedRows(pilot.tiles.X[:0], np.zeros(0))
    for X, _, weights in chunks:
        probability = np.minimum(share * (0.5 + 0.5 * pilot.leverage(X, weights, probes) / mean), 1.0)
        chosen = np.flatnonzero(rng.random(len(probability)) < probability)
        w = np.ones(len(chosen)) if weights is None else weights[chosen]
        part: Any = X[chosen]
        found += WeightedRows(part.toarray() if sparse.issparse(part) else part, w / probability[chosen])
    return found


def _gram(tiles: FeatureTiles, centre: np.ndarray, roots: np.ndarray) -> np.ndarray:
    """Products of scaled rows with each other, in blocks of rows; the upper triangle."""
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
            multiply(others, rows.T, K[j : j + step, i : i + step])
    return K


def _shift(K: np.ndarray, alpha: float, dimensions: float) -> tuple[float, Cholesky]:
    """The smallest shift from alpha on, up to a factor of two, that leaves K no more than these dimensions; its factor.

    The trace of the inverse is estimated with random signs: an error of a few per cent does not matter here.
    """
    signs = np.random.default_rng(1).choice([-1.0, 1.0], (len(K), _PROBES))

    def attempt(mu: float) -> Cholesky | None:
        try:
            factor = Cholesky.of(plus(K, mu), overwrite=True)
        except LinAlgError:  # K is singular, and the shift is within its rounding error
            return None
        inverse = (factor.solve_lower(signs) ** 2).sum() / _PROBES
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
