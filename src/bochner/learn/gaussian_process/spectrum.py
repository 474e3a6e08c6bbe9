"""The marginal likelihood in noise and amplitude alone: one eigendecomposition, then O(D) for each pair of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh, svd
from scipy.optimize import minimize_scalar

_GRID = np.linspace(np.log(1e-9), np.log(1e7), 113)
"""Logarithms tried before the refinement; a local maximum between two neighbours is not lost by it."""
_NOISE_FLOOR = 1e-8
"""Of the mean square of the targets: below it the targets are interpolated, and rounding decides."""


class Normal(NamedTuple):
    """The normal equations of regression on features: all that the posterior needs.

    Attributes
    ----------
    gram : float64 array (D, D)
        Sum of products of the features.
    cross : float64 array (D, t)
        Sum of features times targets.
    square : float64 array (t,)
        Sum of squares of the targets.
    n_rows : float
    """

    gram: np.ndarray
    cross: np.ndarray
    square: np.ndarray
    n_rows: float


class Spectrum:
    r"""Normal equations in the eigenvectors of their Gram matrix :math:`Q\Lambda Q^T`.

    Notes
    -----
    With :math:`\lambda = \sigma^2/a` and :math:`q = Q^T\Phi^Ty`, by the matrix determinant lemma,

    .. math:: L = -\tfrac12\Big[\tfrac1{\sigma^2}\Big(y^Ty - \sum_k\frac{q_k^2}{\Lambda_k+\lambda}\Big) +
              \sum_k\log\Big(1+\frac{\Lambda_k}\lambda\Big) + n\log 2\pi\sigma^2\Big],

    summed over targets.  For a given :math:`\lambda` the best :math:`\sigma^2` is the bracket after it divided by n, so
    noise and amplitude together are one number to search.

    Attributes
    ----------
    values : float64 array (r,)
        :math:`\Lambda`; those that are left out are zero.
    vectors : float64 array (D, r)
        Q.
    cross : float64 array (r, t)
        q.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> Phi = rng.standard_normal((500, 8))
    >>> y = Phi @ rng.standard_normal((8, 1)) + 0.1 * rng.standard_normal((500, 1))
    >>> noise, amplitude = Spectrum.of_rows(Phi, y).best(noise=None, amplitude=None)
    >>> bool(0.008 < noise < 0.012)
    True
    """

    def __init__(self, values: np.ndarray, vectors: np.ndarray, cross: np.ndarray, total: float, n_rows: float) -> None:
        self.values, self.vectors, self.cross = values, vectors, cross
        self.n_rows, self.n_targets = n_rows, cross.shape[1]
        self._squares, self._total = (cross**2).sum(axis=1), total
        self._target_size = total / (n_rows * self.n_targets) or 1.0
        self._feature_size = float(values.sum()) / n_rows or 1.0

    @classmethod
    def of(cls, normal: Normal) -> Spectrum:
        """By a decomposition of the Gram matrix."""
        values, Q = eigh(normal.gram, check_finite=False)
        # rounding makes zeros negative
        return cls(np.maximum(values, 0), Q, Q.T @ normal.cross, float(normal.square.sum()), normal.n_rows)

    @classmethod
    def of_rows(cls, Phi: np.ndarray, Y: np.ndarray) -> Spectrum:
        """Of features (n, D) and targets (n, t), by a decomposition of the features: O(n D min(n, D))."""
        U, s, Vt = svd(Phi, full_matrices=False, check_finite=False)
        return cls(s**2, Vt.T, s[:, None] * (U.T @ Y), float(np.vdot(Y, Y)), len(Y))

    def log_marginal_likelihood(self, noise: float, amplitude: float) -> float:
        """Its value."""
        ratio, count = noise / amplitude, self.n_rows * self.n_targets
        fit, log_det = self._residual(ratio) / noise, float(np.log1p(self.values / ratio).sum())
        value: float = -0.5 * (fit + self.n_targets * log_det + count * float(np.log(2 * np.pi * noise)))
        return value

    def gradient(self, noise: float, amplitude: float) -> np.ndarray:
        """In the logarithms of noise and amplitude."""
        shifted, count = self.values + noise / amplitude, self.n_rows * self.n_targets
        # the fit is at its minimum over the weights, so only the explicit dependence counts: the weights' own size
        size = float((self._squares / shifted**2).sum()) / amplitude
        freedom = self.n_targets * float((self.values / shifted).sum())
        fit = self._residual(noise / amplitude) / noise - size
        return 0.5 * np.array([fit - count + freedom, size - freedom])

    def best(self, *, noise: float | None, amplitude: float | None) -> tuple[float, float]:
        """Noise and amplitude that maximise it; one that is given is kept."""
        if noise is None and amplitude is None:
            return self._search(self._feature_size, self._profiled)
        if noise is None:
            assert amplitude is not None
            fixed = amplitude
            return self._search(self._target_size, lambda value: (max(value, self._least_noise), fixed))
        given = noise
        return self._search(self._target_size / self._feature_size, lambda value: (given, value))

    @property
    def _least_noise(self) -> float:
        return _NOISE_FLOOR * self._target_size

    def _profiled(self, ratio: float) -> tuple[float, float]:
        noise = max(self._residual(ratio) / (self.n_rows * self.n_targets), self._least_noise)
        return noise, noise / ratio

    def _residual(self, ratio: float) -> float:
        """Squared residuals plus ratio times squared weights; never below the latter, whatever the rounding."""
        shifted = self.values + ratio
        weights = float((self._squares / shifted**2).sum())
        return max(self._total - float((self._squares / shifted).sum()), ratio * weights)

    def _search(self, unit: float, pair: Callable[[float], tuple[float, float]]) -> tuple[float, float]:
        """Maximise over one number on a logarithmic scale: a grid, then a refinement about its best point."""

        def loss(log: float) -> float:
            return -self.log_marginal_likelihood(*pair(unit * float(np.exp(log))))

        k = int(np.argmin([loss(log) for log in _GRID]))
        low, high = _GRID[max(k - 1, 0)], _GRID[min(k + 1, len(_GRID) - 1)]
        found = minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": 1e-10})
        log = float(found.x) if found.fun <= loss(_GRID[k]) else _GRID[k]
        return pair(unit * float(np.exp(log)))
