"""Class probabilities averaged over Gaussian latents."""

from __future__ import annotations

import numpy as np
from scipy.special import expit


def expected_probabilities(mean: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    r"""Mean of the class probabilities for latents of given means (n, k) and covariances (n, k, k).

    Notes
    -----
    One latent, two classes (MacKay 1992): :math:`E\,\sigma(f) \approx \sigma(\kappa(v)\mu)` with
    :math:`\kappa(v) = (1+\pi v/8)^{-1/2}`.  For k latents, :math:`1/p_c = 1 + \sum_{j\ne c}e^{-(f_c-f_j)}`, and each of the
    k - 1 logistic functions of a difference is taken as in the case of two classes,

    .. math:: p_c \propto \Big(1+\sum_{j\ne c}e^{-\kappa(v_{cj})(\mu_c-\mu_j)}\Big)^{-1}, \qquad
              v_{cj} = \mathrm{Var}(f_c-f_j),

    then divided by their sum (the mean-field approximation of Lu, Ie and Sha 2020).  With k = 2 it is MacKay's.

    Returns
    -------
    float64 array (n, 2) or (n, k)

    Examples
    --------
    >>> import numpy as np
    >>> expected_probabilities(np.array([[0.0]]), np.array([[[3.0]]])).tolist()
    [[0.5, 0.5]]
    """
    if mean.shape[1] == 1:
        p = expit(_shrinkage(covariance[:, 0, 0]) * mean[:, 0])
        return np.stack([1 - p, p], axis=1)
    diagonal = np.einsum("nii->ni", covariance)
    spread = diagonal[:, :, None] + diagonal[:, None, :] - 2 * covariance
    gaps = _shrinkage(np.maximum(spread, 0)) * (mean[:, :, None] - mean[:, None, :])
    # the term of c itself is exp(0) = 1: the sum over all j is that of the formula
    logs = -np.logaddexp.reduce(-gaps, axis=2)
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    probabilities: np.ndarray = weights / weights.sum(axis=1, keepdims=True)
    return probabilities


def _shrinkage(variance: np.ndarray) -> np.ndarray:
    shrinkage: np.ndarray = 1 / np.sqrt(1 + np.pi * variance / 8)
    return shrinkage
