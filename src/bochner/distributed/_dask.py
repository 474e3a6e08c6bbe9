"""Whether Dask is there, and what is a collection of it."""

from __future__ import annotations

import importlib.util
from typing import Any


def require_dask() -> None:
    """Say how to install Dask where it is missing."""
    if importlib.util.find_spec("dask") is None:
        raise ImportError('bochner.distributed needs Dask, which is not installed; run: pip install "bochner[dask]".')


def is_dask(X: Any) -> bool:
    """Whether X is a Dask array, dataframe or series."""
    import dask

    return bool(dask.is_dask_collection(X))
