"""Criteria that choose the strength of a ridge fit: generalised cross-validation, and leaving out one row at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...approximation import FeatureMap
from ...linalg.engine import blas_for
from .._row_source import Chunk
from .moments import left_out_of
from .spectrum import Spectrum

DEFAULT_ALPHAS = np.logspace(-6, 3, 19)
CRITERIA = ("gcv", "loo")
LEAST_NEW = 64
"""Fewest rows that must not be landmarks for landmarks to be ignored."""
_ROUNDING = 1e-14
"""Tolerance, relative to sum(y**2), below which a negative residual counts as zero."""


def gcv(spectrum: Spectrum, alpha: float) -> float:
    r"""Generalised cross-validation :math:`n\,\mathrm{RSS}/(n-\mathrm{df})^2`, summed over targets; n counts units.

    Infinite where it is not known: no freedom is left, or the residual sum of squares is lost in rounding.
    """
    equations = spectrum.equations
    n, shifted = equations.units, spectrum.values[:, None] + alpha
    residual = equations.total - (spectrum.z**2 * (shifted + alpha) / shifted**2).sum(axis=0)
    free = n - (spectrum.values / shifted[:, 0]).sum() - equations.n_means
    if free <= 1e-8 * n or (residual < -_ROUNDING * equations.total).any():
        return np.inf
    return float(n * residual.sum() / free**2)


def left_out(
    spectrum: Spectrum, alphas: np.ndarray, rows: np.ndarray, Y: np.ndarray, weights: np.ndarray | None = None
) -> np.ndarray:
    r"""Squared errors :math:`\sum_i w_i(e_i/(1-h_i))^2` of rows, each left out of its own fit, (a,).

    A weight that is a whole number counts as repetitions, of which one is left out at a time; a row of another weight is
    left out whole, so that weights of any size, such as inverse variances or those that add up to one, make sense.  A row
    that alone decides its own fit leaves no error to know: the sum is infinite.

    Parameters
    ----------
    spectrum : Spectrum
    alphas : array (a,)
    rows, Y : arrays (n, D) and (n, t), about the means if there is an intercept
    weights : array (n,), optional
    """
    equations, w = spectrum.equations, np.ones(len(rows)) if weights is None else weights
    P = rows @ spectrum.vectors
    squares, errors, left = P**2, [], left_out_of(w)
    for alpha in alphas:
        shifted = spectrum.values + alpha
        leverage = left * (squares @ ((spectrum.values > 0) / shifted) + equations.n_means / equations.weight)
        if leverage.max(initial=0.0) > 1 - 1e-12:
            errors.append(np.inf)
            continue
        gap = (Y - P @ (spectrum.z / shifted[:, None])) / (1 - leverage)[:, None]
        errors.append(float((w @ gap**2).sum()))
    return np.array(errors)


def left_out_of_chunks(
    chunks: Iterator[Chunk], *, phi: FeatureMap, spectrum: Spectrum, alphas: np.ndarray, means: Any
) -> Any:
    """`left_out` of rows that come in chunks, and how many they are: (2, a + 1), of new rows and of landmarks."""
    centre = means if spectrum.equations.n_means else None
    total = np.zeros((2, len(alphas) + 1))
    with blas_for(len(spectrum.values)):
        for X, Y, weights in chunks:
            if not len(X):
                continue
            known = phi.features.at_points(phi.at_unit_scale(X))
            F, Z = about(centre, phi.queries(X), Y)
            for part, which in enumerate((~known, known)):
                if which.any():
                    w = None if weights is None else weights[which]
                    total[part] += [*left_out(spectrum, alphas, F[which], Z[which], w), np.count_nonzero(which)]
    return total


def new_rows(sums: np.ndarray) -> np.ndarray:
    """Errors of rows that are no landmarks, from `left_out_of_chunks`; of all rows, if others are few.

    A row that is left out of a fit remains a landmark, and nothing then holds the coefficient of its own feature: its error
    is not that of a new row.
    """
    return np.asarray(sums[0, :-1] if sums[0, -1] >= LEAST_NEW else sums[:, :-1].sum(axis=0))


def about(means: Any, features: np.ndarray, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Features and targets in float64, without their means if there are any."""
    if means is None:
        return features.astype(np.float64), Y.astype(np.float64)
    return features - means[0], Y - means[1]


def best_alpha(alphas: np.ndarray, scores: np.ndarray) -> float:
    """The strength of the lowest score; the largest one, where rounding left none."""
    return float(alphas[np.argmin(scores)] if np.isfinite(scores).any() else alphas.max())
