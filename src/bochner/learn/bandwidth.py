r"""What ``gamma`` means: the one place where scikit-learn's bandwidth becomes a kernel of ours.

| kernel | with gamma | so that |
|---|---|---|
| Gaussian, Matern, rational quadratic | :math:`\ell = 1/\sqrt{2\gamma}` | Gaussian is :math:`e^{-\gamma|x-y|^2}` |
| Cauchy | :math:`\ell = 1/\sqrt\gamma` | it is :math:`1/(1+\gamma|x-y|^2)` |
| Laplacian | :math:`\ell = 1/\gamma` | it is :math:`e^{-\gamma|x-y|_1}` |
| softmax | scale :math:`\gamma` | it is :math:`e^{\gamma x\cdot y}` |
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from .._validation import check_positive
from ..kernels import Cauchy, Gaussian, Kernel, Laplacian, Matern, RationalQuadratic, Softmax, median_distance

RULES = ("scale", "median")


def with_gamma(
    owner: str, kernel: Kernel, gamma: Any, X: Any, rng: np.random.Generator, weights: np.ndarray | None = None
) -> Kernel:
    r"""The kernel with its bandwidth set from ``gamma``: a number, or a rule that looks at the data X.

    Parameters
    ----------
    owner : str
        Who asks, for the messages.
    kernel : Kernel
        With its bandwidth at one, which gamma replaces.
    gamma : {"scale", "median"} or float
        A number as in the table above.  ``"scale"`` is :math:`1/(d\,\mathrm{Var} X)`, one variance over all entries
        (for the Laplacian kernel :math:`1/(d\,\mathrm{Std} X)`, in the units of its distance).  ``"median"`` makes the
        lengthscale the median distance between rows, that of the kernel: Euclidean, or L1 for the Laplacian kernel; for
        softmax the scale is one over its square.  On constant data both are one.
    X : array or CSR matrix (n, d)
    rng : numpy.random.Generator
        Draws the rows of the median.
    weights : array (n,), optional
        Weights of the rows in the variance; rows of weight zero count nowhere.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import kernels
    >>> with_gamma("example", kernels.Gaussian(), 0.5, np.ones((2, 2)), np.random.default_rng(0))
    Gaussian(lengthscale=1.0)
    """
    _check_free(owner, kernel, gamma)
    if isinstance(gamma, str):
        if gamma not in RULES:
            raise ValueError(f"{owner}: gamma must be 'scale', 'median' or a positive number, got {gamma!r}.")
        return _by_scale(kernel, X, weights) if gamma == "scale" else _by_median(kernel, X, rng, weights)
    value = check_positive(owner, "gamma", gamma)
    if isinstance(kernel, Softmax):
        return Softmax(value)
    return replace(kernel, lengthscale=_lengthscale(kernel, value))  # type: ignore[type-var]


def has_bandwidth(kernel: Kernel) -> bool:
    """Whether gamma means something for the kernel."""
    return isinstance(kernel, Gaussian | Matern | RationalQuadratic | Cauchy | Laplacian | Softmax)


def _check_free(owner: str, kernel: Kernel, gamma: Any) -> None:
    if not has_bandwidth(kernel):
        raise ValueError(f"{owner}: {kernel!r} has no bandwidth for gamma={gamma!r} to set; pass gamma=None.")
    own = getattr(kernel, "lengthscale", getattr(kernel, "scale", 1.0))
    if own != 1.0:
        raise ValueError(
            f"{owner}: gamma={gamma!r} and {kernel!r} both set the bandwidth; pass gamma=None, or the kernel at unit scale."
        )


def _lengthscale(kernel: Kernel, gamma: float) -> float:
    if isinstance(kernel, Laplacian):
        return 1 / gamma
    return 1 / math.sqrt(gamma if isinstance(kernel, Cauchy) else 2 * gamma)


def _by_scale(kernel: Kernel, X: Any, weights: np.ndarray | None) -> Kernel:
    d, variance = X.shape[1], _variance(X, weights)
    if isinstance(kernel, Laplacian):
        variance = math.sqrt(variance)
    gamma = 1 / (d * variance) if variance > 0 else 1.0
    return with_gamma("scale", kernel, gamma, X, np.random.default_rng(0))


def _by_median(kernel: Kernel, X: Any, rng: np.random.Generator, weights: np.ndarray | None) -> Kernel:
    if weights is not None:
        X = X[weights > 0]
    median = median_distance(X, rng, metric="cityblock" if isinstance(kernel, Laplacian) else "euclidean")
    if isinstance(kernel, Softmax):
        return Softmax(1 / median**2)
    return replace(kernel, lengthscale=median)  # type: ignore[type-var]


def above_rounding(variance: float, mean: float) -> float:
    """The variance, or zero where it is no more than the rounding of the mean leaves of constant numbers."""
    return variance if variance > (10 * np.finfo(np.float64).eps * mean) ** 2 else 0.0


def _variance(X: Any, weights: np.ndarray | None) -> float:
    """One variance over all entries, about their mean: never a difference of large numbers."""
    if weights is None and not sparse.issparse(X):
        variance = float(X.var(dtype=np.float64))
        return above_rounding(variance, float(X.mean(dtype=np.float64))) if isinstance(X, np.ndarray) else variance
    w = np.ones(X.shape[0]) if weights is None else weights
    size = float(w.sum()) * X.shape[1]
    mean = float((w @ X).sum()) / size
    squares = _sparse_squares(X, mean, w) if sparse.issparse(X) else float((w @ (X - np.float64(mean)) ** 2).sum())
    return above_rounding(squares / size, mean)


def _sparse_squares(X: Any, mean: float, w: np.ndarray) -> float:
    """Weighted squares about the mean: of the entries that are stored, and of the zeros that are not."""
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    stored = sparse.csr_array((np.square(X.data - np.float64(mean)), X.indices, X.indptr), X.shape)
    zeros = float(w @ (X.shape[1] - np.diff(X.indptr)))
    return float((w @ stored).sum()) + zeros * mean**2
