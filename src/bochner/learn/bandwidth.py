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

from .._validation import check_positive
from ..kernels import Cauchy, Gaussian, Kernel, Laplacian, Matern, RationalQuadratic, Softmax, median_distance
from ._rows import RowSource

RULES = ("scale", "median")


def with_gamma(owner: str, kernel: Kernel, gamma: Any, X: RowSource, rng: np.random.Generator) -> Kernel:
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
    X : RowSource
    rng : numpy.random.Generator
        Draws the rows of the median.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import kernels
    >>> from bochner.learn._rows import ArrayRows
    >>> with_gamma("example", kernels.Gaussian(), 0.5, ArrayRows("example", np.ones((2, 2))), np.random.default_rng(0))
    Gaussian(lengthscale=1.0)
    """
    _check_free(owner, kernel, gamma)
    if isinstance(gamma, str):
        if gamma not in RULES:
            raise ValueError(f"{owner}: gamma must be 'scale', 'median' or a positive number, got {gamma!r}.")
        return _by_scale(kernel, X) if gamma == "scale" else _by_median(kernel, X, rng)
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


def _by_scale(kernel: Kernel, X: RowSource) -> Kernel:
    d, variance = X.shape[1], X.variance()
    if isinstance(kernel, Laplacian):
        variance = math.sqrt(variance)
    gamma = 1 / (d * variance) if variance > 0 else 1.0
    return with_gamma("scale", kernel, gamma, X, np.random.default_rng(0))


def _by_median(kernel: Kernel, X: RowSource, rng: np.random.Generator) -> Kernel:
    median = median_distance(
        X.sample(1000, rng), rng, metric="cityblock" if isinstance(kernel, Laplacian) else "euclidean"
    )
    if isinstance(kernel, Softmax):
        return Softmax(1 / median**2)
    return replace(kernel, lengthscale=median)  # type: ignore[type-var]
