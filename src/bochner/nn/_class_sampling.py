"""Laws from which negative classes are drawn, with their probabilities known exactly: uniform, softmax, and features.

Classes are drawn by features from a binary tree of sums of features, in O(D log n).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from .._validation import shown
from ..approximation.log_features import NOTHING, LogFeatures, key_values, query_values, stabiliser
from ._tensor_features import TensorFeatures

_CHUNK_NUMBERS = 1 << 23  # features that are gathered or computed at a time

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


_HIGHEST_LOGARITHM = 20.0
"""Stabilised logarithms of key features start at zero; past this the stabiliser is chosen anew."""


class ClassSample(NamedTuple):
    """Classes drawn for each query, and the logarithms of their probabilities, (batch, samples) each."""

    classes: Tensor
    log_prob: Tensor


class ClassSampler(ABC):
    """A law of classes given a query, from which one class per query (the true one) may be left out."""

    @abstractmethod
    def sample(
        self, X: Tensor, n_samples: int, left_out: Tensor | None, generator: torch.Generator | None
    ) -> ClassSample:
        """Classes drawn independently, with replacement, for the queries X (batch, d)."""

    @abstractmethod
    def log_prob(self, X: Tensor, classes: Tensor, left_out: Tensor | None) -> Tensor:
        """Logarithms of the probabilities of ``classes`` (batch, k)."""

    def refresh(self, indices: Tensor) -> None:
        """Take note that the vectors of these classes have changed; nothing to do where the law keeps no copy."""
        return


class UniformSampler(ClassSampler):
    """Samples all classes with the same probability."""

    def __init__(self, n_classes: int) -> None:
        self.n_classes = n_classes

    def sample(
        self, X: Tensor, n_samples: int, left_out: Tensor | None, generator: torch.Generator | None
    ) -> ClassSample:
        """Indices among those that remain, moved past the one that is left out."""
        choices = self.n_classes - (left_out is not None)
        drawn = torch.randint(choices, (len(X), n_samples), device=X.device, generator=generator)
        classes = drawn if left_out is None else drawn + (drawn >= left_out[:, None])
        return ClassSample(classes, self.log_prob(X, classes, left_out))

    def log_prob(self, X: Tensor, classes: Tensor, left_out: Tensor | None) -> Tensor:
        """One over the number of classes that remain."""
        choices = torch.full(classes.shape, float(self.n_classes - (left_out is not None)), device=X.device)
        log_prob = -choices.to(X.dtype).log()
        return log_prob if left_out is None else log_prob.masked_fill(classes == left_out[:, None], -torch.inf)


class SoftmaxSampler(ClassSampler):
    """The softmax of the exact logits, in O(n d) per query: the law that kernel samplers approximate.

    Parameters
    ----------
    logits : callable
        Exact logits (batch, n) of queries (batch, d).
    """

    def __init__(self, logits: Callable[[Tensor], Tensor]) -> None:
        self.logits = logits

    def sample(
        self, X: Tensor, n_samples: int, left_out: Tensor | None, generator: torch.Generator | None
    ) -> ClassSample:
        """Sample from the table of all probabilities."""
        table = self._table(X, left_out)
        classes = torch.multinomial(table.exp(), n_samples, replacement=True, generator=generator)
        return ClassSample(classes, table.gather(1, classes))

    def log_prob(self, X: Tensor, classes: Tensor, left_out: Tensor | None) -> Tensor:
        """Entries of the table."""
        return self._table(X, left_out).gather(1, classes)

    def _table(self, X: Tensor, left_out: Tensor | None) -> Tensor:
        logits = self.logits(X)
        if left_out is not None:
            logits = logits.scatter(1, left_out[:, None], -torch.inf)
        return logits.log_softmax(-1)


class KernelSampler(ClassSampler):
    r"""A drawn feature map with the tree of the features of all classes, mixed with the uniform law.

    Parameters
    ----------
    features : TensorFeatures
        Drawn features of the softmax kernel at unit scale.
    n_classes : int
    class_rows : callable
        Vectors (k, d) and biases (k,) or None of the classes with given indices (k,), as they are now.
    uniform_share : float
        Weight of the uniform law in the mixture.

    Notes
    -----
    Key features are :math:`e^{l_{ij} - c_j}` and query features :math:`e^{l_j + c_j - \max}`, with :math:`c_j` the largest
    logarithm of feature j over all classes when the tree was built.  What is taken from one side is given to the
    other, and a constant of a query changes no probability: the law of the samples is that of the plain features, and
    norms for which those overflow are safe.  When classes have grown so much since that a logarithm passes 20, the
    tree is built anew with other :math:`c_j`.
    """

    def __init__(
        self,
        features: TensorFeatures,
        n_classes: int,
        class_rows: Callable[[Tensor], tuple[Tensor, Tensor | None]],
        uniform_share: float,
    ) -> None:
        self.features, self.n_classes, self.class_rows = features, n_classes, class_rows
        self.uniform, self.uniform_share = UniformSampler(n_classes), uniform_share
        self.build()

    def build(self) -> None:
        """Features of all classes and all sums, in O(n D)."""
        step = max(1, _CHUNK_NUMBERS // self.features.width)
        starts = range(0, self.n_classes, step)
        parts = [self._keys(torch.arange(i, min(i + step, self.n_classes))) for i in starts]
        self.shift = parts[0].log.new_full((1, self.features.width), NOTHING)
        for part in parts:
            self.shift = stabiliser(part, self.shift)
        # a feature that no class has keeps its size: zero is as good a stabiliser as any
        self.shift = torch.where(self.shift > NOTHING, self.shift, torch.zeros_like(self.shift))
        self.tree = FeatureTree(torch.cat([key_values(part, self.shift) for part in parts]))

    def refresh(self, indices: Tensor) -> None:
        """Features of these classes (distinct) and the sums above them, in O(k D log n)."""
        keys = self._keys(indices)
        if bool((keys.log - self.shift > _HIGHEST_LOGARITHM).any()):
            self.build()
        else:
            self.tree.refresh(indices, key_values(keys, self.shift))

    def sample(
        self, X: Tensor, n_samples: int, left_out: Tensor | None, generator: torch.Generator | None
    ) -> ClassSample:
        """Ways down the tree, some of them to leaves drawn uniformly."""
        goals = self.uniform.sample(X, n_samples, left_out, generator).classes
        chosen = torch.rand(goals.shape, device=X.device, generator=generator) < self.uniform_share
        classes, log_prob = self.tree.descend(self._queries(X), goals.where(chosen, -1), left_out, generator)
        return ClassSample(classes, self._mixed(X, classes, log_prob, left_out))

    def log_prob(self, X: Tensor, classes: Tensor, left_out: Tensor | None) -> Tensor:
        """Probabilities of the ways down, mixed with the uniform law."""
        log_prob = self.tree.descend(self._queries(X), classes, left_out).log_prob
        return self._mixed(X, classes, log_prob, left_out)

    def _mixed(self, X: Tensor, classes: Tensor, log_prob: Tensor, left_out: Tensor | None) -> Tensor:
        if not self.uniform_share:
            return log_prob
        uniform = self.uniform.log_prob(X, classes, left_out).to(log_prob.dtype) + math.log(self.uniform_share)
        if self.uniform_share == 1:
            return uniform
        return torch.logaddexp(log_prob + math.log1p(-self.uniform_share), uniform)

    def _queries(self, X: Tensor) -> Tensor:
        """Stabilised features of queries (batch, d)."""
        stable: Tensor = query_values(self._log(X, key=False), self.shift)
        return stable

    def _keys(self, indices: Tensor) -> LogFeatures:
        """Features of classes, at least in float32."""
        classes, bias = self.class_rows(indices)
        keys = self._log(classes, key=True)
        return keys if bias is None else keys._replace(log=keys.log + bias[:, None].to(keys.log.dtype))

    def _log(self, X: Tensor, *, key: bool) -> LogFeatures:
        """Features of rows (n, d); drawn features have an axis of heads."""
        mantissa, log = self.features.log(X[None], key=key)
        return LogFeatures(None if mantissa is None else mantissa.expand_as(log)[0], log[0])


def checked_share(owner: str, share: float) -> float:
    """The share of samples that is drawn uniformly, refused where it is not between 0 and 1."""
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
        raise ValueError(f"{owner}: uniform_share must be a number from 0 to 1, got {shown(share)}.")
    return float(share)
