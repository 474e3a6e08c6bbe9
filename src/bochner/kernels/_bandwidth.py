r"""Choice of the bandwidth: one set of rules for the estimators, `recommend`, the command line and the Gaussian process.

=======================================  ==================================  ========================================
kernel                                   meaning of gamma                    resulting kernel
=======================================  ==================================  ========================================
Gaussian, Matern, rational quadratic     :math:`\ell = 1/\sqrt{2\gamma}`     Gaussian: :math:`e^{-\gamma|x-y|^2}`
Cauchy                                   :math:`\ell = 1/\sqrt\gamma`        :math:`1/(1+\gamma|x-y|^2)`
Laplacian                                :math:`\ell = 1/\gamma`             :math:`e^{-\gamma|x-y|_1}`
softmax                                  scale :math:`\gamma`                :math:`e^{\gamma x\cdot y}`
=======================================  ==================================  ========================================
"""

from __future__ import annotations

import math
from typing import Any, Protocol, TypeVar

import numpy as np

from .._arrays import as_numpy
from .._random import RNG, as_generator
from .._validation import check_instance, check_option, check_points, check_positive, shown
from ._kernel import Kernel

RULES = ("scale", "median")
N_ROWS = 1000  # half a million distances: their median is known to a few per cent

K = TypeVar("K", bound=Kernel)


class Rows(Protocol):
    """Rows of data that are not an array, such as those on a cluster: what the bandwidth rules need from them."""

    @property
    def shape(self) -> tuple[Any, int]:
        """Shape (n, d)."""

    def variance(self, weights: np.ndarray | None = None) -> float:
        """Variance over all entries; zero if they are constant up to rounding."""

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return at most n rows as a dense array."""


def resolve_bandwidth(
    kernel: K,
    rule: Any,
    rows: Any,
    *,
    rng: RNG = 0,
    weights: np.ndarray | None = None,
    owner: str = "resolve_bandwidth",
) -> K:
    r"""Return the kernel with the bandwidth chosen by a rule, a number or the data.

    The whole library chooses bandwidths with this function, so `recommend` evaluates the same kernel that an estimator
    fits.

    Parameters
    ----------
    kernel : Kernel
        A kernel of unit bandwidth, which the rule replaces.
    rule : {"scale", "median"}, float or None
        A number is scikit-learn's ``gamma``, as in `Kernel.from_gamma`.  ``"scale"``, the default of the library, is
        :math:`\gamma = 1/(d\,\mathrm{Var} X)` with the variance over all entries (:math:`1/(d\,\mathrm{Std} X)` for
        kernels of the L1 distance).  ``"median"`` sets the bandwidth to the median distance between rows, in the
        kernel's metric.  None returns the kernel unchanged.  On constant data ``"scale"`` means ``gamma=1`` and
        ``"median"`` a bandwidth of one.
    rows : array or CSR matrix (n, d), or an object with ``shape``, ``variance(weights)`` and ``sample(n, rng)``
        The data.
    rng : int, numpy.random.Generator or None
        Selects the rows for the median.
    weights : array (n,), optional
        Sample weights; rows of weight zero are ignored.
    owner : str
        Name of the caller, for error messages.

    Returns
    -------
    Kernel
        A kernel of the same class.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import kernels
    >>> kernels.resolve_bandwidth(kernels.Gaussian(), 0.5, np.ones((2, 2)))
    Gaussian(lengthscale=1.0)
    >>> kernels.resolve_bandwidth(kernels.Laplacian(), "median", np.array([[0.0], [1.0], [3.0]]))
    Laplacian(lengthscale=2.0)
    """
    if rule is None:
        return kernel
    if not isinstance(owner, str):
        raise TypeError(f"resolve_bandwidth: owner must be a string, got {shown(owner)}.")
    check_instance(owner, "kernel", kernel, Kernel, "kernels.Gaussian()")
    _check_free(owner, kernel, rule)
    if not isinstance(rule, str):
        return kernel.from_gamma(check_positive(owner, "gamma", rule))
    if rule not in RULES:
        raise ValueError(f"{owner}: gamma must be 'scale', 'median' or a positive number, got {shown(rule)}.")
    rows, weights = _checked(owner, rows, weights)
    if rule == "median":
        return kernel.with_bandwidth(_median(rows, as_generator(rng), weights, kernel.metric or "euclidean"))
    variance = rows.variance(weights) if hasattr(rows, "variance") else variance_of(rows, weights)
    spread = math.sqrt(variance) if kernel.metric == "cityblock" else variance
    return kernel.from_gamma(1 / (rows.shape[1] * spread) if spread > 0 else 1.0)


def median_distance(X: Any, rng: RNG = 0, *, metric: str = "euclidean") -> float:
    """Median distance between rows of X, a common first choice of the lengthscale.

    At most a thousand rows are used; they are sampled at random if there are more.

    Parameters
    ----------
    X : array or sparse matrix (n, d)
        Points as rows.
    rng : int, numpy.random.Generator or None
        Selects the rows.
    metric : {"euclidean", "cityblock"}
        The distance of the kernel: "cityblock" (L1) for the Laplacian kernel, "euclidean" for the others.

    Returns
    -------
    float
        A positive number.  If more than half of the pairs are equal, it is the smallest non-zero distance; on constant
        data it is one.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.kernels import median_distance
    >>> median_distance(np.array([[0.0], [1.0], [3.0]]))
    2.0
    """
    check_option("median_distance", "metric", metric, ("euclidean", "cityblock"))
    return _median(_checked("median_distance", X, None)[0], as_generator(rng), None, metric)


def _checked(owner: str, X: Any, weights: Any) -> tuple[Any, np.ndarray | None]:
    """Return finite rows as a matrix, a CSR matrix or the given object, and their weights."""
    if hasattr(X, "variance") and hasattr(X, "sample"):
        return X, weights
    if hasattr(X, "tocsr"):
        X = X.tocsr()
        check_points(owner, X.data[None] if X.nnz else np.zeros((1, 1)))
    else:
        X = as_numpy(check_points(owner, X))
    if len(X.shape) != 2 or not X.shape[0]:
        raise ValueError(f"{owner}: X must be a matrix of points as rows, got shape {tuple(X.shape)}.")
    if weights is None:
        return X, None
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != X.shape[:1] or not (np.all(weights >= 0) and weights.sum() > 0):
        raise ValueError(
            f"{owner}: weights must be one number of at least zero for each of {X.shape[0]} rows, not all zero."
        )
    return X, weights


def _check_free(owner: str, kernel: Kernel, rule: Any) -> None:
    if not kernel.has_bandwidth:
        raise ValueError(f"{owner}: {kernel!r} has no bandwidth for gamma={rule!r} to set; pass gamma=None.")
    if kernel.bandwidth != 1.0:
        raise ValueError(
            f"{owner}: gamma={rule!r} and {kernel!r} both set the bandwidth; pass gamma=None, or the kernel at unit scale."
        )


def _median(rows: Any, rng: np.random.Generator, weights: np.ndarray | None, metric: str) -> float:
    from scipy.spatial.distance import pdist

    if hasattr(rows, "sample"):
        points = rows.sample(N_ROWS, rng)
    else:
        rows = rows if weights is None else rows[weights > 0]
        n = rows.shape[0]
        points = rows[np.sort(rng.choice(n, N_ROWS, replace=False))] if n > N_ROWS else rows
    points = np.asarray(points.toarray() if hasattr(points, "toarray") else points, dtype=np.float64)
    exponent = int(np.frexp(np.abs(points).max(initial=0.0))[1])
    size = 2.0 ** min(exponent, 1023)  # squares of the largest numbers would overflow
    distances = pdist(points / size, metric)
    if not distances.any():
        return 1.0
    return (float(np.median(distances)) or float(distances[distances > 0].min())) * float(size)


def variance_of(X: Any, weights: np.ndarray | None = None) -> float:
    """Variance over all entries of an array or a CSR matrix, about their mean and so without cancellation."""
    if weights is None and isinstance(X, np.ndarray):
        return above_rounding(float(X.var(dtype=np.float64)), float(X.mean(dtype=np.float64)))
    w = np.ones(X.shape[0]) if weights is None else weights
    size = float(w.sum()) * X.shape[1]
    mean = float((w @ X).sum()) / size
    sparse = hasattr(X, "tocsr")
    squares = _sparse_squares(X, mean, w) if sparse else float((w @ (X - np.float64(mean)) ** 2).sum())
    return above_rounding(squares / size, mean)


def above_rounding(variance: float, mean: float) -> float:
    """Return the variance, or zero if it is within the rounding error of the mean of constant numbers."""
    return variance if variance > (10 * np.finfo(np.float64).eps * mean) ** 2 else 0.0


def _sparse_squares(X: Any, mean: float, w: np.ndarray) -> float:
    """Weighted squares about the mean, of stored entries and of implicit zeros."""
    from scipy import sparse

    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    stored = sparse.csr_array((np.square(X.data - np.float64(mean)), X.indices, X.indptr), X.shape)
    zeros = float(w @ (X.shape[1] - np.diff(X.indptr)))
    return float((w @ stored).sum()) + zeros * mean**2
