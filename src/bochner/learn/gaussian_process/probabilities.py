"""Class probabilities averaged over Gaussian latents."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.special import expit, ndtri, softmax

_POINTS = 512
_ROWS = 512
"""Rows whose points are held at a time."""


def expected_probabilities(mean: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    r"""Mean of the class probabilities for latents of given means (n, k) and covariances (n, k, k).

    Notes
    -----
    :math:`E\,\sigma(f)` for one latent and two classes, :math:`E\,\mathrm{softmax}(f)` for k latents, as averages over 512
    fixed points: quantiles of the normal law for one latent, scrambled Sobol points for more.  The error is below 0.001
    for one and a few thousandths for several, where MacKay's closed form :math:`\sigma(\mu/\sqrt{1+\pi v/8})` and its
    extensions to several classes err by up to 0.02 and 0.06.

    Returns
    -------
    float64 array (n, 2) or (n, k)

    Examples
    --------
    >>> import numpy as np
    >>> bool(np.allclose(expected_probabilities(np.array([[0.0]]), np.array([[[3.0]]])), 0.5))
    True
    """
    k = mean.shape[1]
    root = _roots(covariance)
    parts = [
        _average(mean[rows, None] + np.einsum("nij,sj->nsi", root[rows], _normal_points(k)))
        for rows in (slice(i, i + _ROWS) for i in range(0, len(mean), _ROWS))
    ]
    return np.concatenate(parts)


def _average(latents: np.ndarray) -> np.ndarray:
    """Mean probabilities of latents (n, points, k)."""
    if latents.shape[2] == 1:
        p = expit(latents[:, :, 0]).mean(axis=1)
        return np.stack([1 - p, p], axis=1)
    mean: np.ndarray = softmax(latents, axis=2).mean(axis=1)
    return mean


def _roots(covariance: np.ndarray) -> np.ndarray:
    """Roots of positive semi-definite matrices, by their eigenvectors: rounding may leave no Cholesky factor."""
    values, vectors = np.linalg.eigh(covariance)
    roots: np.ndarray = vectors * np.sqrt(np.maximum(values, 0))[:, None, :]
    return roots


@lru_cache(maxsize=8)
def _normal_points(k: int) -> np.ndarray:
    """Points (512, k) that stand for the normal law."""
    if k == 1:
        return np.asarray(ndtri((np.arange(_POINTS) + 0.5) / _POINTS))[:, None]
    from scipy.stats import qmc  # a heavy import

    return np.asarray(ndtri(qmc.Sobol(k, scramble=True, rng=0).random(_POINTS)))
