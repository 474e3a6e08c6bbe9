"""Walking over rows in chunks of bounded memory: features of dense and sparse data, and statistics of them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from scipy import sparse

from .._progress import progress
from .._validation import check_count
from ..approximation import FeatureMap
from ..linalg.engine import available_threads, threads
from .statistics import RegressionStatistics

_CHUNK_NUMBERS = 1 << 23
"""Features held at a time: 32 MB in float32."""


@contextlib.contextmanager
def n_jobs_threads(owner: str, n_jobs: Any) -> Iterator[None]:
    """Within the block, as many threads as ``n_jobs`` says; None means all that the process may use.

    A worker of joblib gets the share that joblib grants it.
    """
    if n_jobs is None:
        n = min(available_threads(), effective_n_jobs(-1))
    elif isinstance(n_jobs, int) and n_jobs < 0:
        n = effective_n_jobs(n_jobs)
    else:
        n = check_count(owner, "n_jobs", n_jobs)
    with threads(n):
        yield


def dense_rows(X: Any, rows: slice) -> np.ndarray:
    """Some rows of an array or a CSR matrix, as an array."""
    part = X[rows]
    return part.toarray() if sparse.issparse(part) else np.asarray(part)


def chunks(n_rows: int, width: int, *, label: str = "", verbose: Any = 0) -> Iterator[slice]:
    """Slices of rows whose features of that width fit the memory set for them, with a progress bar if asked."""
    step = max(1, min(_CHUNK_NUMBERS // width, 1 << 16))
    yield from progress(
        (slice(i, min(i + step, n_rows)) for i in range(0, n_rows, step)),
        total=-(-n_rows // step),
        label=label,
        shown=bool(verbose),
    )


def features_of(phi: FeatureMap, X: Any, *, key: bool = False) -> np.ndarray:
    """Features of all rows of X, an array or a CSR matrix, which is never densified as a whole."""
    features = phi.keys if key else phi.queries
    if not sparse.issparse(X):
        return np.asarray(features(X))
    out = np.empty((X.shape[0], phi.n_features_out), X.dtype)
    for rows in chunks(X.shape[0], X.shape[1] + phi.n_features_out):
        out[rows] = features(dense_rows(X, rows))
    return out


def regression_statistics(
    phi: FeatureMap,
    X: Any,
    Y: np.ndarray,
    weights: np.ndarray | None = None,
    *,
    exact: bool = True,
    verbose: Any = 0,
) -> RegressionStatistics:
    """Statistics of the features of X and of targets Y (n, t), chunk by chunk; ``exact`` as in `RegressionStatistics`.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import Approximation, kernels
    >>> X, Y = np.random.default_rng(0).standard_normal((50, 3)), np.ones((50, 1))
    >>> phi = Approximation(kernels.Gaussian(), n_projections=4).draw(3, rng=0)
    >>> regression_statistics(phi, X, Y).scatter.shape
    (8, 8)
    """
    total = RegressionStatistics.empty(phi.n_features_out, Y.shape[1])
    for rows in chunks(X.shape[0], X.shape[1] + phi.n_features_out, label="fit", verbose=verbose):
        part = None if weights is None else weights[rows]
        total.add_rows(phi.queries(dense_rows(X, rows)), Y[rows], part, exact=exact)
    return total
