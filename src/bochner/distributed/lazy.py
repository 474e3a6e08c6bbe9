"""Methods of fitted estimators on Dask collections, block by block, when they are computed."""

from __future__ import annotations

import copy
from itertools import accumulate
from typing import Any

import dask
import numpy as np
import sklearn

from ..linalg.engine import threads
from .blocks import as_dask_array, check_block, name_of_block, working_dtype


def lazily(estimator: Any, method: str, X: Any, tail: tuple[int, ...] = (), dtype: Any = None, **options: Any) -> Any:
    """The method of the estimator as it is now, of each block of X, as a Dask array that keeps X's blocks.

    Parameters
    ----------
    estimator : fitted estimator
        Copied: a later fit does not change what is returned.
    method : str
    X : dask array or dataframe
        Its columns are compared by the caller.
    tail : tuple of int
        Shape of what a row becomes: () for a number.
    dtype : numpy dtype, optional
        Of the result; that of X, in float32 or float64, without it.
    options : keywords of the method
    """
    array = as_dask_array(type(estimator).__name__, X)
    dtype = working_dtype(array.dtype) if dtype is None else np.dtype(dtype)
    return array.map_blocks(
        _apply,
        dtype=dtype,
        meta=np.empty((0, *tail), dtype),
        chunks=(array.chunks[0], *((width,) for width in tail)),
        drop_axis=1 if not tail else None,
        new_axis=list(range(2, len(tail) + 1)) or None,
        estimator=dask.delayed(frozen(estimator), traverse=False),
        method=method,
        width=array.shape[1],
        ends=[0, *accumulate(array.chunks[0])],
        none=np.empty((0, *tail), dtype),
        options=options,
    )


def check_stays_lazy(estimator: Any) -> None:
    """Refuse an output container that would gather all features where `transform` was called."""
    own: dict[str, str] = getattr(estimator, "_sklearn_output_config", {})
    container = own.get("transform", sklearn.get_config()["transform_output"])
    if container != "default":
        raise ValueError(
            f"{type(estimator).__name__}: transform_output={container!r} would gather all rows of a Dask collection; use "
            f"set_output(transform='default'), and make frames of its blocks."
        )


def frozen(estimator: Any) -> Any:
    """A copy that predicts the same: solved, and without what only fits need, since all of it goes to the workers."""
    copied = copy.copy(estimator)
    if hasattr(copied, "machine_"):
        copied.machine_ = copied.machine_.for_prediction()
    # statistics are for fits; blocks are arrays, and their columns were compared
    for name in ("statistics_", "feature_names_in_"):
        vars(copied).pop(name, None)
    copied.set_params(n_jobs=1)  # Dask runs as many blocks at once as a worker has threads
    return copy.deepcopy(copied)


def _apply(
    block: Any,
    *,
    estimator: Any,
    method: str,
    width: int,
    ends: Any,
    none: np.ndarray,
    options: Any,
    block_info: Any = None,
) -> Any:
    i = block_info[0]["chunk-location"][0]
    name = name_of_block(type(estimator).__name__, i, ends)
    X = check_block(name, width, block, None, None)[0]
    if not X.shape[0]:
        return none
    with threads(1):
        return getattr(estimator, method)(X, **options)
