"""Rows of the data as landmarks: distinct ones, and randomly pivoted Cholesky by rejection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..kernels import Kernel
from ..linalg.engine import for_each_tile, single_threaded_blas

_BATCH, _LARGEST_BATCH = 64, 512
"""Fewest and most proposals at a time: the cost of comparing them with each other grows with their square."""
_TILE = 1024  # rows whose residuals are computed at a time


def distinct(rows: Callable[[np.ndarray], np.ndarray], order: np.ndarray, m: int) -> np.ndarray:
    """The first m rows in an order that differ from all before them, or as many as there are, in float64."""
    found: dict[bytes, np.ndarray] = {}
    for start in range(0, len(order), m):
        for row in rows(order[start : start + m]):
            found.setdefault((row + 0).tobytes(), row)  # -0 and 0 are the same number
            if len(found) == m:
                break
        else:
            continue
        break
    return np.array(list(found.values()), dtype=np.float64)


Rows = Callable[[Any], np.ndarray]  # from numbers of rows, or a slice of them, to these rows (n, d)


def rpcholesky(unit: Kernel, rows: Rows, n: int, m: int, rng: np.random.Generator) -> np.ndarray:
    """Numbers of m pivots among n rows, each drawn in proportion to the residual diagonal of those before it.

    Proposals are drawn in batches from a residual diagonal that may be out of date, and accepted with the share of their
    diagonal that is left when their turn comes: the law is that of one pivot at a time.  A proposal costs kernel values
    with the pivots only.  The residuals of all rows are brought up to date where the proposals that this saves would cost
    more.  Fewer pivots where nothing is left.
    """
    with single_threaded_blas:
        search = _Search(unit, rows, n, m)
        while search.k < m and search.left.sum() > search.floor:
            rate = search.propose(rng)
            if not rate and search.k == search.known:  # up to date, and all refused: nothing but rounding is left
                break
            if search.k < m and search.update_pays(rate):
                search.update()
    return search.pivots[: search.k]


class _Search:
    """A pivoted Cholesky factorisation whose factor is known for the pivots, and up to a column for all rows.

    Attributes
    ----------
    k, known : int
        Number of pivots, and of those that ``left`` and ``factor`` account for.
    pivots : int array (m,)
        Numbers of the pivots.
    left : array (n,)
        Residual diagonal after the first ``known`` pivots; zero at all pivots.
    factor : array (m, n)
        Its first ``known`` rows are the columns of the factor, for all rows of the data.
    own : array (m, m)
        The rows of the factor at the k pivots, a triangle.
    """

    def __init__(self, unit: Kernel, rows: Rows, n: int, m: int) -> None:
        self.unit, self.rows, self.n, self.m, self.k, self.known, self.size = unit, rows, n, m, 0, 0, min(_BATCH, m)
        with np.errstate(over="ignore"):
            self.left = np.ones(n) if unit.shift_invariant else np.array(unit.diagonal(self.points(slice(None))))
        if not np.isfinite(self.left.sum()):
            raise ValueError(f"Landmarks: {unit!r} overflows on the data; rescale them.")
        self.floor = self.left.sum() * n * np.finfo(np.float64).eps
        self.pivots, self.own, self.factor = np.zeros(m, dtype=np.int64), np.zeros((m, m)), np.empty((m, n))

    def propose(self, rng: np.random.Generator) -> float:
        """Draw a batch of proposals, append those accepted to the pivots, and return their share."""
        numbers = rng.choice(self.n, self.size, p=self.left / self.left.sum())
        new, Z = slice(self.known, self.k), np.empty((self.size, self.k))
        points = self.points(np.concatenate([numbers, self.pivots[new]]))
        K = self.unit.columns(points[: self.size])(points)
        Z[:, : self.known] = self.factor[: self.known, numbers].T
        if self.k > self.known:
            Z[:, new] = self._solved(K[self.size :].T, Z[:, : self.known]).T
        accepted, L, tried = _accepted(K[: self.size] - Z @ Z.T, self.left[numbers], numbers, self.m - self.k, rng)
        added = slice(self.k, self.k + len(accepted))
        self.pivots[added], self.own[added, : self.k], self.own[added, added] = numbers[accepted], Z[accepted], L
        self.left[numbers[accepted]] = 0
        self.k = added.stop
        rate = len(accepted) / tried
        wanted = (self.m - self.k) / max(rate, 0.1)
        self.size = int(min(max(_BATCH, min(self.k, _LARGEST_BATCH)), 1.1 * wanted + 8))
        return rate

    def update_pays(self, rate: float) -> bool:
        """Whether proposals refused from now on would cost more kernel values than an update; all cost the same."""
        refused = (self.m - self.k) * (1 / max(rate, 1e-9) - 1)
        return refused * (self.k + self.size) > self.n * (self.k - self.known)

    def update(self) -> None:
        """Compute the columns of the factor of new pivots for all rows, and what they leave."""
        new = slice(self.known, self.k)
        columns = self.unit.columns(self.points(self.pivots[new]))

        def tile(i: int, j: int) -> None:
            part = self._solved(columns(self.points(slice(i, j))), self.factor[: self.known, i:j].T)
            self.factor[new, i:j] = part
            self.left[i:j] -= np.einsum("kn,kn->n", part, part)

        for_each_tile(self.n, _TILE, tile)
        self.left = np.maximum(self.left, 0)
        self.left[self.pivots[: self.k]] = 0
        self.known = self.k

    def points(self, numbers: np.ndarray | slice) -> np.ndarray:
        """Rows in float64."""
        return self.rows(numbers).astype(np.float64, copy=False)

    def _solved(self, K: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """Columns of the factor of new pivots, transposed, at rows with these kernel values K and known columns Z."""
        from scipy.linalg import solve_triangular

        new = slice(self.known, self.k)
        residual = K - Z @ self.own[new, : self.known].T
        return np.asarray(solve_triangular(self.own[new, new], residual.T, lower=True, check_finite=False))


def _accepted(
    H: np.ndarray, bounds: np.ndarray, numbers: np.ndarray, most: int, rng: np.random.Generator
) -> tuple[list[int], np.ndarray, int]:
    """Which proposals are accepted, in order, the Cholesky factor of their residual Gram matrix H, and how many were tried.

    A proposal is accepted with what is left of its diagonal over its ``bounds``; one row of the data only once.
    """
    left, thresholds = np.diag(H).copy(), rng.random(len(H)) * bounds
    accepted: list[int] = []
    columns, taken = np.zeros((len(H), min(len(H), most))), set()
    for i, number in enumerate(numbers):
        if left[i] <= thresholds[i] or number in taken:
            continue
        a, root = len(accepted), np.sqrt(left[i])
        column = (H[i:, i] - columns[i:, :a] @ columns[i, :a]) / root
        column[0] = root
        columns[i:, a] = column
        left[i:] -= column**2
        accepted.append(i)
        taken.add(number)
        if len(accepted) == most:
            break
    return accepted, columns[accepted, : len(accepted)], i + 1
