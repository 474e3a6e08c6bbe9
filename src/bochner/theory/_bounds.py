"""Bounds over sets of points: relative errors on a sphere (HRF), and quadrature, where QBF Section 12 has gaps."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bochner._validation import check_count, check_option

from ._hybrid_errors import angular_coefficient
from ._pairs import check_numbers
from ._quadrature import spherical_radial_variance
from ._special_functions import log_cosh_minus_one, log_expm1_negative, log_signed_sum


def trigonometric_log_relative_rmse(theta: Any, radius: Any, m: int) -> np.ndarray:
    r"""Log root relative error of trigonometric features at angle :math:`\theta` on the sphere of radius r.

    HRF Lemma 3.4: :math:`\epsilon = 2\sinh(2r^2\sin^2(\theta/2))/\sqrt{2m}`.
    """
    V = 4 * np.asarray(radius, dtype=np.float64) ** 2 * np.sin(np.asarray(theta) / 2) ** 2
    return np.asarray((log_cosh_minus_one(V) - np.log(m)) / 2)


def hyperbolic_log_relative_rmse(theta: Any, radius: Any, m: int) -> np.ndarray:
    r"""Log root relative error of hyperbolic features: the trigonometric one at :math:`\pi - \theta` (HRF Lemma 3.4)."""
    return trigonometric_log_relative_rmse(np.pi - np.asarray(theta, dtype=np.float64), radius, m)


def angular_log_relative_rmse(theta: Any, radius: Any, m: int, n: int) -> np.ndarray:
    r"""Log root relative error of the angular hybrid (m base projections each, n signs) on the sphere of radius r."""
    moments = angular_coefficient(theta, n)
    logs = [2 * hyperbolic_log_relative_rmse(theta, radius, m), 2 * trigonometric_log_relative_rmse(theta, radius, m)]
    return log_signed_sum(logs, [moments.square, moments.complement]) / 2


def log_max_relative_rmse(radius: Any, m: int) -> np.ndarray:
    r"""Log of the largest error of either base on the sphere of radius r.

    :math:`W(r)/\sqrt{2m}`, :math:`W = e^{2r^2}(1 - e^{-4r^2})` (HRF Lemma 3.4).
    """
    r2 = np.asarray(radius, dtype=np.float64) ** 2
    return np.asarray(2 * r2 + log_expm1_negative(4 * r2) - np.log(2 * m) / 2)


def log_max_angular_error_bound(radius: Any, m: int, n: int) -> np.ndarray:
    r"""Logarithm of a bound on the largest relative error of the angular hybrid on a sphere of radius at least one.

    Parameters
    ----------
    radius : float or array
        Radius r of the sphere, at least one.
    m : int
        Number of projections of each base.
    n : int
        Number of signs that estimate the coefficient.

    Returns
    -------
    ndarray
        Logarithm of the bound on the root relative error, of the shape of ``radius``.

    Notes
    -----
    HRF Theorem 3.5 (Eq. 27) is false as published, because Eq. 64 has :math:`r^2` in place of r.  The corrected bound
    is

    .. math:: \epsilon_{\max} \le \frac{W(r)}{\sqrt{2m}}\sqrt{\frac{1 - 1/n}{\pi r^2} + \frac1{n\sqrt\pi\,r}}.

    The hybrid therefore gains a factor of :math:`\sqrt{nr}` at fixed n, and a factor of r only while r is small against
    n.
    """
    owner = "log_max_angular_error_bound"
    r = check_numbers(
        owner, "radius", radius, "finite and at least one, where the bound holds", lambda v: (v >= 1) & (v < 1e100)
    )
    m, n = check_count(owner, "m", m), check_count(owner, "n", n)
    return np.asarray(
        log_max_relative_rmse(r, m) + np.log((1 - 1 / n) / (np.pi * r**2) + 1 / (n * np.sqrt(np.pi) * r)) / 2
    )


_DISTANCES = 500
"""Distances of which the largest variance is taken; it changes on the scale of a lengthscale, and R is a few of them."""
_RADII = np.geomspace(1e-12, 1e3, 3001)  # radii of the balls of a net that are tried; any of them gives a valid bound


def log_quadrature_uniform_bound(
    epsilon: Any, radius: float, d: int, n_rules: int = 1, vertices: str = "simplex"
) -> np.ndarray:
    r"""Logarithm of a bound on :math:`P(\sup_{|x-y| \le R} |\hat k - k| \ge \epsilon)` for quadrature, Gaussian kernel.

    Parameters
    ----------
    epsilon : float or array
        Error :math:`\epsilon > 0`.
    radius : float
        Largest distance R, in lengthscales.
    d : int
        Dimension of the points.
    n_rules : int
        Number of independent whole rules, with Haar rotations and signed weights at the origin.
    vertices : {"simplex", "orthoplex"}
        Points of the rules.

    Returns
    -------
    ndarray
        Logarithms, of the shape of ``epsilon``.  A positive one means a bound above one, which is vacuous.

    See Also
    --------
    spherical_radial_variance : The error at one distance.

    Notes
    -----
    QBF Section 12 follows the argument for random Fourier features: a net of radius r, Chebyshev's inequality at its points
    and Markov's for the Lipschitz constant of :math:`g = \hat k - k`.  Its bound on that constant takes the summands of a
    rule for independent, which they are not, and the point of the steepest slope for fixed, which depends on the draw.
    Both are avoidable.  With :math:`z = x - y`,

    .. math:: \nabla\hat k = -\sum_j \frac{d}{k\rho_j}\sin(\rho_j u_j\cdot z)\,u_j, \qquad
              \sup_z|\nabla\hat k|^2 \le \frac kd\sum_j\frac{d^2}{k^2\rho_j^2},

    since the k vertices of a rule are a tight frame, :math:`\sum_j u_ju_j^T = \frac kd I`.  As :math:`E\rho^{-2} = 1/d`,
    the mean of the right side is one, for every d and for averages of rules.  With
    :math:`\sup|\nabla k| = e^{-1/2}` and :math:`\sigma^2` the largest variance of a rule up to the distance R,

    .. math:: P\Bigl(\sup_{|z|\le R}|g| \ge \epsilon\Bigr) \le \Bigl(1 + \frac{2R}r\Bigr)^d\frac{4\sigma^2}{n\epsilon^2}
              + \frac{4r^2(1 + e^{-1/2})^2}{\epsilon^2} \qquad\text{for every } r > 0,

    of which the least over r is returned.  The number of rules that makes it small grows as :math:`\epsilon^{-(d+2)}`: it
    proves uniform convergence, and says little about the width that is needed beyond a few dimensions.

    Examples
    --------
    >>> from bochner.theory import log_quadrature_uniform_bound
    >>> bool(log_quadrature_uniform_bound(0.5, 1.0, 2, n_rules=100_000) < 0)
    True
    """
    owner = "log_quadrature_uniform_bound"
    d, n_rules = check_count(owner, "d", d), check_count(owner, "n_rules", n_rules)
    check_option(owner, "vertices", vertices, ("simplex", "orthoplex"))
    epsilon = check_numbers(owner, "epsilon", epsilon, "positive", lambda v: v > 0)
    R = check_numbers(owner, "radius", radius, "positive and at most 1e6", lambda v: (v > 0) & (v <= 1e6))
    if R.ndim:
        raise ValueError(f"{owner}: radius must be one number, got an array of shape {R.shape}; call once for each.")
    V = np.square(np.linspace(0, R, _DISTANCES + 1)[1:])
    log_variance = math.log(float(spherical_radial_variance(V, d, vertices).max()) / n_rules)
    at_points = d * np.log1p(2 * R / _RADII) + log_variance
    slope = 2 * np.log(_RADII) + 2 * math.log1p(math.exp(-0.5))
    return np.asarray(np.logaddexp(at_points, slope).min() + math.log(4) - 2 * np.log(epsilon))
