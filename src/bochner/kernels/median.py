"""The median heuristic for a lengthscale."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arrays import as_numpy
from .._random import RNG, as_generator

_ROWS = 1000


def median_distance(X: Any, rng: RNG = 0, *, metric: str = "euclidean") -> float:
    """Median distance between rows of X, of a thousand of them where there are more; the usual first lengthscale.

    Parameters
    ----------
    X : array or sparse matrix (n, d)
    rng : int, numpy.random.Generator or None
        Chooses the rows.
    metric : {"euclidean", "cityblock"}
        The distance: that of the kernel (L1, "cityblock", for the Laplacian).

    Returns
    -------
    float
        Positive: where more than half of the pairs are equal, the least distance that is not zero, and one on constant data.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.kernels import median_distance
    >>> median_distance(np.array([[0.0], [1.0], [3.0]]))
    2.0
    """
    from scipy.sparse import issparse
    from scipy.spatial.distance import pdist

    n = X.shape[0]
    rows = X[np.sort(as_generator(rng).choice(n, _ROWS, replace=False))] if n > _ROWS else X
    points = as_numpy(rows.toarray() if issparse(rows) else rows)
    distances = pdist(np.asarray(points, dtype=np.float64), metric)
    if not distances.any():
        return 1.0
    return float(np.median(distances)) or float(distances[distances > 0].min())
