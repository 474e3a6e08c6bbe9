"""Expectations under isotropic laws, with standard errors from independent blocks."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._arrays import as_numpy
from .._random import RNG, entropy_of, numbered_stream
from .._validation import as_real, check_count, check_flag, check_positive, shown
from ..catalogue import as_projection
from ..kernels import Kernel
from ..linalg.engine import rows_per_tile
from ..projections import IID, Operator, Orthogonal, Projection
from ..rotations import Haar, StructuredGivens

_LARGEST_HAAR = 64  # dimension up to which Haar blocks, which need no padding, are cheap enough to be the default


@dataclass(frozen=True)
class Expectation:
    """An estimate of E f(X).

    Attributes
    ----------
    value : float or array
        The estimate, of the shape of what f returns.
    standard_error : float or array
        Its standard error, from the spread of the independent blocks.
    n_blocks : int
        Independent blocks.
    n_evaluations : int
        Evaluations of f.
    """

    value: Any
    standard_error: Any
    n_blocks: int
    n_evaluations: int


def expectation(
    f: Callable[[np.ndarray], Any],
    d: int,
    *,
    law: str | Kernel = "gaussian",
    projection: Projection | str | None = None,
    n: int | None = None,
    n_blocks: int = 16,
    batched: bool = False,
    tolerance: float | None = None,
    max_blocks: int = 10_000,
    rng: RNG = None,
) -> Expectation:
    r"""Estimate E f(X) for a random vector X of isotropic law, by averages over coupled points.

    Orthogonal points are less redundant than independent ones, so the same number of evaluations usually gives a
    smaller error; the result says how large it is.

    Parameters
    ----------
    f : callable
        The function: of a vector (d,), or with ``batched=True`` of a matrix (k, d) with one value per row.  A value is a
        number or an array.
    d : int
        Dimension of X.
    law : {"gaussian", "sphere"} or Kernel
        N(0, I), the uniform law on the unit sphere, or the law of a kernel's random rows: for shift-invariant kernels the
        spectral law, under which :math:`E\cos(X\cdot(x - y)) = k(x, y)`.
    projection : Projection or str, optional
        How points are coupled.  By default orthogonal blocks: Haar up to d = 64, `StructuredGivens` above; independent
        points for kernels whose spectral law is not radial.
    n : int, optional
        Points per block; d by default, or a whole rule of a quadrature.
    n_blocks : int
        Independent blocks, at least 2.
    batched : bool
        Whether f takes matrices.
    tolerance : float, optional
        Add blocks until the standard error, the largest one of an array, is at most this.
    max_blocks : int
        Largest number of blocks with ``tolerance``; a RuntimeWarning is issued if they do not suffice.
    rng : int, numpy.random.Generator or None
        Source of randomness.

    Returns
    -------
    Expectation
        The estimate with its standard error.

    Notes
    -----
    Each block is one draw of the projection: :math:`\hat\mu_b = \sum_i a_i f(x_i)` with weights 1/n, or those of a
    quadrature, whose nodes also come reflected and with one at zero.  The estimate is the mean of the blocks and unbiased if
    ``projection.unbiased`` (for the sphere, if ``projection.uniform_directions``); the standard error is their sample
    deviation over the root of their number.  Blocks may be adaptive in number, which biases the result slightly, by a
    fraction of the tolerance.

    Block k is a pure function of the seed and of k: adding blocks leaves the first ones as they were.

    References
    ----------
    OMC Section 2.

    Examples
    --------
    >>> import bochner
    >>> found = bochner.expectation(lambda x: x @ x, 10, law="sphere", rng=0)
    >>> round(float(found.value), 12), found.n_evaluations
    (1.0, 160)
    """
    owner = "expectation"
    if not callable(f):
        raise TypeError(f"{owner}: f must be a function of one vector, got {shown(f)}.")
    if not (isinstance(law, Kernel) or (isinstance(law, str) and law in ("gaussian", "sphere"))):
        raise ValueError(f"{owner}: law must be 'gaussian', 'sphere' or a kernel, got {shown(law)}.")
    d, n_blocks = check_count(owner, "d", d), check_count(owner, "n_blocks", n_blocks, 2)
    check_flag(owner, "batched", batched)
    goal = math.inf if tolerance is None else check_positive(owner, "tolerance", tolerance)
    max_blocks = check_count(owner, "max_blocks", max_blocks, n_blocks)
    points = _default(d, law) if projection is None else as_projection(owner, projection)
    n = max(d, points.rows_per_rule(d)) if n is None else check_count(owner, "n", n)
    blocks = _Blocks(f, d, n, law, points, batched, entropy_of(rng))
    blocks.extend(n_blocks)
    while not np.all(blocks.standard_error() <= goal) and len(blocks.means) < max_blocks:
        blocks.extend(min(_needed(blocks, goal), max_blocks))
    error = blocks.standard_error()
    if not np.all(error <= goal):
        warnings.warn(
            f"{owner}: {max_blocks} blocks leave a standard error of {np.max(error):.3g}, above the tolerance of {goal:g}; "
            f"raise max_blocks or n.",
            RuntimeWarning,
            stacklevel=2,
        )
    value = np.mean(blocks.means, axis=0)
    return Expectation(value[()], error[()], len(blocks.means), blocks.n_evaluations)


class _Blocks:
    """Means of independent blocks, of which more can be made."""

    def __init__(
        self,
        f: Callable[[np.ndarray], Any],
        d: int,
        n: int,
        law: str | Kernel,
        projection: Projection,
        batched: bool,
        entropy: tuple[int, ...],
    ) -> None:
        self._f, self._shape, self._law, self._projection = f, (d, n), law, projection
        self._batched, self._entropy = batched, entropy
        self.means: list[np.ndarray] = []
        self.n_evaluations = 0

    def extend(self, n_blocks: int) -> None:
        """Make blocks until there are that many."""
        kernel = self._law if isinstance(self._law, Kernel) else None
        for k in range(len(self.means), n_blocks):
            self.means.append(
                self._mean(self._projection.sample(*self._shape, numbered_stream(self._entropy, k), kernel=kernel))
            )

    def standard_error(self) -> np.ndarray:
        """Standard error of the mean over all blocks."""
        return np.asarray(np.std(self.means, axis=0, ddof=1) / math.sqrt(len(self.means)))

    def _mean(self, operator: Operator) -> np.ndarray:
        """Weighted mean of f over the points of one draw."""
        sphere = isinstance(self._law, str) and self._law == "sphere"
        n, d = operator.shape
        weights = np.full(n, 1 / n) if sphere else operator.weights
        total, step = np.zeros(()), rows_per_tile(8 * d)
        for start in range(0, n, step):
            X = operator.rows(start, min(start + step, n))
            if sphere:
                X /= np.linalg.norm(X, axis=1, keepdims=True)
            elif isinstance(self._law, Kernel):
                X = self._law.scaled(X)
            values = self._values(X)
            if operator.reflected:
                values = (values + self._values(-X)) / 2
            total = total + np.tensordot(weights[start : start + step], values, axes=(0, 0))
        if operator.origin and not sphere:
            total = total + operator.origin_weight * self._values(np.zeros((1, d)))[0]
        return np.asarray(total)

    def _values(self, X: np.ndarray) -> np.ndarray:
        """Values at rows of X, (k, ...)."""
        self.n_evaluations += len(X)
        found = self._f(X) if self._batched else [self._f(x) for x in X]
        values = np.asarray(as_numpy(as_real("expectation: values of f", found)), dtype=np.float64)
        if values.shape[:1] != (len(X),):
            raise ValueError(
                f"expectation: with batched=True f must return one value per row, here {len(X)}, got shape {values.shape}."
            )
        if not np.isfinite(values).all():
            row = int(np.argmin(np.isfinite(values).reshape(len(X), -1).all(axis=1)))
            raise ValueError(
                f"expectation: f must return finite numbers, got {shown(values[row].tolist())} "
                f"at x = {shown(X[row].tolist())}."
            )
        return values


def _needed(blocks: _Blocks, goal: float) -> int:
    """Blocks that the present spread asks for: at least a tenth more, at most twice as many."""
    ratio = float(np.max(blocks.standard_error())) / goal
    now = len(blocks.means)
    return math.ceil(now * min(max(ratio**2, 1.1), 2.0)) if math.isfinite(ratio) else 2 * now


def _default(d: int, law: str | Kernel) -> Projection:
    if isinstance(law, Kernel) and law.spectrum == "product":
        return IID()
    return Orthogonal(Haar() if d <= _LARGEST_HAAR else StructuredGivens())
