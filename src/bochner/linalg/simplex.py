r"""Products with the vertices of a regular simplex in O(d), readable: for any array library.

The r vertices are unit vectors with pairwise cosine -1/(r - 1) in r - 1 coordinates,

.. math::

    s_i = \sqrt{r/(r-1)}\, e_i - (\sqrt r + 1)/(r-1)^{3/2}\, \mathbf 1 \quad (i < r), \qquad
    s_r = \mathbf 1 / \sqrt{r - 1}.

These are the rows of SimRF Eq. 9 without its last column of zeros.  The print has :math:`\sqrt{r+1}` for
:math:`\sqrt r + 1`, there and in Algorithm 1; its rows are not unit vectors.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._arrays import array_namespace


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
