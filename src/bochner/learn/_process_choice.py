r"""The automatic mode of Gaussian processes: kernel and lengthscales of the highest marginal likelihood on some rows.

Every candidate is a process with its exact kernel matrix, so that no features blur the comparison.  Bandwidths are first
looked for on a grid, since the likelihood of rapid changes has a maximum of its own far from that of slow ones; then
L-BFGS moves lengthscales, noise and amplitude together, with one lengthscale, and with one for each column.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError
from scipy.optimize import minimize

from .._progress import progress
from ..kernels import Kernel, Radial
from ..linalg.cholesky import Cholesky
from ..linalg.engine import single_threaded_blas
from ._linear.evidence import Hyperparameters, SpectralEvidence, SpectralNodes, downhill

CANDIDATES = ("gaussian", "matern-3/2", "laplacian")
GRID_ROWS, SEARCH_ROWS = 400, 1000
"""Rows of a decomposition for each point of the grid, and of each step of L-BFGS, which takes a tenth of a second."""
_GRID = 2.0 ** np.arange(-9, 4, 1.5)
"""Bandwidths in units of the median distance: sin(100 x) on the unit interval needs a thirtieth of it."""
_KEPT = 2  # kernels that go on from the grid to L-BFGS
_RANGE = np.log(1e4)
"""Largest distance of a lengthscale from its start, in logarithms: a column that does not matter gets a long one."""
_NOISE, _AMPLITUDE = (1e-6, 1e2), (1e-4, 1e4)  # noise and amplitude, in units of the mean square of the targets
_STEP = 1e-4  # relative step of the differences that give the derivative of a profile
_FOLDS, _FEWEST = 3, 30  # parts of the rows for which hyperparameters are found without them, and fewest rows for that
_WIDEST = 1.25
"""Largest factor of standard deviations: without a third of 150 to 300 rows the search may lose its way (1.8 on pol, where
1.1 was right), and factors up to 1.25 are what test rows of the tables of the design half ask for."""


class ProcessCandidate(NamedTuple):
    """A kernel with its lengthscales, and the log marginal likelihood of the rows of the search."""

    kernel: Any
    value: float  # log marginal likelihood, less half the logarithm of the number of rows for each hyperparameter
    ard: bool  # whether each column has a lengthscale of its own
    n_rows: int
    noise: float  # variances at which the likelihood has this value
    amplitude: float


class KernelEvidence:
    """Log marginal likelihood of targets Y (n, t) at rows X (n, d) in logarithms of lengthscales, noise and amplitude.

    Parameters
    ----------
    kernel : Kernel
        A kernel of the distance, Euclidean or L1.
    X, Y : float64 arrays
    weights : float64 array (n,) or None
        The noise of a row of weight w has the variance of the noise divided by w.
    """

    def __init__(self, kernel: Kernel, X: np.ndarray, Y: np.ndarray, weights: np.ndarray | None) -> None:
        self.kernel, self.X, self.Y = kernel, X, Y
        self.spread = np.ones(len(X)) if weights is None else 1 / weights

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the value and its gradient at logarithms of the lengthscales, of the noise and of the amplitude."""
        scales, (noise, amplitude) = np.exp(theta[:-2]), np.exp(theta[-2:])
        Z = self.X / scales
        K, slope = self._values(Z)
        C = amplitude * K
        C[np.diag_indices_from(C)] += noise * self.spread
        factor = Cholesky.of(C)
        alpha, inverse = factor.solve(self.Y), factor.inverse()
        (n, t), total = self.Y.shape, float(np.vdot(self.Y, alpha))
        value = -0.5 * (total + t * factor.log_determinant + n * t * float(np.log(2 * np.pi)))
        M = 0.5 * (alpha @ alpha.T - t * inverse)  # gradient in the entries of C
        each = self._stretched(Z, amplitude * M * slope)
        noisy = noise * float(np.diagonal(M) @ self.spread)
        return value, np.concatenate(
            [each if len(scales) > 1 else each.sum(keepdims=True), [noisy, float(np.vdot(M, amplitude * K))]]
        )

    def left_out(self, theta: np.ndarray) -> np.ndarray:
        r"""Standardised errors (n, t) of rows that are left out, at given hyperparameters.

        With the covariance C of the targets, noise included, they are
        :math:`[C^{-1}y]_i/\sqrt{[C^{-1}]_{ii}}`.
        """
        C = np.exp(theta[-1]) * self._values(self.X / np.exp(theta[:-2]))[0]
        C[np.diag_indices_from(C)] += np.exp(theta[-2]) * self.spread
        factor = Cholesky.of(C)
        return np.asarray(factor.solve(self.Y) / np.sqrt(np.diagonal(factor.inverse()))[:, None])

    def _values(self, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the kernel matrix at unit scale, and its derivative in the squared distance, or in minus the L1 one."""
        unit: Any = self.kernel
        if not isinstance(unit, Radial):
            K = unit.with_bandwidth(1.0)(Z)
            return K, K
        squares = np.einsum("ij,ij->i", Z, Z)
        q = np.maximum(squares[:, None] + squares - 2 * Z @ Z.T, 0)
        np.fill_diagonal(q, 0)
        up, down = (unit.profile(np, q * (1 + sign * _STEP)) for sign in (1, -1))
        slope = np.divide(up - down, 2 * _STEP * q, out=np.zeros_like(q), where=q > 0)
        return unit.profile(np, q), slope

    def _stretched(self, Z: np.ndarray, H: np.ndarray) -> np.ndarray:
        """Return the gradient in the logarithm of each lengthscale, from H, the one in each distance."""
        if isinstance(self.kernel, Radial):  # -2 (z_a - z_b)^2 H summed over pairs, as products of matrices
            return np.asarray(4 * (np.einsum("ij,ij->j", Z, H @ Z) - H.sum(axis=1) @ (Z * Z)))
        return np.array([float(np.vdot(H, np.abs(z[:, None] - z))) for z in Z.T])


def choose_process(
    kernels: Sequence[Kernel],
    X: np.ndarray,
    Y: np.ndarray,
    weights: np.ndarray | None,
    *,
    ard: bool | str,
    given: Hyperparameters,
    n_restarts: int = 0,
    rng: np.random.Generator,
    verbose: Any = 0,
) -> list[ProcessCandidate]:
    """Return candidates, the best first.

    Parameters
    ----------
    kernels : sequence of Kernel
        Kernels of the distance, whose bandwidth is free.
    X, Y : float64 arrays (n, d) and (n, t)
        Rows in random order, and targets about zero.
    weights : float64 array (n,) or None
        Positive weights of the rows.
    ard : bool or "auto"
        Whether each column has a lengthscale; "auto" tries both.
    given : Hyperparameters
        Noise and amplitude where they are fixed.
    n_restarts : int
        Additional starting points, up to a factor of ten away.
    rng : numpy.random.Generator
    verbose : int

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import kernels
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (200, 2))
    >>> y = np.sin(6 * X[:, :1]) + 0.01 * rng.standard_normal((200, 1))
    >>> found = choose_process([kernels.Gaussian()], X, y, None, ard="auto", given=Hyperparameters(None, None), rng=rng)
    >>> first, second = found[0].kernel.lengthscale
    >>> found[0].ard, second > 10 * first
    (True, True)
    """
    found: list[ProcessCandidate] = []
    starts = sorted((_on_grid(kernel, X, Y, weights, given) for kernel in kernels), key=lambda start: -start[1])
    with single_threaded_blas:
        for kernel, _, logs in progress(starts[:_KEPT], label="marginal likelihood", shown=bool(verbose)):
            moves = [0.0, *rng.uniform(-np.log(10), np.log(10), n_restarts)]
            alone = [
                _climb(kernel.with_bandwidth(kernel.bandwidth * np.exp(m)), logs, X, Y, weights, given, 1)
                for m in moves
            ]
            best, at = max(alone, key=lambda one: one[0].value)
            if ard is not True or X.shape[1] == 1:
                found.append(best)
            if ard and X.shape[1] > 1:
                found.append(_climb(best.kernel, at, X, Y, weights, given, X.shape[1])[0])
    return sorted(found, key=lambda one: -one.value)


def widening(best: ProcessCandidate, X: np.ndarray, Y: np.ndarray, weights: np.ndarray | None) -> float:
    """Factor of standard deviations that makes up for lengthscales, noise and amplitude being fitted to the same rows.

    The hyperparameters of the highest marginal likelihood make left-out errors of the same rows look as they should, and
    those of new rows are larger: 95 % intervals of 300 rows with 32 columns contained 88 %.  So they are found again without
    a third of the rows, from where they are, and each row is judged by those found without it, with all other rows.
    The factor is the root mean square of these standardised errors, at least one.
    """
    n = len(X)
    if n < _FEWEST:
        return 1.0
    logs, n_scales = np.log([best.noise, best.amplitude]), X.shape[1] if best.ard else 1
    free, squares = Hyperparameters(None, None), np.empty(Y.shape)
    every = KernelEvidence(best.kernel, X, Y, weights)
    with single_threaded_blas:
        for k in range(_FOLDS):
            own = np.arange(n) % _FOLDS == k  # rows are in random order
            kept = None if weights is None else weights[~own]
            found, at = _climb(best.kernel, logs, X[~own], Y[~own], kept, free, n_scales)
            scales = np.log(np.broadcast_to(np.asarray(found.kernel.bandwidth, dtype=np.float64), (n_scales,)))
            try:
                squares[own] = every.left_out(np.concatenate([scales, at]))[own] ** 2
            except LinAlgError:
                return 1.0
    return float(np.clip(np.sqrt(squares.mean()), 1.0, _WIDEST))


def _on_grid(
    kernel: Kernel, X: np.ndarray, Y: np.ndarray, weights: np.ndarray | None, given: Hyperparameters
) -> tuple[Kernel, float, np.ndarray]:
    """Return the kernel with the best bandwidth of the grid, its value, and logarithms of noise and amplitude."""
    X, Y, w = X[:GRID_ROWS], Y[:GRID_ROWS], np.ones(min(len(X), GRID_ROWS)) if weights is None else weights[:GRID_ROWS]
    roots = np.sqrt(w)
    median = _median_distance(X, kernel)
    best: tuple[Kernel, float, np.ndarray] | None = None
    for factor in _GRID:
        tried = kernel.with_bandwidth(median * factor)
        values, vectors = np.linalg.eigh(roots[:, None] * tried(X) * roots)
        z = vectors.T @ (roots[:, None] * Y)
        nodes = SpectralNodes(np.maximum(values, 0), (z**2).sum(axis=1) * np.maximum(values, 0))
        total = float(np.vdot(Y * w[:, None], Y))
        evidence = SpectralEvidence(nodes, SpectralNodes(nodes.values, np.ones(len(values))), total, len(X), Y.shape[1])
        noise, amplitude = evidence.best(given)
        value = evidence.value(noise, amplitude)
        if best is None or value > best[1]:
            best = tried, value, np.log([noise, amplitude])
    assert best is not None
    return best


def _median_distance(X: np.ndarray, kernel: Kernel) -> float:
    """Median distance of neighbours in random order, in the metric of the kernel."""
    if len(X) < 2:
        return 1.0
    differences = X[1:] - X[:-1]
    sizes = np.abs(differences).sum(axis=1) if kernel.metric == "cityblock" else np.linalg.norm(differences, axis=1)
    return float(np.median(sizes)) or 1.0


def _climb(
    kernel: Any,
    logs: np.ndarray,
    X: np.ndarray,
    Y: np.ndarray,
    weights: np.ndarray | None,
    given: Hyperparameters,
    n_scales: int,
) -> tuple[ProcessCandidate, np.ndarray]:
    """Return the best candidate from here by L-BFGS, and logarithms of its noise and amplitude."""
    X, Y, weights = X[:SEARCH_ROWS], Y[:SEARCH_ROWS], None if weights is None else weights[:SEARCH_ROWS]
    evidence = KernelEvidence(kernel, X, Y, weights)
    size = float(np.mean(Y**2)) or 1.0
    ranges = [np.log(np.array(limits) * size) for limits in (_NOISE, _AMPLITUDE)]
    fixed = [None if value is None else np.full(2, np.log(value)) for value in given]
    first = np.log(np.broadcast_to(np.asarray(kernel.bandwidth, dtype=np.float64), (n_scales,)))
    others = [limits if known is None else known for limits, known in zip(ranges, fixed, strict=True)]
    bounds = np.vstack([np.stack([first - _RANGE, first + _RANGE], axis=1), others])
    start = np.clip(np.concatenate([first, logs]), bounds[:, 0], bounds[:, 1])
    found = minimize(downhill(evidence), start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 100})
    scales = np.exp(found.x[:n_scales])
    chosen = kernel.with_bandwidth(float(scales[0]) if n_scales == 1 else tuple(scales.tolist()))
    penalty = 0.5 * len(found.x) * float(np.log(len(X)))
    noise, amplitude = np.exp(found.x[n_scales:]).tolist()
    value = -float(found.fun) - penalty
    return ProcessCandidate(chosen, value, n_scales > 1, len(X), noise, amplitude), found.x[n_scales:]
