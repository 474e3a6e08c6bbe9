"""The affine change of coordinates between the rows of an estimator and its features.

Standardised columns, a given metric and a learned one are all a centre, a scale of each column, a limit, and a matrix.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from ..approximation import FeatureMap
from ._row_source import RowSource

_BEYOND = 0.1  # share of the range of a column beyond which rows are clipped: a smooth kernel may extrapolate wildly
_LONG_TAIL = 5.0
"""Robust deviations from the median from which a column has a long tail: normal ones have no such number in a million."""
_MOST_STRETCHED = 4.0  # largest scale of zeros and ones: that of a level in six of a hundred rows
_SAMPLE_ROWS = 8192  # rows to which columns are looked at for wild cells and long tails
_SAME_SCALE = 1.5  # ratio of the deviations of columns up to which it does not matter whether they are standardised
_OUTLYING, _LIMIT = 8.0, 5.0
"""Standard deviations from which clipping is tried, and where columns are clipped, in robust deviations."""
_CATEGORY_FACTORS = (0.5, 2.0)  # scales of categories beside that of a standardised column
STANDARD, CLIPPED, COMPRESSED, RAW = "standardised", "clipped", "compressed", "as they are"  # names of the candidates


@dataclass(frozen=True)
class Coordinates:
    r"""New coordinates :math:`z = M^T\,\mathrm{clip}(\mathrm{diag}(s)(\mathrm{clip}(x) - c))` of rows x.

    Columns of long tails may be compressed before M: :math:`\operatorname{arsinh}` of them is linear near zero, and their
    logarithm far from it.

    Sparse rows are never centred, so that they stay sparse; a matrix makes them dense.

    Examples
    --------
    >>> import numpy as np
    >>> Coordinates(np.array([1.0, 2.0]), np.array([1.0, 10.0]))(np.array([[1.0, 3.0]]))
    array([[ 0., 10.]])
    """

    center: np.ndarray | None = None  # (d,): c, or None for zero
    scale: np.ndarray | None = None  # (d,): s, or None for ones
    matrix: np.ndarray | None = None  # (d, r): M, or the diagonal of it, or None for the identity
    # largest size of the coordinates before M, to which others are clipped; None for no limit
    limit: float | None = None
    # (2, d): least and largest value of each column, to which others are clipped, so that predictions beyond the rows
    # of the fit stay what they are at their edge; None for no bounds. Sparse rows have none.
    bounds: np.ndarray | None = None
    compressed: np.ndarray | None = None  # (d,): columns that are compressed; None for none

    @classmethod
    def standard(cls, rows: RowSource) -> Coordinates:
        """Coordinates of mean zero and variance one on all rows; sparse rows are only scaled, constant columns stay."""
        columns = rows.column_moments()
        rows.check_weight(columns.weight)
        deviation = columns.deviation
        if not np.isfinite(deviation).all():
            raise ValueError(f"{rows.owner}: squares of the columns overflow; rescale them, or pass standardize=False.")
        tiny = np.finfo(rows.dtype).tiny  # one over less would overflow
        scale = 1 / np.where(deviation > tiny, deviation, 1.0)
        for first, end in rows.blocks:
            scale[first:end] = _block_scale(deviation[first:end])
        return cls(None if columns.sparse else columns.mean, scale)

    @classmethod
    def candidates(cls, rows: RowSource) -> dict[str, Coordinates | None]:
        """Scales of columns to choose among, by name, preferred ones first; None for columns as they are."""
        standard = cls.standard(rows)
        assert standard.scale is not None
        found: dict[str, Coordinates | None] = {STANDARD: standard}
        if np.ptp(np.log(standard.scale)) >= np.log(_SAME_SCALE):
            found[RAW] = None
        if standard.center is not None:  # not of sparse rows
            seen = rows.sample(_SAMPLE_ROWS, np.random.default_rng(0))
            if np.abs(standard(seen.astype(np.float64))).max(initial=0.0) > _OUTLYING:
                found[CLIPPED] = cls.robust(seen, _LIMIT, rows.blocks)
            compressing = cls.compressing(seen, rows.blocks)
            if compressing is not None:
                found[COMPRESSED] = compressing
        if rows.blocks and len(rows.blocks) < rows.shape[1]:
            for factor in _CATEGORY_FACTORS:
                found[f"standardised, categories x {factor:g}"] = standard.with_blocks(rows.blocks, factor)
        return found

    @classmethod
    def clipped(cls, rows: RowSource) -> Coordinates:
        """Coordinates that are clipped at five robust deviations."""
        if cls.standard(rows).center is None:
            raise ValueError(
                f"{rows.owner}: standardize='robust' centres columns, and sparse rows stay as they are; use True."
            )
        return cls.robust(rows.sample(_SAMPLE_ROWS, np.random.default_rng(0)), _LIMIT, rows.blocks)

    @classmethod
    def robust(cls, X: np.ndarray, limit: float, blocks: tuple[tuple[int, int], ...] = ()) -> Coordinates:
        """Coordinates about the median in units of the spread of the middle half of rows X, clipped at ``limit``.

        A column of which more than half is one number keeps its standard deviation as the unit, and blocks of columns
        that share a scale theirs.
        """
        X = X.astype(np.float64)
        low, center, high = np.quantile(X, [0.25, 0.5, 0.75], axis=0)
        spread, deviation = (high - low) / 1.349, X.std(axis=0)  # 1.349: of a normal law, in deviations
        unit = np.where(spread > 1e-12 * np.abs(center), spread, deviation)
        scale = 1 / np.where(unit > np.finfo(np.float64).tiny, unit, 1.0)
        for first, end in blocks:
            scale[first:end] = _block_scale(deviation[first:end])
        return cls(center, scale, limit=limit)

    @classmethod
    def compressing(cls, X: np.ndarray, blocks: tuple[tuple[int, int], ...] = ()) -> Coordinates | None:
        """Coordinates of variance one in which columns of long tails are compressed; None without such columns."""
        robust = cls.robust(X, np.inf, blocks)
        assert robust.scale is not None
        long = np.abs(robust(X.astype(np.float64))).max(axis=0, initial=0.0) > _LONG_TAIL
        for first, end in blocks:
            long[first:end] = False
        if not long.any():
            return None
        deviation = X.std(axis=0, dtype=np.float64)
        scale = np.where(long, robust.scale, 1 / np.where(deviation > 0, deviation, 1.0))
        for first, end in blocks:
            scale[first:end] = _block_scale(deviation[first:end])
        found = cls(robust.center, scale, compressed=long)
        spread = found(X.astype(np.float64)).std(axis=0)
        return found.followed_by(np.where(long & (spread > 0), 1 / np.where(spread > 0, spread, 1.0), 1.0))

    def with_blocks(self, blocks: tuple[tuple[int, int], ...], factor: float) -> Coordinates:
        """Return these coordinates with the blocks of columns that encode categories multiplied by a factor."""
        assert self.scale is not None
        scale = self.scale.copy()
        for first, end in blocks:
            scale[first:end] *= factor
        return replace(self, scale=scale)

    def bounded(self, X: np.ndarray) -> Coordinates:
        """Return these coordinates with columns clipped a tenth beyond the range of the rows X."""
        low, high = X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64)
        room = _BEYOND * (high - low)
        most = np.finfo(X.dtype).max if X.dtype.kind == "f" else np.inf  # a tenth beyond the largest float32 is not one
        return replace(self, bounds=np.stack([low - room, high + room]).clip(-most, most))

    def n_columns(self, d: int) -> int:
        """Number of the new coordinates of d columns."""
        return d if self.matrix is None or self.matrix.ndim == 1 else self.matrix.shape[1]

    def followed_by(self, matrix: np.ndarray) -> Coordinates:
        """Return these coordinates z followed by ``z @ matrix``; a vector stands for a diagonal matrix."""
        return replace(self, matrix=matrix if self.matrix is None else _product(self.matrix, matrix))

    def __call__(self, X: Any) -> Any:
        """Return the new coordinates of rows X (n, d), an array or a CSR matrix, in their precision."""
        if sparse.issparse(X):
            X = X if self.scale is None else (X @ sparse.diags_array(self.scale.astype(X.dtype))).tocsr()
        else:
            if self.bounds is not None:
                X = np.clip(X, *self.bounds.astype(X.dtype))
            if self.center is not None:
                X = X - self.center.astype(X.dtype)
            X = X if self.scale is None else X * self.scale.astype(X.dtype)
            X = X if self.limit is None else np.clip(X, -self.limit, self.limit)
            X = X if self.compressed is None else np.where(self.compressed, np.arcsinh(X), X)
        if self.matrix is None:
            return X
        M = self.matrix.astype(X.dtype)
        if M.ndim == 1:
            return (X @ sparse.diags_array(M)).tocsr() if sparse.issparse(X) else X * M
        return np.asarray(X @ M)


def _block_scale(deviation: np.ndarray) -> float:
    """Scale of columns of zeros and ones of which one is one: rows of two levels are as far apart as two values of a column.

    A block that is nearly always the same is not stretched any further.
    """
    total = float((deviation**2).sum())
    return min(1 / np.sqrt(total), _MOST_STRETCHED) if total > 0 else 1.0


def _product(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Product of two matrices, each of which may be a diagonal."""
    if one.ndim == 1:
        return np.asarray((one[:, None] if other.ndim == 2 else one) * other)
    return np.asarray(one * other if other.ndim == 1 else one @ other)


class MovedFeatures:
    """Features of rows in other coordinates, in place of a `FeatureMap`."""

    def __init__(self, coordinates: Coordinates, features: FeatureMap, n_features_in: int) -> None:
        self.coordinates, self.inner, self.n_features_in = coordinates, features, n_features_in
        self.n_features_out, self.spec, self.symmetric = features.n_features_out, features.spec, features.symmetric

    @property
    def features(self) -> Any:
        """The drawn map."""
        return self.inner.features

    def queries(self, X: Any) -> Any:
        """Return the features of queries."""
        return self.inner.queries(self.coordinates(X))

    def fill_queries(self, X: np.ndarray, out: np.ndarray) -> None:
        """Write the features of a tile of queries."""
        self.inner.fill_queries(self.coordinates(X), out)

    def with_features(self, features: Any) -> MovedFeatures:
        """Return other features of the same rows, see `FeatureMap.with_features`."""
        return MovedFeatures(self.coordinates, self.inner.with_features(features), self.n_features_in)

    def at_unit_scale(self, X: Any) -> Any:
        """Return rows on which the drawn map acts."""
        return self.inner.at_unit_scale(self.coordinates(X))

    def keys(self, Y: Any) -> Any:
        """Return the features of keys."""
        return self.inner.keys(self.coordinates(Y))

    def log_features(self, X: Any, *, key: bool) -> Any:
        """Return features as mantissa times exponential."""
        return self.inner.log_features(self.coordinates(X), key=key)


def moved_features(coordinates: Coordinates | None, features: FeatureMap, n_features_in: int) -> Any:
    """Features of rows that are not yet in these coordinates."""
    return features if coordinates is None else MovedFeatures(coordinates, features, n_features_in)
