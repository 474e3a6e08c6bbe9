"""Errors before the compute is spent: by theory where there is a closed form, by a small simulation elsewhere.

Simulations are a race: all mechanisms are drawn a few times, and those that may still be the best more often.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np

from ..approximation import Approximation, FeatureMap, NoClosedForm
from ..linalg.tiles import single_threaded_blas
from ..projections import IID
from ._sample import Sample

ROUNDS = (3, 8, 20, 48, 120)
"""Draws of a mechanism after each round of the race."""
PRECISE = 0.015
"""Relative standard error below which no more draws are needed."""
_SEEN = 0.5
"""Share of the closed form below which a simulation is said to have missed the rare draws that carry the error."""
_TIMED_ROWS, _TIMES = 512, 3


class Prediction(NamedTuple):
    """Relative Frobenius error, that of the worst entry, the standard error of the first, and how they were found."""

    error: float
    worst: float
    standard_error: float
    source: Literal["theory", "simulation"]


class Simulation:
    """Errors of the draws of one mechanism so far, and the last draw; the n-th draw is the same however it is reached."""

    def __init__(self, spec: Approximation, sample: Sample, seed: int) -> None:
        self.spec, self.sample, self.rng = spec, sample, np.random.default_rng(seed)
        self.squares: list[float] = []
        self.total = np.zeros(sample.exact.shape)
        self.features: FeatureMap | None = None

    def extend(self, n_draws: int) -> None:
        """Draw until there are that many draws."""
        X, Y, exact = self.sample.X, self.sample.Y, self.sample.exact
        while len(self.squares) < n_draws:
            with single_threaded_blas, np.errstate(over="ignore", invalid="ignore"):  # threads cost more than they save
                self.features = self.spec.fit(X, Y, self.rng)
                squares = (self.features.gram(X, Y) - exact) ** 2
            self.total += squares
            self.squares.append(self.sample.relative(squares) ** 2)

    def prediction(self) -> Prediction:
        """Root mean squared errors over the draws."""
        n = len(self.squares)
        error, worst = float(np.sqrt(np.mean(self.squares))), self.sample.worst(self.total / n)
        if not 0 < error < np.inf:
            return Prediction(error, worst, 0.0, "simulation")
        spread = float(np.std(self.squares, ddof=1) / np.sqrt(n))
        return Prediction(error, worst, spread / (2 * error), "simulation")


class Predictor:
    """Predicts errors on one sample of pairs; all mechanisms meet the same random numbers."""

    def __init__(self, sample: Sample, seed: int) -> None:
        self.sample, self.seed = sample, seed
        self._simulations: dict[Approximation, Simulation] = {}
        self._closed_forms: dict[Approximation, Prediction | None] = {}

    def __call__(self, spec: Approximation, n_draws: int = ROUNDS[1]) -> Prediction:
        """The closed form, or a simulation of that many draws."""
        return self.theory(spec) or self.simulation(spec, n_draws)

    def theory(self, spec: Approximation) -> Prediction | None:
        """The closed form, if there is one."""
        if spec not in self._closed_forms:
            self._closed_forms[spec] = self._closed_form(spec)
        return self._closed_forms[spec]

    def simulation(self, spec: Approximation, n_draws: int) -> Prediction:
        """Errors over draws, times the share of the error that so few draws do not see."""
        plain, tail = self._simulated(spec, n_draws), self._tail(spec, n_draws)
        if not np.isfinite(tail):
            return Prediction(np.inf, np.inf, 0.0, "simulation")
        return Prediction(plain.error * tail, plain.worst * tail, plain.standard_error * tail, "simulation")

    def precisely(self, spec: Approximation) -> Prediction:
        """The closed form, or a simulation of as many draws as make it precise."""
        found = self.theory(spec)
        for n_draws in ROUNDS:
            if found is not None and found.standard_error <= PRECISE * found.error:
                break
            found = self.simulation(spec, n_draws)
        assert found is not None
        return found

    def n_draws(self, spec: Approximation) -> int:
        """How often a mechanism was drawn."""
        return len(self._simulations[spec].squares) if spec in self._simulations else 0

    def features(self, spec: Approximation) -> FeatureMap:
        """One draw of the mechanism."""
        drawn = self._simulations[spec].features if spec in self._simulations else None
        return drawn or spec.fit(self.sample.X, self.sample.Y, self.seed)

    def _closed_form(self, spec: Approximation) -> Prediction | None:
        try:
            mse = spec.mse(self.sample.X, self.sample.Y)
        except NoClosedForm:
            return None
        return Prediction(self.sample.relative(mse), self.sample.worst(mse), 0.0, "theory")

    def _simulated(self, spec: Approximation, n_draws: int) -> Prediction:
        found = self._simulations.setdefault(spec, Simulation(spec, self.sample, self.seed))
        found.extend(n_draws)
        return found.prediction()

    def _tail(self, spec: Approximation, n_draws: int) -> float:
        """How much too small such simulations are where rare draws carry the error: seen at independent rows.

        The exponential of a long vector is huge with a tiny probability.  Simulations hardly ever draw that, and would make
        every mechanism without a closed form look better than those that have one.
        """
        rows = replace(spec, projection=IID())
        known = self.theory(rows)
        if known is None:
            return 1.0
        seen = self._simulated(rows, n_draws).error
        return known.error / seen if 0 < seen < _SEEN * known.error else 1.0


def seconds_per_row(phi: FeatureMap, X: np.ndarray) -> float:
    """Best of a few transforms of some hundred rows, in the precision of X."""
    rows = np.resize(X, (_TIMED_ROWS, X.shape[1]))
    phi.queries(rows)  # compilation and caches are not counted
    return min(_time(phi, rows) for _ in range(_TIMES)) / _TIMED_ROWS


def _time(phi: FeatureMap, rows: np.ndarray) -> float:
    start = time.perf_counter()
    phi.queries(rows)
    return time.perf_counter() - start
