"""Attention between the nodes of a graph, with a graph kernel as its mask, in linear time."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .._validation import check_count, shown
from ..approximation import Approximation, FeatureMap
from ..approximation.log_features import key_values, query_values, stabiliser
from ._attention_checks import check_features, check_tensors, root_of_scale
from ._attention_features import AttentionFeatures
from ._tensor_features import TensorFeatures, tensor_features

_OWNER = "graph_attention"
_HELD_NUMBERS = 1 << 24  # products of features and values that are held at a time: 64 MB in float32


def graph_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Any,
    *,
    spec: Approximation | str = "dense",
    n_projections: int = 256,
    generator: torch.Generator | None = None,
    features: FeatureMap | AttentionFeatures | TensorFeatures | None = None,
    scale: float | Tensor | None = None,
    chunk_size: int | None = None,
) -> Tensor:
    r"""Attention between the nodes of a graph whose weights are multiplied by a graph kernel, in linear time.

    Tokens are nodes, and attend more to nodes that are closer in the graph: a topological mask, such as the diffusion
    kernel, for which no N x N matrix is formed.

    Parameters
    ----------
    q, k, v : Tensor (..., N, d), (..., N, d), (..., N, e)
        Queries, keys and values of the N nodes; leading axes broadcast.
    mask : bochner.graphs.NodeFeatures
        Drawn features of the nodes, ``graphs.Walks(kernel).draw(graph)``; or any object with sparse matrices ``queries`` and
        ``keys`` (N, F) of scipy.
    spec, n_projections, generator, features, scale
        As in `linear_attention`.
    chunk_size : int, optional
        Features of queries and keys that are taken at a time; affects speed and memory only.

    Returns
    -------
    Tensor (..., N, e)

    Notes
    -----
    With features :math:`\phi` of queries and keys and :math:`g` of nodes

    .. math:: \mathrm{out}_i = \frac{\sum_j w_{ij} v_j}{\sum_j w_{ij}}, \qquad
              w_{ij} = (\phi_q(q_i)\cdot\phi_k(k_j))\,(g_q(i)\cdot g_k(j)).

    Both factors are unbiased and independent, so that :math:`\mathrm{E}\,w_{ij} = e^{s\,q_i\cdot k_j}K_{ij}`; with symmetric
    node features the diagonal of the second one is biased upwards.  Since
    :math:`w_{ij} = \sum_{a,f}\phi_a(q_i)g_f(i)\,\phi_a(k_j)g_f(j)`, sums over keys are products with the sparse matrices of
    node features: :math:`O(m\,e)` operations for each of their entries, and memory for some features at a time.

    References
    ----------
    reid2025 (topological masks), reid2024b (features of nodes).

    Examples
    --------
    >>> import numpy as np, torch
    >>> from scipy import sparse
    >>> from bochner.graphs import Diffusion, Walks
    >>> from bochner.nn import graph_attention
    >>> ring = sparse.diags_array([np.ones(99), np.ones(99), [1.0], [1.0]], offsets=[1, -1, 99, -99])
    >>> nodes = Walks(Diffusion(2.0), n_walks=64).draw(ring, rng=0)
    >>> q, k, v = 0.5 * torch.randn(3, 4, 100, 16)              # four heads
    >>> graph_attention(q, k, v, nodes).shape
    torch.Size([4, 100, 16])
    """
    check_tensors(q, k, v, None)
    N = q.shape[-2]
    sides = tuple(_sparse(getattr(mask, name, None), name, N, q) for name in ("queries", "keys"))
    if k.shape[-2] != N:
        raise ValueError(f"{_OWNER}: q and k must have a row for each node, got {N} and {k.shape[-2]}.")
    if features is None:
        source = torch.Generator().manual_seed(0) if generator is None else generator
        features = AttentionFeatures(spec, n_projections, generator=source)
    fitted = features.of(q, k, None, scale, alone=True) if isinstance(features, AttentionFeatures) else features
    check_features(fitted, q.shape[-1])
    root = root_of_scale(q, scale)
    dtype = torch.promote_types(torch.promote_types(q.dtype, k.dtype), v.dtype)
    work = torch.float64 if dtype == torch.float64 else torch.float32
    with torch.autocast(q.device.type, enabled=False):
        q, k, v = (x.to(work) for x in (q, k, v))
        drawn = fitted if isinstance(fitted, TensorFeatures) else tensor_features(fitted, q)
        keys = drawn.log(k * root, key=True)
        shift = stabiliser(keys)
        weights = query_values(drawn.log(q * root, key=False), shift), key_values(keys, shift)
        sums = _sums(*weights, torch.cat([v, torch.ones_like(v[..., :1])], dim=-1), sides, chunk_size)
    return (sums[..., :-1] / sums[..., -1:]).to(dtype)


def _sparse(matrix: Any, name: str, N: int, like: Tensor) -> Tensor:
    """Features of nodes as a sparse tensor."""
    if matrix is None or not hasattr(matrix, "tocoo"):
        raise TypeError(
            f"{_OWNER}: mask must be drawn features of nodes such as graphs.Walks(graphs.Diffusion()).draw(graph), whose "
            f"{name} are a sparse matrix, got {shown(matrix)}."
        )
    if matrix.shape[0] != N:
        raise ValueError(f"{_OWNER}: mask has {matrix.shape[0]} nodes, and q has {N} rows.")
    entries = matrix.tocoo()
    where = torch.stack([torch.as_tensor(entries.row).long(), torch.as_tensor(entries.col).long()])
    values = torch.as_tensor(entries.data, dtype=torch.float64 if like.dtype == torch.float64 else torch.float32)
    return torch.sparse_coo_tensor(where, values, matrix.shape, device=like.device, check_invariants=True).coalesce()


def _sums(a: Tensor, b: Tensor, v: Tensor, sides: tuple[Tensor, ...], chunk_size: int | None) -> Tensor:
    """Sums over keys of weights times values (..., N, e), for features a and b (..., N, m) of queries and keys."""
    lead = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2], v.shape[:-2])
    a, b, v = (x.expand(*lead, *x.shape[-2:]).reshape(-1, *x.shape[-2:]).transpose(0, 1) for x in (a, b, v))
    (N, heads, m), e = a.shape, v.shape[-1]  # nodes first: sparse matrices act on them
    fits = max(_HELD_NUMBERS // max(N * heads * e, 1), 1)
    step = fits if chunk_size is None else check_count(_OWNER, "chunk_size", chunk_size)
    out = torch.zeros_like(v)
    for i in range(0, m, step):
        products = b[:, :, i : i + step, None] * v[:, :, None, :]  # (N, heads, step, e)
        spread = torch.sparse.mm(sides[1].t(), products.flatten(1))
        back = torch.sparse.mm(sides[0], spread).view(products.shape)
        out = out + (a[:, :, i : i + step, None] * back).sum(dim=2)
    return out.transpose(0, 1).reshape(*lead, N, e)
