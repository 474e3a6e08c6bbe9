r"""Ridge regression on given features, with the regularisation strength chosen by leave-one-out cross-validation.

With centred features :math:`Z = QU^\top`, :math:`U` the eigenvectors of :math:`Z^\top Z` and s its eigenvalues, the fit for
every alpha is :math:`Q(s+\alpha)^{-1}Q^\top T`, and its residuals divided by one minus the leverages
:math:`1/n + \sum_j Q_{ij}^2/(s_j+\alpha)` are those of leaving out each row in turn: one decomposition serves all alphas.
With fewer rows than features, Q comes from the eigenvectors of the smaller :math:`ZZ^\top`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import linalg

ALPHAS = np.logspace(-6, 3, 19)
_TIE = 1e-3
"""Weight of the squared error beside the loss, which decides among alphas with equally many wrong classes."""


class RidgeFit(NamedTuple):
    """A ridge fit: its alpha, the leave-one-out loss, and what predicts."""

    alpha: float
    loss: float
    coefficients: np.ndarray
    intercept: np.ndarray

    def __call__(self, Z: np.ndarray) -> np.ndarray:
        """Predict the targets (n, t) of rows with features Z."""
        return np.asarray(Z @ self.coefficients + self.intercept)


def ridge_by_leave_one_out(
    Z: np.ndarray, T: np.ndarray, losses: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> RidgeFit:
    """Fit targets T (n, t) to features Z (n, m) with the alpha of the lowest leave-one-out loss.

    Raises a ``FloatingPointError`` if the features are not finite.

    Examples
    --------
    >>> import numpy as np
    >>> Z = np.random.default_rng(0).standard_normal((50, 3))
    >>> fit = ridge_by_leave_one_out(Z, Z[:, :1] + 2, lambda scores, T: ((scores - T) ** 2)[:, 0])
    >>> bool(abs(fit(Z) - Z[:, :1] - 2).max() < 1e-4), bool(fit.alpha < 1e-3)
    (True, True)
    """
    n = len(Z)
    if not np.isfinite(Z).all():
        raise FloatingPointError("features are not finite")
    z_mean, t_mean = Z.mean(axis=0), T.mean(axis=0)
    Z = Z - z_mean
    wide = Z.shape[1] > n
    s, U = linalg.eigh(Z @ Z.T if wide else Z.T @ Z, check_finite=False, driver="evd")
    s = np.maximum(s, 0)
    Q = U * np.sqrt(s) if wide else Z @ U
    weights = 1 / (s[:, None] + ALPHAS)  # (min(n, m), alphas)
    leverages = np.minimum(1 / n + Q**2 @ weights, 1 - 1e-10)
    C = Q.T @ (T - t_mean)
    left_out = np.empty((len(ALPHAS), *T.shape))
    for j in range(T.shape[1]):
        fitted = (Q * C[:, j]) @ weights + t_mean[j]
        left_out[:, :, j] = (T[:, [j]] + (fitted - T[:, [j]]) / (1 - leverages)).T
    scores = [_score(losses, one, T) for one in left_out]
    best = int(np.argmin(scores))
    chosen = weights[:, [best]]
    coefficients = Z.T @ (U @ (chosen * (U.T @ (T - t_mean)))) if wide else U @ (chosen * C)
    return RidgeFit(float(ALPHAS[best]), scores[best], coefficients, t_mean - z_mean @ coefficients)


def _score(losses: Callable[[np.ndarray, np.ndarray], np.ndarray], scores: np.ndarray, T: np.ndarray) -> float:
    squares = float(np.mean((scores - T) ** 2))
    return float(np.mean(losses(scores, T))) + _TIE * squares
