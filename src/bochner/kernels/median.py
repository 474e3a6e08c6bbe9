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
    X : array (n, d)
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
    from scipy.spatial.distance import pdist

    points = np.asarray(as_numpy(X))
    if len(points) > _ROWS:
        points = points[np.sort(as_generator(rng).choice(len(points), _ROWS, replace=False))]
    distances = pdist(points.astype(np.float64), metric)
    if not distances.any():
        return 1.0
    return float(np.median(distances)) or float(distances[distances > 0].min())
