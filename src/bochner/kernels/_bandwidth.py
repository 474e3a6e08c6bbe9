r"""How a bandwidth is chosen: one rule for the estimators, `recommend`, the command line and the Gaussian process.

=======================================  ==================================  ========================================
kernel                                   with gamma                          so that
=======================================  ==================================  ========================================
Gaussian, Matern, rational quadratic     :math:`\ell = 1/\sqrt{2\gamma}`     Gaussian is :math:`e^{-\gamma|x-y|^2}`
Cauchy                                   :math:`\ell = 1/\sqrt\gamma`        it is :math:`1/(1+\gamma|x-y|^2)`
Laplacian                                :math:`\ell = 1/\gamma`             it is :math:`e^{-\gamma|x-y|_1}`
softmax                                  scale :math:`\gamma`                it is :math:`e^{\gamma x\cdot y}`
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
N_ROWS = 1000

K = TypeVar("K", bound=Kernel)


class Rows(Protocol):
    """Rows of data that are not an array, such as those of a cluster: what the rules ask of them."""

    @property
    def shape(self) -> tuple[Any, int]:
        """(n, d)."""

    def variance(self, weights: np.ndarray | None = None) -> float:
        """One variance over all entries; zero where they are constant up to rounding."""

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """At most n rows, as a dense array."""


def resolve_bandwidth(
    kernel: K,
    rule: Any,
    rows: Any,
    *,
    rng: RNG = 0,
    weights: np.ndarray | None = None,
    owner: str = "resolve_bandwidth",
) -> K:
    r"""The kernel with the bandwidth that a rule, a number or the data give it.

    Every part of the library chooses bandwidths here, so that `recommend` speaks of the kernel that an estimator fits.

    Parameters
    ----------
    kernel : Kernel
        With its bandwidth at one, which the rule replaces.
    rule : {"scale", "median"}, float or None
        A number is scikit-learn's ``gamma``, as in `Kernel.from_gamma`.  ``"scale"``, the default of the library, is
        :math:`\gamma = 1/(d\,\mathrm{Var} X)`, one variance over all entries (:math:`1/(d\,\mathrm{Std} X)` where the
        kernel's distance is L1).  ``"median"`` is the median distance between rows, in the kernel's metric.  None leaves the
        kernel as it is.  On constant data both rules give one.
    rows : array or CSR matrix (n, d), or an object with ``shape``, ``variance(weights)`` and ``sample(n, rng)``
        The data.
    rng : int, numpy.random.Generator or None
        Draws the rows of the median.
    weights : array (n,), optional
        Weights of the rows; rows of weight zero count nowhere.
    owner : str
        Who asks, for error messages.

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
    """Median distance between rows of X, of a thousand of them where there are more; the usual first lengthscale.

    Parameters
    ----------
    X : array or sparse matrix (n, d)
        Points as rows.
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
    check_option("median_distance", "metric", metric, ("euclidean", "cityblock"))
    return _median(_checked("median_distance", X, None)[0], as_generator(rng), None, metric)


def _checked(owner: str, X: Any, weights: Any) -> tuple[Any, np.ndarray | None]:
    """Return finite rows as a matrix, a CSR matrix or the object that they are, and their weights."""
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
    """One variance over all entries of an array or a CSR matrix, about their mean: never a difference of large numbers."""
    if weights is None and isinstance(X, np.ndarray):
        return above_rounding(float(X.var(dtype=np.float64)), float(X.mean(dtype=np.float64)))
    w = np.ones(X.shape[0]) if weights is None else weights
    size = float(w.sum()) * X.shape[1]
    mean = float((w @ X).sum()) / size
    sparse = hasattr(X, "tocsr")
    squares = _sparse_squares(X, mean, w) if sparse else float((w @ (X - np.float64(mean)) ** 2).sum())
    return above_rounding(squares / size, mean)


def above_rounding(variance: float, mean: float) -> float:
    """The variance, or zero where it is no more than what rounding of the mean leaves of constant numbers."""
    return variance if variance > (10 * np.finfo(np.float64).eps * mean) ** 2 else 0.0


def _sparse_squares(X: Any, mean: float, w: np.ndarray) -> float:
    """Weighted squares about the mean: of the entries that are stored, and of the zeros that are not."""
    from scipy import sparse

    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    stored = sparse.csr_array((np.square(X.data - np.float64(mean)), X.indices, X.indptr), X.shape)
    zeros = float(w @ (X.shape[1] - np.diff(X.indptr)))
    return float((w @ stored).sum()) + zeros * mean**2
