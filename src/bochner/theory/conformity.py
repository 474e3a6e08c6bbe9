"""How coupled rows conform for positive features, and what coupling gains."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from .blocks import pair_fraction
from .hypergeometric import log_rising_ratio
from .poisson_series import log_poisson_mean, poisson_mean
from .sine_law import sine_law, sine_moment

SERIES_BELOW = 30.0


def _far(d: int) -> float:
    """From here on coupled rows conform less than independent ones by a factor below rounding: the gap is one."""
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


def _even_coefficients(n: int, d: int, c: float) -> np.ndarray:
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
    >>> from bochner.theory import log_conformity
    >>> V = 1.0
    >>> bool(log_conformity(V, 8, -1 / 7) < log_conformity(V, 8) < V)
    True
    """
    V = np.asarray(V, dtype=np.float64)
    return np.asarray(V + log_poisson_mean(V, partial(_log_coefficients, d=d, c=c), growth=1 + abs(c)))


def conformity_gap(V: Any, d: int, c: float = 0.0) -> np.ndarray:
    r"""The gain of a coupled pair over an independent one, :math:`1 - e^{-V}\rho_c(V)`, without cancellation.

    Notes
    -----
    It is :math:`\sum_k \mathrm{Poisson}(k; V)(1 - r_k E_s(1+cs)^k)`.  Relative to the squared kernel, a pair of positive
    features at cosine c has the covariance minus this, whatever the A of the features (CRT Theorem 4.1, made exact).
    It lies between 0 and 1 for c <= 0; for c > 0 it can be negative, and minus infinity at large V.
    """
    V = np.minimum(np.asarray(V, dtype=np.float64), _far(d)) if c <= 0 else V
    if c > 0:  # coefficients may grow like (1 + c)^k: the difference of logarithms keeps them finite
        with np.errstate(over="ignore"):
            return np.asarray(-np.expm1(log_conformity(V, d, c) - np.asarray(V, dtype=np.float64)))
    return poisson_mean(V, partial(_gap_coefficients, d=d, c=c))


def even_excess(V: Any, d: int, c: float) -> np.ndarray:
    r"""Covariance of two hyperbolic features at cosine c, over :math:`k^2e^V`.

    It is :math:`e^{-V}(e^{-V}\frac{\rho_c+\rho_{-c}}2 - 1)`, :math:`V = |x+y|^2`.  Hyperbolic features are
    even, so rows at c and at -c are alike; for c = 0 the covariance is that of positive ones.
    """
    V = np.minimum(np.asarray(V, dtype=np.float64), _far(d))
    near = np.minimum(V, SERIES_BELOW)
    result = np.array(np.exp(-near) * poisson_mean(near, partial(_even_coefficients, d=d, c=c), growth=1 + abs(c)))
    far = V > SERIES_BELOW
    if np.any(far):
        both = np.logaddexp(log_conformity(V[far], d, c), log_conformity(V[far], d, -c)) - np.log(2)
        result[far] = np.exp(both - 2 * V[far]) - np.exp(-V[far])
    return result


def orthogonality_gap(V: Any, m: int, d: int) -> np.ndarray:
    r"""How much orthogonal rows lower the relative mean squared error of positive features, for any m.

    Notes
    -----
    SimRF Corollary 4.4 (Eq. 25), relative to the squared kernel: :math:`\varphi(m, d)(1 - e^{-V}{}_1F_1(d; d/2; V/2))`.
    The print lacks :math:`2^k` in the denominator of its series (Eq. 69 has it), and then gives negative gaps; times
    :math:`e^{V - 2|x|^2 - 2|y|^2}` this is the gap for the Gaussian kernel.
    """
    return pair_fraction(m, d) * conformity_gap(V, d)


def small_norm_factor(m: int, d: int, c: float) -> float:
    r"""The factor of :math:`|x+y|^2/m` in the relative error of positive features at small norms, for m <= d.

    :math:`1 + (m-1)c\mu_d^2/d` (SimRF Sec. 5.1, which omits the common factor :math:`e^{-2|x|^2-2|y|^2}/m`); for a whole
    simplex it is :math:`1 - \mu_d^2/d`, about 1/(2d).
    """
    return 1 + (m - 1) * c * sine_moment(d, 1)
