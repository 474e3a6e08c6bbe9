"""Errors with rows of other laws: random signs (HMD), and directions that follow their lengths, as those of simplex+."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from .._validation import check_count
from ._pairs import check_squares, check_vectors, pair_fraction

_NODES = 16  # Chebyshev nodes of an error that sampling knows to a few per cent
_FAR = 60.0  # squared norm of x + y from which on pairs of rows contribute less than rounding


class SampledBlocks(NamedTuple):
    """Blocks of coupled rows: many sampled sets of lengths, and the squared norms of sums of two rows of each.

    Attributes
    ----------
    n_blocks : int
        Number of such blocks among all rows.
    lengths : array of shape (samples, r)
        Lengths of the rows.
    sums : array of shape (samples, r (r - 1) / 2)
        Squared norms of sums of two rows.
    """

    n_blocks: int
    lengths: np.ndarray
    sums: np.ndarray


def sampled_positive_log_relative_mse(plus: Any, m: int, d: int, blocks: Sequence[SampledBlocks]) -> np.ndarray:
    r"""Logarithm of the relative mean squared error of positive features, for any geometry under a Haar rotation.

    Parameters
    ----------
    plus : array
        :math:`|x + y|^2`.
    m : int
        Number of rows.
    d : int
        Dimension in which they are drawn.
    blocks : sequence of SampledBlocks
        The blocks of the rows.

    Returns
    -------
    ndarray
        Logarithm of :math:`\mathrm{MSE}/k^2`.

    Notes
    -----
    Given the lengths, a pair of rows has
    :math:`E e^{(w_i+w_j)\cdot v} = {}_0F_1(; \frac d2; \frac14|w_i+w_j|^2|v|^2)` exactly.  The mean over the lengths is that
    of the sample, with known means as control variates: of :math:`\ell^2`, :math:`\ell^4`,
    :math:`{}_0F_1(\frac d2; \frac14\ell^2|v|^2)` and :math:`{}_0F_1(\frac d2; \ell^2|v|^2)`.  If rows sum to zero, these
    determine the leading term.  Where no closed form exists, as for simplex+, this is accurate within a few per cent, and
    deterministic.
    """
    V, m = (
        check_squares("sampled_positive_log_relative_mse", "plus", plus),
        check_count("sampled_positive_log_relative_mse", "m", m),
    )
    near = np.minimum(V, _FAR)
    top = max(float(near.max(initial=0.0)), 1e-12)
    nodes = top * (1 - np.cos(np.pi * (np.arange(_NODES) + 0.5) / _NODES)) / 2
    coupled, pairs = np.zeros(_NODES), 0.0
    for block in blocks:
        r = block.lengths.shape[1]
        if r > 1:
            share = block.n_blocks * r * (r - 1) / m**2
            pairs += share
            coupled += share * np.array([_excess(block, v, d) for v in nodes])
    # the excess over independent rows starts with the first power, and is divided by it so that small ones keep their digits
    fit = np.polynomial.chebyshev.Chebyshev.fit(nodes, coupled / nodes, _NODES - 1, domain=[0, top])
    rows = np.expm1(V) / m
    with np.errstate(divide="ignore", over="ignore"):
        log_rows = np.where(V > 30, V - np.log(m), np.log(rows))
        total = 1 + near * fit(near) / np.where(rows > 0, rows, 1.0)
        return np.asarray(np.where(V > 0, log_rows + np.log(np.maximum(total, 0)), -np.inf))


def _excess(block: SampledBlocks, V: float, d: int) -> float:
    """Mean over pairs of exp(-V) E exp((w_i + w_j).v) - 1, by the sample with control variates."""
    from scipy.special import hyp0f1

    squares = block.lengths**2
    value = np.exp(-V) * hyp0f1(d / 2, block.sums * V / 4).mean(axis=1) - 1
    controls = np.stack(
        [
            squares.mean(1) - d,
            (squares**2).mean(1) - d * (d + 2),
            hyp0f1(d / 2, squares * V / 4).mean(1) / np.exp(V / 2) - 1,
            hyp0f1(d / 2, squares * V).mean(1) / np.exp(2 * V) - 1,
        ],
        axis=1,
    )
    controls = controls[:, : 4 if V < 4 else 3]  # the last one has no variance to speak of for long vectors
    centred = controls - controls.mean(0)
    slopes = np.linalg.lstsq(centred, value - value.mean(), rcond=1e-10)[0]
    return float(value.mean() - controls.mean(0) @ slopes)


_RADII = 20  # 40 change the error by less than 1e-10
_NUMBERS = 1 << 21  # numbers held at a time: 16 MB


def sign_rows_mse(Z: Any, m: int) -> np.ndarray:
    r"""Mean squared error of cosine features for the Gaussian kernel with m random rows of HMD blocks, bias included.

    Parameters
    ----------
    Z : array of shape (..., d)
        Differences x - y; d must be a power of two (pad with zeros).
    m : int
        Number of rows; blocks of d are stacked, and the last one keeps random rows.

    Returns
    -------
    ndarray of shape (...)

    Notes
    -----
    A row is :math:`R\epsilon/\sqrt d` with random signs :math:`\epsilon` and a length :math:`R \sim \chi_d`, so the mean of
    one cosine is :math:`E_R\prod_k\cos(Rz_k/\sqrt d)`.  In two rows of a block whose numbers differ first in bit t, the
    products of signs are :math:`g\,(-1)^{k_t}`, where :math:`k_t` is bit t of the column and g a random sign for each value
    of the bits above it, since the signs of later levels are new (OMC Definition 4.1).  Hence

    .. math::

        E\cos(w_i\cdot z)\cos(w_j\cdot z) = E_{R,R'}\prod_{\text{groups}}\frac12\sum_{g=\pm1}
        \prod_{k\in\text{group}}\cos\big((R + g(-1)^{k_t}R')z_k/\sqrt d\big),

    for a share :math:`2^{-t-1}d/(d-1)` of the pairs.  The lengths are integrated by Gauss-Laguerre nodes.  This formula is
    not in the papers, which know the dot product only.
    """
    Z = check_vectors("sign_rows_mse", Z)
    m, d = check_count("sign_rows_mse", "m", m), Z.shape[-1]
    if d & (d - 1):
        raise ValueError(f"sign_rows_mse: d must be a power of two, got {d}. Pad the rows with zeros.")
    flat = Z.reshape(-1, d)
    step = max(1, _NUMBERS // (_RADII**2 * d))
    parts = [_mse(flat[i : i + step], m, d) for i in range(0, len(flat), step)]
    return np.concatenate(parts).reshape(Z.shape[:-1])


def _mse(Z: np.ndarray, m: int, d: int) -> np.ndarray:
    radii, weights = _lengths(d)
    k = np.exp(-(Z**2).sum(-1) / 2)
    phase = radii[:, None] * Z[:, None, :] / np.sqrt(d)  # (pairs, radii, d)
    mean, twice = np.prod(np.cos(phase), axis=-1) @ weights, np.prod(np.cos(2 * phase), axis=-1) @ weights
    coupled = pair_fraction(m, d)
    square = (1 + twice) / (2 * m) + (1 - 1 / m - coupled) * mean**2
    if coupled:
        square = square + coupled * _pair(np.cos(phase), np.sin(phase), weights, d)
    return np.asarray(square - 2 * k * mean + k**2)


def _pair(cosine: np.ndarray, sine: np.ndarray, weights: np.ndarray, d: int) -> np.ndarray:
    """Mean of the product of two rows of a block, over all pairs of rows and all lengths.

    A group of bit t is two halves of 2^t neighbours, with opposite signs; the products over halves of bit t + 1 are those
    of two halves of bit t.  Exchanging the two lengths changes nothing, so that half of their pairs suffice.
    """
    first, second = np.triu_indices(len(weights))
    both = weights[first] * weights[second] * np.where(first == second, 1.0, 2.0)
    cosine, sine = (np.moveaxis(values, -1, 0) for values in (cosine, sine))  # (d, pairs, radii): whole slices multiply
    cc, ss = cosine[..., first] * cosine[..., second], sine[..., first] * sine[..., second]
    same, opposite = cc - ss, cc + ss  # of cosines of (R + R') z and (R - R') z
    total = np.zeros(cc.shape[1])
    for t in range(d.bit_length() - 1):
        groups = (same[::2] * opposite[1::2] + opposite[::2] * same[1::2]) / 2
        total += 2.0 ** (-t - 1) * d / (d - 1) * (np.prod(groups, axis=0) @ both)
        same, opposite = same[::2] * same[1::2], opposite[::2] * opposite[1::2]
    return total


@lru_cache(maxsize=32)
def _lengths(d: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of the law chi_d."""
    from scipy.linalg import eigh_tridiagonal

    # Golub and Welsch: Gauss-Laguerre nodes of d/2 - 1 by eigenvalues, since SciPy's weights overflow from d = 512 on
    k = np.arange(_RADII)
    x, vectors = eigh_tridiagonal(2 * k + d / 2, np.sqrt(k[1:] * (k[1:] + d / 2 - 1)))
    return np.sqrt(2 * x), vectors[0] ** 2
