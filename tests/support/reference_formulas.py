"""Formulas of the papers that the library does not use: oracles and limits for those that it does."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import xlogy

from bochner.theory._pairs import sine_law, sine_moment
from bochner.theory._special_functions import log_poisson_mean, log_rising_ratio


def small_norm_factor(m: int, d: int, c: float) -> float:
    r"""The factor of :math:`|x+y|^2/m` in the relative error of positive features at small norms, for m <= d.

    :math:`1 + (m-1)c\mu_d^2/d` (SimRF Sec. 5.1, which omits the common factor :math:`e^{-2|x|^2-2|y|^2}/m`); for a
    whole simplex it is :math:`1 - \mu_d^2/d`, about 1/(2d).
    """
    return 1 + (m - 1) * c * sine_moment(d, 1)


def spherical_radial_variance_bound(d: int, n_rules: int = 1, kappa: float = 1.0) -> float:
    r"""QBF Proposition 2.2: a bound on the variance of n rules, for :math:`|\phi| \le \kappa` and d > 2.

    It is :math:`(2 + \kappa^2 + \kappa^4)/(n(d-2))`.  Its proof uses the false independence of the summands; for the
    Gaussian kernel and Haar rotations it holds, with `largest_spherical_radial_variance` the limit at large
    distance.  Proposition 2.1 fails (at d = 64, x = -y, norm 0.3, by a factor 7.6).
    """
    return (2 + kappa**2 + kappa**4) / (n_rules * (d - 2))


def largest_spherical_radial_variance(d: int, n_rules: int = 1) -> float:
    r"""The limit of `spherical_radial_variance` at large distance, for simplex vertices with their own radii, d > 2.

    It is :math:`\frac{d/2+2}{n(d+1)(d-2)}`.
    """
    return (d / 2 + 2) / (n_rules * (d + 1) * (d - 2))


def hadamard_block_mean(Z: Any, *, positive: bool = False) -> np.ndarray:
    r"""Mean of trigonometric features over rows of one Hadamard block HD, or of HMD, with :math:`\chi_d` lengths.

    Notes
    -----
    :math:`E_R\prod_k\cos(Rz_k/\sqrt d)`, :math:`R \sim \chi_d`, for rows z = x - y of Z: the entries of a row are
    independent signs over :math:`\sqrt d`, so both constructions have one bias.  With ``positive`` it is the mean of
    :math:`e^{w\cdot z}`, z = x + y, the product of hyperbolic cosines.
    """
    Z = np.asarray(Z, dtype=np.float64)
    d = Z.shape[-1]
    nodes, weights = np.polynomial.legendre.leggauss(240)
    low, high = max(0.0, math.sqrt(d) - 10), math.sqrt(d) + 10
    R = low + (high - low) * (nodes + 1) / 2
    log_density = (d - 1) * np.log(R) - R**2 / 2
    law = weights * np.exp(log_density - log_density.max())
    arguments = R * Z[..., None] / math.sqrt(d)  # (..., d, nodes)
    factors = np.cosh(arguments) if positive else np.cos(arguments)
    return np.asarray(factors.prod(-2) @ (law / law.sum()))


def _log_chi_density(r: np.ndarray, k: int) -> np.ndarray:
    return np.asarray(xlogy(k - 1, r) - r**2 / 2 - (k / 2 - 1) * math.log(2) - math.lgamma(k / 2))


def sum_density(w: Any, d: int, c: float | None = None) -> np.ndarray:
    r"""Density at w of :math:`|w_i + w_j|` for two rows of law N(0, I), independent (c None) or at cosine c.

    Notes
    -----
    Independent rows: :math:`\sqrt2\,\chi_d` (SimRF Eq. 18).  At cosine c the length is :math:`r\sqrt{1 + cs}` with
    :math:`r \sim \chi_{2d}` and s of `sine_law`, which is SimRF Eq. 20 with its integral made one of s.
    """
    w = np.asarray(w, dtype=np.float64)
    if c is None:
        return np.asarray(np.exp(_log_chi_density(w / math.sqrt(2), d)) / math.sqrt(2))
    s, weights = sine_law(d)
    scale = np.sqrt(1 + c * s)
    return np.asarray((np.exp(_log_chi_density(w[..., None] / scale, 2 * d)) / scale) @ weights)


def chi_mean(d: int) -> float:
    r""":math:`\mu_d = E[\chi_d] = \sqrt2\,\Gamma(\frac{d+1}2)/\Gamma(\frac d2)`."""
    return math.sqrt(2) * math.exp(math.lgamma((d + 1) / 2) - math.lgamma(d / 2))


def sum_second_moment(d: int, c: float = 0.0) -> float:
    r""":math:`E|w_i + w_j|^2 = 2d + 2c\mu_d^2` at cosine c."""
    return 2 * d + 2 * c * chi_mean(d) ** 2


def log_hyp1f1(d: int, t: Any) -> np.ndarray:
    r"""Logarithm of :math:`{}_1F_1(d; d/2; t)` for t >= 0, at any d and t.

    The series :math:`\sum_k \frac{(2t)^k}{k!} r_k` (see `log_rising_ratio`) has positive terms; it is summed in
    logarithms.
    """
    t = np.asarray(t, dtype=np.float64)
    return np.asarray(2 * t + log_poisson_mean(2 * t, lambda n: log_rising_ratio(n, d)))
