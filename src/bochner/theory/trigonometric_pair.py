"""How coupled rows correlate for trigonometric features."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .hypergeometric import hyp1f1_negative, log_rising_ratio
from .sine_law import sine_law

SERIES_BELOW = 1.0
FAR = 400.0  # squared distances from which on the nodes of `sine_law` may be too few
N_FAR = 60
LARGEST = 1e60
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
    if not -1 <= c <= 1:
        raise ValueError(f"trigonometric_pair: c must be a cosine, between -1 and 1, got {c}.")
    V = np.asarray(V, dtype=np.float64)
    if c == 0:
        return hyp1f1_negative(d, V / 2)
    result, far = np.empty_like(V), V > FAR
    result[~far] = _near(np.sqrt(V[~far]), d, c)
    if np.any(far):
        result[far] = _far(np.sqrt(V[far]), d, c)
    return np.asarray(result)


def _near(z: np.ndarray, d: int, c: float) -> np.ndarray:
    reach = float(z.max(initial=0.0))
    degree = int(60 + 16 * reach)
    if z.size <= 2 * degree:
        return _pair_at(z, d, c)
    # the pair value is the characteristic function of a law with Gaussian tails: a polynomial of this degree is it
    return np.asarray(_interpolate(lambda x: _pair_at(x, d, c), degree, reach)(z))


def _far(z: np.ndarray, d: int, c: float) -> np.ndarray:
    """Pair values times z have a series in 1/z, and a limit: zero, but for rows along one line (c = 1 or -1)."""
    smallest = math.sqrt(FAR)
    if z.size <= 2 * N_FAR:
        return np.array([_graded_pair_at(float(value), d, c) for value in z.flat]).reshape(z.shape)
    table = _interpolate(lambda u: [smallest / v * _graded_pair_at(smallest / v, d, c) for v in u], N_FAR, 1.0)
    return np.asarray(table(smallest / z) / z)


def _interpolate(function: Callable[[np.ndarray], Any], degree: int, reach: float) -> np.polynomial.Chebyshev:
    return np.polynomial.Chebyshev.interpolate(function, degree, domain=[0.0, reach])


def _pair_at(z: np.ndarray, d: int, c: float) -> np.ndarray:
    s, w = sine_law(d)
    t = z[..., None] ** 2 / 2
    return np.asarray((hyp1f1_negative(d, t * (1 + c * s)) + hyp1f1_negative(d, t * (1 - c * s))) @ w / 2)


def _graded_pair_at(z: float, d: int, c: float) -> float:
    """The same with nodes that are graded towards s = 1, where rows along one line cancel within 1/z of it."""
    half = min(math.pi / 2, 20 / math.sqrt(d))
    n_panels = 8 + max(0, math.ceil(math.log2(min(z, LARGEST) * half)))
    edges = np.concatenate([[0.0], half * 2.0 ** np.arange(1 - n_panels, 1)])
    nodes, weights = np.polynomial.legendre.leggauss(24)
    angle = (edges[:-1, None] + np.diff(edges)[:, None] * (nodes + 1) / 2).ravel()
    density = (np.diff(edges)[:, None] * weights).ravel() * np.exp((d - 1) * np.log(np.cos(angle)))
    less = 2 * np.sin(angle / 2) ** 2  # 1 - s, to all digits
    t = min(z, LARGEST) ** 2 / 2
    inner, outer = t * (1 - abs(c) + abs(c) * less), t * (1 + abs(c) - abs(c) * less)
    values = (hyp1f1_negative(d, inner) + hyp1f1_negative(d, outer)) / 2
    return float(values @ density / density.sum())


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
