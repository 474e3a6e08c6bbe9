"""The transforms that take the compiled path for NumPy arrays (`fwht`, `waves`), and the tiles of rows that they go over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._arrays import cast, in_working_precision
from .._validation import as_real, check_rows
from .engine import CACHE_BYTES, for_each_tile, rows_per_tile
from .references import fwht_reference


def fwht(X: Any) -> Any:
    r"""Walsh-Hadamard transform of the last axis, unnormalised.

    Parameters
    ----------
    X : array (..., d)
        NumPy array or tensor; d a power of two.

    Returns
    -------
    array (..., d)
        :math:`X H_d` with the natural (Sylvester) order of :math:`H_d`; applying it twice multiplies by d.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.linalg import fwht
    >>> fwht(np.array([1.0, 0.0, 0.0, 0.0]))
    array([1., 1., 1., 1.])
    """
    X = as_real("fwht", X)
    d = X.shape[-1] if X.ndim else 0
    if d < 1 or d & (d - 1):
        raise ValueError(f"fwht: the last axis must be a power of two, got shape {tuple(X.shape)}; pad with zeros.")
    X = check_rows("fwht", X, d)
    rows = in_working_precision(X)
    return cast(_fwht_numpy(rows) if isinstance(rows, np.ndarray) else fwht_reference(rows), X.dtype)


def _fwht_numpy(X: np.ndarray) -> np.ndarray:
    from .loops import load, store_scaled, walsh_levels

    d = X.shape[-1]
    rows = np.ascontiguousarray(X.reshape(-1, d))
    out, ones = np.empty_like(rows), np.ones(d, rows.dtype)

    def work(lanes: np.ndarray, start: int, stop: int) -> None:
        load(rows[start:stop], lanes, d)
        walsh_levels(lanes, d, 0, d.bit_length() - 1)
        store_scaled(lanes, ones, out[start:stop])

    for_each_tile_of_lanes(len(rows), d, d, rows.dtype, work)
    return out.reshape(X.shape)


def waves(
    phases: np.ndarray, frequency: float, amplitudes: np.ndarray, out: np.ndarray, sines: int, start: int = 0
) -> None:
    """Compiled version of `bochner.linalg.references.waves_reference`.

    Cosine and sine are computed together by polynomials, to within two units in the last place of one.  Rows with
    phases that are too large for the reduction to a quarter turn (8000 in float32, a million in float64) are computed
    by the functions of the library.
    """
    from .loops import LIMIT32, LIMIT64, waves32, waves64

    number = phases.dtype.type
    fill, reduced, integer = (waves32, LIMIT32, np.int32) if number is np.float32 else (waves64, LIMIT64, np.int64)
    limit = number(reduced / abs(frequency)) if frequency else number(np.inf)
    fill(phases, phases.view(integer), limit.view(integer), number(frequency), amplitudes, out, sines, start)


def for_each_tile_of_lanes(
    n_rows: int, dim: int, capacity: int, dtype: np.dtype, work: Callable[[np.ndarray, int, int], None]
) -> None:
    """Call ``work(lanes, start, stop)`` for every tile of rows, with room for their ``capacity`` lines each."""
    from .loops import ENGINE, room_for

    def on_tile(start: int, stop: int) -> None:
        work(room_for(stop - start, capacity, dtype), start, stop)

    size = CACHE_BYTES if ENGINE == "Numba" else 2 * CACHE_BYTES  # calls of NumPy take longer: a tenth faster, measured
    for_each_tile(n_rows, rows_per_tile(dim * dtype.itemsize, size), on_tile)
