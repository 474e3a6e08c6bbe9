"""What the kernels need of an array library: its namespace, the type to compute in, a root with a safe gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._validation import is_array_api


def array_namespace(X: Any) -> Any:
    """Return the array-API namespace of ``X``: NumPy's as it is, another library's through array-api-compat."""
    if isinstance(X, np.ndarray):
        return np
    import array_api_compat

    return array_api_compat.array_namespace(X)


def common_namespace(owner: str, X: Any, Y: Any) -> Any:
    """Return the namespace that ``X`` and ``Y`` share."""
    if is_array_api(X) != is_array_api(Y) or (is_array_api(X) and array_namespace(X) is not array_namespace(Y)):
        raise TypeError(
            f"{owner}: X and Y must come from the same array library, "
            f"got {type(X).__name__} and {type(Y).__name__}; convert one of them."
        )
    return array_namespace(X)


def working_dtype(xp: Any, dtype: Any) -> Any:
    """Return the type to compute in: half precisions accumulate in float32, the others in themselves."""
    return xp.float32 if "float16" in str(dtype) else dtype


def cast(xp: Any, X: Any, dtype: Any) -> Any:
    """Return ``X`` in another type; ``X`` itself where that is its type already."""
    return X.astype(dtype, copy=False) if xp is np else xp.astype(X, dtype, copy=False)


def constant(xp: Any, values: Any, like: Any) -> Any:
    """Return ``values`` as an array of the type and device of ``like``."""
    return xp.asarray(values, dtype=like.dtype, device=like.device)


def detached(X: Any) -> Any:
    """Return ``X`` without its gradient: for shifts and scalings that cancel, and so must not be differentiated."""
    return X.detach() if hasattr(X, "detach") else X


def root(xp: Any, q: Any) -> Any:
    """Return the square root of ``q`` >= 0, with gradient 0 in place of infinity where ``q`` is 0."""
    if xp is np:
        return np.sqrt(q)
    positive = q > 0
    return xp.where(positive, xp.sqrt(xp.where(positive, q, xp.ones_like(q))), xp.zeros_like(q))
