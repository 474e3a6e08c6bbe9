"""The estimators of `bochner.learn` on Dask arrays and dataframes.

Fitting is a tree reduction of sufficient statistics, `transform` and `predict` are lazy block by block, and no machine ever
holds the data.  On anything that is no Dask collection the estimators do what those of `bochner.learn` do.
"""

from ._dask import require_dask

require_dask()

from .cost import Cluster, Work, cost_table, fit_time  # noqa: E402
from .gaussian_process import GaussianProcess  # noqa: E402
from .kernel_classifier import KernelClassifier  # noqa: E402
from .kernel_ridge import KernelRidge  # noqa: E402
from .random_features import RandomFeatures  # noqa: E402
from .random_projection import RandomProjection  # noqa: E402

__all__ = [
    "Cluster",
    "GaussianProcess",
    "KernelClassifier",
    "KernelRidge",
    "RandomFeatures",
    "RandomProjection",
    "Work",
    "cost_table",
    "fit_time",
]
