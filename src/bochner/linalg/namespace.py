"""Which array library an array belongs to, and casting our drawn numbers into it."""

from __future__ import annotations

from typing import Any

import numpy as np


def array_namespace(x: Any) -> Any:
    """The array-API namespace of ``x``: NumPy's without any import, another library's through array-api-compat."""
    if isinstance(x, np.ndarray):
        return np
    import array_api_compat

    return array_api_compat.array_namespace(x)


def like(values: np.ndarray, x: Any) -> Any:
    """``values`` as an array of the library, type and device of ``x``."""
    if isinstance(x, np.ndarray):
        return values.astype(x.dtype, copy=False)
    import array_api_compat

    xp = array_api_compat.array_namespace(x)
    return xp.asarray(np.ascontiguousarray(values), dtype=x.dtype, device=array_api_compat.device(x))


def pad_last(x: Any, width: int) -> Any:
    """``x`` with zeros after its last axis up to ``width``; ``x`` itself where that is its width already."""
    missing = width - x.shape[-1]
    if not missing:
        return x
    zeros = like(np.zeros((*x.shape[:-1], missing)), x)
    return array_namespace(x).concat([x, zeros], axis=-1)
