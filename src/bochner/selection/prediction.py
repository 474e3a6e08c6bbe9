"""Errors before the compute is spent: by theory where there is a closed form, by a small simulation elsewhere."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np

from .._random import streams
from ..approximation import Approximation, NoClosedForm, squared_errors
from ..projections import IID
from .candidates import label
from .sample import Sample

FEW_DRAWS, MANY_DRAWS = 8, 48
_SEEN = 0.5
"""Share of the closed form below which a simulation is said to have missed the rare draws that carry the error."""


class Prediction(NamedTuple):
    """Relative Frobenius error, that of the worst entry, the standard error of the first, and how they were found."""

    error: float
    worst: float
    standard_error: float
    source: Literal["theory", "simulation"]


class Predictor:
    """Predicts errors on one sample of pairs; simulations of the same specification are the same each time."""

    def __init__(self, sample: Sample, seed: int) -> None:
        self.sample, self.seed = sample, seed
        self._tails: dict[tuple[object, int], float] = {}

    def __call__(self, spec: Approximation, n_draws: int = FEW_DRAWS) -> Prediction:
        """The closed form, or a simulation of that many draws."""
        return self.theory(spec) or self.simulation(spec, n_draws)

    def theory(self, spec: Approximation) -> Prediction | None:
        """The closed form, if there is one."""
        try:
            mse = spec.mse(self.sample.X, self.sample.Y)
        except NoClosedForm:
            return None
        return Prediction(self.sample.relative(mse), self.sample.worst(mse), 0.0, "theory")

    def simulation(self, spec: Approximation, n_draws: int) -> Prediction:
        """Errors over redraws, times the share of the error that so few redraws do not see."""
        plain, tail = self._simulate(spec, n_draws), self._tail(spec, n_draws)
        if not np.isfinite(tail):
            return Prediction(np.inf, np.inf, 0.0, "simulation")
        return Prediction(plain.error * tail, plain.worst * tail, plain.standard_error * tail, "simulation")

    def _simulate(self, spec: Approximation, n_draws: int) -> Prediction:
        sample, rng = self.sample, streams(self.seed, f"{label(spec)}/{spec.n_projections}")[0]
        total, errors = np.zeros(sample.exact.shape), []
        for squares in squared_errors(spec.plan(sample.X, sample.Y, rng), sample.X, sample.Y, n_draws, rng):
            total += squares
            errors.append(sample.relative(squares) ** 2)
        mse, mean = total / n_draws, float(np.mean(errors))
        error = float(np.sqrt(mean))
        if not 0 < error < np.inf:
            return Prediction(error, sample.worst(mse), 0.0, "simulation")
        spread = float(np.std(errors, ddof=1) / np.sqrt(n_draws))
        return Prediction(error, sample.worst(mse), spread / (2 * error), "simulation")

    def _tail(self, spec: Approximation, n_draws: int) -> float:
        """How much too small such simulations are where rare draws carry the error: seen at independent rows.

        The exponential of a long vector is huge with a tiny probability.  Simulations hardly ever draw that, and would make
        every mechanism without a closed form look better than those that have one.
        """
        key = (spec.map, spec.n_projections)
        if key not in self._tails:
            rows = replace(spec, projection=IID())
            known = self.theory(rows)
            seen = self._simulate(rows, n_draws).error if known is not None else 0.0
            missed = known is not None and seen < _SEEN * known.error
            self._tails[key] = known.error / seen if known is not None and missed and seen > 0 else 1.0
        return self._tails[key]
