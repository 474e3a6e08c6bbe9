"""Tail bounds and uniform convergence of positive features with A < 0, which are bounded (CRT Theorems 4.2 and 4.3)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bochner._validation import check_count, check_flag, check_fraction

from ._pairs import Pairs, check_numbers, check_pairs

_MOST_TERMS = 20_000
"""Terms of the series of a moment generating function; larger t are not tried, which leaves a valid bound."""


def log_supremum(pairs: Pairs, A: Any, d: int, *, sharp: bool = True) -> np.ndarray:
    r"""Logarithm of the largest value of one positive feature product with A < 0, for the Gaussian kernel.

    Notes
    -----
    :math:`\sup f_1f_2 = (1-4A)^{d/2}\exp(-N + \frac{(1-4A)|x+y|^2}{8|A|})`, :math:`N = |x|^2 + |y|^2`; without
    ``sharp``, the bound :math:`(1-4A)^{d/2}e^{N/(4|A|)}` of the paper.
    """
    A = check_numbers("log_supremum", "A", A, "negative, or features are unbounded", lambda v: v < 0)
    N = pairs.x2 + pairs.y2
    exponent = -N - (1 - 4 * A) * pairs.plus / (8 * A) if sharp else -N / (4 * A)
    return np.asarray(d / 2 * np.log1p(-4 * A) + exponent)


def log_tail_bound(pairs: Pairs, epsilon: Any, m: int, A: float, d: int, *, sharp: bool = True) -> np.ndarray:
    r"""Logarithm of a bound on :math:`P(|\hat k - k| \ge \epsilon)` for bounded positive features of the Gaussian kernel.

    Parameters
    ----------
    pairs : Pairs
        Squared norms of the pairs of points.
    epsilon : float or array
        Error :math:`\epsilon > 0`.
    m : int
        Number of independent projections.
    A : float
        Negative constant of the features; they are unbounded otherwise.
    d : int
        Dimension of the points.
    sharp : bool, default True
        Whether to use the exact supremum of the features, or the looser bound of the paper.

    Returns
    -------
    ndarray
        Logarithm of the bound, one value per pair.  A positive value means a bound above one, which is vacuous.

    See Also
    --------
    log_orthogonal_tail_bound : The upper tail, also for orthogonal rows.

    Notes
    -----
    Hoeffding's inequality: :math:`2\exp(-2m\epsilon^2/\sup^2)`.  CRT Theorem 4.2 has :math:`(1-4A)^{-d/2}` where
    :math:`\sup^{-2}` contains :math:`(1-4A)^{-d}`; exact probabilities exceed the published bound.
    """
    check_pairs("log_tail_bound", pairs)
    check_flag("log_tail_bound", "sharp", sharp)
    m, d = check_count("log_tail_bound", "m", m), check_count("log_tail_bound", "d", d)
    epsilon = check_numbers("log_tail_bound", "epsilon", epsilon, "positive", lambda v: v > 0)
    log_rate = np.log(2 * m) + 2 * np.log(epsilon)
    with np.errstate(under="ignore"):
        return np.asarray(np.log(2) - np.exp(log_rate - 2 * log_supremum(pairs, A, d, sharp=sharp)))


def log_orthogonal_tail_bound(pairs: Pairs, epsilon: Any, m: int, A: float, d: int) -> np.ndarray:
    r"""Logarithm of a bound on :math:`P(\hat k - k \ge \epsilon)` for orthogonal rows, and bounded positive features.

    The bound also holds for independent and simplex rows.  Only the upper tail is bounded.

    Parameters
    ----------
    pairs : Pairs
        Squared norms of the pairs of points.
    epsilon : float or array
        Error :math:`\epsilon > 0` of the Gaussian kernel.
    m : int
        Number of projections, in one or more orthogonal blocks.
    A : float
        Negative constant of the features; they are unbounded otherwise.
    d : int
        Dimension of the points.

    Returns
    -------
    ndarray
        Logarithm of the bound, one value per pair; minus infinity where :math:`k + \epsilon` is at least the largest value
        of the estimate.

    See Also
    --------
    log_tail_bound : Both tails, for independent rows.

    Notes
    -----
    CRT Theorem 4.2: :math:`\exp(-m\mathcal L(k + \epsilon))` with the Legendre transform :math:`\mathcal L(a) =
    \sup_{t>0}\,(ta - \log E e^{tZ})` of one product Z of features.  With :math:`V = |x+y|^2` and :math:`N = |x|^2 +
    |y|^2`,

    .. math:: E e^{tZ} = \sum_k \frac{t^k}{k!} E Z^k, \qquad
              E Z^k = \frac{(1-4A)^{kd/2}}{(1-4kA)^{d/2}} \exp\Big(\frac{k^2(1-4A)V}{2(1-4kA)} - kN\Big).

    Given the lengths of the rows, :math:`E\prod_i Z_i^{k_i}` depends on :math:`|\sum_i k_i r_iu_i|^2` through
    :math:`{}_0F_1`, which is logarithmically concave; so orthogonal directions give at most the product of the
    expectations, simplex directions less still, and the bound of independent rows serves them all.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.theory import Pairs, log_orthogonal_tail_bound, log_tail_bound
    >>> pair = Pairs.of([0.3, 0.2], [0.1, -0.4])
    >>> both_sides, upper = log_tail_bound(pair, 0.3, 64, -0.1, 2), log_orthogonal_tail_bound(pair, 0.3, 64, -0.1, 2)
    >>> bool(upper < both_sides)
    True
    """
    owner = "log_orthogonal_tail_bound"
    check_pairs(owner, pairs)
    m, d = check_count(owner, "m", m), check_count(owner, "d", d)
    epsilon = check_numbers(owner, "epsilon", epsilon, "positive", lambda v: v > 0)
    constant = _negative(owner, A)
    N, V = pairs.x2 + pairs.y2, pairs.plus
    log_top = log_supremum(pairs, constant, d)
    log_kernel = np.broadcast_to(-pairs.minus / 2, np.broadcast_shapes(np.shape(pairs.minus), epsilon.shape))
    with np.errstate(over="ignore", divide="ignore"):
        level = np.logaddexp(log_kernel, np.log(epsilon)) - log_top  # as a share of the largest value
        rates = np.vectorize(_legendre, otypes=[float])(level, N, V, log_top, constant, d)
    return np.asarray(-m * rates)


def _legendre(log_level: float, N: float, V: float, log_top: float, A: float, d: int) -> float:
    """The Legendre transform of Z / sup Z at a share of the supremum; any t gives a valid bound."""
    from scipy.optimize import minimize_scalar
    from scipy.special import gammaln, logsumexp

    if log_level >= 0:
        return math.inf
    k = np.arange(1.0, _MOST_TERMS)
    inner = 1 - 4 * k * A
    log_moments = k * (d / 2) * np.log1p(-4 * A) - d / 2 * np.log(inner) + k * (k * (1 - 4 * A) * V / (2 * inner) - N)
    log_terms = log_moments - k * log_top - gammaln(k + 1)

    def negative(log_t: float) -> float:
        series = float(logsumexp(log_terms + k * log_t))
        return float(np.logaddexp(0.0, series)) - math.exp(log_t + log_level)

    longest = math.log(_MOST_TERMS / 2)  # beyond, terms of the series are missing
    found = minimize_scalar(negative, bounds=(-40.0, longest), method="bounded", options={"xatol": 1e-9})
    return max(-float(found.fun), 0.0)


def log_uniform_tail_bound(epsilon: Any, radius: Any, m: int, A: float, d: int) -> np.ndarray:
    r"""Logarithm of a bound on the probability that softmax features err by :math:`\epsilon` anywhere in a ball.

    Parameters
    ----------
    epsilon : float or array
        Error :math:`\epsilon > 0` of an entry of the attention matrix :math:`\exp(q\cdot k/\sqrt d)`.
    radius : float or array
        Radius R of the ball that holds all queries and keys.
    m : int
        Number of independent projections.
    A : float
        Negative constant of the features; they are unbounded otherwise.
    d : int
        Dimension of queries and keys.

    Returns
    -------
    ndarray
        Logarithm of the bound; a positive value means a bound above one, which is vacuous.

    See Also
    --------
    uniform_projections : The number of projections that it asks for.

    Notes
    -----
    CRT Theorem 4.3 with explicit constants.  With :math:`x = q d^{-1/4}`, :math:`\varrho^2 = R^2/\sqrt d`, the largest
    product of features :math:`S = (1-4A)^{d/2}e^{\varrho^2(1 + 1/(2|A|))}` and a Lipschitz constant L of the error,

    .. math:: P\Big(\sup_{q,k}|\hat K - K| \ge \epsilon\Big) \le
              2\Big(1 + \frac{4\sqrt2\,\varrho L}{\epsilon}\Big)^{2d} e^{-m\epsilon^2/(2S^2)}:

    Hoeffding's inequality for an error of :math:`\epsilon/2` on a net of :math:`\epsilon/(2L)`.  The theorem has
    :math:`(1-4A)^{d/2}` where :math:`S^2` contains :math:`(1-4A)^d`, and its :math:`\Gamma = e^{3R^2/(\sqrt d|A|)}`
    covers the exponent :math:`(2 + 1/|A|)R^2/\sqrt d` for :math:`|A| \le 1` only.

    Examples
    --------
    >>> from bochner.theory import log_uniform_tail_bound, uniform_projections
    >>> m = uniform_projections(0.5, 1.0, -0.1, 4, probability=0.1)
    >>> bool(log_uniform_tail_bound(0.5, 1.0, int(m), -0.1, 4) < -2.3)
    True
    """
    owner = "log_uniform_tail_bound"
    m = check_count(owner, "m", m)
    log_net, rate = _uniform(owner, epsilon, radius, A, d)
    return np.asarray(log_net - m * rate)


def uniform_projections(epsilon: Any, radius: Any, A: float, d: int, probability: float = 0.5) -> np.ndarray:
    r"""Number of independent projections for which softmax features err by less than :math:`\epsilon` in a whole ball.

    Parameters
    ----------
    epsilon : float or array
        Error :math:`\epsilon > 0` of an entry of the attention matrix :math:`\exp(q\cdot k/\sqrt d)`.
    radius : float or array
        Radius R of the ball that holds all queries and keys.
    A : float
        Negative constant of the features; they are unbounded otherwise.
    d : int
        Dimension of queries and keys.
    probability : float, default 0.5
        Largest probability of a larger error.

    Returns
    -------
    ndarray
        The sufficient number, as a float, since it may be astronomical.

    See Also
    --------
    log_uniform_tail_bound : The bound that is solved for m, with the formula.

    Examples
    --------
    >>> from bochner.theory import uniform_projections
    >>> bool(uniform_projections(0.1, 1.0, -0.1, 4) > 25 * uniform_projections(0.5, 1.0, -0.1, 4))
    True
    """
    owner = "uniform_projections"
    share = check_fraction(owner, "probability", probability)
    log_net, rate = _uniform(owner, epsilon, radius, A, d)
    with np.errstate(divide="ignore", over="ignore"):
        return np.asarray(np.ceil((log_net - math.log(share)) / rate))


def _uniform(owner: str, epsilon: Any, radius: Any, A: Any, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Logarithm of twice the size of the net, and the rate of Hoeffding's inequality at half the error."""
    d = check_count(owner, "d", d)
    epsilon = check_numbers(owner, "epsilon", epsilon, "positive", lambda v: v > 0)
    R = check_numbers(owner, "radius", radius, "positive and at most 1e100", lambda v: (v > 0) & (v <= 1e100))
    A = _negative(owner, A)
    rho, B = R * d**-0.25, math.sqrt(1 - 4 * A)
    log_top = d / 2 * math.log1p(-4 * A) + rho**2 * (1 - 1 / (2 * A))
    # sup of the gradient: e^(2A u^2 + 2B rho u - rho^2) (B u + rho) at its largest, where its logarithm is stationary
    a, b, c = 4 * A * B, rho * (2 - 4 * A), B * (2 * rho**2 + 1)
    u = (b + np.hypot(b, 2 * np.sqrt(-a) * np.sqrt(c))) / (-2 * a)
    log_features = d / 2 * math.log1p(-4 * A) + 2 * A * u**2 + 2 * B * rho * u - rho**2 + np.log(B * u + rho)
    log_lipschitz = np.logaddexp(log_features, rho**2 + np.log(rho)) + math.log(2) / 2
    log_ratio = math.log(4 * math.sqrt(2)) + np.log(rho) + log_lipschitz - np.log(epsilon)
    with np.errstate(under="ignore"):
        rate = np.exp(2 * np.log(epsilon) - math.log(2) - 2 * log_top)
    return math.log(2) + 2 * d * np.logaddexp(0.0, log_ratio), rate


def _negative(owner: str, A: Any) -> float:
    """The constant of bounded features, one number."""
    need = "a number between -1e100 and -1e-100, or features are unbounded"
    value = check_numbers(owner, "A", A, need, lambda v: (v >= -1e100) & (v <= -1e-100))
    if value.ndim:
        raise ValueError(f"{owner}: A must be one number, got shape {value.shape}; it is common to all pairs.")
    return float(value)
