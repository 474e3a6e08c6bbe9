"""The estimators of `bochner.learn` on Dask arrays and dataframes.

Fitting is a tree reduction of sufficient statistics, `transform` and `predict` are lazy and work block by block, and no
machine ever holds all data.  For input other than Dask collections the estimators behave like those of `bochner.learn`.

The estimators are `RandomFeatures`, `RandomProjection`, `KernelRidge`, `KernelClassifier` and `GaussianProcess`.
"""

import importlib.util

if importlib.util.find_spec("dask") is None:
    raise ImportError(
        "bochner.distributed needs Dask, which is not installed; "
        'run: pip install "dask[array,dataframe]>=2024.8" "distributed>=2024.8".'
    )

from .._facts import publish
from ._estimators import (
    GaussianProcess,
    KernelClassifier,
    KernelRidge,
    RandomFeatures,
    RandomProjection,
)

__all__ = [
    "GaussianProcess",
    "KernelClassifier",
    "KernelRidge",
    "RandomFeatures",
    "RandomProjection",
]

publish(globals())
