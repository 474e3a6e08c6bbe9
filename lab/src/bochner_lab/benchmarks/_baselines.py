"""The estimators of scikit-learn that kernel machines are compared with, and how each of them is set up."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

from bochner.extending import Kernel
from bochner.kernels import Gaussian

TUBE = 0.05
"""Half the width of the tube of support vector regression, in standard deviations of the target."""
MOST_TREES, PATIENCE = 300, 15
"""Rounds of boosting, and rounds without progress after which it stops."""


def gaussian_of(gamma: float) -> Gaussian:
    """The Gaussian kernel of scikit-learn's gamma."""
    return Gaussian(1 / float(np.sqrt(2 * gamma)))


def random_fourier(gamma: float, width: int, seed: int) -> Any:
    """Independent random Fourier features."""
    from sklearn.kernel_approximation import RBFSampler

    return RBFSampler(gamma=gamma, n_components=width, random_state=seed)


def nystroem(gamma: float, width: int, seed: int) -> Any:
    """Nystrom features of uniform landmarks."""
    from sklearn.kernel_approximation import Nystroem

    return Nystroem(gamma=gamma, n_components=width, random_state=seed)


def support_vectors(gamma: float, C: float, *, classes: bool) -> Any:
    """SVC, or SVR for targets that are standardised."""
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC, SVR

    if classes:
        return SVC(C=C, gamma=gamma, cache_size=1000)
    regressor = SVR(C=C, epsilon=TUBE, gamma=gamma, cache_size=1000)
    return TransformedTargetRegressor(regressor, transformer=StandardScaler())


def boosting(seed: int, *, classes: bool, **options: Any) -> Any:
    """Gradient boosting of trees on histograms; without other options it stops early, on a part of its rows."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    kind: Any = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    stopping = {"early_stopping": True, "n_iter_no_change": PATIENCE, "max_iter": MOST_TREES}
    return kind(random_state=seed, **(stopping | options))


class ExactKernelRidge:
    """Kernel ridge regression with the exact Gram matrix of its rows, about the mean of the targets (n, t).

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.kernels import Gaussian
    >>> X = np.linspace(-1, 1, 20)[:, None]
    >>> scores = ExactKernelRidge(Gaussian(), 1e-6, X, np.sin(X)).scores(X)
    >>> bool(np.allclose(scores, np.sin(X), atol=1e-3))
    True
    """

    def __init__(self, kernel: Kernel, alpha: float, X: np.ndarray, targets: np.ndarray) -> None:
        self.kernel, self.X, self.mean = kernel, X, targets.mean(axis=0)
        K = np.asarray(kernel(X))
        K.flat[:: len(K) + 1] += alpha
        self.coefficients = linalg.solve(K, targets - self.mean, assume_a="pos", overwrite_a=True, check_finite=False)

    def scores(self, X: np.ndarray) -> np.ndarray:
        """Predictions (n, t)."""
        return np.asarray(self.kernel(X, self.X) @ self.coefficients + self.mean)
