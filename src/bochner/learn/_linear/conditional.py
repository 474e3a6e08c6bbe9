r"""Noise that landmarks make: the fully independent training conditional of quinonero2005.

Features from below, such as landmarks, leave out the part :math:`r(x) = k(x, x) - |\phi(x)|^2` of the prior variance.  At a
new point it is added to the posterior variance.  A process that ignores it at the rows it learns from takes what it cannot
explain there for noise, and then counts it twice: 95 % intervals cover 100 % of new rows.  Here row i has the noise
:math:`\sigma^2 + a\,r(x_i)`, that is the weight :math:`\lambda/(\lambda + r(x_i))` with :math:`\lambda = \sigma^2/a`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from ...approximation import FeatureMap
from ...linalg.cholesky import Cholesky, symmetric_product
from .._changed_rows import ChangedRows
from .._row_source import Chunk, RowSource
from .evidence import Hyperparameters
from .posterior import left_out

_LOGS = (np.log(1e-7), np.log(1e3))  # logarithms of the ratio of noise and amplitude
_COARSE = 9  # points of the grid before the refinement
_NEGLIGIBLE = 1e-6  # share of the prior variance that counts as left out


def leaves_out(phi: FeatureMap, X: np.ndarray) -> bool:
    """Whether the features leave out a part of the prior variance at these rows."""
    if phi.spec.kernel is None:
        return False
    r = left_out(phi, X, np.asarray(phi.queries(X)))
    return bool(np.mean(r) > _NEGLIGIBLE * np.mean(phi.spec.kernel.diagonal(X)))


def reweighted(phi: FeatureMap, rows: RowSource, ratio: float) -> ChangedRows:
    """Return the rows with the weights that the ratio of noise and amplitude gives them, times their own."""
    return ChangedRows(rows, partial(_reweigh, phi=phi, ratio=ratio), rows.shape[1], weighted=True)


def _reweigh(chunk: Chunk, *, phi: FeatureMap, ratio: float) -> Chunk:
    w = ratio / (ratio + left_out(phi, chunk.X, np.asarray(phi.queries(chunk.X))))
    return chunk._replace(weights=w if chunk.weights is None else w * chunk.weights)


def sum_of_log_weights(phi: FeatureMap, rows: RowSource, ratio: float) -> float:
    """Sum of the logarithms of the weights of `reweighted`, which the marginal likelihood contains half of."""
    work = partial(_log_weights, phi=phi, ratio=ratio)
    return float(rows.reduce(work, width=phi.n_features_out))


def _log_weights(chunks: Any, *, phi: FeatureMap, ratio: float) -> float:
    return float(
        sum(np.log(ratio / (ratio + left_out(phi, X, np.asarray(phi.queries(X))))).sum() for X, _, _ in chunks)
    )


def best_ratio(phi: FeatureMap, sample: Any, given: Hyperparameters) -> float:
    r"""Ratio of noise and amplitude with the highest marginal likelihood of a sample of rows.

    Parameters
    ----------
    phi : FeatureMap
    sample : tuple
        Rows X (n, d), targets (n, t) about zero, and weights (n,) or None.
    given : Hyperparameters
        Noise and amplitude where they are fixed; with both free the amplitude has a closed form for each ratio.

    Notes
    -----
    With :math:`C = \Phi\Phi^T + \mathrm{diag}(\lambda/w + r)` the targets have the covariance :math:`aC`.
    """
    X, Y, weights = sample
    Phi = np.asarray(phi.queries(X), dtype=np.float64)
    r = np.broadcast_to(left_out(phi, X, Phi), len(X))
    spread = np.ones(len(X)) if weights is None else 1 / weights

    def loss(log: float) -> float:
        ratio = float(np.exp(log))
        D = ratio * spread + r
        F = Phi / np.sqrt(D)[:, None]
        B = symmetric_product(F.T)
        B[np.diag_indices_from(B)] += 1
        factor, y = Cholesky.of(B, overwrite=True), Y / np.sqrt(D)[:, None]
        b = F.T @ y
        fit = float(np.vdot(y, y)) - float(np.vdot(b, factor.solve(b)))
        n, t = Y.shape
        log_det = float(np.log(D).sum()) + factor.log_determinant
        amplitude = max(fit, 1e-300) / (n * t)
        if given.amplitude is not None:
            amplitude = given.amplitude
        elif given.noise is not None:
            amplitude = given.noise / ratio
        return float(fit / amplitude + t * log_det + n * t * np.log(amplitude))

    grid = np.linspace(*_LOGS, _COARSE)
    k = int(np.argmin([loss(log) for log in grid]))
    low, high = grid[max(k - 1, 0)], grid[min(k + 1, _COARSE - 1)]
    found = minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": 1e-2})
    return float(np.exp(found.x))
