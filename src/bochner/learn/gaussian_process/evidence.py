"""The log marginal likelihood of regression as a function of the features, with its gradient in all of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

_LOG_2PI = float(np.log(2 * np.pi))


class Evidence(NamedTuple):
    """A log marginal likelihood and its gradient.

    Attributes
    ----------
    value : float
    features : float64 array (n, D)
        Gradient in each feature of each row.
    logs : float64 array
        Gradient in the logarithms of the other hyperparameters: noise and amplitude, or amplitude alone.
    """

    value: float
    features: np.ndarray
    logs: np.ndarray


def regression_evidence(Phi: np.ndarray, Y: np.ndarray, noise: float, amplitude: float) -> Evidence:
    r"""Log marginal likelihood of targets Y (n, t) under :math:`K = a\Phi\Phi^T + \sigma^2 I`, and its gradient.

    Notes
    -----
    With :math:`\alpha = K^{-1}Y`,

    .. math::

        L = -\tfrac12\mathrm{tr}\,Y^T\alpha - \tfrac t2\log|K| - \tfrac{nt}2\log 2\pi, \qquad
        \frac{\partial L}{\partial\Phi} = a(\alpha\alpha^T - tK^{-1})\Phi =: G,

    :math:`\partial L/\partial\log a = \tfrac12\mathrm{tr}\,\Phi^TG` and
    :math:`\partial L/\partial\log\sigma^2 = \tfrac{\sigma^2}2(|\alpha|^2 - t\,\mathrm{tr}K^{-1})`.  With no fewer rows than
    features all of it follows from :math:`B = \Phi^T\Phi + \lambda I`, :math:`\lambda = \sigma^2/a`, by
    :math:`K^{-1}\Phi = \Phi B^{-1}/a` and :math:`|K| = |B|\,a^D\sigma^{2(n-D)}`: O(n D^2).  With fewer, from K: O(n^2 D).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> Phi, y = rng.standard_normal((5, 3)), rng.standard_normal((5, 1))
    >>> K = 2.0 * Phi @ Phi.T + 0.5 * np.eye(5)
    >>> exact = -0.5 * (y.T @ np.linalg.solve(K, y)).item() - 0.5 * np.linalg.slogdet(2 * np.pi * K)[1]
    >>> bool(np.isclose(regression_evidence(Phi, y, 0.5, 2.0).value, exact))
    True
    """
    n, D = Phi.shape
    t = Y.shape[1]
    alpha, smooth, log_det = (_by_features if n >= D else _by_rows)(Phi, Y, noise, amplitude)
    value = -0.5 * (float(np.vdot(Y, alpha)) + t * log_det + n * t * _LOG_2PI)
    G = amplitude * (alpha @ (alpha.T @ Phi)) - t * smooth
    trace = (n - float(np.vdot(smooth, Phi))) / noise  # of the inverse of K
    logs = 0.5 * np.array([noise * (float(np.vdot(alpha, alpha)) - t * trace), np.vdot(Phi, G)])
    return Evidence(value, G, logs)


def _by_features(
    Phi: np.ndarray, Y: np.ndarray, noise: float, amplitude: float
) -> tuple[np.ndarray, np.ndarray, float]:
    """Alpha, :math:`a K^{-1} Phi` and log det K through the D x D matrix."""
    n, D = Phi.shape
    B = Phi.T @ Phi
    B[np.diag_indices(D)] += noise / amplitude
    factor = cho_factor(B, lower=True, overwrite_a=True, check_finite=False)
    smooth = cho_solve(factor, Phi.T, check_finite=False).T
    alpha = (Y - smooth @ (Phi.T @ Y)) / noise
    return alpha, smooth, _log_det(factor[0]) + D * np.log(amplitude) + (n - D) * np.log(noise)


def _by_rows(Phi: np.ndarray, Y: np.ndarray, noise: float, amplitude: float) -> tuple[np.ndarray, np.ndarray, float]:
    """The same through the n x n matrix."""
    K = amplitude * (Phi @ Phi.T)
    K[np.diag_indices(len(K))] += noise
    factor = cho_factor(K, lower=True, overwrite_a=True, check_finite=False)
    return (
        cho_solve(factor, Y, check_finite=False),
        amplitude * cho_solve(factor, Phi, check_finite=False),
        _log_det(factor[0]),
    )


def _log_det(L: np.ndarray) -> float:
    return 2 * float(np.log(np.diag(L)).sum())
