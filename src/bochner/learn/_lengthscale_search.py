"""The marginal likelihood of regression on rows in memory, and the lengthscales that maximise it."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..approximation import FeatureMap
from ..linalg.cholesky import symmetric_product
from ._hyperparameters import Objective, Others, maximise, stretched
from ._linear.evidence import Evidence, Hyperparameters, SpectralEvidence, regression_evidence
from ._linear.moments import units_of
from ._linear.spectrum import Equations, NormalEquations, RowEquations

_RANGES = {"noise": (1e-6, 1e2), "amplitude": (1e-6, 1e4)}
"""Noise and amplitude during the search over lengthscales, relative to the mean square of the targets."""


class ProcessSample(NamedTuple):
    """Rows in memory: X (n, d), scaled targets (n, t), and weights (n,) or None."""

    X: np.ndarray
    targets: np.ndarray
    weights: np.ndarray | None


def regression_objective(phi: FeatureMap, sample: ProcessSample, n_scales: int) -> Objective:
    """The log marginal likelihood of rows in lengthscales, noise and amplitude."""
    X, Y, weights = sample
    if weights is None:
        return Objective(phi, X, lambda Phi, logs: regression_evidence(Phi, Y, *np.exp(logs)), n_scales)
    roots, units = np.sqrt(weights)[:, None], units_of(weights)
    weighted = roots * Y

    def evidence(Phi: np.ndarray, logs: np.ndarray) -> Evidence:
        noise, amplitude = np.exp(logs)
        at = regression_evidence(roots * Phi, weighted, noise, amplitude, units)
        return at._replace(features=roots * at.features)

    return Objective(phi, X, evidence, n_scales)


def best_lengthscales(
    phi: FeatureMap,
    sample: ProcessSample,
    given: Hyperparameters,
    n_scales: int,
    n_restarts: int,
    rng: np.random.Generator,
    *,
    verbose: Any,
) -> FeatureMap:
    """Return the draw with the best lengthscales for regression; noise and amplitude move too where they are free."""
    objective = regression_objective(phi, sample, n_scales)
    others = Others(partial(_first_logs, sample=sample, given=given), _bounds(sample, given))
    return stretched(phi, maximise(objective, others, n_restarts, rng, verbose=verbose).lengthscales)


def _first_logs(Phi: np.ndarray, *, sample: ProcessSample, given: Hyperparameters) -> np.ndarray:
    """Logarithms of noise and amplitude for given lengthscales."""
    if None not in given:
        return np.log(np.array(given, dtype=np.float64))
    return np.log(evidence_of(Phi, sample).best(given))


def evidence_of(Phi: np.ndarray, sample: ProcessSample) -> SpectralEvidence:
    """Evidence in noise and amplitude, from the smaller of the matrices of features and of rows."""
    rounding = float(np.finfo(np.float64).eps)
    rows = RowEquations.of(Phi, sample.targets, sample.weights, about_mean=False, rounding=rounding)
    equations: Equations = rows
    if len(Phi) >= Phi.shape[1]:
        gram = symmetric_product(rows.rows.T)
        equations = NormalEquations(rows.weight, rows.units, rows.cross, rows.total, 0, rounding, gram)
    return SpectralEvidence.of(equations.spectrum())


def _bounds(sample: ProcessSample, given: Hyperparameters) -> np.ndarray:
    square = float(np.average((sample.targets**2).mean(axis=1), weights=sample.weights)) or 1.0
    pairs = [
        [factor * square for factor in _RANGES[name]] if value is None else [value, value]
        for name, value in given._asdict().items()
    ]
    return np.log(pairs)
