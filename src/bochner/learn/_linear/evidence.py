"""The posterior of a Gaussian process on features, and its marginal likelihood."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, cholesky
from scipy.linalg.lapack import dtrtri
from scipy.optimize import minimize_scalar

from ...approximation import FeatureMap
from .spectrum import NormalEquations, Scaling, Spectrum

_GRID = np.linspace(np.log(1e-9), np.log(1e7), 113)
"""Logarithms tried before the refinement; a local maximum between two neighbours is not lost by it."""
_NOISE_FLOOR = 1e-8
"""Of the mean square of the targets: below it the targets are interpolated, and rounding decides."""
_LOG_2PI = float(np.log(2 * np.pi))


class Hyperparameters(NamedTuple):
    """Noise and amplitude where they are fixed, None where they are free."""

    noise: float | None
    amplitude: float | None


class SpectralEvidence:
    r"""The marginal likelihood in noise and amplitude alone: one eigendecomposition, then O(D) for each pair of them.

    Notes
    -----
    With :math:`\lambda = \sigma^2/a` and :math:`z = V^T\Phi^Ty`, by the matrix determinant lemma,

    .. math:: L = -\tfrac12\Big[\tfrac1{\sigma^2}\Big(y^Ty - \sum_k\frac{z_k^2}{\Lambda_k+\lambda}\Big) +
              \sum_k\log\Big(1+\frac{\Lambda_k}\lambda\Big) + n\log 2\pi\sigma^2\Big],

    summed over targets.  For a given :math:`\lambda` the best :math:`\sigma^2` is the bracket after it divided by n, so
    noise and amplitude together are one number to search.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.learn._linear.spectrum import RowEquations
    >>> rng = np.random.default_rng(0)
    >>> Phi = rng.standard_normal((500, 8))
    >>> y = Phi @ rng.standard_normal((8, 1)) + 0.1 * rng.standard_normal((500, 1))
    >>> rows = RowEquations.of(Phi, y, about_mean=False, rounding=1e-16)
    >>> noise, amplitude = SpectralEvidence(rows.spectrum()).best(Hyperparameters(None, None))
    >>> bool(0.008 < noise < 0.012)
    True
    """

    def __init__(self, spectrum: Spectrum) -> None:
        self.values, equations = spectrum.values, spectrum.equations
        self.n_rows, self.n_targets = equations.units, spectrum.z.shape[1]
        self._squares, self._total = (spectrum.z**2).sum(axis=1), float(equations.total.sum())
        self._target_size = self._total / (self.n_rows * self.n_targets) or 1.0
        self._feature_size = float(self.values.sum()) / self.n_rows or 1.0

    def value(self, noise: float, amplitude: float) -> float:
        """The log marginal likelihood."""
        ratio, count = noise / amplitude, self.n_rows * self.n_targets
        fit, log_det = self._residual(ratio) / noise, float(np.log1p(self.values / ratio).sum())
        value: float = -0.5 * (fit + self.n_targets * log_det + count * float(np.log(2 * np.pi * noise)))
        return value

    def gradient(self, noise: float, amplitude: float) -> np.ndarray:
        """In the logarithms of noise and amplitude."""
        shifted, count = self.values + noise / amplitude, self.n_rows * self.n_targets
        # the fit is at its minimum over the weights, so only the explicit dependence counts: the weights' own size
        size = float((self._squares / shifted / shifted).sum()) / amplitude
        freedom = self.n_targets * float((self.values / shifted).sum())
        fit = self._residual(noise / amplitude) / noise - size
        return 0.5 * np.array([fit - count + freedom, size - freedom])

    def best(self, given: Hyperparameters) -> tuple[float, float]:
        """Noise and amplitude that maximise it; one that is given is kept."""
        noise, amplitude = given
        if noise is not None:
            return self._search(self._target_size / self._feature_size, lambda value: (noise, value))
        if amplitude is None:
            return self._search(self._feature_size, self._profiled)
        return self._search(self._target_size, lambda value: (max(value, self._least_noise), amplitude))

    @property
    def _least_noise(self) -> float:
        return _NOISE_FLOOR * self._target_size

    def _profiled(self, ratio: float) -> tuple[float, float]:
        noise = max(self._residual(ratio) / (self.n_rows * self.n_targets), self._least_noise)
        return noise, noise / ratio

    def _residual(self, ratio: float) -> float:
        """Squared residuals plus ratio times squared weights; never below the latter, whatever the rounding."""
        shifted = self.values + ratio
        weights = float((self._squares / shifted / shifted).sum())
        return max(self._total - float((self._squares / shifted).sum()), ratio * weights)

    def _search(self, unit: float, pair: Callable[[float], tuple[float, float]]) -> tuple[float, float]:
        """Maximise over one number on a logarithmic scale: a grid, then a refinement about its best point."""

        def loss(log: float) -> float:
            return -self.value(*pair(unit * float(np.exp(log))))

        k = int(np.argmin([loss(log) for log in _GRID]))
        low, high = _GRID[max(k - 1, 0)], _GRID[min(k + 1, len(_GRID) - 1)]
        found = minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": 1e-10})
        log = float(found.x) if found.fun <= loss(_GRID[k]) else _GRID[k]
        return pair(unit * float(np.exp(log)))


class Posterior(NamedTuple):
    r"""Weights given data: :math:`w \mid y \sim N(\mu, \sigma^2 R R^T)`.

    Attributes
    ----------
    mean : float64 array (D, t)
    root : float64 array (D, D)
        R.
    noise, amplitude : float
        :math:`\sigma^2` and a.
    log_marginal_likelihood : float
    lost : int
        Number of directions in which the noise is within the rounding error of the features, and nothing is fitted.

    Notes
    -----
    The prior is :math:`w \sim N(0, aI)` and :math:`y = \Phi w + \varepsilon`,
    :math:`\varepsilon \sim N(0, \sigma^2 I)`, so :math:`\mu = B^{-1}\Phi^Ty`, :math:`RR^T = B^{-1}`,
    :math:`B = \Phi^T\Phi + (\sigma^2/a) I`.  R is the inverse of the transposed Cholesky factor, which is unique, so
    that equal data give equal samples; where rounding leaves B without a factor it is
    :math:`Q(\Lambda+\sigma^2/a)^{-1/2}`.
    """

    mean: np.ndarray
    root: np.ndarray
    noise: float
    amplitude: float
    log_marginal_likelihood: float
    lost: int = 0

    def variance(self, Phi: np.ndarray) -> np.ndarray:
        """Variance of the function at rows of features, (n,)."""
        V = Phi @ self.root
        variance: np.ndarray = self.noise * np.einsum("nk,nk->n", V, V)
        return variance

    def covariance(self, Phi: np.ndarray) -> np.ndarray:
        """Covariance of the function at rows of features, (n, n)."""
        V = Phi @ self.root
        covariance: np.ndarray = self.noise * (V @ V.T)
        return covariance

    def sample(self, n_samples: int, rng: np.random.Generator) -> np.ndarray:
        """Weights drawn from it, (D, t, n_samples): each is one function on the whole space."""
        D, t = self.mean.shape
        z = rng.standard_normal((n_samples, t, D)).transpose(2, 1, 0)
        drawn: np.ndarray = self.mean[:, :, None] + np.sqrt(self.noise) * np.tensordot(self.root, z, axes=1)
        return drawn


def means_and_spreads(
    X: np.ndarray, *, phi: FeatureMap, fitted: Posterior, scaling: Scaling, noise: float
) -> np.ndarray:
    """Means and standard deviations side by side, (n, 2t), in the units of the targets."""
    Phi = phi.queries(X)
    spread = np.sqrt(fitted.variance(Phi) + noise)
    return np.hstack([scaling.shift + scaling.scale * (Phi @ fitted.mean), spread[:, None] * scaling.scale])


def functions_at(X: np.ndarray, *, phi: FeatureMap, weights: np.ndarray, scaling: Scaling, single: bool) -> np.ndarray:
    """Functions of given weights (D, t, s) at rows, (n, t, s) or (n, s)."""
    values = scaling.shift[:, None] + scaling.scale[:, None] * np.tensordot(phi.queries(X), weights, axes=1)
    return np.asarray(values[:, 0] if single else values)


def function_at(X: np.ndarray, *, phi: FeatureMap, weights: np.ndarray, scaling: Scaling, single: bool) -> np.ndarray:
    """The function of given weights (D, t, 1) at rows, (n, t) or (n,)."""
    return functions_at(X, phi=phi, weights=weights, scaling=scaling, single=single)[..., 0]


def posterior(equations: NormalEquations, noise: float, amplitude: float) -> Posterior:
    """The posterior of given noise and amplitude, by one Cholesky factorisation where rounding allows it."""
    ratio = noise / amplitude
    if ratio <= equations.floor:
        return _by_spectrum(equations, noise, amplitude)
    B = equations.gram.copy()
    B[np.diag_indices(len(B))] += ratio
    try:
        L = cholesky(B, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:  # the ratio is lost in the rounding of the Gram matrix
        return _by_spectrum(equations, noise, amplitude)
    root, t = np.ascontiguousarray(dtrtri(L, lower=1)[0].T), equations.cross.shape[1]
    mean = root @ (root.T @ equations.cross)
    residual = float(equations.total.sum() - np.vdot(equations.cross, mean))
    fit = max(residual, ratio * float(np.vdot(mean, mean))) / noise
    log_det = 2 * float(np.log(np.diag(L)).sum()) - len(B) * float(np.log(ratio))
    value = -0.5 * (fit + t * log_det + equations.units * t * float(np.log(2 * np.pi * noise)))
    return Posterior(mean, root, noise, amplitude, value)


def _by_spectrum(equations: NormalEquations, noise: float, amplitude: float) -> Posterior:
    """Compute the posterior from all D eigenvectors; directions within rounding error keep their prior."""
    spectrum, ratio = equations.spectrum(), noise / amplitude
    mean, lost = spectrum.within_rounding(ratio) if ratio <= equations.floor else (spectrum.coefficients(ratio), 0)
    root = spectrum.vectors / np.sqrt(spectrum.values + ratio)
    return Posterior(mean, root, noise, amplitude, SpectralEvidence(spectrum).value(noise, amplitude), lost)


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
    :math:`\partial L/\partial\log\sigma^2 = \tfrac{\sigma^2}2(|\alpha|^2 - t\,\mathrm{tr}K^{-1})`.  With no fewer rows
    than features all of it follows from :math:`B = \Phi^T\Phi + \lambda I`, :math:`\lambda = \sigma^2/a`, by
    :math:`K^{-1}\Phi = \Phi B^{-1}/a` and :math:`|K| = |B|\,a^D\sigma^{2(n-D)}`: O(n D^2).  With fewer, from K: O(n^2
    D).

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
