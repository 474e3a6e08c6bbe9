"""Spherical-radial rules of degree 3 and rows that are not Gaussian: variances, the weight at the origin, biases."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from bochner._validation import check_count, check_option

from ._coupling import even_coefficients, trigonometric_pair
from ._pairs import check_finite_squares, check_numbers, check_squares, check_vectors

SERIES_BELOW = 1.0  # below it the differences cancel and their series converge at once
N_TERMS = 40  # terms of the series below one, the last of which is below 1e-35


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


def _series(d: int, own: float, cross: float, square: float, vertices: str, radii: str, exact: int) -> np.ndarray:
    """Coefficients of the variance in powers of V = 2t; the first ``exact`` vanish."""
    k = np.arange(N_TERMS)
    a, factorial = (d - 2) / 2, np.cumprod(np.maximum(k, 1.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        h2 = (4.0**k / 2 - 2) / (2 * d * (a + k))
        shared = ((1 - 1 / d) ** k / 2 + (1 + 1 / d) ** k / 2) * 2.0**k - 2
        h11_shared = shared / (2 * d * (a + k))
    c = -1 / d if vertices == "simplex" else 0.0
    h11_own = (2.0**k * even_coefficients(N_TERMS, d, c) - 2) / d**2
    h11 = h11_own if radii == "own" else h11_shared
    coefficients = own * h2 + cross * h11 - square * (2.0**k - 2)
    coefficients *= (-0.5) ** k / factorial
    coefficients[:exact] = 0.0
    return np.asarray(coefficients)


def spherical_radial_variance(
    minus: Any, d: int, vertices: str = "simplex", radii: str = "own", n_rules: int = 1, rows: int | None = None
) -> np.ndarray:
    r"""Variance of randomly rotated spherical-radial quadrature rules for the Gaussian kernel.

    Parameters
    ----------
    minus : array
        Squared distances :math:`V = |x-y|^2`.
    d : int
        Dimension of the points.
    vertices : {"simplex", "orthoplex"}, default "simplex"
        Points of the rule on the sphere.
    radii : {"own", "shared"}, default "own"
        Whether each vertex has its own radius, or all vertices of a rule share one.  Orthoplex rules need "own".
    n_rules : int, default 1
        Number of independent rules that are averaged.
    rows : int, optional
        Number of vertices in place of ``n_rules``, whose last rule may be incomplete, with radii of their own.

    Returns
    -------
    ndarray
        Variances, of the shape of ``minus``.

    Notes
    -----
    The rules carry a signed weight at the origin.  For one rule (QBF Eq. 5 for a shared radius, Eq. 6 for own radii)
    with a Haar rotation, :math:`k = e^{-t}`, :math:`t = V/2` and :math:`F(t) = {}_1F_1(\frac{d-2}2; \frac d2; -t)`:

    .. math:: \mathrm{Var} = \tfrac{d^2}{d+1}h_2 + \tfrac{d^3}{d+1}h_{11} - (1-k)^2, \qquad
              h_2 = \frac{\frac32 - 2F(t) + \frac12F(4t)}{d(d-2)},

    with :math:`h_{11} = (\sigma_{-1/d} - 2k + 1)/d^2` for one radius per vertex and :math:`(\frac12F(2t(1-\frac1d)) +
    \frac12F(2t(1+\frac1d)) - 2F(t) + 1)/(d(d-2))` for a shared radius.  Orthoplex vertices have :math:`d\,h_2 +
    \frac{d-1}d(\sigma_0 - 2k + 1) - (1-k)^2`.  The variance is finite for every d.  The paper only gives bounds, and
    treats the summands as independent although they share the rotation.  Below V = 1 the variance is computed as a
    series whose first four terms vanish: :math:`\mathrm{Var} \approx V^4/(24d)` for large d, and less for small d.

    With m rows in rules of :math:`r_b` vertices each, some of them incomplete, every row is a rule of its own, and
    :math:`\mathrm{Var} = \frac{d^2}{m}h_2 + \frac{d^2}{m^2}\sum_b r_b(r_b-1)\,h_{11} - \frac{\sum_b r_b^2}{m^2}(1-k)^2`:
    an incomplete rule is exact to degree one only, and its error falls as :math:`V^2`.

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
    V, d = check_squares("spherical_radial_variance", "minus", minus), check_count("spherical_radial_variance", "d", d)
    n_rules = check_count("spherical_radial_variance", "n_rules", n_rules)
    size = d + 1 if vertices == "simplex" else d
    m = n_rules * size if rows is None else check_count("spherical_radial_variance", "rows", rows)
    if m % size and radii == "shared":
        raise ValueError(
            f"spherical_radial_variance: rules with a shared radius are whole; rows must be a multiple of {size}, got {m}."
        )
    whole, last = divmod(m, size)
    square = (whole * size**2 + last**2) / m**2
    own, cross = d**2 / m, d**2 * (square - 1 / m)  # sum_b r_b (r_b - 1) / m^2
    near = np.minimum(V, SERIES_BELOW)
    exact = 2 if last else 4  # a whole rule is exact to degree three
    result = np.array(np.polynomial.polynomial.polyval(near, _series(d, own, cross, square, vertices, radii, exact)))
    far = V >= SERIES_BELOW
    if np.any(far):
        h2, h11 = second_moments(V[far], d, vertices, radii)
        result[far] = own * h2 + cross * h11 - square * np.expm1(-V[far] / 2) ** 2
    return result


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


FAR = 1e4  # squared distances from which Bessel functions take over: nodes would grow with the distance
N_NODES = 400  # 800 change probabilities and means by less than 1e-5


class OriginWeight(NamedTuple):
    """Probability that the weight at the origin is not negative, and its mean under that condition."""

    probability: float
    conditional_mean: float


def _characteristic_function(u: np.ndarray, d: int) -> np.ndarray:
    r"""Characteristic function of :math:`1/\rho^2`, :math:`\rho \sim \chi_{d+2}`, by Gauss-Legendre nodes."""
    nodes, weights = np.polynomial.legendre.leggauss(N_NODES)
    centre = math.sqrt(d + 2)
    low, high = max(0.0, centre - 9), centre + 9
    rho = low + (high - low) * (nodes + 1) / 2
    log_density = (d + 1) * np.log(rho) - rho**2 / 2
    law = weights * np.exp(log_density - log_density.max())
    return np.asarray(np.exp(1j * u[:, None] / rho**2) @ (law / law.sum()))


def origin_weight(d: int) -> OriginWeight:
    r"""Probability that a quadrature rule has a non-negative weight at the origin, and the conditional mean of that weight.

    Parameters
    ----------
    d : int
        Dimension of the points.

    Returns
    -------
    OriginWeight
        Named tuple with ``probability`` and ``conditional_mean``.

    Notes
    -----
    The weight is :math:`a_0^2 = 1 - \sum_j \frac d{(d+1)\rho_j^2}`, :math:`\rho_j \sim \chi_{d+2}`, and
    :math:`E a_0^2 = 0`.  A rule that is resampled until :math:`a_0^2 \ge 0`, as in QBF, is therefore biased, however
    many rules are averaged.  The bias is :math:`E[a_0^2 \mid a_0^2 \ge 0]` at large distances for the Gaussian kernel,
    and :math:`(\frac12 - k_0)` times that for the arc-cosine kernel of order 0.  The signed weight is unbiased.  The
    "two draws" that resampling takes on average according to the paper are the limit for large d.

    Both numbers are computed by inverting the characteristic function of :math:`S = \sum_j\rho_j^{-2}`, whose mean
    :math:`(d+1)/d` is the threshold:
    :math:`P(S \le x) = \frac12 - \frac1\pi\int\mathrm{Im}[e^{-iux}\phi(u)]\frac{du}u` and
    :math:`E|S - x| = \frac2\pi\int(1 - \mathrm{Re}[e^{-iux}\phi(u)])\frac{du}{u^2}`.

    Examples
    --------
    >>> from bochner.theory import origin_weight
    >>> origin_weight(8).probability > 0.5
    True
    """
    d = check_count("origin_weight", "d", d)
    top, threshold = 60.0 * d, (d + 1) / d
    nodes, weights = np.polynomial.legendre.leggauss(N_NODES)
    root = math.sqrt(top) * (nodes + 1) / 2  # u = root^2: nodes gather where the integrand bends
    u, du = root**2, weights * math.sqrt(top) * root
    centred = np.exp((d + 1) * (np.log(_characteristic_function(u, d)) - 1j * u / d))
    probability = 0.5 - (centred.imag / u) @ du / math.pi
    deviation = 2 / math.pi * (((1 - centred.real) / u**2) @ du + 1 / top)
    positive_part = deviation / 2 / threshold
    return OriginWeight(float(probability), float(positive_part / probability))


def fixed_norm_bias(minus: Any, d: int) -> np.ndarray:
    r"""Bias of trigonometric features for the Gaussian kernel when all rows have length :math:`\sqrt d`.

    Parameters
    ----------
    minus : array
        Squared distances :math:`V = |x-y|^2`, finite.
    d : int
        Dimension of the points.

    Returns
    -------
    ndarray
        Mean of the estimate minus the kernel, of the shape of ``minus``.

    Notes
    -----
    For Haar rows u the bias is :math:`E\cos(\sqrt d\,u\cdot z) - e^{-V/2}`, about :math:`-V^2e^{-V/2}/(4d)`.  SORF and
    the ROM of QBF have such rows.  The mean is computed by Gauss-Legendre quadrature over the angle, since SciPy's
    ``hyp0f1`` fails at large d, and by a Bessel function beyond V = 10000.
    """
    d = check_count("fixed_norm_bias", "d", d)
    V = check_finite_squares("fixed_norm_bias", "minus", minus)
    if d == 1:
        return np.asarray(np.cos(np.sqrt(V)) - np.exp(-V / 2))
    near = np.minimum(V, FAR)
    return np.asarray(np.where(V > FAR, _far_mean(np.maximum(V, FAR), d), _near_mean(near, d)) - np.exp(-V / 2))


def _far_mean(V: np.ndarray, d: int) -> np.ndarray:
    r""":math:`\Gamma(d/2)(2/t)^{d/2-1}J_{d/2-1}(t)`, :math:`t = \sqrt{dV}`."""
    from scipy.special import jv

    t, order = np.sqrt(d * V), d / 2 - 1
    with np.errstate(under="ignore"):
        return np.asarray(np.exp(math.lgamma(d / 2) + order * np.log(2 / t)) * np.nan_to_num(jv(order, t)))


def _near_mean(V: np.ndarray, d: int) -> np.ndarray:
    half = min(math.pi / 2, 20 / math.sqrt(d))
    n = 160 + 16 * math.ceil(math.sqrt(V.max(initial=0.0)))
    nodes, weights = np.polynomial.legendre.leggauss(n)
    weights = weights * np.exp((d - 2) * np.log(np.cos(half * nodes)))
    projection = math.sqrt(d) * np.sin(half * nodes)
    return np.asarray(np.cos(np.sqrt(V)[..., None] * projection) @ (weights / weights.sum()))


def grid_mse(Z: Any, nodes: Any, probabilities: Any, m: int) -> np.ndarray:
    r"""Mean squared error of cosine features whose rows are nodes of a product grid, drawn by their weights.

    Parameters
    ----------
    Z : array of shape (..., d)
        Differences x - y.
    nodes, probabilities : arrays of shape (n,)
        Nodes of one coordinate, symmetric about zero, and their probabilities.
    m : int
        Number of rows.

    Returns
    -------
    ndarray of shape (...)
        Mean squared error for the Gaussian kernel: the squared bias of the grid, and the variance of the sample.

    Notes
    -----
    The grid estimates :math:`g(z) = \prod_l\sum_j p_j\cos(t_jz_l)`, so that the error is
    :math:`(g(z) - k(z))^2 + \frac1m(\frac{1+g(2z)}2 - g(z)^2)` (QBF Section 4, method GQ, where it is not given).

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.theory import grid_mse
    >>> nodes, weights = np.polynomial.hermite_e.hermegauss(40)         # so fine that only the sample errs
    >>> z = np.array([0.6, -0.3])
    >>> k2 = np.exp(-(z @ z))
    >>> bool(np.isclose(grid_mse(z, nodes, weights / weights.sum(), 5), (1 - k2) ** 2 / 10))
    True
    """
    Z = check_vectors("grid_mse", Z)
    m = check_count("grid_mse", "m", m)
    t = check_numbers("grid_mse", "nodes", nodes, "finite numbers", np.isfinite)
    p = check_numbers("grid_mse", "probabilities", probabilities, "positive", lambda v: v > 0)
    if t.ndim != 1 or t.shape != p.shape:
        raise ValueError(
            f"grid_mse: nodes and probabilities must be two lists of equal length, got shapes {t.shape} and {p.shape}."
        )

    def grid(z: np.ndarray) -> np.ndarray:
        return np.asarray(np.prod(np.cos(z[..., None] * t) @ p, axis=-1))

    g = grid(Z)
    return np.asarray((g - np.exp(-(Z**2).sum(-1) / 2)) ** 2 + ((1 + grid(2 * Z)) / 2 - g**2) / m)
