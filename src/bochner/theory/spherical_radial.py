"""Exact variances of the spherical-radial rules of degree 3 for the Gaussian kernel."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bochner._validation import check_option

from .trigonometric_pair import even_coefficients, trigonometric_pair

SERIES_BELOW = 1.0
N_TERMS = 40


def _radial_loss(t: np.ndarray, d: int) -> np.ndarray:
    r""":math:`G(t) = (1 - F(t))/a`, :math:`F(t) = {}_1F_1(a; a+1; -t)`, :math:`a = (d-2)/2`; at d = 2 its limit Ein(t)."""
    from scipy.special import erf, exp1, gammainc, hyp1f1

    if d == 2:
        return np.asarray(exp1(t) + np.log(t) + np.euler_gamma)
    a = (d - 2) / 2
    if d == 1:  # a = -1/2
        F = np.exp(-t) + np.sqrt(np.pi * t) * erf(np.sqrt(t))
    else:  # by the incomplete Gamma function where SciPy's series may not end
        far = max(100.0, 4.0 * d)
        t_far = np.maximum(t, far)
        with np.errstate(under="ignore"):
            tail = np.exp(math.lgamma(a + 1) - a * np.log(t_far)) * gammainc(a, t_far)
        F = np.where(t > far, tail, hyp1f1(a, a + 1, -np.minimum(t, far)))
    return np.asarray((1 - F) / a)


def _series(d: int, own: float, cross: float, vertices: str, radii: str) -> np.ndarray:
    """Coefficients of the variance in powers of V = 2t; the first four vanish."""
    k = np.arange(N_TERMS)
    a, factorial = (d - 2) / 2, np.cumprod(np.maximum(k, 1.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        h2 = (4.0**k / 2 - 2) / (2 * d * (a + k))
        shared = ((1 - 1 / d) ** k / 2 + (1 + 1 / d) ** k / 2) * 2.0**k - 2
        h11_shared = shared / (2 * d * (a + k))
    c = -1 / d if vertices == "simplex" else 0.0
    h11_own = (2.0**k * even_coefficients(N_TERMS, d, c) - 2) / d**2
    h11 = h11_own if radii == "own" else h11_shared
    coefficients = own * h2 + cross * h11 - (2.0**k - 2)
    coefficients *= (-0.5) ** k / factorial
    coefficients[:4] = 0.0  # the rule is exact to degree 3
    return np.asarray(coefficients)


def spherical_radial_variance(
    minus: Any, d: int, vertices: str = "simplex", radii: str = "own", n_rules: int = 1
) -> np.ndarray:
    r"""Variance of n spherical-radial rules, signed at the origin, for the Gaussian kernel at :math:`V = |x-y|^2`.

    Notes
    -----
    One rule (QBF Eq. 5 for a shared radius, Eq. 6 for own ones) with Haar rotation, :math:`k = e^{-t}`, :math:`t = V/2`,
    :math:`F(t) = {}_1F_1(\frac{d-2}2; \frac d2; -t)`:

    .. math:: \mathrm{Var} = \tfrac{d^2}{d+1}h_2 + \tfrac{d^3}{d+1}h_{11} - (1-k)^2, \qquad
              h_2 = \frac{\frac32 - 2F(t) + \frac12F(4t)}{d(d-2)},

    with :math:`h_{11} = (\sigma_{-1/d} - 2k + 1)/d^2` for a radius per vertex and
    :math:`(\frac12F(2t(1-\frac1d)) + \frac12F(2t(1+\frac1d)) - 2F(t) + 1)/(d(d-2))` for one shared radius; orthoplex
    vertices have :math:`d\,h_2 + \frac{d-1}d(\sigma_0 - 2k + 1) - (1-k)^2`.  Finite for every d.  The paper has bounds
    only, and calls the summands independent, which the shared rotation forbids.  Below V = 1 a series is
    summed whose first four terms vanish: :math:`\mathrm{Var} \approx V^4/(24d)` for large d (less for small).

    Examples
    --------
    >>> from bochner.theory import spherical_radial_variance
    >>> float(spherical_radial_variance(1.0, 8).round(8))
    0.00151601
    """
    check_option("spherical_radial_variance", "vertices", vertices, ("simplex", "orthoplex"))
    check_option("spherical_radial_variance", "radii", radii, ("own", "shared"))
    if vertices == "orthoplex" and radii == "shared":
        raise ValueError("spherical_radial_variance: orthoplex vertices need radii='own', got radii='shared'.")
    V = np.asarray(minus, dtype=np.float64)
    own, cross = (d**2 / (d + 1), d**3 / (d + 1)) if vertices == "simplex" else (float(d), float(d * (d - 1)))
    near = np.minimum(V, SERIES_BELOW)
    result = np.array(np.polynomial.polynomial.polyval(near, _series(d, own, cross, vertices, radii)))
    far = V >= SERIES_BELOW
    if np.any(far):
        h2, h11 = second_moments(V[far], d, vertices, radii)
        result[far] = own * h2 + cross * h11 - np.expm1(-V[far] / 2) ** 2
    return result / n_rules


def second_moments(V: Any, d: int, vertices: str = "simplex", radii: str = "own") -> tuple[np.ndarray, np.ndarray]:
    r"""Second moments :math:`h_2 = E[h_i^2]` and :math:`h_{11} = E[h_ih_j]` of the summands of a rule.

    :math:`h_j = (\cos(\rho_j\,Qv_j\cdot z) - 1)/\rho_j^2`.
    """
    V = np.asarray(V, dtype=np.float64)
    t = V / 2
    h2 = (2 * _radial_loss(t, d) - _radial_loss(4 * t, d) / 2) / (2 * d)
    if radii == "own":
        c = -1 / d if vertices == "simplex" else 0.0
        return h2, (trigonometric_pair(V, d, c) - 2 * np.exp(-t) + 1) / d**2
    inner, outer = _radial_loss(2 * t * (1 - 1 / d), d), _radial_loss(2 * t * (1 + 1 / d), d)
    return h2, (2 * _radial_loss(t, d) - inner / 2 - outer / 2) / (2 * d)


def variance_bound(d: int, n_rules: int = 1, kappa: float = 1.0) -> float:
    r"""QBF Proposition 2.2: a bound on the variance of n rules, for :math:`|\phi| \le \kappa` and d > 2.

    It is :math:`(2 + \kappa^2 + \kappa^4)/(n(d-2))`.  Its proof uses the false independence of the summands; for the
    Gaussian kernel and Haar rotations it holds, with `largest_variance` the limit at large distance.  Proposition 2.1 fails
    (at d = 64, x = -y, norm 0.3, by a factor 7.6).
    """
    return (2 + kappa**2 + kappa**4) / (n_rules * (d - 2))


def largest_variance(d: int, n_rules: int = 1) -> float:
    r"""The limit of `spherical_radial_variance` at large distance, for simplex vertices with their own radii, d > 2.

    It is :math:`\frac{d/2+2}{n(d+1)(d-2)}`.
    """
    return (d / 2 + 2) / (n_rules * (d + 1) * (d - 2))
