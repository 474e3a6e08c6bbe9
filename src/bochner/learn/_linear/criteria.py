"""Generalised cross-validation, the criterion for alpha that needs no rows."""

from __future__ import annotations

import numpy as np

from .spectrum import Spectrum

CRITERIA = ("gcv", "loo")
_ROUNDING = 1e-14  # tolerance, relative to sum(y**2), below which a negative residual counts as zero


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


def best_alpha(alphas: np.ndarray, scores: np.ndarray) -> float:
    """The alpha of the lowest score; the largest one, where rounding left none."""
    return float(alphas[np.argmin(scores)] if np.isfinite(scores).any() else alphas.max())
