"""Regression on the nodes of a graph, by conjugate gradients on sparse features."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._random import RNG
from .._validation import check_instance, check_positive
from ._walks import Walks


class NodeRegression:
    r"""Kernel ridge regression, or the mean of a Gaussian process, on the nodes of a graph.

    Parameters
    ----------
    walks : Walks
        The features, ``Walks(Diffusion(10.0))``.
    noise : float, default 0.1
        Variance of the noise, relative to the kernel: the regularisation.
    tolerance : float, default 1e-6
        Relative residual at which conjugate gradients end.
    rng : int, numpy.random.Generator or None
        Source of randomness.

    Attributes
    ----------
    features_ : NodeFeatures
        The drawn features, symmetric.
    n_iterations_ : int
        Iterations of conjugate gradients.

    Notes
    -----
    With the sparse features :math:`\Phi` of the nodes with values y, the prediction is
    :math:`\Phi_*\Phi^T(\Phi\Phi^T + \lambda I)^{-1}(y - \bar y) + \bar y`; no matrix of all pairs of nodes is formed.

    References
    ----------
    reid2024b.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from bochner.graphs import Diffusion, NodeRegression, Walks
    >>> ring = sparse.diags_array([np.ones(99), np.ones(99), [1.0], [1.0]], offsets=[1, -1, 99, -99])
    >>> y = np.sin(2 * np.pi * np.arange(100) / 100)
    >>> known = np.arange(0, 100, 3)
    >>> model = NodeRegression(Walks(Diffusion(5.0), n_walks=64), noise=0.01, rng=0).fit(ring, known, y[known])
    >>> bool(np.abs(model.predict(np.arange(100)) - y).max() < 0.2)
    True
    """

    def __init__(self, walks: Walks, *, noise: float = 0.1, tolerance: float = 1e-6, rng: RNG = None) -> None:
        check_instance("NodeRegression", "walks", walks, Walks, "graphs.Walks(graphs.Diffusion())")
        self.walks, self.rng = walks, rng
        self.noise = check_positive("NodeRegression", "noise", noise)
        self.tolerance = check_positive("NodeRegression", "tolerance", tolerance)

    def fit(self, graph: Any, nodes: Any, y: Any) -> NodeRegression:
        """Draw features of the graph, and fit values at some of its nodes.

        Parameters
        ----------
        graph : sparse matrix or networkx graph
            The graph, of N nodes.
        nodes : array of int (n,)
            Nodes whose values are known.
        y : array (n,)
            Their values.

        Returns
        -------
        self
        """
        from scipy.sparse.linalg import LinearOperator, cg

        nodes, y = np.asarray(nodes), np.asarray(y, dtype=np.float64)
        if nodes.shape != y.shape or y.ndim != 1 or not len(y) or not np.isfinite(y).all():
            raise ValueError(
                f"NodeRegression.fit: nodes and y must be vectors of one length, with finite values, got shapes "
                f"{nodes.shape} and {y.shape}."
            )
        features = self.walks.draw(graph, self.rng, symmetric=True)
        N = features.queries.shape[0]
        if nodes.dtype.kind not in "iu" or nodes.min() < 0 or nodes.max() >= N:
            raise ValueError(f"NodeRegression.fit: nodes must be integers from 0 to {N - 1}, the nodes of the graph.")
        Phi = features.queries[nodes]
        count = [0]
        system = LinearOperator((len(y), len(y)), lambda v: Phi @ (Phi.T @ v) + self.noise * v, dtype=np.float64)
        mean = float(y.mean())
        dual, failed = cg(
            system, y - mean, rtol=self.tolerance, maxiter=10 * len(y) + 100, callback=lambda _: count.append(1)
        )
        if failed:
            raise ValueError(
                f"NodeRegression.fit: conjugate gradients did not reach tolerance={self.tolerance:g}; raise noise or "
                f"tolerance."
            )
        self.features_, self.mean_, self.n_iterations_ = features, mean, len(count) - 1
        self.coefficients_ = Phi.T @ dual
        return self

    def predict(self, nodes: Any) -> np.ndarray:
        """Return the predicted values of nodes.

        Parameters
        ----------
        nodes : array of int (m,)
            Nodes.

        Returns
        -------
        float64 array (m,)
        """
        if not hasattr(self, "coefficients_"):
            raise ValueError("NodeRegression.predict: call fit(graph, nodes, y) first.")
        return np.asarray(self.features_.queries[np.asarray(nodes)] @ self.coefficients_ + self.mean_)
