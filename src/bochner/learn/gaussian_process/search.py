"""Maximisation of a marginal likelihood over lengthscales together with the other hyperparameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError
from scipy.optimize import minimize

from ..._progress import progress
from ...approximation import FeatureMap
from .evidence import Evidence
from .lengthscale import lengthscales, pull_back, stretched

_LENGTH_RANGE = np.log(1e3)
"""How far a lengthscale may go from where it starts, in its logarithm, either way."""
_RESTART_RANGE = np.log(10.0)
"""How far from it the other starts are drawn."""
_REFUSED = 1e25
"""In place of the loss where rounding left no factor: the line search steps back from it."""


class Others(NamedTuple):
    """The hyperparameters beside the lengthscales, in logarithms.

    Attributes
    ----------
    start : callable
        From features to where to start.
    bounds : float64 array (k, 2)
        Lowest and highest; a pair of equal numbers holds one.
    """

    start: Callable[[np.ndarray], np.ndarray]
    bounds: np.ndarray


class Optimum(NamedTuple):
    """Lengthscales and logarithms of the others at the highest value found, and that value."""

    lengthscales: np.ndarray
    logs: np.ndarray
    value: float


class Objective:
    """A log marginal likelihood of rows as a function of logarithms: lengthscales first, then the others.

    Parameters
    ----------
    phi : FeatureMap
        The draw that all lengthscales share.
    X : float64 array (n, d)
    evidence : callable
        From features and logarithms of the others to `Evidence`.
    n_scales : int
        How many lengthscales: none, one, or one for each column.
    """

    def __init__(
        self, phi: FeatureMap, X: np.ndarray, evidence: Callable[[np.ndarray, np.ndarray], Evidence], n_scales: int
    ) -> None:
        self.phi, self.X, self.evidence, self.n_scales = phi, X, evidence, n_scales

    def features(self, log_scales: np.ndarray) -> tuple[FeatureMap, np.ndarray]:
        """The stretched map, and the features of the rows."""
        phi = stretched(self.phi, np.exp(log_scales)) if self.n_scales else self.phi
        return phi, np.asarray(phi.queries(self.X))

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient."""
        phi, Phi = self.features(theta[: self.n_scales])
        at = self.evidence(Phi, theta[self.n_scales :])
        return at.value, np.concatenate([pull_back(phi, self.X, Phi, at.features, self.n_scales), at.logs])


def maximise(
    objective: Objective, others: Others, n_restarts: int, rng: np.random.Generator, *, verbose: Any
) -> Optimum:
    """The best of L-BFGS-B from the lengthscales of the kernel and from ``n_restarts`` places drawn about them."""
    k = objective.n_scales
    first = np.log(np.broadcast_to(lengthscales(objective.phi.spec.kernel), (k,)))
    moves = [np.zeros(k), *rng.uniform(-_RESTART_RANGE, _RESTART_RANGE, (n_restarts, k))]
    bounds = np.concatenate([np.stack([first - _LENGTH_RANGE, first + _LENGTH_RANGE], axis=1), others.bounds])
    found = []
    for move in progress(moves, label="marginal likelihood", shown=bool(verbose)):
        logs = others.start(objective.features(first + move)[1])
        start = np.clip(np.concatenate([first + move, logs]), bounds[:, 0], bounds[:, 1])
        found.append(minimize(_loss(objective), start, jac=True, method="L-BFGS-B", bounds=bounds))
    best = min(found, key=lambda result: float(result.fun))
    return Optimum(np.exp(best.x[:k]), best.x[k:], -float(best.fun))


def _loss(objective: Objective) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
    def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
        try:
            value, gradient = objective(theta)
        except LinAlgError:
            return _REFUSED, np.zeros_like(theta)
        return -value, -gradient

    return loss
