"""A binary tree of sums of features, from which leaves are sampled in O(D log n)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

_CHUNK_NUMBERS = 1 << 23
"""Features gathered at a time."""

_NODES_A_SAMPLE = 16
"""A level with at most this many nodes for each sample is multiplied as a whole, which is faster than gathering."""


class Descent(NamedTuple):
    """Leaves that were reached, and the logarithms of the probabilities of reaching them, (batch, samples) each."""

    leaves: Tensor
    log_prob: Tensor


class FeatureTree:
    r"""Sums of the key features of n leaves, as a heap: node 1 is the root, nodes 2i and 2i + 1 are the children of i.

    Parameters
    ----------
    leaves : Tensor (n, D)
        Key features, n >= 1.

    Notes
    -----
    With S_v the sum of the features of the leaves below node v, a query with features :math:`\phi` gives v the mass
    :math:`M_v = \max(\phi\cdot S_v, 0)`.  A descent goes from each node to a child with probability proportional to the
    child's mass, or to its number of leaves if both masses vanish.  For positive features the product telescopes,
    and leaf i is reached with probability :math:`\phi\cdot\phi_i / \phi\cdot S_1`.  Features with signs can have nodes
    of negative sum, which are never entered; the probability of each leaf is the product of the choices on its path,
    known exactly in either case, and the probabilities sum to one.

    A leaf may be left out (the true class of a query).  The mass of a node above it is then the sum of the masses of
    the siblings along the path to that leaf.  This is a sum and not a difference, so a dominant leaf costs no accuracy.
    """

    def __init__(self, leaves: Tensor) -> None:
        self.n_leaves, width = leaves.shape
        self.depth = max(self.n_leaves - 1, 0).bit_length()
        self.size = 1 << self.depth
        self.sums = leaves.new_zeros(2 * self.size, width)
        self.counts = leaves.new_zeros(2 * self.size)
        self.counts[self.size : self.size + self.n_leaves] = 1
        self.sums[self.size : self.size + self.n_leaves] = leaves
        for level in reversed(range(self.depth)):
            start, stop = 1 << level, 2 << level
            for heap in (self.sums, self.counts):
                heap[start:stop] = heap[2 * start : 2 * stop : 2] + heap[2 * start + 1 : 2 * stop : 2]

    def refresh(self, indices: Tensor, leaves: Tensor) -> None:
        """Replace k distinct leaves and the sums above them, in O(k D log n).

        The result is the same, bit by bit, as that of a tree built anew.
        """
        nodes = indices + self.size
        self.sums[nodes] = leaves
        for _ in range(self.depth):
            nodes = torch.unique(nodes // 2)
            self.sums[nodes] = self.sums[2 * nodes] + self.sums[2 * nodes + 1]

    def sample(
        self, queries: Tensor, n_samples: int, left_out: Tensor | None = None, generator: torch.Generator | None = None
    ) -> Descent:
        """Leaves drawn independently, with replacement, for each query (batch, D)."""
        free = queries.new_full((len(queries), n_samples), -1, dtype=torch.int64)
        return self.descend(queries, free, left_out, generator)

    def descend(
        self, queries: Tensor, goals: Tensor, left_out: Tensor | None = None, generator: torch.Generator | None = None
    ) -> Descent:
        """Ways down to the given goals (batch, samples); a goal of -1 is chosen at random.

        Parameters
        ----------
        queries : Tensor (batch, D)
            Query features.
        goals : Tensor (batch, samples) of int64
            Leaves, or -1.
        left_out : Tensor (batch,) of int64, optional
            A leaf for each query that has probability zero.
        generator : torch.Generator, optional
            Source of randomness.
        """
        rows = max(1, _CHUNK_NUMBERS // max(1, 2 * goals.shape[1] * queries.shape[1]))
        parts = []
        for start in range(0, max(len(queries), 1), rows):
            part = slice(start, start + rows)
            without = None if left_out is None else left_out[part]
            parts.append(self._descend(queries[part], goals[part], without, generator))
        return Descent(*(torch.cat(tensors) for tensors in zip(*parts, strict=True)))

    def _descend(
        self, queries: Tensor, goals: Tensor, left_out: Tensor | None, generator: torch.Generator | None
    ) -> Descent:
        nodes = torch.ones_like(goals)
        log_prob = queries.new_zeros(goals.shape)
        way = None if left_out is None else self._way(queries, left_out)
        for level in range(self.depth):
            masses = self._masses_of_children(queries, nodes, level)
            counts = self.counts.view(-1, 2)[nodes]
            if way is not None:
                hit = 2 * nodes[..., None] + nodes.new_tensor([0, 1]) == way.nodes[:, level, None, None]
                masses = torch.where(hit, way.masses[:, level, None, None], masses)
                counts = counts - hit.to(counts.dtype)
            shares = _shares(masses, counts)
            turn = (
                torch.rand(goals.shape, dtype=shares.dtype, device=shares.device, generator=generator) < shares[..., 1]
            )
            turn = torch.where(goals < 0, turn, (goals >> (self.depth - 1 - level)) % 2 == 1)
            log_prob = log_prob + torch.where(turn, shares[..., 1], shares[..., 0]).log()
            nodes = 2 * nodes + turn
        log_prob = log_prob if way is None else log_prob.masked_fill(nodes == way.nodes[:, -1:], -torch.inf)
        return Descent(nodes - self.size, log_prob)

    def _masses_of_children(self, queries: Tensor, nodes: Tensor, level: int) -> Tensor:
        """Products of queries with both children of nodes of that level, (batch, samples, 2)."""
        children = 2 << level
        if children <= _NODES_A_SAMPLE * nodes.shape[1]:
            masses = queries @ self.sums[children : 2 * children].T
            pairs = (2 * nodes - children)[..., None] + nodes.new_tensor([0, 1])
            return masses.gather(1, pairs.flatten(1)).view(*nodes.shape, 2)
        gathered = self.sums.view(self.size, -1)[nodes.flatten()].view(len(queries), -1, queries.shape[1])
        return (gathered @ queries[..., None]).view(*nodes.shape, 2)

    def _way(self, queries: Tensor, left_out: Tensor) -> _Way:
        """Nodes above the leaf that is left out, level by level, and their masses without it."""
        shifts = torch.arange(self.depth - 1, -1, -1, device=left_out.device)
        nodes = (left_out[:, None] + self.size) >> shifts
        beside = (self.sums[nodes ^ 1] @ queries[..., None])[..., 0]  # masses that hang off the way
        return _Way(nodes, _sums_below(beside))


class _Way(NamedTuple):
    nodes: Tensor
    masses: Tensor


def _sums_below(beside: Tensor) -> Tensor:
    """Sums over the levels below each, zero at the last."""
    reversed_sums = beside.flip(1).cumsum(1)
    return torch.cat([torch.zeros_like(beside[:, :1]), reversed_sums[:, :-1]], dim=1).flip(1)


def _shares(masses: Tensor, counts: Tensor) -> Tensor:
    """Probabilities of both children: by mass, or by the number of leaves where no mass is positive."""
    masses = masses.clamp(min=0)
    weights = torch.where(masses.sum(-1, keepdim=True) > 0, masses, counts)
    return weights / weights.sum(-1, keepdim=True)
