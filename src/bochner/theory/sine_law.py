r"""The law of :math:`s = 2 w_1 w_2/(w_1^2 + w_2^2)` for independent chi lengths: how two rows share their length."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

N_NODES = 120


@lru_cache(maxsize=64)
def sine_law(d: int) -> tuple[np.ndarray, np.ndarray]:
    r"""Nodes and weights of the law of s: :math:`E_s f(s) = \sum_i w_i f(s_i)`, by 120-point Gauss-Legendre.

    Notes
    -----
    For independent :math:`w_1, w_2 \sim \chi_d` the squared length :math:`r^2 = w_1^2 + w_2^2 \sim \chi^2_{2d}` is
    independent of :math:`s = \sin\varphi`, whose angle has density proportional to :math:`\sin^{d-1}\varphi` on
    :math:`(0, \pi)`.  So :math:`|w_i \pm w_j|^2 = r^2(1 \pm cs)` at cosine c.

    The density is :math:`1/\sqrt d` wide.  Over the whole of :math:`(0, \pi)` 120 nodes miss it from d of about 2000 on;
    here they cover :math:`20/\sqrt d` on either side of :math:`\pi/2`, beyond which it is below :math:`10^{-80}`.

    Examples
    --------
    >>> from bochner.theory import sine_law, sine_moment
    >>> s, w = sine_law(8)
    >>> bool(abs(w @ s**3 - sine_moment(8, 3)) < 1e-14)
    True
    """
    half = min(math.pi / 2, 20 / math.sqrt(d))
    nodes, weights = np.polynomial.legendre.leggauss(N_NODES)
    log_density = (d - 1) * np.log(np.cos(half * nodes))
    weights = weights * np.exp(log_density)
    upper = nodes > 0  # s is even about the middle, so half of the nodes carry all of the weight
    s, w = np.cos(half * nodes[upper]), weights[upper] / weights[upper].sum()
    s.flags.writeable = w.flags.writeable = False
    return s, w


def sine_moment(d: int, p: float) -> float:
    r""":math:`E[s^p] = \Gamma(\frac{d+p}2)\Gamma(\frac{d+1}2)/(\Gamma(\frac d2)\Gamma(\frac{d+p+1}2))`."""
    return math.exp(
        math.lgamma((d + p) / 2) + math.lgamma((d + 1) / 2) - math.lgamma(d / 2) - math.lgamma((d + p + 1) / 2)
    )


def chi_mean(d: int) -> float:
    r""":math:`\mu_d = E[\chi_d] = \sqrt2\,\Gamma(\frac{d+1}2)/\Gamma(\frac d2)`."""
    return math.sqrt(2) * math.exp(math.lgamma((d + 1) / 2) - math.lgamma(d / 2))
