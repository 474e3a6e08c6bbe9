"""Targets of regression: as columns, in the units they came in, and in the normal equations."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..statistics import RegressionStatistics
from .spectrum import Normal


class Scaling(NamedTuple):
    """What is subtracted from targets, and what they are divided by, (t,) each."""

    shift: np.ndarray
    scale: np.ndarray

    @classmethod
    def of(cls, statistics: RegressionStatistics, *, normalize: bool) -> Scaling:
        """Their mean and standard deviation, if they are to be normalised; a constant target keeps its unit."""
        t = statistics.n_targets
        if not normalize:
            return cls(np.zeros(t), np.ones(t))
        spread = np.sqrt(statistics.target_scatter / statistics.weight)
        rounding = 10 * np.finfo(np.float64).eps * np.abs(statistics.target_mean)
        return cls(statistics.target_mean.copy(), np.where(spread > rounding, spread, 1.0))

    def apply(self, Y: np.ndarray) -> np.ndarray:
        """Targets without their units."""
        scaled: np.ndarray = (Y - self.shift) / self.scale
        return scaled

    def restore(self, Y: np.ndarray) -> np.ndarray:
        """Targets (n, t) with their units."""
        restored: np.ndarray = self.shift + self.scale * Y
        return restored


def normal_equations(statistics: RegressionStatistics, scaling: Scaling) -> Normal:
    """Sums about zero of the features, and of the scaled targets."""
    S, C, T = statistics.moments(centred=True)
    phi, gap, weight = statistics.feature_mean, statistics.target_mean - scaling.shift, statistics.weight
    return Normal(
        S + weight * np.outer(phi, phi),
        (C + weight * np.outer(phi, gap)) / scaling.scale,
        (T + weight * gap**2) / scaling.scale**2,
        statistics.n_rows,
    )


def scaled_alone(Y: np.ndarray, *, normalize: bool) -> np.ndarray:
    """Targets (n, t) by their own scaling."""
    return Scaling.of(RegressionStatistics.of(np.zeros((len(Y), 1)), Y), normalize=normalize).apply(Y)


def columns(y: Any) -> np.ndarray:
    """Targets as a float64 matrix."""
    values = np.asarray(y, dtype=np.float64)
    return values[:, None] if values.ndim == 1 else values
