"""Array libraries: which library an array belongs to, and conversion of drawn numbers to it."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np


def array_namespace(x: Any) -> Any:
    """Return the array-API namespace of ``x``: NumPy itself, or a wrapper by array-api-compat."""
    if isinstance(x, np.ndarray):
        return np
    import array_api_compat

    return array_api_compat.array_namespace(x)


def is_numpy(x: Any) -> bool:
    """Whether ``x`` is a NumPy array."""
    return isinstance(x, np.ndarray)


def is_sparse(x: Any) -> bool:
    """Whether ``x`` is a sparse matrix of SciPy; does not import it."""
    return hasattr(x, "tocsr")


def is_torch(x: Any) -> bool:
    """Whether ``x`` is a torch tensor; does not import torch."""
    return _comes_from(type(x), "torch")


def _comes_from(kind: type, library: str) -> bool:
    return any(base.__module__.partition(".")[0] == library for base in kind.__mro__)


def like(values: np.ndarray, x: Any) -> Any:
    """Return ``values`` as an array of the library, type and device of ``x``, which may be traced."""
    if isinstance(x, np.ndarray):
        return values.astype(x.dtype, copy=False)
    import array_api_compat

    xp = array_api_compat.array_namespace(x)
    with _concrete(x):
        return xp.asarray(np.require(values, requirements=("C", "W")), dtype=x.dtype, device=array_api_compat.device(x))


def _concrete(x: Any) -> Any:
    """A context in which JAX creates constants that outlive the trace of ``x``, so that operators may cache them."""
    if not is_traced(x):
        return nullcontext()
    import jax

    return jax.ensure_compile_time_eval()


def is_traced(x: Any) -> bool:
    """Whether ``x`` stands for an array inside a JAX transformation, and therefore has no values."""
    return any(kind.__name__ == "Tracer" for kind in type(x).__mro__)


def has_values(x: Any) -> bool:
    """Whether ``x`` has values: it is neither inside a JAX transformation nor on torch's meta device."""
    return not (is_traced(x) or getattr(x, "is_meta", False))


def may_hold(condition: Any) -> bool:
    """Whether a condition may hold anywhere in an array; only False if that can be checked for free, for NumPy arrays."""
    return not isinstance(condition, np.ndarray | np.bool_) or bool(condition.any())


def pad_last(x: Any, width: int) -> Any:
    """Pad the last axis of ``x`` with zeros to ``width``; ``x`` itself if it has that width already."""
    missing = width - x.shape[-1]
    if not missing:
        return x
    zeros = like(np.zeros((*x.shape[:-1], missing)), x)
    return array_namespace(x).concat([x, zeros], axis=-1)


def in_working_precision(x: Any) -> Any:
    """Return ``x`` in float32 if it has half precision, and unchanged otherwise."""
    xp = array_namespace(x)
    return cast(x, working_dtype(xp, x.dtype))


def cast(x: Any, dtype: Any) -> Any:
    """Return ``x`` in another type; ``x`` itself if it has that type already."""
    if isinstance(x, np.ndarray):
        return x.astype(dtype, copy=False)
    return x if x.dtype == dtype else array_namespace(x).astype(x, dtype)


def as_numpy(x: Any) -> np.ndarray:
    """Return ``x`` as a NumPy array, detached from its gradient."""
    if is_traced(x):
        raise TypeError(
            "bochner: expected an array with values, got a JAX tracer; call this outside of jit, grad or vmap."
        )
    if getattr(x, "is_meta", False):
        raise TypeError("bochner: expected a tensor with values, got one on the meta device; move the values in first.")
    return np.asarray(x.detach().cpu().double() if hasattr(x, "detach") else x)


def common_namespace(owner: str, X: Any, Y: Any) -> Any:
    """Return the namespace that ``X`` and ``Y`` share."""
    if isinstance(X, np.ndarray) != isinstance(Y, np.ndarray) or array_namespace(X) is not array_namespace(Y):
        raise TypeError(
            f"{owner}: X and Y must come from the same array library, "
            f"got {type(X).__name__} and {type(Y).__name__}; convert one of them."
        )
    return array_namespace(X)


def working_dtype(xp: Any, dtype: Any) -> Any:
    """Return the type to compute in: half precisions accumulate in float32, others in their own type."""
    if xp is np:  # names of types are made anew each time, which takes longer than a small tile
        return np.dtype(np.float32) if dtype == np.float16 else dtype
    return xp.float32 if "float16" in str(dtype) else dtype


def detached(x: Any) -> Any:
    """Return ``x`` detached from its gradient, for shifts and scalings that cancel and must not be differentiated."""
    return x.detach() if hasattr(x, "detach") else x


def root(xp: Any, q: Any) -> Any:
    """Square root of ``q`` >= 0, with gradient 0 in place of infinity at ``q`` = 0."""
    if xp is np:
        return np.sqrt(q)
    positive = q > 0
    return xp.where(positive, xp.sqrt(xp.where(positive, q, xp.ones_like(q))), xp.zeros_like(q))
