"""Graph random features: walks that end at random, and sparse features of all nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._random import RNG, streams
from .._validation import check_count, check_fraction, check_instance, check_option
from ._node_kernels import NodeKernel, as_adjacency, as_nodes, normalized

BLOCK = 2**15  # nodes whose walks run side by side: their state stays in a cache
LENGTHS = ("stratified", "antithetic", "independent")
DIRECTIONS = ("repelling", "independent")


@dataclass(frozen=True)
class Walks:
    r"""Graph random features: unbiased estimates of a kernel between nodes, from walks that end at random.

    Use it from about ten thousand nodes, where the matrix of all pairs no longer fits in memory; on smaller graphs
    `NodeKernel.matrix` is exact.

    Parameters
    ----------
    kernel : NodeKernel
        The kernel.
    n_walks : int, default 16
        Walks from each node.
    halting : float, default 0.2
        Probability that a walk ends before each step.
    lengths : {"stratified", "antithetic", "independent"}
        How the lengths of the walks of a node are coupled.  "antithetic": in pairs whose two uniform numbers for ending are
        half apart at every step, so that they never end together if ``halting`` is below one half.  "stratified": the
        lengths of all walks are evenly spread quantiles.
    directions : {"repelling", "independent"}
        How the walks of a node choose their next edge.  "repelling": by evenly spread numbers, so that walks at one node
        leave along different edges.

    Notes
    -----
    A walk from node i that has taken r steps to v carries the load :math:`\prod S_{uv}\,n_u/(1-h)` over its
    steps, :math:`n_u` the number of edges of u and h the probability of ending, and adds
    :math:`f_r` times its load to the feature v of node i:

    .. math:: \mathrm{E}\,\phi(i)_v = \sum_r f_r (S^r)_{iv} = \psi(S)_{iv}, \qquad
              \mathrm{E}\,\phi_q(i)\cdot\phi_k(j) = K_{ij}

    for queries and keys from different walks; with the same walks for both the diagonal is biased upwards, and all other
    entries are not.  Each coupling keeps the law of every single walk, so all of them are unbiased.

    Graphs are undirected; the cost is :math:`O(N\,\mathrm{walks}/h)`, and features have at most that many entries.

    References
    ----------
    reid2024b (general graph random features), reid2023 (antithetic termination), reid2024c (repelling walks).

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from bochner.graphs import Diffusion, Walks
    >>> ring = sparse.diags_array([np.ones(99), np.ones(99), [1.0], [1.0]], offsets=[1, -1, 99, -99])
    >>> phi = Walks(Diffusion(2.0), n_walks=200).draw(ring, rng=0)
    >>> K = (phi.queries @ phi.keys.T).toarray()
    >>> bool(np.abs(K - Diffusion(2.0).matrix(ring)).max() < 0.1)
    True
    """

    kernel: NodeKernel
    n_walks: int = 16
    halting: float = 0.2
    lengths: str = "stratified"
    directions: str = "repelling"

    def __post_init__(self) -> None:
        check_instance("Walks", "kernel", self.kernel, NodeKernel, "graphs.Diffusion()")
        object.__setattr__(self, "n_walks", check_count("Walks", "n_walks", self.n_walks))
        object.__setattr__(self, "halting", check_fraction("Walks", "halting", self.halting))
        check_option("Walks", "lengths", self.lengths, LENGTHS)
        check_option("Walks", "directions", self.directions, DIRECTIONS)

    def draw(self, graph: Any, rng: RNG = None, *, symmetric: bool = False) -> NodeFeatures:
        """Walk from every node, twice if queries and keys are to be independent.

        Parameters
        ----------
        graph : sparse matrix or networkx graph
            The graph, of N nodes.
        rng : int, numpy.random.Generator or None
            Source of randomness.
        symmetric : bool, default False
            Whether keys are the queries: half of the work and a positive semidefinite Gram matrix, whose diagonal is biased.

        Returns
        -------
        NodeFeatures
        """
        S = normalized(as_adjacency("Walks.draw", graph))
        first, second = streams(rng, "queries", "keys")
        queries = self._features(S, first)
        return NodeFeatures(queries, queries if symmetric else self._features(S, second))

    def _features(self, S: Any, rng: np.random.Generator) -> Any:
        from scipy import sparse

        N = S.shape[0]
        parts = [self._block(S, np.arange(i, min(i + BLOCK, N)), rng) for i in range(0, N, BLOCK)]
        return sparse.vstack(parts, format="csr") if len(parts) > 1 else parts[0]

    def _block(self, S: Any, nodes: np.ndarray, rng: np.random.Generator) -> Any:
        """Features of some nodes, (len(nodes), N): all of their walks take a step at a time."""
        from scipy import sparse

        lengths = self._lengths(len(nodes), rng)  # (nodes, walks)
        f = self.kernel.root(int(lengths.max()) + 1) / self.n_walks
        rows, columns, values = [np.arange(len(nodes))], [nodes], [np.full(len(nodes), f[0] * self.n_walks)]
        home, walk = (np.ravel(a) for a in np.indices(lengths.shape))
        left, at, load = lengths.ravel(), nodes[home], np.ones(lengths.size)
        edges = np.diff(S.indptr)
        for r in range(1, len(f)):
            alive = (left >= r) & (edges[at] > 0)
            home, walk, left, at, load = (a[alive] for a in (home, walk, left, at, load))
            edge = S.indptr[at] + self._choices(edges[at], home, walk, len(nodes), rng)
            load = load * S.data[edge] * (edges[at] / (1 - self.halting))
            at = S.indices[edge]
            if f[r]:
                rows.append(home)
                columns.append(at)
                values.append(f[r] * load)
        shape = (len(nodes), S.shape[0])
        where = np.concatenate(rows), np.concatenate(columns)
        return sparse.coo_array((np.concatenate(values), where), shape=shape).tocsr()  # equal places are added up

    def _choices(
        self, n_edges: np.ndarray, home: np.ndarray, walk: np.ndarray, n: int, rng: np.random.Generator
    ) -> np.ndarray:
        """The numbers of the edges that walks take, each uniform."""
        if self.directions == "independent":
            u = rng.random(len(home))
        else:
            u = (rng.random(n)[home] + walk / self.n_walks) % 1.0
        return np.asarray(np.minimum((u * n_edges).astype(np.int64), n_edges - 1))

    def _lengths(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Steps of each walk, geometric: r or more with probability (1 - halting)^r."""
        if self.lengths == "antithetic":
            return self._antithetic_lengths(n, rng)
        if self.lengths == "independent":
            u = rng.random((n, self.n_walks))
        else:
            order = rng.permuted(np.tile(np.arange(self.n_walks), (n, 1)), axis=1)  # apart from the order of directions
            u = (order + rng.random((n, self.n_walks))) / self.n_walks
        return np.asarray(np.floor(np.log1p(-u) / np.log1p(-self.halting)).astype(np.int64))

    def _antithetic_lengths(self, n: int, rng: np.random.Generator) -> np.ndarray:
        lengths = np.zeros((n, self.n_walks), np.int64)
        pairs = (self.n_walks + 1) // 2
        alive = np.ones((n, 2 * pairs), bool)
        alive[:, self.n_walks :] = False
        while alive.any():
            u = rng.random((n, pairs))
            u = np.concatenate([u, (u + 0.5) % 1.0], axis=1)
            alive &= u >= self.halting
            lengths += alive[:, : self.n_walks]
        return lengths


@dataclass(frozen=True)
class NodeFeatures:
    """Features of all nodes, as sparse matrices.

    Attributes
    ----------
    queries, keys : CSR array (N, N)
        Features as rows; the same object if they are symmetric.
    """

    queries: Any
    keys: Any

    def gram(self, nodes: Any, others: Any = None) -> np.ndarray:
        """Return the estimated kernel between nodes, ``queries[nodes] @ keys[others].T``.

        Parameters
        ----------
        nodes : array of int (n,)
            Nodes.
        others : array of int (p,), optional
            Other nodes; None means the same.

        Returns
        -------
        float64 array (n, p)
        """
        some, rest = (
            as_nodes("NodeFeatures.gram", given, self.queries.shape[0])
            for given in (nodes, nodes if others is None else others)
        )
        return np.asarray((self.queries[some] @ self.keys[rest].T).toarray())
