"""The pairs of points at which errors are predicted: a sample that stands for the whole Gram matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..kernels import Kernel

ROWS = 96
"""Rows sampled from each side: 9216 pairs."""


@dataclass(frozen=True)
class Sample:
    """Sampled rows, their exact Gram matrix, and how much each entry weighs in the whole one.

    Of a symmetric Gram matrix the diagonal weighs 1/n of all, not one over the rows of the sample: features that are exact
    there shall not look better than they are.
    """

    X: np.ndarray
    Y: np.ndarray
    exact: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(
        cls, X: np.ndarray, Y: np.ndarray | None, kernel: Kernel, rng: np.random.Generator, rows: int = ROWS
    ) -> Sample:
        """Rows drawn without replacement, the same from both sides where Y is None."""
        x = _rows(X, rows, rng)
        y = x if Y is None else _rows(Y, rows, rng)
        with np.errstate(over="ignore"):
            exact = np.asarray(kernel(x, y))
        if not np.isfinite(exact).all():
            raise ValueError(
                f"recommend: {kernel!r} overflows float64 on these data; normalise the rows or lower the scale."
            )
        weights = np.ones(exact.shape)
        if Y is None and len(X) > len(x):
            np.fill_diagonal(weights, (len(x) - 1) / (len(X) - 1))
        return cls(x, y, exact, weights / weights.sum())

    def relative(self, mse: np.ndarray) -> float:
        """Relative Frobenius error: root of the mean squared error over that of the kernel."""
        top = np.abs(self.exact).max() or 1.0
        with np.errstate(over="ignore", invalid="ignore"):
            ratio = (self.weights * (mse / top**2)).sum() / (self.weights * (self.exact / top) ** 2).sum()
        return float(np.sqrt(ratio)) if not np.isnan(ratio) else float("inf")

    def worst(self, mse: np.ndarray) -> float:
        """Root mean squared error of the worst entry, over the largest entry of the kernel."""
        return float(np.sqrt(mse.max()) / (np.abs(self.exact).max() or 1.0))


def _rows(X: Any, rows: int, rng: np.random.Generator) -> np.ndarray:
    points = np.asarray(X)
    if len(points) > rows:
        points = points[np.sort(rng.choice(len(points), rows, replace=False))]
    return points.astype(np.float64)
