"""Cosine features whose rows are random signs: Hadamard levels with new signs before each of them (HMD)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from .._validation import check_count
from ._pairs import check_vectors
from ._rows import pair_fraction

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
