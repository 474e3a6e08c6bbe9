"""The constant of the maximum mean discrepancy to the uniform law on the sphere."""

from __future__ import annotations

from typing import Any

import numpy as np


def log_uniform_similarity(d: int, rate: Any) -> np.ndarray:
    r"""Logarithm of :math:`c(d, \lambda) = E\,e^{-\lambda\,\mathrm{angle}(x, U)}`, U uniform on the sphere, any unit x.

    Notes
    -----
    :math:`c = e^{-\pi\lambda/2}\,\Gamma(d/2)^2/|\Gamma(d/2 + i\lambda/2)|^2`.  The squared discrepancy of
    the law of X to the uniform one is :math:`E\,e^{-\lambda\,\mathrm{angle}(X, X')} - c` (OMC Sec. 6.1,
    where the constant is not given); the unbiased estimate of it may be negative.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.theory import log_uniform_similarity
    >>> bool(np.isclose(np.exp(log_uniform_similarity(2, 1.0)), (1 - np.exp(-np.pi)) / np.pi))
    True
    """
    from scipy.special import gammaln, loggamma

    rate = np.asarray(rate, dtype=np.float64)
    return np.asarray(-np.pi * rate / 2 + 2 * gammaln(d / 2) - 2 * loggamma(d / 2 + 0.5j * rate).real)
