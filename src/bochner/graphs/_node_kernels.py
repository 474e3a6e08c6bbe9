r"""Kernels between nodes: power series :math:`K = \sum_r a_r S^r` of the normalised adjacency matrix S.

:math:`S = D^{-1/2} W D^{-1/2}` has eigenvalues in [-1, 1], and :math:`L = I - S` is the normalised Laplacian.  Walks
estimate the root :math:`\psi(S) = \sum_r f_r S^r` with :math:`\psi(S)^2 = K`, whose coefficients each kernel declares.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._validation import check_count, check_number, check_positive, shown


class NodeKernel(ABC):
    """Base class of kernels between nodes; a subclass gives the coefficients of the root of its power series."""

    @abstractmethod
    def root(self, n: int) -> np.ndarray:
        """The first n coefficients f of the root, float64 (n,)."""

    def series(self, n: int) -> np.ndarray:
        """The first n coefficients a of the kernel, the squares of the root as power series."""
        f = self.root(n)
        return np.convolve(f, f)[:n]

    def matrix(self, graph: Any) -> np.ndarray:
        """Return the exact kernel matrix of a small graph, from the eigenvalues of S.

        Parameters
        ----------
        graph : sparse matrix or networkx graph
            The graph, of N nodes.

        Returns
        -------
        float64 array (N, N)
        """
        values, vectors = np.linalg.eigh(normalized(as_adjacency("NodeKernel.matrix", graph)).toarray())
        return np.asarray((vectors * self.at(values)) @ vectors.T)

    @abstractmethod
    def at(self, values: np.ndarray) -> np.ndarray:
        """The kernel as a function of the eigenvalues of S."""


@dataclass(frozen=True)
class Diffusion(NodeKernel):
    r"""The diffusion (heat) kernel :math:`e^{-tL}`: the heat that flows from one node to another in time t.

    A good first choice where neighbouring nodes have similar values.

    Parameters
    ----------
    time : float, default 1.0
        The time t > 0.

    Notes
    -----
    :math:`f_r = e^{-t/2} (t/2)^r/r!`.

    References
    ----------
    kondor2002.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.graphs import Diffusion
    >>> bool(np.allclose(Diffusion(2.0).root(3), np.exp(-1) * np.array([1, 1, 1 / 2])))
    True
    """

    time: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "time", check_positive("Diffusion", "time", self.time))

    def root(self, n: int) -> np.ndarray:
        """Coefficients of the heat kernel of half the time."""
        r = np.arange(check_count("Diffusion.root", "n", n))
        logs = r * math.log(self.time / 2) - np.array([math.lgamma(i + 1) for i in r]) - self.time / 2
        return np.asarray(np.exp(logs))

    def at(self, values: np.ndarray) -> np.ndarray:
        return np.asarray(np.exp(self.time * (values - 1)))


@dataclass(frozen=True)
class RegularizedLaplacian(NodeKernel):
    r"""The regularised Laplacian :math:`(I + \sigma^2 L)^{-p}`, the Matern kernel of a graph.

    Use it for rougher functions than those of `Diffusion` that still depend on distant nodes.

    Parameters
    ----------
    scale : float, default 1.0
        The squared length :math:`\sigma^2 > 0`.
    power : float, default 1.0
        The exponent p > 0: the larger, the smoother.

    Notes
    -----
    :math:`f_r = (1+\sigma^2)^{-p/2} \binom{p/2+r-1}{r} \rho^r` with :math:`\rho = \sigma^2/(1+\sigma^2)`.

    References
    ----------
    smola2003.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.graphs import RegularizedLaplacian
    >>> bool(np.allclose(RegularizedLaplacian(1.0, 2.0).root(3), [1 / 2, 1 / 4, 1 / 8]))
    True
    """

    scale: float = 1.0
    power: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", check_positive("RegularizedLaplacian", "scale", self.scale))
        object.__setattr__(self, "power", check_positive("RegularizedLaplacian", "power", self.power))

    def root(self, n: int) -> np.ndarray:
        """Coefficients of the kernel of half the power."""
        n = check_count("RegularizedLaplacian.root", "n", n)
        rho, half = self.scale / (1 + self.scale), self.power / 2
        ratios = rho * (half + np.arange(n - 1)) / np.arange(1, n)
        return np.asarray((1 + self.scale) ** -half * np.cumprod(np.concatenate([[1.0], ratios])))

    def at(self, values: np.ndarray) -> np.ndarray:
        return np.asarray((1 + self.scale * (1 - values)) ** -self.power)


@dataclass(frozen=True)
class WalkSteps(NodeKernel):
    r"""The kernel :math:`(a I - L)^{2p}` of walks of at most 2p steps.

    Use it where only nodes within a few steps matter.

    Parameters
    ----------
    half_steps : int, default 1
        The number p of steps from either node.
    laziness : float, default 2.0
        The constant :math:`a \ge 2`.

    Notes
    -----
    :math:`f_r = \binom{p}{r} (a-1)^{p-r}`, zero for r > p: no walk is longer.

    References
    ----------
    smola2003.

    Examples
    --------
    >>> from bochner.graphs import WalkSteps
    >>> WalkSteps(2).root(4)
    array([1., 2., 1., 0.])
    """

    half_steps: int = 1
    laziness: float = 2.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "half_steps", check_count("WalkSteps", "half_steps", self.half_steps))
        laziness = check_number("WalkSteps", "laziness", self.laziness)
        if laziness < 2:
            raise ValueError(f"WalkSteps: laziness must be at least 2, got {shown(self.laziness)}.")
        object.__setattr__(self, "laziness", laziness)

    def root(self, n: int) -> np.ndarray:
        """Binomial coefficients."""
        p, n = self.half_steps, check_count("WalkSteps.root", "n", n)
        return np.array([math.comb(p, r) * (self.laziness - 1) ** (p - r) if r <= p else 0.0 for r in range(n)])

    def at(self, values: np.ndarray) -> np.ndarray:
        return np.asarray((self.laziness - 1 + values) ** (2 * self.half_steps))


@dataclass(frozen=True)
class Series(NodeKernel):
    r"""A kernel given by its power series :math:`\sum_r a_r S^r`.

    Use it for any other kernel whose coefficients you know.

    Parameters
    ----------
    coefficients : sequence of float
        The coefficients a, the first one positive.

    Notes
    -----
    :math:`f_0 = \sqrt{a_0}`, :math:`f_r = (a_r - \sum_{0<k<r} f_k f_{r-k})/(2f_0)`.  The root of a polynomial is an infinite
    series, which must converge at the eigenvalues of S.

    References
    ----------
    reid2024b.

    Examples
    --------
    >>> from bochner.graphs import Series
    >>> Series([1, 2, 1]).root(4)                   # (1 + s)^2
    array([1., 1., 0., 0.])
    """

    coefficients: tuple[float, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.coefficients, Sequence | np.ndarray):
            raise TypeError(f"Series: coefficients must be a sequence of numbers, got {shown(self.coefficients)}.")
        given = tuple(check_number("Series", f"coefficients[{r}]", a) for r, a in enumerate(self.coefficients))
        if not given or given[0] <= 0:
            raise ValueError(f"Series: coefficients must start with a positive number, got {shown(self.coefficients)}.")
        object.__setattr__(self, "coefficients", given)

    def root(self, n: int) -> np.ndarray:
        """Coefficients of the root, one after the other."""
        a = np.zeros(n := check_count("Series.root", "n", n))
        a[: len(self.coefficients)] = self.coefficients[:n]
        f = np.zeros(n)
        f[0] = math.sqrt(a[0])
        for r in range(1, n):
            f[r] = (a[r] - f[1:r] @ f[r - 1 : 0 : -1]) / (2 * f[0])
        return f

    def at(self, values: np.ndarray) -> np.ndarray:
        return np.asarray(np.polyval(self.coefficients[::-1], values))


def as_adjacency(owner: str, graph: Any) -> Any:
    """The weights of a graph as a CSR matrix, checked: symmetric, and none of them negative."""
    from scipy import sparse

    if hasattr(graph, "adjacency") and hasattr(graph, "nodes"):
        import networkx  # type: ignore[import-untyped]

        graph = networkx.to_scipy_sparse_array(graph, format="csr", dtype=np.float64)
    if not sparse.issparse(graph):
        raise TypeError(f"{owner}: graph must be a sparse matrix of scipy or a graph of networkx, got {shown(graph)}.")
    if np.iscomplexobj(graph):
        raise TypeError(f"{owner}: weights of the graph must be real, got {graph.dtype}.")
    W = sparse.csr_array(graph).astype(np.float64)
    W.sum_duplicates()
    W.eliminate_zeros()
    if W.shape[0] != W.shape[1] or not W.shape[0]:
        raise ValueError(f"{owner}: graph must be a square matrix of weights, got shape {W.shape}.")
    if W.nnz and not (np.isfinite(W.data).all() and W.data.min() >= 0):
        raise ValueError(f"{owner}: weights of the graph must be finite and not negative.")
    difference = W - W.T
    if difference.nnz and np.abs(difference.data).max() > 1e-9 * W.data.max():
        raise ValueError(f"{owner}: graph must be symmetric; pass W.maximum(W.T) or another undirected graph.")
    return W


def as_nodes(owner: str, nodes: Any, n_nodes: int) -> np.ndarray:
    """Numbers of nodes, checked."""
    try:
        found = np.asarray(nodes)
    except Exception:  # whatever a list of other things raises
        found = np.empty(0)
    if (
        found.ndim != 1
        or found.dtype.kind not in "iu"
        or (len(found) and not 0 <= found.min() <= found.max() < n_nodes)
    ):
        raise ValueError(
            f"{owner}: nodes must be integers from 0 to {n_nodes - 1}, the nodes of the graph, in a vector, got "
            f"{shown(nodes)}."
        )
    return found


def normalized(W: Any) -> Any:
    """S = D^(-1/2) W D^(-1/2); nodes without edges have zero rows."""
    degree = np.asarray(W.sum(axis=1)).ravel()
    scale = np.where(degree > 0, 1 / np.sqrt(np.where(degree > 0, degree, 1.0)), 0.0)
    S = W.copy()
    S.data = W.data * np.repeat(scale, np.diff(W.indptr)) * scale[W.indices]
    return S
