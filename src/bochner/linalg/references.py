r"""Readable implementations of all transforms, for any array library and as reference for the compiled ones.

Walsh-Hadamard levels; plane rotations; products with the vertices of a regular simplex in O(d); cosines and sines.

The r vertices of the simplex are unit vectors with pairwise cosine -1/(r - 1) in r - 1 coordinates,

.. math::

    s_i = \sqrt{r/(r-1)}\, e_i - (\sqrt r + 1)/(r-1)^{3/2}\, \mathbf 1 \quad (i < r), \qquad
    s_r = \mathbf 1 / \sqrt{r - 1}.

These are the rows of SimRF Eq. 9 without its last column of zeros.  The paper has :math:`\sqrt{r+1}` in place of
:math:`\sqrt r + 1`, there and in Algorithm 1; its rows are not unit vectors.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._arrays import array_namespace, like
from .._validation import as_real, check_rows


def walsh_levels(x: Any, low: int, high: int) -> Any:
    r"""Unnormalised Walsh-Hadamard transform of the last axis over index bits ``low`` to ``high - 1``.

    Level j replaces each pair of entries whose indices differ in bit j alone by their sum and difference,
    :math:`\sqrt2\,\tilde F^{j+1}` of OMC Eq. 2; over all bits that is the Hadamard matrix (OMC Eq. 3).
    """
    xp = array_namespace(x)
    lead, d = tuple(x.shape[:-1]), x.shape[-1]
    for level in range(low, high):
        half = 2**level
        pairs = xp.reshape(x, (*lead, d // (2 * half), 2, half))
        a, b = pairs[..., 0, :], pairs[..., 1, :]
        x = xp.reshape(xp.stack([a + b, a - b], axis=-2), (*lead, d))
    return x


def fwht_reference(x: Any) -> Any:
    """Unnormalised Walsh-Hadamard transform of the last axis: the readable form of `fwht`.

    Parameters
    ----------
    x : array (..., d)
        Array of any library; d must be a power of two.

    Returns
    -------
    array (..., d)
    """
    x = as_real("fwht_reference", x)
    d = x.shape[-1] if x.shape else 0
    if d & (d - 1) or not d:
        raise ValueError(f"fwht_reference: the last axis must be a power of two, got shape {tuple(x.shape)}.")
    return walsh_levels(check_rows("fwht_reference", x, d), 0, int(d).bit_length() - 1)


def givens_level(x: Any, half: int, c: np.ndarray, s: np.ndarray) -> Any:
    """Rotate each pair of entries of the last axis that are ``half`` apart within groups of ``2 * half``.

    ``c`` and ``s`` (cosines and sines), of shape (..., groups, half or 1), hold one angle per pair, or one per group.
    A pair (a, b) becomes (c a - s b, s a + c b); with ``-s`` the level is undone.
    """
    xp = array_namespace(x)
    lead, d = tuple(x.shape[:-1]), x.shape[-1]
    pairs = xp.reshape(x, (*lead, d // (2 * half), 2, half))
    a, b = pairs[..., 0, :], pairs[..., 1, :]
    c, s = like(c, x), like(s, x)
    rotated = xp.stack([c * a - s * b, s * a + c * b], axis=-2)
    return xp.reshape(rotated, (*rotated.shape[:-3], d))


def givens_walk(x: Any, i: np.ndarray, j: np.ndarray, c: np.ndarray, s: np.ndarray) -> Any:
    """Rotate entries (i[b, t], j[b, t]) of block b, on the last axis of ``x`` (..., b, d), for all t in order.

    Both entries are read before either is written: a walk that overwrites the first and then uses it is not
    orthogonal.
    """
    xp = array_namespace(x)
    blocks = np.arange(len(i))
    x = 1 * xp.broadcast_to(x, (*x.shape[:-2], len(i), x.shape[-1]))  # a copy, which gradients pass
    c, s = like(c, x), like(s, x)
    for t in range(i.shape[1]):
        a, b = (..., blocks, i[:, t]), (..., blocks, j[:, t])
        u, v = x[a], x[b]
        x = _with(x, a, c[:, t] * u - s[:, t] * v)
        x = _with(x, b, s[:, t] * u + c[:, t] * v)
    return x


def _with(x: Any, where: Any, values: Any) -> Any:
    """``x`` with ``values`` at an index: in place, or as a new array in libraries whose arrays do not change (JAX)."""
    if hasattr(x, "at"):
        return x.at[where].set(values)
    x[where] = values
    return x


def simplex_product(x: Any) -> Any:
    """Products of the last axis (r - 1 numbers) with the r simplex vertices."""
    xp = array_namespace(x)
    r = x.shape[-1] + 1
    last = xp.sum(x, axis=-1, keepdims=True) / math.sqrt(r - 1)
    return xp.concat([math.sqrt(r / (r - 1)) * x - (math.sqrt(r) + 1) / (r - 1) * last, last], axis=-1)


def simplex_adjoint(y: Any) -> Any:
    """Sum of the r simplex vertices times the r numbers of the last axis: r - 1 coordinates."""
    xp = array_namespace(y)
    r = y.shape[-1]
    own, last = y[..., :-1], y[..., -1:]
    shared = (math.sqrt(r) + 1) / (r - 1) * xp.sum(own, axis=-1, keepdims=True)
    return math.sqrt(r / (r - 1)) * own + (last - shared) / math.sqrt(r - 1)


def simplex_vertices(r: int, d: int) -> np.ndarray:
    """The r vertices (rows) in R^d, 1 <= r <= d + 1, zeros after coordinate r - 1; one vertex alone is e_1."""
    vertices = np.zeros((r, d))
    if r == 1:
        vertices[0, 0] = 1.0
    else:
        vertices[:, : r - 1] = simplex_product(np.eye(r - 1)).T
    return vertices


def waves_reference(
    phases: np.ndarray, frequency: float, amplitudes: np.ndarray, out: np.ndarray, sines: int, start: int = 0
) -> None:
    """Fill ``out``: amplitude times cosine from column ``start`` on, times sine ``sines`` columns behind it.

    Parameters
    ----------
    phases : array (n, at least m)
        Phases, still to be multiplied by ``frequency``; its last axis is contiguous.
    frequency : float
    amplitudes : array (m,)
        One per column, of the type of ``phases``.
    out : array (n, at least start + sines + m)
        Of that type; its last axis is contiguous.
    sines : int
        Columns from a cosine to its sine, at least m.
    start : int
        Column of the first cosine.
    """
    m = len(amplitudes)
    phases = phases[:, :m] * phases.dtype.type(frequency)
    np.multiply(np.cos(phases), amplitudes, out=out[:, start : start + m])
    np.multiply(np.sin(phases), amplitudes, out=out[:, start + sines : start + sines + m])
