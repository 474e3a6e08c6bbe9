"""Measures a mechanism on data: error, time, memory, positivity."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from .._random import streams
from ..approximation import Approximation, FeatureMap
from ..kernels import Kernel
from ..selection._applicable import label_of
from ..selection._prediction import Predictor, Rows, seconds_per_row
from ..selection._sample import Sample


@dataclass(frozen=True)
class Measurement:
    """Measurements of one mechanism on the data.

    Attributes
    ----------
    label : str
        Short name of the mechanism.
    spec : str
        The ``repr`` of its specification, which rebuilds it.
    n_features : int
        Width of the features.
    measured, standard_error : float
        Relative Frobenius error of the Gram matrix, root mean square over draws, and its standard error.
    typical : float
        Error of the median draw, the one that is pictured.
    n_draws : int
        Number of draws; more where it is close.
    predicted : float
        The same before drawing.
    source : {"theory", "simulation"}
        How it was predicted.
    seconds_per_row : float
        Time of the features.
    nbytes : int
        Bytes of the drawn numbers.
    positive, symmetric, unbiased : bool
    """

    label: str
    spec: str
    n_features: int
    measured: float
    standard_error: float
    typical: float
    n_draws: int
    predicted: float
    source: str
    seconds_per_row: float
    nbytes: int
    positive: bool
    symmetric: bool
    unbiased: bool

    @property
    def rare(self) -> bool:
        """Whether draws too rare to be sampled dominate the error, so that it is predicted far above the measured one."""
        return self.predicted > 2 * (self.measured + 2 * self.standard_error)

    @property
    def ranked(self) -> float:
        """The error by which mechanisms are ordered: the predicted one if a few draws miss what dominates it."""
        return self.predicted if self.rare else self.measured

    def as_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        return asdict(self)


class Ground:
    """The rows on which errors are predicted and measured, with their exact Gram matrix."""

    def __init__(self, X: np.ndarray, Y: np.ndarray | None, kernel: Kernel, rows: int, seed: int) -> None:
        sample = Sample.of(X, Y, kernel, np.random.default_rng(seed), rows)
        self.X = sample.X.astype(X.dtype)
        self.Y = self.X if Y is None else sample.Y.astype(X.dtype)
        self.kernel, self.exact, self.others, self.seed = kernel, sample.exact, sample.others, seed
        self.predictor = Predictor(replace(sample, weights=np.full(sample.exact.shape, 1 / sample.exact.size)), seed)
        self._rows = Rows(X.shape[1], int(streams(seed, "measure")[0].integers(2**31)))
        self._errors: dict[Approximation, list[float]] = {}

    def draw(self, plan: Approximation, k: int) -> FeatureMap:
        """The k-th draw that is measured."""
        return self._rows.draw(plan, k)

    def errors(self, plan: Approximation, n_draws: int) -> np.ndarray:
        """Relative Frobenius errors of independent draws; those of an earlier call are not drawn again."""
        known = self._errors.setdefault(plan, [])
        for k in range(len(known), n_draws):
            with np.errstate(over="ignore", invalid="ignore"):
                gram = self.draw(plan, k).gram(self.X, self.Y)
                known.append(float(np.linalg.norm(gram - self.exact) / np.linalg.norm(self.exact)))
        return np.array(known[:n_draws])

    def median_draw(self, plan: Approximation, n_draws: int) -> int:
        """Number of the draw with the median error, the lower one of two."""
        return int(np.argsort(self.errors(plan, n_draws), kind="stable")[(n_draws - 1) // 2])


def measure(spec: Approximation, plan: Approximation, ground: Ground, n_draws: int) -> Measurement:
    """Everything about one mechanism."""
    phi, expected = ground.draw(plan, 0), ground.predictor(plan)
    return Measurement(
        label=label_of(spec),
        spec=repr(spec),
        n_features=plan.n_features_out,
        **_errors(plan, ground, n_draws),
        predicted=expected.error,
        source=expected.source,
        seconds_per_row=seconds_per_row(phi, ground.X),
        nbytes=phi.nbytes,
        positive=plan.positive,
        symmetric=plan.symmetric,
        unbiased=plan.unbiased,
    )


def measured_again(known: Measurement, plan: Approximation, ground: Ground, n_draws: int) -> Measurement:
    """The same mechanism with more draws."""
    return replace(known, **_errors(plan, ground, n_draws))


def _errors(plan: Approximation, ground: Ground, n_draws: int) -> dict[str, Any]:
    errors = ground.errors(plan, n_draws)
    squares = errors**2
    error = float(np.sqrt(squares.mean()))
    return {
        "measured": error,
        "standard_error": float(squares.std(ddof=1) / np.sqrt(n_draws)) / (2 * error) if error > 0 else 0.0,
        "typical": float(errors[ground.median_draw(plan, n_draws)]),
        "n_draws": n_draws,
    }
