"""What closed forms are written in: squared norms of pairs of points, and which random rows are coupled, and how."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from bochner._arrays import as_numpy
from bochner._validation import as_real, check_count, check_option, check_rows, shown

LARGEST = 1e150  # numbers whose squares are finite


@dataclass(frozen=True)
class Pairs:
    r"""Squared norms of pairs of points: :math:`|x|^2`, :math:`|y|^2`, :math:`|x+y|^2` and :math:`|x-y|^2`.

    The relative errors of Gaussian and softmax features depend on these four numbers only.  Use `Pairs.of` to compute
    them.

    Attributes
    ----------
    x2, y2, plus, minus : ndarray
        The four squared norms, in the order above; all have the same shape.

    Notes
    -----
    The Gaussian kernel is :math:`\exp(-|x-y|^2/2)` and the softmax kernel is :math:`\exp(x \cdot y)`.  For a kernel
    with a lengthscale or a scale, pass the scaled points.

    Examples
    --------
    >>> from bochner.theory import Pairs
    >>> Pairs.of([[1.0, 0.0]], [[0.0, 2.0]])
    Pairs(x2=array([1.]), y2=array([4.]), plus=array([5.]), minus=array([5.]))
    """

    x2: np.ndarray
    y2: np.ndarray
    plus: np.ndarray
    minus: np.ndarray

    @classmethod
    def of(cls, X: Any, Y: Any) -> Pairs:
        """Compute the squared norms for pairs of rows of X and Y.

        Parameters
        ----------
        X, Y : array of shape (..., d)
            Points as rows.  Leading axes broadcast: ``Pairs.of(X[:, None], Y)`` gives all pairs, as in a Gram matrix.

        Returns
        -------
        Pairs
        """
        X, Y = check_paired_rows("Pairs.of", X, Y)
        x2, y2 = np.broadcast_arrays((X**2).sum(-1), (Y**2).sum(-1))
        return cls(x2, y2, ((X + Y) ** 2).sum(-1), ((X - Y) ** 2).sum(-1))

    @property
    def log_gaussian(self) -> np.ndarray:
        """Logarithm of the Gaussian kernel."""
        return -self.minus / 2

    @property
    def log_softmax(self) -> np.ndarray:
        """Logarithm of the softmax kernel."""
        return np.asarray((self.plus - self.minus) / 4)

    @property
    def angle(self) -> np.ndarray:
        """Angle between x and y, accurate near 0 and pi; pi/2 if either vector is zero."""
        x, y = np.sqrt(self.x2), np.sqrt(self.y2)
        near = np.maximum(self.minus - (x - y) ** 2, 0.0)  # 2|x||y|(1 - cos): |x/|x| - y/|y|| up to the factor |x||y|
        far = np.maximum(self.plus - (x - y) ** 2, 0.0)
        return np.where(x * y > 0, 2 * np.arctan2(np.sqrt(near), np.sqrt(far)), np.pi / 2)


def check_numbers(owner: str, name: str, value: Any, need: str, holds: Callable[[np.ndarray], Any]) -> np.ndarray:
    """Return ``value`` as a float64 array if ``holds`` is true for all entries; ``need`` describes the condition."""
    try:
        array = as_numpy(value)
    except (TypeError, ValueError):
        array = np.asarray(None)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{owner}: {name} must be {need}, got {shown(value)}.")
    array = np.asarray(array, dtype=np.float64)
    wrong = ~np.asarray(holds(array), dtype=bool)
    if np.any(wrong):
        raise ValueError(f"{owner}: {name} must be {need}, got {array[wrong].flat[0]}.")
    return array


def check_squares(owner: str, name: str, value: Any) -> np.ndarray:
    """Return squared lengths as a float64 array: not negative and not NaN; infinity stands for the limit."""
    return check_numbers(owner, name, value, "a squared length, zero or more", lambda v: v >= 0)


def check_finite_squares(owner: str, name: str, value: Any) -> np.ndarray:
    """Return squared lengths as a float64 array, finite and not negative."""
    need = "a finite squared length, zero or more"
    return check_numbers(owner, name, value, need, lambda v: (v >= 0) & (v < np.inf))


def check_cosine(owner: str, name: str, value: Any) -> float:
    """Return the cosine of an angle."""
    if np.ndim(value):
        raise TypeError(f"{owner}: {name} must be one number, got {shown(value)}.")
    return float(check_numbers(owner, name, value, "a cosine, between -1 and 1", lambda v: np.abs(v) <= 1))


def check_pairs(owner: str, pairs: Any) -> None:
    """Refuse anything but `Pairs`."""
    if not isinstance(pairs, Pairs):
        raise TypeError(f"{owner}: pairs must be Pairs, made by Pairs.of(X, Y), got {shown(pairs)}.")


def check_paired_rows(owner: str, X: Any, Y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return X and Y as finite float64 arrays of one width whose leading axes broadcast."""
    X = check_vectors(owner, X)
    Y = check_vectors(owner, check_rows(owner, Y, X.shape[-1], remedy="X and Y must have the same width."))
    try:
        np.broadcast_shapes(X.shape, Y.shape)
    except ValueError:
        raise ValueError(f"{owner}: the rows of X and Y must broadcast, got shapes {X.shape} and {Y.shape}.") from None
    return X, Y


def check_vectors(owner: str, X: Any) -> np.ndarray:
    """Return X (..., d) as a float64 array of numbers whose squares are finite."""
    X = as_real(owner, X)
    vectors: np.ndarray = as_numpy(check_rows(owner, X, X.shape[-1] if X.ndim else 1)).astype(np.float64)
    if vectors.ndim and not vectors.shape[-1]:
        raise ValueError(f"{owner}: expected vectors of at least one number, got shape {vectors.shape}.")
    if not np.all(np.isfinite(vectors)):
        raise ValueError(f"{owner}: expected finite numbers, got some that are not.")
    if np.abs(vectors).max(initial=0.0) > LARGEST:
        raise ValueError(
            f"{owner}: expected numbers of at most {LARGEST:g}, whose squares are finite, got larger ones."
        )
    return vectors


COUPLINGS = ("iid", "orthogonal", "simplex")


def block_counts(m: int, d: int) -> dict[int, int]:
    """Sizes of the independent blocks that m rows in d dimensions are drawn in, and how many there are of each.

    Examples
    --------
    >>> from bochner.theory._pairs import block_counts
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
    >>> from bochner.theory._pairs import coupled_pairs
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
    >>> from bochner.theory._pairs import sine_law, sine_moment
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
