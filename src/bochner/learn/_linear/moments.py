"""Means and second moments of features and targets, which are sufficient for a linear fit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from ...linalg.cholesky import room_for_triangle
from ...linalg.engine import for_each_tile, single_threaded_blas

_COLUMNS = 320
"""Columns of a block of the scatter matrix: enough for BLAS to reach its speed, few enough to share among threads."""
# Rows of a tile about their mean, and of a block when a triangle is copied to the other: a few MB
_ROWS, _MIRRORED = 512, 1024

Part = tuple[np.ndarray, np.ndarray, np.ndarray | None]  # features (n, D), targets (n, t), and weights (n,) or None


@dataclass(frozen=True)
class Moments:
    r"""Weighted means and centred second moments of features :math:`\phi` and targets y.

    Moments are immutable; ``a + b`` returns the moments of both sets of rows.

    Notes
    -----
    With weights :math:`w_i` (ones, or repetitions) and :math:`W = \sum w_i`,

    .. math:: \bar\phi = \tfrac1W \sum w_i\phi_i, \quad S = \sum w_i(\phi_i-\bar\phi)(\phi_i-\bar\phi)^T, \quad
              C = \sum w_i(\phi_i-\bar\phi)(y_i-\bar y)^T, \quad T = \sum w_i(y_i-\bar y)^2.

    Two parts of the rows merge by Chan's update :math:`S = S_a + S_b + \tfrac{W_aW_b}{W}\,\delta\delta^T`,
    :math:`\delta = \bar\phi_b - \bar\phi_a`, which never subtracts large numbers; so rows can come in any chunks, in
    any order, from any machine, and the sums agree to rounding.  Products of a chunk are taken about its own mean, in
    float64, or in float32 where the features are float32 and the caller asks for no more; they are added in float64.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> Phi, y = rng.standard_normal((100, 3)), rng.standard_normal((100, 1))
    >>> whole, parts = Moments.of(Phi, y), Moments.of(Phi[:30], y[:30]) + Moments.of(Phi[30:], y[30:])
    >>> bool(np.allclose(whole.scatter, parts.scatter)), whole.n_rows
    (True, 100)
    """

    n_rows: int  # number of rows
    weight: float  # sum of their weights
    # number of observations that they count as: a weight that is a whole number counts as that many, another weight
    # as one
    units: float
    feature_mean: np.ndarray  # (D,): mean of the features
    target_mean: np.ndarray  # (t,): mean of the targets
    upper: np.ndarray = field(repr=False)  # (D, D): S above the diagonal; see `scatter`
    cross: np.ndarray = field(repr=False)  # (D, t): matrix C of products of features and targets
    target_scatter: np.ndarray  # (t,): squares T of the targets
    rounding: float  # relative rounding error of the features
    # bound on the norm of the rounding error of S, where it is more than that of the products of the features
    blur: float = 0.0

    @classmethod
    def of(
        cls, features: np.ndarray, targets: np.ndarray, weights: np.ndarray | None = None, *, exact: bool = True
    ) -> Moments:
        """Moments of features (n, D) and targets (n, t), with weights (n,) or each one; ``exact`` as in `collect`."""
        return cls.collect([(features, targets, weights)], features.shape[1], targets.shape[1], exact=exact)

    @classmethod
    def collect(cls, parts: Iterable[Part], n_features: int, n_targets: int, *, exact: bool = True) -> Moments:
        """Moments of rows that come in parts.

        Parameters
        ----------
        parts : iterable of (features, targets, weights)
        n_features, n_targets : int
            D and t.
        exact : bool
            Whether products are computed in float64 even for float32 features: the error of a float32 product exceeds
            the small eigenvalues on which the criteria for alpha depend.
        """
        sums = Sums(n_features, n_targets)
        for features, targets, weights in parts:
            sums.add_rows(features, targets, weights, exact=exact)
        return sums.frozen()

    @classmethod
    def total(cls, parts: Iterable[Moments], n_features: int, n_targets: int) -> Moments:
        """Moments of all rows of these moments, in their order."""
        sums = Sums(n_features, n_targets)
        for part in parts:
            sums.add(part)
        return sums.frozen()

    @property
    def n_features(self) -> int:
        """Width D."""
        return len(self.feature_mean)

    @property
    def n_targets(self) -> int:
        """Number of targets t."""
        return len(self.target_mean)

    @property
    def scatter(self) -> np.ndarray:
        """S in full."""
        S = np.triu(self.upper)
        for i in range(0, len(S), _MIRRORED):  # without a copy of a large matrix
            j = i + _MIRRORED
            S[i:j, i:j] += np.triu(S[i:j, i:j], 1).T
            S[j:, i:j] = S[i:j, j:].T
        return S

    def of_products(self, matrix: np.ndarray, blur: float) -> Moments:
        """Moments of the features times an upper triangular matrix (D, E), with a rounding error of this norm."""
        S, (p, D) = self.scatter, matrix.shape
        half, upper = np.empty((p, D)), np.zeros((D, D))

        def columns(start: int, stop: int) -> None:
            np.matmul(S[:, :stop], matrix[:stop, start:stop], out=half[:, start:stop])
            for i in range(0, stop, _COLUMNS):
                j = min(i + _COLUMNS, D)
                np.matmul(matrix[:j, i:j].T, half[:j, start:stop], out=upper[i:j, start:stop])

        for_each_tile(D, _COLUMNS, columns)
        with single_threaded_blas:
            mean, cross = self.feature_mean @ matrix, matrix.T @ self.cross
        return replace(self, feature_mean=mean, upper=upper, cross=cross, blur=self.blur + blur)

    def __add__(self, other: object) -> Moments:
        if not isinstance(other, Moments):
            return NotImplemented
        if (self.n_features, self.n_targets) != (other.n_features, other.n_targets):
            raise ValueError(
                f"Moments: only those of the same features and targets can be added, got {self.n_features} features, "
                f"{self.n_targets} targets and {other.n_features} features, {other.n_targets} targets."
            )
        return Moments.total((self, other), self.n_features, self.n_targets)


class Sums:
    """Moments in the making: the one place where they change."""

    def __init__(self, n_features: int, n_targets: int) -> None:
        D, t = n_features, n_targets
        self.n_rows, self.weight, self.units = 0, 0.0, 0.0
        self.feature_mean, self.target_mean = np.zeros(D), np.zeros(t)
        self.cross, self.target_scatter = np.zeros((D, t)), np.zeros(t)
        self.upper = room_for_triangle(D, np.dtype(np.float64))
        self.rounding, self.blur = float(np.finfo(np.float64).eps), 0.0

    def frozen(self) -> Moments:
        """What was added, which nobody changes any more."""
        for array in (self.feature_mean, self.target_mean, self.upper, self.cross, self.target_scatter):
            array.flags.writeable = False
        return Moments(**vars(self))

    def add_rows(
        self,
        features: np.ndarray,
        targets: np.ndarray,
        weights: np.ndarray | None,
        *,
        exact: bool,
        room: np.ndarray | None = None,
    ) -> None:
        """Add rows; ``room`` for one row more than that is overwritten, and may hold the features themselves."""
        w = np.ones(len(features)) if weights is None else weights.astype(np.float64)
        weight = float(w.sum())
        self.n_rows += len(features)
        self.units += units_of(w)
        self.rounding = max(self.rounding, float(np.finfo(features.dtype).eps))
        if weight == 0:
            return
        roots = None if weights is None else np.sqrt(w)
        rows, phi = _centred(features, w, roots, np.dtype(np.float64) if exact else features.dtype, room)
        Y, y = _centred(targets.astype(np.float64), w, roots, np.dtype(np.float64))
        delta, gap, root = self._shift(phi, y, weight)
        rows[-1], Y[-1] = root * delta, root * gap  # one more row carries the shift of the means: Chan's correction
        self._add_products(rows, Y)

    def add(self, other: Moments) -> None:
        """Add moments of other rows."""
        self.n_rows += other.n_rows
        self.units += other.units
        self.rounding, self.blur = max(self.rounding, other.rounding), self.blur + other.blur
        if other.weight == 0:
            return
        delta, gap, root = self._shift(other.feature_mean, other.target_mean, other.weight)
        self.upper += other.upper
        self.upper += np.outer(root * delta, root * delta)
        self.cross += other.cross + np.outer(root * delta, root * gap)
        self.target_scatter += other.target_scatter + (root * gap) ** 2

    def _shift(self, phi: np.ndarray, y: np.ndarray, weight: float) -> tuple[np.ndarray, np.ndarray, float]:
        """Move the means to those of both parts; the gaps between them, and the root of their weight."""
        total = self.weight + weight
        delta, gap = phi - self.feature_mean, y - self.target_mean
        root = float(np.sqrt(self.weight * (weight / total)))
        self.feature_mean = self.feature_mean + (weight / total) * delta
        self.target_mean = self.target_mean + (weight / total) * gap
        self.weight = total
        return delta, gap, root

    def _add_products(self, rows: np.ndarray, Y: np.ndarray) -> None:
        D = len(self.feature_mean)

        def block(first: int, last: int) -> None:
            start, stop = D - last, D - first  # the longest columns first, so that threads end together
            columns = rows[:, start:stop]
            self.upper[:start, start:stop] += rows[:, :start].T @ columns
            self.upper[start:stop, start:stop] += columns.T @ columns  # symmetric, which BLAS uses
            self.cross[start:stop] += columns.T @ Y.astype(rows.dtype, copy=False)

        for_each_tile(D, _COLUMNS, block)
        self.target_scatter += np.einsum("nt,nt->t", Y, Y)


def units_of(weights: np.ndarray) -> float:
    """Observations that rows of these weights count as: whole numbers are repetitions, other weights one observation.

    Examples
    --------
    >>> import numpy as np
    >>> units_of(np.array([3.0, 0.5, 2.5, 0.0]))
    5.0
    """
    return float(np.where(_whole(weights), weights, 1.0).sum())


def _whole(weights: np.ndarray) -> np.ndarray:
    return np.asarray(weights == np.rint(weights))


def _centred(
    values: np.ndarray, w: np.ndarray, roots: np.ndarray | None, dtype: np.dtype, room: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Rows about their mean, times roots of weights, with room for one more, in ``dtype``; and the mean in float64.

    Rows are taken about the mean as the precision of the values gives it; what then remains of it is small, and known
    to as many digits again.  Its square is beyond the digits of the products.
    """
    n = len(values)
    out = np.empty((n + 1, values.shape[1]), dtype) if room is None else room[: n + 1]
    with single_threaded_blas:  # the number of threads cannot change a bit
        centre = (w.astype(values.dtype) @ values) / values.dtype.type(w.sum())

    def tile(start: int, stop: int) -> None:
        np.subtract(values[start:stop], centre, out=out[start:stop], dtype=dtype)
        if roots is not None:
            out[start:stop] *= roots[start:stop, None].astype(dtype)

    for_each_tile(n, _ROWS, tile)
    with single_threaded_blas:
        rest = (np.ones(n) if roots is None else roots).astype(dtype) @ out[:n]
    return out, centre + rest.astype(np.float64) / w.sum()
