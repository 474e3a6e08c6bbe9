"""The result of a kernel test, and what both tests share: their features, and rows in blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import catalogue
from .._arrays import as_numpy
from .._validation import as_host_rows, as_real, check_instance, check_points
from ..approximation import FeatureMap
from ..kernels import Kernel, resolve_bandwidth

_FLOAT32_RANGE = 1e-30, 1e30  # of the largest number of a column: beyond, differences of rows leave float32
BLOCK = 4096
"""Rows that are permuted among each other: labels of one block are in the cache, and more rows add no power."""


@dataclass(frozen=True)
class KernelTest:
    """Result of a kernel test.

    Attributes
    ----------
    statistic : float
        Estimate of the squared discrepancy, without bias for two samples.
    p_value : float
        Probability of a statistic as large as this one if there is no difference, or no dependence.  Exact: it is at most a
        with probability a, for every sample size and number of features.
    null : float64 array (n_permutations,)
        The statistics of the permuted rows, on the scale of ``observed``.
    observed : float
        The statistic that is compared with them, which is not corrected for bias.
    directions : float64 array (d, d) or None
        Two samples: unit vectors as rows, from the direction along which the samples differ most to the one along which
        they differ least.
    shares : float64 array (d,) or None
        The share of each direction in the squared gradient of the witness function.
    """

    statistic: float
    p_value: float
    null: np.ndarray
    observed: float
    directions: np.ndarray | None = None
    shares: np.ndarray | None = None

    def __repr__(self) -> str:
        return f"KernelTest(statistic={self.statistic:.4g}, p_value={self.p_value:.4g})"


def compared(observed: float, null: np.ndarray) -> float:
    """The exact p-value: the rank of the observed statistic among itself and the permuted ones, ties against us."""
    tolerance = 1e-9 * max(abs(observed), float(np.abs(null).max(initial=0.0)))  # equal but for the order of a sum
    return float(1 + np.count_nonzero(null >= observed - tolerance)) / (len(null) + 1)


def as_rows(owner: str, name: str, X: Any) -> np.ndarray:
    """Rows (n, d) as a NumPy array; a vector is one column."""
    X = as_host_rows(owner, X)
    X = as_numpy(as_real(owner, X.toarray() if hasattr(X, "toarray") else X))
    X = check_points(owner, X[:, None] if X.ndim == 1 else X)
    if X.ndim != 2:
        raise ValueError(f"{owner}: {name} must be a matrix of rows, got shape {X.shape}.")
    largest = float(max(X.max(), -X.min()))
    if largest > np.finfo(np.float64).max / (8 * len(X)):
        raise ValueError(
            f"{owner}: {name} holds numbers of up to {largest:.1e}, whose sums overflow; rescale the columns."
        )
    return np.asarray(X)


def kernel_for(owner: str, kernel: Any, X: np.ndarray, rng: np.random.Generator) -> Kernel:
    """The kernel of the difference, whose bandwidth is the median distance between rows if it is given by name."""
    if isinstance(kernel, str):
        try:
            found = catalogue.kernel(kernel)
        except ValueError as error:
            raise ValueError(f"{owner}: {error}") from None
        kernel = resolve_bandwidth(found, "median" if found.default_rule else None, X, rng=rng, owner=owner)
    check_instance(owner, "kernel", kernel, Kernel, "kernels.Gaussian()")
    if not kernel.shift_invariant:
        raise ValueError(
            f"{owner}: kernel must be one of the difference x - y, such as kernels.Gaussian(), got {kernel!r}."
        )
    return kernel  # type: ignore[no-any-return]


def check_features(owner: str, name: str, features: Any) -> FeatureMap:
    """Raise an error if these are not drawn pairs of cosines and sines, whose squares sum to one."""
    check_instance(owner, name, features, FeatureMap, "Approximation(kernels.Gaussian()).draw(d)")
    width, rows = features.n_features_out, features.spec.n_projections
    if features.spec.map.name != "trigonometric" or width != 2 * rows or not features.spec.kernel.shift_invariant:
        raise ValueError(
            f"{owner}: {name} must be pairs of cosines and sines, Approximation(kernel).draw(d) for a kernel of the "
            f"difference, got {features!r}."
        )
    return features  # type: ignore[no-any-return]


def check_mergeable(owner: str, ours: FeatureMap, theirs: FeatureMap, sums: np.ndarray, others: np.ndarray) -> None:
    """Raise a ValueError if two tests do not have the same features and number of permutations."""
    arrays, found = ours.to_arrays(), theirs.to_arrays()
    same = ours.spec == theirs.spec and all(np.array_equal(arrays[name], found.get(name, ())) for name in arrays)
    if not same or sums.shape != others.shape:
        raise ValueError(
            f"{owner}.merge: both tests must have the same drawn features and number of permutations, got "
            f"{ours!r} with {len(sums) - 1} and {theirs!r} with {len(others) - 1}."
        )


def centred(mean: np.ndarray, *samples: np.ndarray) -> list[np.ndarray]:
    """Rows about a point in float32, which is enough for cosines of points that are not far; no statistic changes.

    Columns whose numbers float32 would make zero or infinite keep their precision.
    """
    rows = [X - mean for X in samples]
    sizes = np.max([np.maximum(X.max(axis=0), -X.min(axis=0)) for X in rows], axis=0)
    in_range = (sizes == 0) | ((sizes > _FLOAT32_RANGE[0]) & (sizes < _FLOAT32_RANGE[1]))
    return [X.astype(np.float32) for X in rows] if in_range.all() else rows


def check_width(owner: str, name: str, X: np.ndarray, d: int) -> None:
    """Raise a ValueError if rows do not have the columns that the features were drawn for."""
    if X.shape[1] != d:
        raise ValueError(f"{owner}: {name} must have {d} columns, those of the features, got {X.shape[1]}.")


def blocks(n: int, n_blocks: int, rng: np.random.Generator) -> list[np.ndarray]:
    """The numbers 0 to n - 1 in random order, in as many parts."""
    return np.array_split(rng.permutation(n), n_blocks)
