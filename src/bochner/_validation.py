"""Validation of arguments, with error messages of one form.

Every message names the object and its parameter, what is required, what was given, and a remedy if there is one.  The
functions are called where arguments enter the library (constructors, ``sample``, calls on drawn objects); private code
does not check again.
"""

from __future__ import annotations

import math
import numbers
import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

FLOAT_DTYPES = (np.dtype(np.float32), np.dtype(np.float64))
LARGEST_COUNT = 2**31 - 1
"""Largest number of rows, columns or repetitions that is accepted; the available memory is usually a smaller limit."""


def shown(value: Any) -> str:
    """Return ``value`` for a message: one short line; arrays by their shape only."""
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and shape:
        return f"{type(value).__name__} of shape {tuple(shape)}"
    try:
        line = " ".join(repr(value).split())
    except Exception:  # a repr that fails is the user's own, and no reason to hide what was wrong
        line = f"<{type(value).__name__}>"
    return line if len(line) <= 120 else f"{line[:100]}... ({type(value).__name__})"


def check_count(owner: str, name: str, value: Any, minimum: int = 1) -> int:
    """Return ``value`` as an int of at least ``minimum``."""
    if type(value) is int and minimum <= value <= LARGEST_COUNT:
        return value
    sentence = f"{owner}: {name} must be an integer of at least {minimum}, got {shown(value)}."
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(sentence)
    if int(value) < minimum:
        raise ValueError(sentence)
    if int(value) > LARGEST_COUNT:
        raise ValueError(f"{owner}: {name} must be at most {LARGEST_COUNT}, got {shown(value)}.")
    return int(value)


def check_positive(owner: str, name: str, value: Any) -> float:
    """Return ``value`` as a finite float above zero."""
    sentence = f"{owner}: {name} must be a positive number, got {shown(value)}."
    number = _as_float(sentence, value)
    if not (math.isfinite(number) and number > 0):
        raise ValueError(sentence)
    return number


def check_number(owner: str, name: str, value: Any) -> float:
    """Return ``value`` as a finite float."""
    sentence = f"{owner}: {name} must be a finite number, got {shown(value)}."
    number = _as_float(sentence, value)
    if not math.isfinite(number):
        raise ValueError(sentence)
    return number


def check_fraction(owner: str, name: str, value: Any) -> float:
    """Return ``value`` as a float strictly between zero and one."""
    sentence = f"{owner}: {name} must be a number between 0 and 1, got {shown(value)}."
    number = _as_float(sentence, value)
    if not 0 < number < 1:
        raise ValueError(sentence)
    return number


def _as_float(sentence: str, value: Any) -> float:
    """Return a real number as a float; raise an error with ``sentence`` if it is too large or not a number."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(sentence)
    try:
        return float(value)
    except OverflowError:  # an integer or a fraction beyond 1.8e308
        raise ValueError(sentence) from None


def check_option(owner: str, name: str, value: Any, options: Iterable[Any]) -> None:
    """Raise a ValueError that lists ``options`` if ``value`` is not one of them."""
    options = tuple(options)
    if not any(value is option or (type(value) is type(option) and value == option) for option in options):
        listed = ", ".join(repr(option) for option in options)
        raise ValueError(f"{owner}: {name} must be one of {listed}, got {shown(value)}.")


def check_flag(owner: str, name: str, value: Any) -> None:
    """Raise a TypeError if ``value`` is not True or False."""
    if not isinstance(value, bool):
        raise TypeError(f"{owner}: {name} must be True or False, got {shown(value)}.")


def check_instance(owner: str, name: str, value: Any, kind: type, remedy: str) -> None:
    """Raise a TypeError if ``value`` is not an instance of ``kind``; ``remedy`` is an example of one."""
    if not isinstance(value, kind):
        raise TypeError(f"{owner}: {name} must be a {kind.__name__.lower()} such as {remedy}, got {shown(value)}.")


def is_array_api(X: Any) -> bool:
    """Whether ``X`` is an array of a library other than NumPy, such as a torch tensor."""
    if isinstance(X, np.ndarray):
        return False
    modules = {kind.__module__.partition(".")[0] for kind in type(X).__mro__}
    return hasattr(X, "__array_namespace__") or "torch" in modules


def check_rows(owner: str, X: Any, width: int, *, remedy: str = "") -> Any:
    """Return ``X`` as a finite floating array with ``width`` numbers on its last axis.

    Types float16, float32 and float64 are kept (float16 is accumulated in float32 later), and integers become float64.
    For tensors of other libraries only shape and type are checked: reading their values would stall a device and break
    a traced graph.
    """
    X = as_real(owner, X)
    if is_array_api(X):
        _check_tensor(owner, X, width, remedy)
        return X
    _check_width(owner, X.shape, width, remedy)
    with np.errstate(all="ignore"):  # one pass without a temporary; a sum that is not finite is investigated
        total = X.sum(dtype=X.dtype if X.dtype in FLOAT_DTYPES else np.float32)
    if not np.isfinite(total):
        _refuse_non_finite(owner, X)
    return X


def check_sparse_rows(owner: str, X: Any, width: int) -> Any:
    """Return a sparse matrix as a finite float32 or float64 one in CSR format, with each entry stored once."""
    if X.dtype.kind not in "fiub":
        raise TypeError(f"{owner}: expected a sparse matrix of real numbers, got {X.dtype}.")
    _check_width(owner, X.shape, width, "")
    X = X.tocsr() if X.dtype in FLOAT_DTYPES else X.tocsr().astype(np.float64)
    if not np.isfinite(X.data.sum()) and not np.isfinite(X.data).all():
        raise ValueError(f"{owner}: expected finite numbers, got NaN or infinity in a sparse matrix.")
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def check_points(owner: str, X: Any) -> Any:
    """Return ``X`` as a finite floating array of shape (..., n, d), points as rows, with no empty axis."""
    X = as_real(owner, X)
    shape = tuple(X.shape)
    if len(shape) < 2:
        raise ValueError(
            f"{owner}: expected points as rows, an array of shape (..., n, d), got shape {shape}; "
            f"one point is x.reshape(1, -1), points on a line are x.reshape(-1, 1)."
        )
    if 0 in shape:
        raise ValueError(f"{owner}: expected at least one point of at least one coordinate, got shape {shape}.")
    return check_rows(owner, X, shape[-1])


def as_real(owner: str, X: Any) -> Any:
    """Return a tensor unchanged, and anything else as a NumPy array of real numbers in native byte order."""
    if is_array_api(X):
        return X
    if hasattr(X, "tocsr"):
        raise TypeError(f"{owner}: expected a dense array, got a sparse matrix; pass X.toarray().")
    if isinstance(X, np.ma.MaskedArray):
        _refuse_masked(owner, X)
    try:
        array: np.ndarray = np.asarray(X)
    except ValueError:
        raise ValueError(f"{owner}: expected a rectangular array of numbers, got rows of different lengths.") from None
    except TypeError:  # an object whose own conversion fails
        raise TypeError(f"{owner}: expected an array of real numbers, got {shown(X)}.") from None
    if array.dtype.kind in "iub":
        return array.astype(np.float64)
    if array.dtype.kind != "f" or array.dtype.itemsize > 8:
        raise TypeError(
            f"{owner}: expected an array of real numbers (float16, float32, float64 or integers), got {array.dtype}."
        )
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def as_host_rows(owner: str, X: Any) -> Any:
    """Return ``X`` in a form that the checks of scikit-learn can handle, and reject input on which they mislead.

    Tensors are detached and converted to at least single precision; arrays, tables and sparse matrices are not changed.
    """
    if getattr(X, "is_meta", False):
        raise TypeError(
            f"{owner}: expected a tensor with values, got one on the meta device; move the values in first."
        )
    if hasattr(X, "detach"):
        if "strided" not in str(X.layout):
            raise TypeError(f"{owner}: expected a dense tensor, got one of layout {X.layout}; pass X.to_dense().")
        return X.detach().float() if "bfloat16" in str(X.dtype) else X.detach()
    if isinstance(X, np.ma.MaskedArray):
        _refuse_masked(owner, X)
        return np.ma.getdata(X)
    if hasattr(X, "dtypes") and hasattr(X, "columns"):
        _check_columns(owner, X)
    elif isinstance(X, numbers.Number | list | tuple | np.ndarray):
        _check_objects(owner, X)
    return X


def _check_columns(owner: str, X: Any) -> None:
    """Raise a ValueError if a table has a column that does not contain numbers."""
    # polars has a list of types, pandas a series that also has two columns of one name
    types = X.dtypes.items() if hasattr(X.dtypes, "items") else zip(X.columns, X.dtypes, strict=True)
    for name, dtype in types:
        if getattr(dtype, "kind", "O") not in "fiub":
            try:
                if np.asarray(X[name]).dtype.kind in "mM":
                    raise TypeError("dates")
                np.asarray(X[name]).astype(np.float64)
            except (TypeError, ValueError, OverflowError):
                raise ValueError(
                    f"{owner}: expected columns of numbers, got {shown(name)} of type {dtype}; encode it, for instance by "
                    f"sklearn.preprocessing.OneHotEncoder."
                ) from None


def _check_objects(owner: str, X: Any) -> None:
    """Raise a ValueError for Python numbers that are too large for a float; scikit-learn checks everything else."""
    try:
        array = np.asarray(X)
        if array.dtype == object:
            array.astype(np.float64)
    except OverflowError:
        raise ValueError(f"{owner}: expected numbers that fit a float, got {shown(X)}.") from None
    except (TypeError, ValueError):
        return


def _refuse_masked(owner: str, X: np.ma.MaskedArray) -> None:
    masked = int(np.ma.getmaskarray(X).sum())
    if masked:
        raise ValueError(
            f"{owner}: expected an array without missing numbers, got a masked array with {masked} of {X.size} entries "
            f"masked; fill them by X.filled(value), or leave those rows out."
        )


def _check_tensor(owner: str, X: Any, width: int, remedy: str) -> None:
    name = str(X.dtype)
    layout = str(getattr(X, "layout", ""))
    if "sparse" in layout or "mkldnn" in layout or getattr(X, "is_nested", False):
        raise TypeError(f"{owner}: expected a dense tensor, got one of layout {layout}; pass X.to_dense().")
    if not any(kind in name for kind in ("float16", "float32", "float64")):
        raise TypeError(f"{owner}: expected a tensor of a floating type, got {name}; convert it first.")
    _check_width(owner, tuple(X.shape), width, remedy)


def _check_width(owner: str, shape: tuple[int, ...], width: int, remedy: str) -> None:
    if not shape:
        raise ValueError(f"{owner}: expected an array whose last axis is {width}, got a single number.")
    if shape[-1] != width:
        hint = f" {remedy}" if remedy else ""
        raise ValueError(f"{owner}: expected an array whose last axis is {width}, got shape {shape}.{hint}")


def _refuse_non_finite(owner: str, X: np.ndarray) -> None:
    """Raise a ValueError for the first NaN or infinity; finite numbers whose sum overflows are accepted."""
    bad = np.argwhere(~np.isfinite(X))
    if len(bad):
        where = ", ".join(str(i) for i in bad[0])
        raise ValueError(
            f"{owner}: expected finite numbers, got {X[tuple(bad[0])]} at index ({where}); "
            f"{len(bad)} of {X.size} entries are not finite."
        )


def check_memory(owner: str, n_bytes: float, remedy: str) -> None:
    """Raise a ValueError if the results alone are larger than the memory of the machine."""
    memory = _memory_of_the_machine()
    if n_bytes > memory:
        raise ValueError(
            f"{owner}: this takes about {n_bytes / 2**30:.3g} GiB, more than the {memory / 2**30:.3g} GiB of memory of this "
            f"machine; {remedy}."
        )


def _memory_of_the_machine() -> float:
    """Size of the memory in bytes; a very large number if the system does not tell."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 2.0**44


def stored_array(
    owner: str, arrays: Mapping[str, Any], name: str, shape: tuple[int, ...], dtype: Any = np.float64
) -> np.ndarray:
    """Return a copy of the stored array of that name, after checking its shape, type and values."""
    if name not in arrays:
        raise ValueError(f"{owner}: the stored arrays have no {name!r}; they are {', '.join(arrays) or 'none'}.")
    array = np.asarray(arrays[name])
    if array.shape != shape or array.dtype != np.dtype(dtype):
        raise ValueError(
            f"{owner}: the stored array {name!r} must be {np.dtype(dtype)} of shape {shape}, got {array.dtype} of shape "
            f"{array.shape}."
        )
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError(f"{owner}: the stored array {name!r} must be finite.")
    return np.array(array, order="C")
