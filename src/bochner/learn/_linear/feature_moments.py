"""Moments of the features of rows, chunk by chunk, wherever the rows are."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...approximation import FeatureMap
from ...linalg.engine import for_each_tile, rows_per_tile
from .._row_source import Chunk, RowSource
from .moments import Moments, Sums

_NARROW = 640
"""Widest features whose rows are shared among threads, each with sums of its own; wider ones have columns to share."""
_GROUPS, _GROUP, _GROUP_PER_FEATURE = 4, 1024, 4
"""Groups of rows with sums of their own; there are more of them where each has so many rows, also for each feature."""
_FEWEST, _FEWEST_PER_FEATURE = 256, 2
"""Fewest rows of a tile: with fewer, products are slower per row, and adding them up takes as long as they do."""
_BLUR = 1e-2  # share of alpha that the rounding error of S may have: as if alpha were off by so much, somewhere
_ACCURATE = 1e-4  # relative error of features by rounding in float32 above which they are computed in float64


def collect_moments(
    phi: FeatureMap, rows: RowSource, *, exact: bool = True, least_alpha: float = 0.0, verbose: Any = 0
) -> Moments:
    r"""Moments of the features and the targets of all rows, chunk by chunk and wherever the rows are.

    Features that are others times a matrix T, such as whitened landmarks, have the scatter :math:`T^TST`: the product is
    taken once, instead of once for each row.  It multiplies rounding errors by :math:`|T|^2` instead of :math:`|T|`, so it
    is taken of many rows, and where the error stays far below the least alpha that the equations will be solved with.

    Parameters
    ----------
    phi : FeatureMap
    rows : RowSource
    exact : bool
        See `Moments.collect`.
    least_alpha : float
        Zero if it is not known.
    verbose : int

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import Approximation, kernels
    >>> from bochner.learn._row_source import ArrayRows
    >>> rows = ArrayRows("example", np.random.default_rng(0).standard_normal((50, 3)), np.ones((50, 1)))
    >>> phi = Approximation(kernels.Gaussian(), n_projections=4).draw(3, rng=0)
    >>> collect_moments(phi, rows).scatter.shape
    (8, 8)
    """
    factors, blur, n = phi.features.factored(stable=True), 0.0, rows.shape[0]  # NaN where it is not known
    if factors is not None:
        blur = factors.gain * np.finfo(np.float64 if exact else rows.dtype).eps * np.sqrt(n * phi.n_features_out)
    once = factors is not None and n > 2 * phi.n_features_out and blur <= _BLUR * least_alpha
    work = partial(_moments, phi=phi, n_targets=rows.n_targets, exact=exact, factored=once)
    total: Moments = rows.reduce(work, width=phi.n_features_out, label="fit", verbose=verbose)
    rows.check_weight(total.weight)
    if not np.isfinite(total.feature_mean).all():
        raise ValueError(
            f"{rows.owner}: some rows have features that are not finite: their numbers are too large for the bandwidth of "
            f"the kernel. Rescale the columns, or leave such rows out."
        )
    return total.of_products(factors.matrix, float(blur)) if factors is not None and once else total


class _Source(NamedTuple):
    """Features of rows: those of a map, or the ones that a matrix turns into them."""

    phi: Any
    width: int
    delicate: bool

    @classmethod
    def of(cls, phi: FeatureMap, *, factored: bool) -> _Source:
        if not factored:
            return cls(phi, phi.n_features_out, False)
        factors = phi.features.factored(stable=True)
        assert factors is not None
        return cls(phi.with_features(factors.features), len(factors.matrix), _delicate(phi))

    def rows(self, X: Any) -> Any:
        """Rows in the precision in which their features are computed."""
        return X.astype(np.float64, copy=False) if self.delicate else X


def _moments(chunks: Iterator[Chunk], *, phi: FeatureMap, n_targets: int, exact: bool, factored: bool) -> Moments:
    source = _Source.of(phi, factored=factored)
    chunks = (chunk for chunk in chunks if len(chunk.X))
    if source.width > _NARROW:
        parts = ((source.phi.queries(source.rows(X)), Y, weights) for X, Y, weights in chunks)
        return Moments.collect(parts, source.width, n_targets, exact=exact)
    groups = (group for chunk in chunks for group in _groups(source, chunk, n_targets, exact=exact))
    return Moments.total(groups, source.width, n_targets)


def _groups(source: _Source, chunk: Chunk, n_targets: int, *, exact: bool) -> list[Moments]:
    """Moments of groups of rows, which do not depend on the number of threads.

    Features are made for a few rows at a time, in memory that those before them have left, and used while they are in a
    cache.
    """
    n, D = len(chunk.X), source.width
    features = np.dtype(np.float64) if source.delicate else chunk.X.dtype
    products = np.dtype(np.float64) if exact else features
    tile = max(rows_per_tile(max(D, chunk.X.shape[1]) * products.itemsize), _FEWEST, _FEWEST_PER_FEATURE * D)
    rows = _group_rows(n, D)
    found: list[Any] = [None] * -(-n // rows)

    def group(start: int, stop: int) -> None:
        sums, room = Sums(D, n_targets), np.empty((min(tile, stop - start) + 1, D), products)
        held = room if features == products else np.empty(room.shape, features)
        for i in range(start, stop, tile):
            X, Y, weights = chunk.taken(slice(i, min(i + tile, stop)))
            F = held[: len(X)]
            source.phi.fill_queries(source.rows(X), F)
            sums.add_rows(F, Y, weights, exact=exact, room=room)
        found[start // rows] = sums.frozen()

    for_each_tile(n, rows, group)
    return found


def _group_rows(n: int, D: int) -> int:
    """Rows of a group: all of a few rows, otherwise such that there are four groups or a multiple of it."""
    if n < _GROUPS * _FEWEST:
        return n
    groups = _GROUPS * max(n // (_GROUPS * max(_GROUP, _GROUP_PER_FEATURE * D)), 1)
    return -(-n // groups)


def first_factor(phi: FeatureMap, X: Any) -> np.ndarray:
    """The other features of `Features.factored`, in float64 where the matrix would amplify the rounding of float32."""
    factors = phi.features.factored(stable=False)
    assert factors is not None
    rows = X.astype(np.float64, copy=False) if _delicate(phi) else X
    return np.asarray(phi.with_features(factors.features).queries(rows))


def _delicate(phi: FeatureMap) -> bool:
    plain = phi.features.factored(stable=False)
    assert plain is not None
    return bool(np.finfo(np.float32).eps * np.sqrt(plain.gain) > _ACCURATE)
