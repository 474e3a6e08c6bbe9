"""Lengthscales of the highest marginal likelihood, on some of the rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...approximation import FeatureMap
from .evidence import Evidence, regression_evidence
from .lengthscale import stretched
from .search import Objective, Others, maximise
from .spectrum import Normal, Spectrum

_RANGES = {"noise": (1e-6, 1e2), "amplitude": (1e-6, 1e4)}
"""Of the mean square of the targets, while lengthscales move."""


class Given(NamedTuple):
    """Noise and amplitude where they are fixed, None where they are free."""

    noise: float | None
    amplitude: float | None


def regression_objective(phi: FeatureMap, X: np.ndarray, Y: np.ndarray, n_scales: int) -> Objective:
    """The log marginal likelihood of rows X and scaled targets Y (n, t) in lengthscales, noise and amplitude."""

    def evidence(Phi: np.ndarray, logs: np.ndarray) -> Evidence:
        return regression_evidence(Phi, Y, *np.exp(logs))

    return Objective(phi, X, evidence, n_scales)


def tuned_for_regression(
    phi: FeatureMap, X: np.ndarray, Y: np.ndarray, given: Given, n_scales: int, n_restarts: int,
    rng: np.random.Generator, *, verbose: Any,
) -> FeatureMap:  # fmt: skip
    """The same draw, with the best lengthscales; noise and amplitude move with them where they are free."""
    objective = regression_objective(phi, X, Y, n_scales)
    best = maximise(objective, Others(_start(Y, given), _bounds(Y, given)), n_restarts, rng, verbose=verbose)
    return stretched(phi, best.lengthscales)


def _start(Y: np.ndarray, given: Given) -> Callable[[np.ndarray], np.ndarray]:
    def start(Phi: np.ndarray) -> np.ndarray:
        if None not in given:
            return np.log(np.array(given, dtype=np.float64))
        return np.log(spectrum_of_rows(Phi, Y).best(**given._asdict()))

    return start


def spectrum_of_rows(Phi: np.ndarray, Y: np.ndarray) -> Spectrum:
    """Through the smaller of the matrices of features and of rows."""
    if len(Phi) < Phi.shape[1]:
        return Spectrum.of_rows(Phi, Y)
    return Spectrum.of(Normal(Phi.T @ Phi, Phi.T @ Y, (Y**2).sum(axis=0), len(Y)))


def _bounds(Y: np.ndarray, given: Given) -> np.ndarray:
    square = float((Y**2).mean()) or 1.0
    pairs = [
        [factor * square for factor in _RANGES[name]] if value is None else [value, value]
        for name, value in given._asdict().items()
    ]
    return np.log(pairs)


def some_rows(X: Any, Y: np.ndarray, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """At most ``count`` rows of X and Y, drawn without replacement, dense and in float64."""
    n = X.shape[0]
    chosen = np.sort(rng.choice(n, count, replace=False)) if n > count else np.arange(n)
    part = X[chosen]
    return np.asarray(part.toarray() if hasattr(part, "toarray") else part, dtype=np.float64), Y[chosen]
