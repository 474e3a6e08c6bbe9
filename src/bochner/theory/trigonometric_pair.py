"""How coupled rows correlate for trigonometric features."""

from __future__ import annotations

from typing import Any

import numpy as np

from .hypergeometric import hyp1f1_negative, log_rising_ratio
from .sine_law import sine_law

SERIES_BELOW = 1.0
N_TERMS = 40


def trigonometric_pair(V: Any, d: int, c: float = 0.0) -> np.ndarray:
    r"""The pair value :math:`\sigma_c(V) = E[\cos(w_i\cdot z)\cos(w_j\cdot z)]` of two rows at cosine c.

    Notes
    -----
    With :math:`z = x - y`, :math:`V = |z|^2`,

    .. math:: \sigma_c = \tfrac12 E_s\left[{}_1F_1(d; \tfrac d2; -\tfrac V2(1+cs))
              + {}_1F_1(d; \tfrac d2; -\tfrac V2(1-cs))\right].

    For c = 0 this is SimRF Eq. 26 and 74; the simplex case is left out there, and follows because :math:`w_i \pm w_j` has
    the squared length :math:`r^2(1 \pm cs)`.  Independent rows have :math:`e^{-V}`.
    """
    V = np.asarray(V, dtype=np.float64)
    if c == 0:
        return hyp1f1_negative(d, V / 2)
    z = np.sqrt(V)
    reach = float(z.max(initial=0.0))
    degree = int(60 + 16 * reach)
    if V.size <= 2 * degree:
        return _pair_at(z, d, c)
    # the pair value is the characteristic function of a law with Gaussian tails: a polynomial of this degree is it
    table = np.polynomial.Chebyshev.interpolate(_pair_at, degree, domain=[0.0, reach], args=(d, c))
    return np.asarray(table(z))


def _pair_at(z: np.ndarray, d: int, c: float) -> np.ndarray:
    s, w = sine_law(d)
    t = z[..., None] ** 2 / 2
    return np.asarray((hyp1f1_negative(d, t * (1 + c * s)) + hyp1f1_negative(d, t * (1 - c * s))) @ w / 2)


def even_coefficients(n: int, d: int, c: float) -> np.ndarray:
    r"""Coefficients of :math:`\sigma_c = \sum_k \frac{(-V)^k}{k!} r_k E_s[(1+cs)^k + (1-cs)^k]/2`, for k < n."""
    s, w = sine_law(d)
    k = np.arange(n)[:, None]
    return np.asarray(np.exp(log_rising_ratio(n, d)) * (((1 + c * s) ** k + (1 - c * s) ** k) @ w / 2))


def trigonometric_excess(V: Any, d: int, c: float = 0.0) -> np.ndarray:
    r"""The covariance of two trigonometric features at cosine c, :math:`\sigma_c(V) - e^{-V}`.

    Below V = 1 it is summed as a series whose first two terms vanish, so that it keeps its digits where the error is of
    order :math:`V^2`.  Orthogonal rows have a negative one at small V; simplex rows, a larger one than orthogonal.
    """
    V = np.asarray(V, dtype=np.float64)
    k = np.arange(N_TERMS)
    factorial = np.cumprod(np.maximum(k, 1.0))
    coefficients = (even_coefficients(N_TERMS, d, c) - 1) * (-1.0) ** k / factorial
    coefficients[:2] = 0.0
    near = np.minimum(V, SERIES_BELOW)
    series = np.polynomial.polynomial.polyval(near, coefficients)
    far = V >= SERIES_BELOW
    result = np.array(series, dtype=np.float64)
    if np.any(far):
        result[far] = trigonometric_pair(V[far], d, c) - np.exp(-V[far])
    return result
