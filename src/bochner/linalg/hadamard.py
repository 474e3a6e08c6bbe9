"""The public fast Walsh-Hadamard transform."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._validation import check_rows
from .lanes import LANES, tile_groups
from .tiles import for_each_tile
from .walsh import fwht_reference


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
    d = np.shape(X)[-1] if np.ndim(X) else 0
    if d < 1 or d & (d - 1):
        raise ValueError(f"fwht: the last axis must be a power of two, got shape {tuple(np.shape(X))}; pad with zeros.")
    X = check_rows("fwht", X, d)
    if not isinstance(X, np.ndarray):
        return fwht_reference(X)
    return _fwht_numpy(X)


def _fwht_numpy(X: np.ndarray) -> np.ndarray:
    from .compiled import lanes as compiled_lanes
    from .compiled import walsh as compiled_walsh

    d = X.shape[-1]
    dtype = X.dtype if X.dtype.itemsize >= 4 else np.dtype(np.float32)
    rows = np.ascontiguousarray(X.reshape(-1, d), dtype=dtype)
    out = np.empty_like(rows)
    groups, ones = tile_groups(d, dtype), np.ones(d, dtype)

    def work(start: int, stop: int) -> None:
        lanes = np.empty((-(-(stop - start) // LANES), d, LANES), dtype)
        compiled_lanes.load(rows[start:stop], lanes, d)
        compiled_walsh.walsh_levels(lanes, d, 0, d.bit_length() - 1)
        compiled_lanes.store_scaled(lanes, ones, out[start:stop])

    for_each_tile(len(rows), groups * LANES, work)
    return out.reshape(X.shape).astype(X.dtype, copy=False)
