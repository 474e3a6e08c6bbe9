r"""Ridge regression on wide features by conjugate gradients: products with all rows, and no matrix of features.

The normal equations of D features take :math:`nD^2` operations and :math:`D^2` numbers.  Conjugate gradients only
multiply by S, in passes over the rows that compute the features of a tile, use them twice and forget them; a sample of
the rows, `Preconditioner`, keeps the number of passes small.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..._progress import note, progress
from ...approximation import FeatureMap
from .._row_source import Chunk, RowSource
from .nystrom import building_cost, sample_size, sampled
from .tiles import FeatureTiles

TOLERANCE, FLOAT32_TOLERANCE = 1e-6, 1e-5
"""Errors at which a fit ends, relative to the fit, in the norm of S + alpha; products in float32 round at the second."""
COEFFICIENTS, _FAR_BELOW = 1e-4, 1e-2
"""Error of the coefficients at which a fit ends as well; or far below the tolerance, where they are hardly determined."""
MAX_PASSES = 500  # passes over the rows before a warning that the fit has not converged
_DELAY = 4  # steps by which the estimate of the error lags behind
_FEATURE = 50.0  # operations of a feature besides its product with the row, counted at the speed of matrix products
_FEWEST_PASSES, _PASSES_PER_ROOT = 16.0, 10.0
"""Passes to `TOLERANCE`, measured: at least so many, and so many more, times the root of the preconditioner's stretch."""


class Iterated(NamedTuple):
    """Coefficients B (D, t), means of features (D,) and targets (t,), steps, and estimated relative errors (t,)."""

    coefficients: np.ndarray
    feature_mean: np.ndarray
    target_mean: np.ndarray
    steps: int
    error: np.ndarray


def direct_cost(n: int, n_features: int) -> float:
    """Operations of the normal equations, or of the dual ones if they are fewer.

    Examples
    --------
    >>> direct_cost(200_000, 32_768) / 1e12
    226.476...
    """
    less, more = sorted((float(n), float(n_features)))
    return less**2 * more + less**3 / 3


def iterated_ridge(
    phi: FeatureMap,
    rows: RowSource,
    alpha: Any,
    *,
    intercept: bool = True,
    exact: bool = True,
    at_most: float = np.inf,
    plus: Any = 0.0,
    remedy: str = "Raise alpha, or use solver='primal'.",
    verbose: Any = 0,
) -> Iterated | None:
    r"""Minimise :math:`\sum_i w_i|y_i - b - B^T\phi_i|^2 + \alpha|B|^2` in passes over the rows.

    Parameters
    ----------
    phi : FeatureMap
    rows : RowSource
        With targets (n, t).
    alpha : float or array (t,)
        Positive regularisation, one for all targets or one for each.
    intercept : bool
        Whether features and targets are taken about their means.
    exact : bool
        Whether the products of a tile are computed in float64 even for float32 rows.
    at_most : float
        Operations that it may cost, by an estimate from the sample and by the passes that were made.
    plus : array (D, t) or 0.0
        Added to the products of features and targets, on the right of the normal equations.
    remedy : str
        What a warning advises if it does not converge.
    verbose : int
        If positive, a progress bar shows the error.

    Returns
    -------
    Iterated, or None if it costs more

    Notes
    -----
    All targets share a pass, which leaves out those that have converged; the recurrences are in float64.  Step j lowers
    the squared error, in the norm of :math:`S + \alpha`, by :math:`a_j\,r_j^TM^{-1}r_j` (Hestenes and Stiefel 1952,
    Theorem 6:1).  These terms add up to the squared norm of the fit, and the last four of them are the squared error four
    steps ago less the present one.  A fit ends where this is below the tolerance, or where the residual is, as the
    preconditioner sees it, and where the last four steps have moved the coefficients by less than 1e-4 of their norm: in
    directions of small eigenvalues they are known less well than the fit.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import Approximation, kernels
    >>> from bochner.learn._row_source import ArrayRows
    >>> X = np.random.default_rng(0).standard_normal((500, 3))
    >>> phi = Approximation(kernels.Gaussian(), n_projections=100).draw(3, rng=0)
    >>> found = iterated_ridge(phi, ArrayRows("example", X, np.sin(X)), alpha=0.1)
    >>> found.coefficients.shape, bool(found.error.max() < 1e-6)
    ((200, 3), True)
    """
    n, D, t = rows.count(), phi.n_features_out, rows.n_targets
    alphas = np.broadcast_to(np.asarray(alpha, np.float64), (t,)).copy()
    each = _FEATURE + phi.n_features_in + 4 * t
    size = sample_size(n, phi.n_features_in, D, each)

    def cost(steps: float) -> float:
        return steps * each * n * D + building_cost(size, D)

    if cost(_FEWEST_PASSES) > at_most:
        return None
    weight, *sums = rows.reduce_targets(_target_sums)
    rows.check_weight(weight)
    preconditioner = sampled(phi, rows, alphas, size, weight=weight, intercept=intercept)
    if cost(_FEWEST_PASSES + _PASSES_PER_ROOT * np.sqrt(preconditioner.stretch.max())) > at_most:
        return None
    target_mean = np.array(sums) / weight if intercept else np.zeros(t)
    work = partial(cross_sums, phi=phi, target_mean=target_mean)  # in float64: what they lose, no step brings back
    total = rows.reduce(work, width=t, label="fit", verbose=verbose)
    centre = total[:-1, 0] / weight if intercept else np.zeros(D)
    tolerance = FLOAT32_TOLERANCE if rows.dtype == np.float32 and not exact else TOLERANCE
    descent = ConjugateGradients(
        total[:-1, 1:] - np.outer(centre, total[-1, 1:]) + plus, alphas, preconditioner, tolerance
    )
    bar = progress(range(MAX_PASSES), label="conjugate gradients", shown=bool(verbose))
    for _ in bar:
        if not len(descent.active):
            break
        work = partial(normal_sums, phi=phi, directions=descent.directions, centre=centre, exact=exact)
        total = rows.reduce(work, width=t)
        descent.step(total[:-1] - np.outer(centre, total[-1]))
        if len(descent.active) and cost(descent.steps) > at_most:
            return None
        note(bar, f"error {descent.error.max():.1e}")
    _warn_unless_converged(rows.owner, alphas, descent, remedy)
    return Iterated(descent.B, centre, target_mean, descent.steps, descent.error)


def _warn_unless_converged(owner: str, alpha: np.ndarray, descent: ConjugateGradients, remedy: str) -> None:
    worst = int(np.argmax(descent.error))
    if descent.error[worst] > descent.tolerance:
        warnings.warn(
            f"{owner}: conjugate gradients stopped after {descent.steps} passes over the rows at a relative error of about "
            f"{descent.error[worst]:.1e}, above {descent.tolerance:.0e}: alpha={alpha[worst]:.3g} is small for these "
            f"features. {remedy}",
            ConvergenceWarning,
            stacklevel=3,
        )


class ConjugateGradients:
    """The recurrences of all targets: coefficients, residuals and directions, (D, t) each, in float64."""

    def __init__(
        self,
        cross: np.ndarray,
        alpha: np.ndarray,
        preconditioner: Any,
        tolerance: float,
        known: float = COEFFICIENTS,
        enough: Any = 1.0,
    ) -> None:
        t = len(alpha)
        self.enough = np.broadcast_to(enough, (t,))  # errors at which each target ends, in units of the tolerance
        self.known = (
            known  # relative error of the coefficients up to which they are known; infinite if only fits matter
        )
        self.alpha, self.preconditioner, self.tolerance, self.steps = alpha, preconditioner, tolerance, 0
        self.B, self.R = np.zeros_like(cross), cross
        self.P = preconditioner.solve(cross, np.arange(t))
        self.rz = (self.R * self.P).sum(axis=0)
        self.error = (self.rz > 0).astype(float)  # a constant target is fitted already
        self.active = np.flatnonzero(self.rz > 0)
        self.energy, self.lowered = np.zeros(t), deque([np.full(t, np.inf)] * _DELAY, maxlen=_DELAY)
        self.moved = deque([np.full(t, np.inf)] * _DELAY, maxlen=_DELAY)

    @property
    def directions(self) -> np.ndarray:
        """(D, k), of the targets that have not converged."""
        return np.asarray(self.P[:, self.active])

    def step(self, SP: np.ndarray) -> None:
        """Go along the directions, given their products with S (D, k)."""
        k, P, rz = self.active, self.directions, self.rz[self.active]
        Q = SP + self.alpha[k] * P
        curvature = (P * Q).sum(axis=0)
        a = np.where(curvature > 0, rz / np.where(curvature > 0, curvature, 1), 0.0)  # zero: only rounding is left
        self.B[:, k] += a * P
        self.R[:, k] -= a * Q
        Z = self.preconditioner.solve(self.R[:, k], k)
        self.rz[k] = (self.R[:, k] * Z).sum(axis=0)
        self.P[:, k] = Z + (self.rz[k] / rz) * P
        self.steps += 1
        lowered, moved = np.zeros(len(self.rz)), np.zeros(len(self.rz))
        lowered[k], moved[k] = a * rz, a * np.linalg.norm(P, axis=0)
        self.energy += lowered
        self.lowered.append(lowered)
        self.moved.append(moved)
        seen = 4 * self.preconditioner.stretch * np.maximum(self.rz, 0)  # twice the error that M can hide
        left = np.minimum(sum(self.lowered), seen)
        self.error[k] = np.sqrt(left[k] / np.maximum(self.energy[k], np.finfo(float).tiny))
        unknown = np.sum(self.moved, axis=0)[k] > self.known * np.linalg.norm(self.B[:, k], axis=0)
        goal = np.where(unknown, _FAR_BELOW, 1.0) * self.tolerance * self.enough[k]
        self.active = k[(self.error[k] > goal) & (a > 0) & (self.rz[k] > 0)]


def _target_sums(targets: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Sum of the weights, and of the weighted targets (1 + t,)."""
    w = np.ones(len(targets)) if weights is None else weights
    return np.concatenate([[w.sum()], w @ targets.astype(np.float64)])


def cross_sums(chunks: Iterator[Chunk], *, phi: FeatureMap, target_mean: np.ndarray) -> np.ndarray:
    """Sums over rows of features and one, times the weight and the weighted targets: (D + 1, 1 + t)."""
    total: np.ndarray = np.zeros((phi.n_features_out + 1, 1 + len(target_mean)))
    for X, Y, weights in chunks:
        V = np.column_stack([np.ones(len(Y)), Y - target_mean])
        V = V if weights is None else weights[:, None] * V
        total += FeatureTiles(phi, X, exact=True).sums(partial(_rows_of, V), V.shape[1])
    return total


def _rows_of(V: np.ndarray, F: np.ndarray, i: int, j: int) -> np.ndarray:
    return V[i:j]


def normal_sums(
    chunks: Iterator[Chunk], *, phi: FeatureMap, directions: np.ndarray, centre: np.ndarray, exact: bool
) -> np.ndarray:
    """Sums over rows of features and one, times the weighted products of centred features and directions: (D + 1, k)."""
    total: np.ndarray = np.zeros((phi.n_features_out + 1, directions.shape[1]))
    for X, _, weights in chunks:
        P = directions.astype(np.float64 if exact else X.dtype)
        work = partial(_weighted_products, P=P, shift=(centre @ directions).astype(P.dtype), weights=weights)
        total += FeatureTiles(phi, X, exact=exact).sums(work, P.shape[1])
    return total


def _weighted_products(
    F: np.ndarray, i: int, j: int, *, P: np.ndarray, shift: np.ndarray, weights: np.ndarray | None
) -> np.ndarray:
    V: np.ndarray = F @ P
    V -= shift
    if weights is not None:
        V *= weights[i:j, None].astype(V.dtype)
    return V
