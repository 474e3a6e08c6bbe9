"""Regression on the nodes of a graph, by conjugate gradients on sparse features."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arrays import as_numpy
from .._random import RNG, as_generator
from .._validation import as_real, check_count, check_instance, check_positive
from ._node_kernels import as_nodes
from ._walks import Walks


class NodeRegression:
    r"""A Gaussian process on the nodes of a graph; its mean is kernel ridge regression.

    Use it for values at some nodes of a large graph, grid or mesh: time and memory are linear in the number of nodes.

    Parameters
    ----------
    walks : Walks
        The features, for example ``Walks(Diffusion(10.0))``.
    noise : float, default 0.1
        Variance of the noise, relative to the kernel: the regularisation.
    tolerance : float, default 1e-6
        Relative residual at which conjugate gradients stop.
    rng : int, numpy.random.Generator or None
        Source of randomness.

    Attributes
    ----------
    features_ : NodeFeatures
        The drawn features, symmetric.
    amplitude_ : float
        Variance s of the process that maximises the likelihood,
        :math:`(y-\bar y)^T(\Phi\Phi^T+\lambda I)^{-1}(y-\bar y)/n`.
    n_iterations_ : int
        Iterations of conjugate gradients.

    Notes
    -----
    With the sparse features :math:`\Phi` of the nodes with values y, the prediction is
    :math:`\Phi_*\Phi^T(\Phi\Phi^T + \lambda I)^{-1}(y - \bar y) + \bar y`; no matrix of all pairs of nodes is formed.
    `sample` draws a function :math:`\Phi w` of the prior and noisy values of it at the known nodes, and adds what the
    prediction would change (wilson2020).

    References
    ----------
    reid2024b, wilson2020.

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
        y = as_numpy(as_real("NodeRegression.fit", y)).astype(np.float64)
        features = self.walks.draw(graph, self.rng, symmetric=True)
        nodes = as_nodes("NodeRegression.fit", nodes, features.queries.shape[0])
        if nodes.shape != y.shape or not len(y) or not np.isfinite(y).all():
            raise ValueError(
                f"NodeRegression.fit: nodes and y must be vectors of one length, with finite values, got shapes "
                f"{nodes.shape} and {y.shape}."
            )
        Phi, mean = features.queries[nodes], float(y.mean())
        dual, iterations = self._solve(Phi, y - mean)
        self.features_, self.nodes_, self.mean_, self.n_iterations_ = features, nodes, mean, iterations
        self.coefficients_, self.amplitude_ = Phi.T @ dual, float((y - mean) @ dual / len(y))
        return self

    def _solve(self, Phi: Any, y: np.ndarray) -> tuple[np.ndarray, int]:
        """The solution of the equations of the known nodes, and its iterations."""
        from scipy.sparse.linalg import LinearOperator, cg

        count = [0]
        system = LinearOperator((len(y), len(y)), lambda v: Phi @ (Phi.T @ v) + self.noise * v, dtype=np.float64)
        dual, failed = cg(system, y, rtol=self.tolerance, maxiter=10 * len(y) + 100, callback=lambda _: count.append(1))
        if failed:
            raise ValueError(
                f"NodeRegression: conjugate gradients did not reach tolerance={self.tolerance:g}; raise noise or tolerance."
            )
        return dual, len(count) - 1

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
        self._check_fitted("predict")
        nodes = as_nodes("NodeRegression.predict", nodes, self.features_.queries.shape[0])
        return np.asarray(self.features_.queries[nodes] @ self.coefficients_ + self.mean_)

    def sample(self, nodes: Any, n_samples: int = 1, *, rng: RNG = None) -> np.ndarray:
        """Return functions drawn from the posterior, without noise, at nodes.

        Their mean is `predict`, their spread the uncertainty of the process.  Each takes about as long as the fit without
        its walks.

        Parameters
        ----------
        nodes : array of int (m,)
            Nodes.
        n_samples : int, default 1
            How many functions.
        rng : int, numpy.random.Generator or None
            Source of randomness.

        Returns
        -------
        float64 array (m, n_samples)
        """
        self._check_fitted("sample")
        generator = as_generator(rng)
        Phi, root = self.features_.queries[self.nodes_], np.sqrt(self.amplitude_)
        nodes = as_nodes("NodeRegression.sample", nodes, self.features_.queries.shape[0])
        where, drawn = self.features_.queries[nodes], []
        for _ in range(check_count("NodeRegression.sample", "n_samples", n_samples)):
            w = root * generator.standard_normal(Phi.shape[1])
            noisy = Phi @ w + root * np.sqrt(self.noise) * generator.standard_normal(Phi.shape[0])
            change = self.coefficients_ - Phi.T @ self._solve(Phi, noisy)[0]
            drawn.append(where @ (w + change) + self.mean_)
        return np.column_stack(drawn)

    def _check_fitted(self, method: str) -> None:
        if not hasattr(self, "coefficients_"):
            raise ValueError(f"NodeRegression.{method}: call fit(graph, nodes, y) first.")
