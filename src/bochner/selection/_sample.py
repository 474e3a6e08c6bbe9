"""The sample of pairs at which errors are predicted, and its statistics at the kernel's scale."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..kernels import Kernel
from ..theory import Pairs

ROWS = 96  # rows sampled from each side: 9216 pairs
OTHERS = 2000  # further rows of each side, at most, that maps which keep points of the data choose them from


@dataclass(frozen=True)
class Sample:
    """Sampled rows, their exact Gram matrix, the weight of each entry in the full matrix, and some of the other rows.

    The diagonal of a symmetric Gram matrix has a share of 1/n of its entries, and not one over the number of sampled
    rows; otherwise features that are exact on the diagonal would look better than they are.
    """

    X: np.ndarray
    Y: np.ndarray
    exact: np.ndarray
    weights: np.ndarray
    others: tuple[np.ndarray, np.ndarray | None]

    @classmethod
    def of(
        cls, X: np.ndarray, Y: np.ndarray | None, kernel: Kernel, rng: np.random.Generator, rows: int = ROWS
    ) -> Sample:
        """Sample rows without replacement, the same for both sides if Y is None."""
        of_x, of_y = _numbers(len(X), rows, rng), None if Y is None else _numbers(len(Y), rows, rng)
        x = _rows(X, of_x)
        y = x if Y is None else _rows(Y, of_y)
        others = _others(X, of_x, rng), None if Y is None else _others(Y, of_y, rng)
        with np.errstate(over="ignore"):
            exact = np.asarray(kernel(x, y))
        if not np.isfinite(exact).all():
            raise ValueError(
                f"recommend: {kernel!r} overflows float64 on these data; normalise the rows or lower the scale."
            )
        weights = np.ones(exact.shape)
        if Y is None and len(X) > len(x):
            np.fill_diagonal(weights, (len(x) - 1) / (len(X) - 1))
        return cls(x, y, exact, weights / weights.sum(), others)

    def relative(self, mse: np.ndarray) -> float:
        """Relative Frobenius error: root of the mean squared error over that of the kernel."""
        top = np.abs(self.exact).max() or 1.0
        with np.errstate(over="ignore", invalid="ignore"):
            ratio = (self.weights * (mse / top**2)).sum() / (self.weights * (self.exact / top) ** 2).sum()
        return float(np.sqrt(ratio)) if not np.isnan(ratio) else float("inf")

    def worst(self, mse: np.ndarray) -> float:
        """Root mean squared error of the worst entry, over the largest entry of the kernel."""
        return float(np.sqrt(mse.max()) / (np.abs(self.exact).max() or 1.0))


def _numbers(n: int, rows: int, rng: np.random.Generator) -> np.ndarray:
    """Numbers of the sampled rows: all if there are few."""
    return np.sort(rng.choice(n, rows, replace=False)) if n > rows else np.arange(n)


def _rows(X: Any, numbers: Any) -> np.ndarray:
    return np.asarray(np.asarray(X)[numbers], dtype=np.float64)


def _others(X: Any, sampled: Any, rng: np.random.Generator) -> np.ndarray:
    left = np.setdiff1d(np.arange(len(X)), sampled)
    return _rows(X, left[_numbers(len(left), OTHERS, rng)])


@dataclass(frozen=True)
class Facts:
    """Averages over the sampled pairs without the diagonal, with lengths in units of the lengthscale."""

    d: int  # dimension of the points
    norm2: float  # mean, smallest and largest squared norm of points of both sides
    smallest_norm2: float
    largest_norm2: float
    distance2: float  # means of squared distances and of squared norms of sums x + y
    sum2: float
    kernel_mean: float  # mean of the kernel's entries
    diagonal_share: float  # share of the squared Gram matrix that lies on its diagonal; zero if queries and keys differ

    @classmethod
    def of(cls, sample: Sample, kernel: Kernel) -> Facts:
        """The facts of a sample."""
        x, y = (np.asarray(kernel.at_unit_scale(Z)) for Z in (sample.X, sample.Y))
        pairs = Pairs.of(x[:, None], y[None])
        norms = np.concatenate([(x**2).sum(1), (y**2).sum(1)])
        apart = pairs.minus > 0 if (pairs.minus > 0).any() else np.ones_like(pairs.minus, bool)
        return cls(
            d=x.shape[1],
            norm2=float(norms.mean()),
            smallest_norm2=float(norms.min()),
            largest_norm2=float(norms.max()),
            distance2=float(pairs.minus[apart].mean()),
            sum2=float(pairs.plus[apart].mean()),
            kernel_mean=float(sample.exact[apart].mean()),
            diagonal_share=_diagonal_share(sample),
        )

    @property
    def norms_vary(self) -> bool:
        """Whether the longest point is more than twice as long as the shortest."""
        return self.largest_norm2 > 4 * max(self.smallest_norm2, 1e-12)

    def as_dict(self) -> dict[str, Any]:
        """Return what is written as JSON."""
        return asdict(self)


def _diagonal_share(sample: Sample) -> float:
    if sample.X is not sample.Y:
        return 0.0
    squares = sample.weights * (sample.exact / np.abs(sample.exact).max()) ** 2
    return float(np.trace(squares) / squares.sum())
