"""Which array library an array belongs to, and bringing our drawn numbers into it."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np


def array_namespace(x: Any) -> Any:
    """The array-API namespace of ``x``: NumPy's without any import, another library's through array-api-compat."""
    if isinstance(x, np.ndarray):
        return np
    import array_api_compat

    return array_api_compat.array_namespace(x)


def is_numpy(x: Any) -> bool:
    """Whether ``x`` is a NumPy array."""
    return isinstance(x, np.ndarray)


def is_torch(x: Any) -> bool:
    """Whether ``x`` is a tensor of torch, which need not be imported."""
    return _comes_from(type(x), "torch")


def _comes_from(kind: type, library: str) -> bool:
    return any(base.__module__.partition(".")[0] == library for base in kind.__mro__)


def like(values: np.ndarray, x: Any) -> Any:
    """``values`` as an array of the library, type and device of ``x``, whose values may be traced but need not be."""
    if isinstance(x, np.ndarray):
        return values.astype(x.dtype, copy=False)
    import array_api_compat

    xp = array_api_compat.array_namespace(x)
    with _concrete(x):
        return xp.asarray(np.require(values, requirements=("C", "W")), dtype=x.dtype, device=array_api_compat.device(x))


def _concrete(x: Any) -> Any:
    """A context in which JAX makes constants that outlive the trace of ``x``, so that operators may keep them."""
    if not is_traced(x):
        return nullcontext()
    import jax

    return jax.ensure_compile_time_eval()


def is_traced(x: Any) -> bool:
    """Whether ``x`` stands for an array inside a JAX transformation, and so has no values to look at."""
    return any(kind.__name__ == "Tracer" for kind in type(x).__mro__)


def has_values(x: Any) -> bool:
    """Whether there are numbers to look at: neither inside a JAX transformation nor on torch's meta device."""
    return not (is_traced(x) or getattr(x, "is_meta", False))


def may_hold(condition: Any) -> bool:
    """Whether an array of conditions may hold anywhere: false only where a look is free, at NumPy arrays."""
    return not isinstance(condition, np.ndarray | np.bool_) or bool(condition.any())


def pad_last(x: Any, width: int) -> Any:
    """``x`` with zeros after its last axis up to ``width``; ``x`` itself where that is its width already."""
    missing = width - x.shape[-1]
    if not missing:
        return x
    zeros = like(np.zeros((*x.shape[:-1], missing)), x)
    return array_namespace(x).concat([x, zeros], axis=-1)


def in_working_precision(x: Any) -> Any:
    """``x`` in float32 if it came in half precision, and otherwise as it is."""
    xp = array_namespace(x)
    return cast(x, working_dtype(xp, x.dtype))


def cast(x: Any, dtype: Any) -> Any:
    """``x`` in another type; ``x`` itself where that is its type already."""
    if isinstance(x, np.ndarray):
        return x.astype(dtype, copy=False)
    return x if x.dtype == dtype else array_namespace(x).astype(x, dtype)


def as_numpy(x: Any) -> np.ndarray:
    """``x`` as a NumPy array, without its gradient: for what is not differentiated."""
    if is_traced(x):
        raise TypeError(
            "bochner: expected an array with values, got one that JAX traces; call this outside of jit, grad or vmap."
        )
    if getattr(x, "is_meta", False):
        raise TypeError("bochner: expected a tensor with values, got one on the meta device; move the values in first.")
    return np.asarray(x.detach().cpu().double() if hasattr(x, "detach") else x)


def common_namespace(owner: str, X: Any, Y: Any) -> Any:
    """The namespace that ``X`` and ``Y`` share."""
    if isinstance(X, np.ndarray) != isinstance(Y, np.ndarray) or array_namespace(X) is not array_namespace(Y):
        raise TypeError(
            f"{owner}: X and Y must come from the same array library, "
            f"got {type(X).__name__} and {type(Y).__name__}; convert one of them."
        )
    return array_namespace(X)


def working_dtype(xp: Any, dtype: Any) -> Any:
    """The type to compute in: half precisions accumulate in float32, the others in themselves."""
    return xp.float32 if "float16" in str(dtype) else dtype


def detached(x: Any) -> Any:
    """``x`` without its gradient: for shifts and scalings that cancel, and so must not be differentiated."""
    return x.detach() if hasattr(x, "detach") else x


def root(xp: Any, q: Any) -> Any:
    """The square root of ``q`` >= 0, with gradient 0 in place of infinity where ``q`` is 0."""
    if xp is np:
        return np.sqrt(q)
    positive = q > 0
    return xp.where(positive, xp.sqrt(xp.where(positive, q, xp.ones_like(q))), xp.zeros_like(q))
