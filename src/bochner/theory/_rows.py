"""Random rows: which of them are coupled, how two of them share their length, and the length of their sum."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from bochner._validation import check_count, check_option

COUPLINGS = ("iid", "orthogonal", "simplex")


def block_counts(m: int, d: int) -> dict[int, int]:
    """Sizes of the independent blocks that m rows in d dimensions are drawn in, and how many there are of each.

    Examples
    --------
    >>> from bochner.theory._rows import block_counts
    >>> block_counts(10, 4)
    {4: 2, 2: 1}
    """
    m, d = check_count("block_counts", "m", m), check_count("block_counts", "d", d)
    return {size: count for size, count in ((d, m // d), (m % d, 1)) if size and count}


def pair_fraction(m: int, d: int) -> float:
    r"""Fraction of ordered pairs of rows within one block, :math:`\varphi(m, d) = \sum_b n_b(n_b - 1)/m^2`.

    It is (m - 1)/m for m <= d, and (d - 1)/m where d divides m.
    """
    return sum(count * n * (n - 1) for n, count in block_counts(m, d).items()) / m**2


def coupled_pairs(m: int, d: int, coupling: str) -> tuple[tuple[float, float], ...]:
    """Fractions of ordered pairs of rows that are coupled, each with the cosine of such a pair.

    A whole simplex block has the cosine -1/(d - 1); a last block cut to r rows is a true r-simplex, with the cosine
    -1/(r - 1) of its own.  Orthogonal pairs have the cosine 0, independent rows no coupled pairs.

    Examples
    --------
    >>> from bochner.theory._rows import coupled_pairs
    >>> coupled_pairs(10, 4, "simplex")
    ((0.24, -0.3333333333333333), (0.02, -1.0))
    """
    check_option("coupled_pairs", "coupling", coupling, COUPLINGS)
    counts = block_counts(m, d)
    if coupling == "iid":
        return ()
    if coupling == "orthogonal":
        return ((pair_fraction(m, d), 0.0),) if pair_fraction(m, d) else ()
    return tuple((count * n * (n - 1) / m**2, -1 / (n - 1)) for n, count in counts.items() if n > 1)


N_NODES = 120  # 240 change pair values by less than 1e-15 (d from 4 to 1024)


@lru_cache(maxsize=64)
def sine_law(d: int) -> tuple[np.ndarray, np.ndarray]:
    r"""Nodes and weights of the law of s: :math:`E_s f(s) = \sum_i w_i f(s_i)`, by 120-point Gauss-Legendre.

    Notes
    -----
    For independent :math:`w_1, w_2 \sim \chi_d` the squared length :math:`r^2 = w_1^2 + w_2^2 \sim \chi^2_{2d}` is
    independent of :math:`s = \sin\varphi`, whose angle has density proportional to :math:`\sin^{d-1}\varphi` on
    :math:`(0, \pi)`.  So :math:`|w_i \pm w_j|^2 = r^2(1 \pm cs)` at cosine c.

    The density is :math:`1/\sqrt d` wide.  Over the whole of :math:`(0, \pi)` 120 nodes miss it from d of about 2000
    on; here they cover :math:`20/\sqrt d` on either side of :math:`\pi/2`, beyond which it is below :math:`10^{-80}`.

    Examples
    --------
    >>> from bochner.theory._rows import sine_law, sine_moment
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
