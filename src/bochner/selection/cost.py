"""Measured time of features, a row."""

from __future__ import annotations

import time

import numpy as np

from ..approximation import Approximation, FeatureMap

_ROWS = 512
_REPEATS = 3


def seconds_per_row(spec: Approximation, X: np.ndarray, Y: np.ndarray, seed: int) -> tuple[float, FeatureMap]:
    """Best of a few transforms of some hundred rows, in the precision of X; and the drawn features."""
    phi = spec.fit(X, Y, rng=seed)
    rows = np.resize(X, (_ROWS, X.shape[1]))
    phi.queries(rows)  # compilation and caches are not counted
    return min(_time(phi, rows) for _ in range(_REPEATS)) / _ROWS, phi


def _time(phi: FeatureMap, rows: np.ndarray) -> float:
    start = time.perf_counter()
    phi.queries(rows)
    return time.perf_counter() - start
