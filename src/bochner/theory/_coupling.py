"""Covariances of features of two coupled rows: of positive and trigonometric features, and of lengths in opposite pairs."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np

from .._validation import check_count
from ._pairs import block_counts, check_cosine, check_squares, pair_fraction, sine_law
from ._special_functions import hyp1f1_negative, log_poisson_mean, log_rising_ratio, poisson_mean

EVEN_SERIES_BELOW = 30.0  # beyond it nothing cancels, and logarithms take over


def _far_sum(d: int) -> float:
    """Value of V beyond which the ratio of coupled to independent rows is below rounding, so that the gap is one."""
    return 4000.0 + 16 * d


def _log_powers(n: int, d: int, c: float) -> tuple[np.ndarray, np.ndarray]:
    """Logarithms of r_k (1 + c s)^k for k < n at the nodes of s, (n, nodes), and the weights of the nodes."""
    s, w = sine_law(d)
    return log_rising_ratio(n, d)[:, None] + np.arange(n)[:, None] * np.log1p(c * s), w


def _log_coefficients(n: int, d: int, c: float) -> np.ndarray:
    from scipy.special import logsumexp

    powers, w = _log_powers(n, d, c)
    return np.asarray(logsumexp(powers, axis=1, b=w))


def _gap_coefficients(n: int, d: int, c: float) -> np.ndarray:
    powers, w = _log_powers(n, d, c)
    return np.asarray(-np.expm1(powers) @ w)


def _even_excess_coefficients(n: int, d: int, c: float) -> np.ndarray:
    """(r_k E_s[(1 + cs)^k + (1 - cs)^k]/2 - 1), whose first two terms vanish."""
    up, down = _gap_coefficients(n, d, c), _gap_coefficients(n, d, -c)
    coefficients = -(up + down) / 2
    coefficients[:2] = 0.0
    return np.asarray(coefficients)


def log_conformity(V: Any, d: int, c: float = 0.0) -> np.ndarray:
    r"""Logarithm of the conformity :math:`\rho_c(V) = E[e^{(w_i + w_j)\cdot(x+y)}]` of two rows at cosine c.

    Notes
    -----
    With :math:`V = |x+y|^2`, independent :math:`\chi_d` lengths and an isotropic frame,

    .. math:: \rho_c = E_s\left[{}_1F_1(d; d/2; \tfrac V2(1 + cs))\right]
              = \sum_k \frac{V^k}{k!}\, r_k\, E_s(1 + cs)^k.

    Orthogonal rows have c = 0, rows of a simplex c = -1/(d - 1); independent rows have :math:`e^V`.  SimRF Eqs. 21, 23
    and 24; the appendix's copy of the last (Eq. 67) has a factor :math:`\binom kp` too many.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.theory._coupling import log_conformity
    >>> V = 1.0
    >>> bool(log_conformity(V, 8, -1 / 7) < log_conformity(V, 8) < V)
    True
    """
    owner = "log_conformity"
    V, d, c = check_squares(owner, "V", V), check_count(owner, "d", d), check_cosine(owner, "c", c)
    return np.asarray(V + log_poisson_mean(V, partial(_log_coefficients, d=d, c=c), growth=1 + abs(c)))


def conformity_gap(V: Any, d: int, c: float = 0.0) -> np.ndarray:
    r"""The gain of a coupled pair over an independent one, :math:`1 - e^{-V}\rho_c(V)`, without cancellation.

    Notes
    -----
    It is :math:`\sum_k \mathrm{Poisson}(k; V)(1 - r_k E_s(1+cs)^k)`.  Relative to the squared kernel, a pair of
    positive features at cosine c has the covariance minus this, whatever the A of the features (CRT Theorem 4.1, made
    exact).  It lies between 0 and 1 for c <= 0; for c > 0 it can be negative, and minus infinity at large V.
    """
    if c > 0:  # coefficients may grow like (1 + c)^k: the difference of logarithms keeps them finite
        with np.errstate(over="ignore"):
            return np.asarray(-np.expm1(log_conformity(V, d, c) - np.asarray(V, dtype=np.float64)))
    V = np.minimum(np.asarray(V, dtype=np.float64), _far_sum(d))
    return poisson_mean(V, partial(_gap_coefficients, d=d, c=c))


def even_excess(V: Any, d: int, c: float) -> np.ndarray:
    r"""Covariance of two hyperbolic features at cosine c, over :math:`k^2e^V`.

    It is :math:`e^{-V}(e^{-V}\frac{\rho_c+\rho_{-c}}2 - 1)`, :math:`V = |x+y|^2`.  Hyperbolic features are
    even, so rows at c and at -c are alike; for c = 0 the covariance is that of positive ones.
    """
    V = np.minimum(np.asarray(V, dtype=np.float64), _far_sum(d))
    near = np.minimum(V, EVEN_SERIES_BELOW)
    result = np.array(
        np.exp(-near) * poisson_mean(near, partial(_even_excess_coefficients, d=d, c=c), growth=1 + abs(c))
    )
    far = V > EVEN_SERIES_BELOW
    if np.any(far):
        both = np.logaddexp(log_conformity(V[far], d, c), log_conformity(V[far], d, -c)) - np.log(2)
        result[far] = np.exp(both - 2 * V[far]) - np.exp(-V[far])
    return result


def orthogonality_relative_gap(V: Any, m: int, d: int) -> np.ndarray:
    r"""Reduction of the relative mean squared error of positive features by orthogonal rows, for any m.

    Notes
    -----
    SimRF Corollary 4.4 (Eq. 25), relative to the squared kernel: :math:`\varphi(m, d)(1 - e^{-V}{}_1F_1(d; d/2; V/2))`.
    The published series lacks :math:`2^k` in its denominator (Eq. 69 has it) and gives negative gaps.  Multiply by
    :math:`e^{V - 2|x|^2 - 2|y|^2}` to obtain the gap for the Gaussian kernel.
    """
    return pair_fraction(m, d) * conformity_gap(V, d)


SERIES_BELOW = 1.0  # below it the difference cancels and its series converges at once
FAR = 400.0  # squared distances from which on the nodes of `sine_law` may be too few
N_FAR = 60  # degree of the table in 1/z, in which pair values are smooth
LARGEST = 1e60  # longer vectors are cut: squares of their squares are finite, and pair values have reached their limits
N_TERMS = 40  # terms of the series below one: 60 change no bit


def trigonometric_pair(V: Any, d: int, c: float = 0.0) -> np.ndarray:
    r"""The pair value :math:`\sigma_c(V) = E[\cos(w_i\cdot z)\cos(w_j\cdot z)]` of two rows at cosine c.

    Notes
    -----
    With :math:`z = x - y`, :math:`V = |z|^2`,

    .. math:: \sigma_c = \tfrac12 E_s\left[{}_1F_1(d; \tfrac d2; -\tfrac V2(1+cs))
              + {}_1F_1(d; \tfrac d2; -\tfrac V2(1-cs))\right].

    For c = 0 this is SimRF Eq. 26 and 74; the simplex case is left out there, and follows because :math:`w_i \pm w_j`
    has the squared length :math:`r^2(1 \pm cs)`.  Independent rows have :math:`e^{-V}`.
    """
    c = check_cosine("trigonometric_pair", "c", c)
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
    """Mean over a pair of rows by nodes that are graded towards s = 1, where rows along one line cancel within 1/z of it."""
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
    order :math:`V^2`.  At small V it is negative for orthogonal rows, and larger for simplex rows than for orthogonal
    rows.
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
