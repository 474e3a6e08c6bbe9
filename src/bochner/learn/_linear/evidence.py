"""The marginal likelihood of a Gaussian process on features, and its gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError
from scipy.optimize import minimize_scalar

from ...linalg.cholesky import Cholesky, symmetric_product
from ...linalg.engine import multiply
from .spectrum import Spectrum

_GRID = np.linspace(np.log(1e-9), np.log(1e7), 113)
"""Logarithms tried before the refinement; a local maximum between two neighbours is not lost by it."""
_NOISE_FLOOR = 1e-8
"""Share of the mean square of the targets below which the targets are interpolated, and rounding decides."""
_WELL_CONDITIONED = 1e3
"""Ratio of diagonal entries of a Cholesky factor up to which the inverse is used: a condition of about 1e6."""
_REFUSED = 1e25  # loss where a factorisation fails because of rounding: the line search steps back from it
_ROUNDING = 8 * float(np.finfo(np.float64).eps)  # share of the squares of the targets that sums over rows do not know
_LOG_2PI = float(np.log(2 * np.pi))


class Hyperparameters(NamedTuple):
    """Noise and amplitude where they are fixed, None where they are free."""

    noise: float | None
    amplitude: float | None


class SpectralNodes(NamedTuple):
    """Values (k,) at which a spectral sum takes a function, and their weights (k,)."""

    values: np.ndarray
    weights: np.ndarray


def penalised_residual(total: float, explained: float, penalty: float) -> float:
    """Squared residuals plus the penalty of the weights, which the total less what is explained says of least squares.

    Residuals within the rounding error of the total count as none: divided by a tiny noise, the error would be large.

    Examples
    --------
    >>> penalised_residual(1.0, 0.75, 0.125)
    0.25
    >>> penalised_residual(1.0, 1.0 - 2e-16, 1e-16)
    1e-16
    """
    residual = total - explained - penalty
    return penalty + (residual if residual > _ROUNDING * total else 0.0)


class SpectralEvidence:
    r"""The marginal likelihood in noise and amplitude alone, from sums over the spectrum: O(D) for each pair of them.

    Parameters
    ----------
    fit : SpectralNodes
        Eigenvalues :math:`\Lambda_k` and squares :math:`z_k^2`, summed over targets.
    determinant : SpectralNodes
        Eigenvalues, and how often they count: once, or as a quadrature says.
    total : float
        Squares of the targets, summed.
    n_rows : float
        Number of observations n.
    n_targets : int

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
    >>> noise, amplitude = SpectralEvidence.of(rows.spectrum()).best(Hyperparameters(None, None))
    >>> bool(0.008 < noise < 0.012)
    True
    """

    def __init__(
        self, fit: SpectralNodes, determinant: SpectralNodes, total: float, n_rows: float, n_targets: int
    ) -> None:
        self.fit, self.determinant, self._total = fit, determinant, total
        self.n_rows, self.n_targets = n_rows, n_targets
        self._target_size = total / (n_rows * n_targets) or 1.0
        # a unit for the search; the weights of a quadrature may be negative
        self._feature_size = abs(float(determinant.values @ determinant.weights)) / n_rows or 1.0

    @classmethod
    def of(cls, spectrum: Spectrum) -> SpectralEvidence:
        """Exact evidence from all eigenvalues."""
        values, equations = spectrum.values, spectrum.equations
        fit, determinant = (
            SpectralNodes(values, (spectrum.z**2).sum(axis=1)),
            SpectralNodes(values, np.ones(len(values))),
        )
        return cls(fit, determinant, float(equations.total.sum()), equations.units, spectrum.z.shape[1])

    def value(self, noise: float, amplitude: float) -> float:
        """The log marginal likelihood."""
        ratio, count = noise / amplitude, self.n_rows * self.n_targets
        values, weights = self.determinant
        fit, log_det = self.residual(ratio) / noise, float(weights @ np.log1p(values / ratio))
        value: float = -0.5 * (fit + self.n_targets * log_det + count * float(np.log(2 * np.pi * noise)))
        return value

    def gradient(self, noise: float, amplitude: float) -> np.ndarray:
        """Gradient of the evidence in the logarithms of noise and amplitude."""
        ratio, count = noise / amplitude, self.n_rows * self.n_targets
        # the fit is at its minimum over the weights, so only the explicit dependence counts: the weights' own size
        shifted = self.fit.values + ratio
        size = float((self.fit.weights / shifted / shifted).sum()) / amplitude
        values, weights = self.determinant
        freedom = self.n_targets * float(weights @ (values / (values + ratio)))
        fit = self.residual(ratio) / noise - size
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
        noise = max(self.residual(ratio) / (self.n_rows * self.n_targets), self._least_noise)
        return noise, noise / ratio

    def residual(self, ratio: float) -> float:
        """Squared residuals plus the penalty of the weights, summed over targets."""
        values, squares = self.fit
        shifted = values + ratio
        weights = float((squares / shifted / shifted).sum())
        return penalised_residual(self._total, float((squares / shifted).sum()), ratio * weights)

    def _search(self, unit: float, pair: Callable[[float], tuple[float, float]]) -> tuple[float, float]:
        """Maximise over one number on a logarithmic scale: a grid, then a refinement about its best point."""

        def loss(log: float) -> float:
            return -self.value(*pair(unit * float(np.exp(log))))

        k = int(np.argmin([loss(log) for log in _GRID]))
        low, high = _GRID[max(k - 1, 0)], _GRID[min(k + 1, len(_GRID) - 1)]
        found = minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": 1e-10})
        log = float(found.x) if found.fun <= loss(_GRID[k]) else _GRID[k]
        return pair(unit * float(np.exp(log)))


class Evidence(NamedTuple):
    """A log marginal likelihood and its gradient."""

    value: float
    features: np.ndarray  # (n, D): gradient in each feature of each row
    logs: np.ndarray  # gradient in the logarithms of the other hyperparameters: noise and amplitude, or amplitude alone


def regression_evidence(
    Phi: np.ndarray, Y: np.ndarray, noise: float, amplitude: float, units: float | None = None
) -> Evidence:
    r"""Log marginal likelihood of targets Y (n, t) under :math:`K = a\Phi\Phi^T + \sigma^2 I`, and its gradient.

    Parameters
    ----------
    Phi, Y : float64 arrays (n, D) and (n, t)
        Features and targets, times the roots of the weights of their rows.
    noise, amplitude : float
    units : float, optional
        Observations that the rows count as, see `Moments`; None means n.

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
    units = n if units is None else units
    alpha, smooth, log_det = (_by_features if n >= D else _by_rows)(Phi, Y, noise, amplitude)
    log_det += (units - n) * float(np.log(noise))  # repetitions of a row add directions that only noise fills
    value = -0.5 * (float(np.vdot(Y, alpha)) + t * log_det + units * t * _LOG_2PI)
    G = amplitude * (alpha @ (alpha.T @ Phi)) - t * smooth
    trace = (units - float(np.vdot(smooth, Phi))) / noise  # of the inverse of K
    logs = 0.5 * np.array([noise * (float(np.vdot(alpha, alpha)) - t * trace), np.vdot(Phi, G)])
    return Evidence(value, G, logs)


def _by_features(
    Phi: np.ndarray, Y: np.ndarray, noise: float, amplitude: float
) -> tuple[np.ndarray, np.ndarray, float]:
    """Alpha, :math:`a K^{-1} Phi` and log det K through the D x D matrix."""
    n, D = Phi.shape
    B = symmetric_product(Phi.T)
    B[np.diag_indices(D)] += noise / amplitude
    factor = Cholesky.of(B, overwrite=True)
    smooth = _smooth(Phi, factor)
    log_det = factor.log_determinant + D * np.log(amplitude) + (n - D) * np.log(noise)
    alpha = (Y - smooth @ (Phi.T @ Y)) / noise
    return alpha, smooth, log_det


def _smooth(Phi: np.ndarray, factor: Cholesky) -> np.ndarray:
    """Phi times the inverse of B: by one product, or by n solutions where the inverse loses digits."""
    if factor.diagonal.max() > _WELL_CONDITIONED * factor.diagonal.min():
        return factor.solve(Phi.T).T
    smooth = np.empty_like(Phi)
    multiply(Phi, factor.inverse(), smooth)
    return smooth


def _by_rows(Phi: np.ndarray, Y: np.ndarray, noise: float, amplitude: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Return what `_by_features` returns, through the n x n matrix."""
    K = amplitude * symmetric_product(Phi)
    K[np.diag_indices(len(K))] += noise
    factor = Cholesky.of(K, overwrite=True)
    return factor.solve(Y), amplitude * factor.solve(Phi), factor.log_determinant


def downhill(objective: Callable[[np.ndarray], tuple[float, np.ndarray]]) -> Any:
    """What `scipy.optimize.minimize` takes to maximise an objective with its gradient."""

    def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
        try:
            value, gradient = objective(theta)
        except LinAlgError:  # the line search steps back
            return _REFUSED, np.zeros_like(theta)
        return -value, -gradient

    return loss
