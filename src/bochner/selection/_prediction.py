"""Prediction of errors, by theory if there is a closed form and by a small simulation otherwise.

Simulations go in rounds: all mechanisms are drawn a few times, and those that may still be the best more often.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np

from .._random import streams
from ..approximation import Approximation, FeatureMap, NoClosedForm
from ..linalg.engine import single_threaded_blas
from ..maps import Draws
from ..projections import IID
from ._sample import Sample

ROUNDS = (3, 8, 24, 80, 240)  # number of draws of a mechanism after each round
_PRECISE = 0.02  # relative standard error below which no more draws are needed
_SEEN = 0.5
"""Ratio to the closed form below which a simulation is considered to have missed the rare draws that dominate the error."""
_KEPT_NUMBERS = 2**25  # numbers of W that are kept for the next mechanism: 256 MB
_TIMED_ROWS, _TIMES = 256, 3  # a tile of rows, and the best of three: other processes only add time


class Prediction(NamedTuple):
    """Relative Frobenius error, error of the worst entry, standard error of the former, and how they were obtained."""

    error: float
    worst: float
    standard_error: float
    source: Literal["theory", "simulation"]


class DrawnRows:
    """Draws of plans; maps that use the same rows share each drawn W, and the most recent ones are cached."""

    def __init__(self, d: int, seed: int) -> None:
        self.d, self.seed = d, seed
        self._latest: OrderedDict[tuple[object, ...], Draws] = OrderedDict()

    def draw(self, plan: Approximation, k: int) -> FeatureMap:
        """The k-th draw of a plan."""
        seed = int(streams(self.seed, f"draw/{k}")[0].integers(2**62))
        draws = Draws(plan.projection, self.d, plan.n_projections, plan.kernel, seed)
        key = (plan.projection, plan.n_projections, k)
        if key in self._latest:
            draws = draws.sharing(self._latest[key])
        self._latest[key] = draws
        while len(self._latest) * self.d * plan.n_projections > _KEPT_NUMBERS:
            self._latest.popitem(last=False)
        return FeatureMap(plan, draws)


class Simulation:
    """Errors of the draws of one plan so far; the n-th draw does not depend on how it is reached."""

    def __init__(self, plan: Approximation, sample: Sample, rows: DrawnRows) -> None:
        self.plan, self.sample, self.rows = plan, sample, rows
        self.squares: list[float] = []
        self.total = np.zeros(sample.exact.shape)

    def extend(self, n_draws: int) -> None:
        """Draw until there are that many draws."""
        X, Y, exact = self.sample.X, self.sample.Y, self.sample.exact
        for k in range(len(self.squares), n_draws):
            with single_threaded_blas, np.errstate(over="ignore", invalid="ignore"):  # threads cost more than they save
                squares = (self.rows.draw(self.plan, k).gram(X, Y) - exact) ** 2
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
    """Predicts errors of plans on one sample of pairs, with the same random numbers for all mechanisms."""

    def __init__(self, sample: Sample, seed: int) -> None:
        self.sample, self.seed = sample, seed
        self.rows = DrawnRows(sample.X.shape[1], seed)
        self._simulations: dict[Approximation, Simulation] = {}
        self._closed_forms: dict[Approximation, Prediction | None] = {}

    def __call__(self, plan: Approximation, n_draws: int = ROUNDS[1]) -> Prediction:
        """Return the closed form, or the result of a simulation of ``n_draws`` draws."""
        return self.theory(plan) or self.simulation(plan, n_draws)

    def theory(self, plan: Approximation) -> Prediction | None:
        """The closed form, if there is one."""
        if plan not in self._closed_forms:
            self._closed_forms[plan] = self._closed_form(plan)
        return self._closed_forms[plan]

    def simulation(self, plan: Approximation, n_draws: int) -> Prediction:
        """Errors over draws, corrected for the share of the error that so few draws miss."""
        plain, tail = self._simulated(plan, n_draws), self._tail(plan, n_draws)
        if not np.isfinite(tail):
            return Prediction(np.inf, np.inf, 0.0, "simulation")
        return Prediction(plain.error * tail, plain.worst * tail, plain.standard_error * tail, "simulation")

    def precisely(self, plan: Approximation) -> Prediction:
        """The closed form, or a simulation of as many draws as make it precise."""
        found = self(plan, ROUNDS[0])
        for n_draws in ROUNDS[1:]:
            if found.standard_error > _PRECISE * found.error:
                found = self.simulation(plan, n_draws)
        return found

    def n_draws(self, plan: Approximation) -> int:
        """Number of draws of a plan so far."""
        return len(self._simulations[plan].squares) if plan in self._simulations else 0

    def _closed_form(self, plan: Approximation) -> Prediction | None:
        try:
            mse = plan.mse(self.sample.X, self.sample.Y, quick=True)
        except NoClosedForm:
            return None
        return Prediction(self.sample.relative(mse), self.sample.worst(mse), 0.0, "theory")

    def _simulated(self, plan: Approximation, n_draws: int) -> Prediction:
        found = self._simulations.setdefault(plan, Simulation(plan, self.sample, self.rows))
        found.extend(n_draws)
        return found.prediction()

    def _tail(self, plan: Approximation, n_draws: int) -> float:
        """Factor by which simulations underestimate the error if rare draws dominate it, measured with independent rows.

        The exponential of a long vector is huge with a tiny probability.  Simulations rarely draw it, which would
        favour mechanisms without a closed form over those that have one.
        """
        independent = replace(plan, projection=IID())
        known = self.theory(independent)
        if known is None:
            return 1.0
        for n in (min(n_draws, ROUNDS[2]), n_draws):
            seen = self._simulated(independent, n).error
            if seen >= _SEEN * known.error:
                return 1.0
        return known.error / seen if seen > 0 else 1.0


def seconds_per_row(phi: FeatureMap, X: np.ndarray) -> float:
    """Time per row: the best of a few transforms of some hundred rows, in the precision of X."""
    rows = np.resize(X, (_TIMED_ROWS, X.shape[1]))
    phi.queries(rows)  # compilation and caches are not counted
    return min(_time(phi, rows) for _ in range(_TIMES)) / _TIMED_ROWS


def _time(phi: FeatureMap, rows: np.ndarray) -> float:
    start = time.perf_counter()
    phi.queries(rows)
    return time.perf_counter() - start
