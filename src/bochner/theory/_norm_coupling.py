"""Errors of trigonometric features on orthogonal rows whose lengths come in opposite pairs."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from ._coupling import trigonometric_excess
from ._pairs import check_squares
from ._rows import block_counts

_NODES = 400  # 800 change the mean by less than 1e-12
_NEAR, _DEGREE = 30.0, 160
"""Squared distances up to which many pairs are interpolated, and the degree that does so to rounding."""


@lru_cache(maxsize=64)
def _squared_sums(d: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of the squared length of the sum of two orthogonal rows with opposite lengths, r^2 + r'^2."""
    from scipy.special import gammainccinv, gammaincinv

    x, weights = np.polynomial.legendre.leggauss(_NODES)
    u = np.sin(np.pi * (x + 1) / 8) ** 2  # from 0 to 1/2, where the other half repeats it; nodes crowd at 0
    density = np.sin(np.pi * (x + 1) / 4) * np.pi / 8
    w = weights * density
    return 2 * gammaincinv(d / 2, u) + 2 * gammainccinv(d / 2, u), w / w.sum()


def sphere_transform(t2: Any, d: int) -> np.ndarray:
    r"""The mean of :math:`\cos(t\,u\cdot e)` over the unit sphere, at :math:`t^2`: :math:`{}_0F_1(d/2; -t^2/4)`.

    By the Bessel function of order d/2 - 1; where that underflows, or is not needed, by the first cumulants,
    :math:`-q - q^2/(2(b+1)) - 2q^3/(3(b+1)(b+2))` with :math:`b = d/2` and :math:`q = t^2/(2d)`.
    """
    from scipy.special import gammaln, jv

    t2, b = np.asarray(t2, dtype=np.float64), d / 2
    t, q = np.sqrt(t2), t2 / (2 * d)
    near = np.exp(-q - q**2 / (2 * (b + 1)) - 2 * q**3 / (3 * (b + 1) * (b + 2)))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        bessel = jv(b - 1, t)
        far = np.nan_to_num(np.exp(gammaln(b) + (b - 1) * np.log(2 / t)) * bessel)  # zero at infinity
    small = (q**4 < 1e-13 * b**3) | ((np.abs(bessel) < 1e-290) & (q < b / 8))
    return np.asarray(np.where(small, near, far))


def norm_coupled_excess(V: Any, d: int) -> np.ndarray:
    r"""Covariance of two cosines at orthogonal rows with opposite lengths, over pairs at :math:`|x-y|^2 = V`.

    For lengths r and r' the directions of :math:`ru \pm r'u'` are uniform and their lengths
    :math:`\sqrt{r^2 + r'^2}`, so the mean of the product of the cosines is one of `sphere_transform`.
    """
    V = check_squares("norm_coupled_excess", "squared lengths", V)
    if V.size <= _DEGREE:
        return np.asarray(_mean_of_product(V, d) - np.exp(-V))
    near = V < _NEAR
    product = np.empty_like(V)
    product[near] = _interpolant(d)(V[near])
    product[~near] = _mean_of_product(V[~near], d)
    return np.asarray(product - np.exp(-V))


def _mean_of_product(V: np.ndarray, d: int) -> np.ndarray:
    squares, w = _squared_sums(d)
    return np.asarray((sphere_transform(V[..., None] * squares, d) * w).sum(axis=-1))


@lru_cache(maxsize=64)
def _interpolant(d: int) -> np.polynomial.Chebyshev:
    """The mean of the product as a polynomial of V, for many pairs: it is smooth, to rounding at this degree."""
    return np.polynomial.Chebyshev.interpolate(lambda V: _mean_of_product(V, d), _DEGREE, domain=[0, _NEAR])


def norm_coupled_cross(V: Any, m: int, d: int) -> np.ndarray:
    """Covariances of cosines, summed over pairs of rows within a block: opposite lengths, or independent ones."""
    V = np.asarray(V, dtype=np.float64)
    counts = block_counts(m, d).items()
    opposite = sum(count * (n // 2 * 2) for n, count in counts) / m**2
    others = sum(count * n * (n - 1) for n, count in counts) / m**2 - opposite
    return opposite * norm_coupled_excess(V, d) + others * trigonometric_excess(V, d, 0.0)
