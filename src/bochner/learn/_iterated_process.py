r"""The posterior of a Gaussian process on wide features by conjugate gradients, without a matrix of the features.

The covariance of D weights has :math:`D^2` numbers.  Here it is represented by functions drawn from the posterior, whose
weights are solutions of the same linear system as the mean, and are found in the same passes over the rows.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..approximation import FeatureMap
from ._linear.conjugate_gradients import iterated_ridge
from ._linear.posterior import Posterior
from ._linear.spectrum import Scaling
from ._row_source import RowSource

N_FUNCTIONS = 64
"""Functions that represent the covariance: standard deviations have a relative error of one over the root of twice this."""
_REMEDY = "Raise noise, lower amplitude, or use solver='direct'."


def iterated_posterior(
    phi: FeatureMap,
    rows: RowSource,
    scaling: Scaling,
    noise: float,
    amplitude: float,
    value: float,
    rng: np.random.Generator,
    *,
    verbose: Any = 0,
) -> Posterior:
    r"""The posterior of given noise and amplitude, from passes over the rows.

    Parameters
    ----------
    phi : FeatureMap
    rows : RowSource
        In memory, with targets (n, t).
    scaling : Scaling
        Mean and unit of the targets.
    noise, amplitude : float
    value : float
        Log marginal likelihood, as far as it is known.
    rng : numpy.random.Generator
        Draws the functions.
    verbose : int
        If positive, a progress bar shows the error.

    Returns
    -------
    Posterior
        Its root has 64 columns.

    Notes
    -----
    With :math:`B = \Phi^T\Phi + \lambda I` and :math:`\lambda = \sigma^2/a`, the weights
    :math:`B^{-1}(\Phi^T\varepsilon + \sigma\sqrt\lambda\,z)` with :math:`\varepsilon \sim N(0, \sigma^2I)` and
    :math:`z \sim N(0, I)` have exactly the covariance :math:`\sigma^2B^{-1}` of the posterior.  The noise
    :math:`\varepsilon` is a target like any other, so all functions are fitted together with the mean.  A row of weight w
    has noise of variance :math:`\sigma^2/w`.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import Approximation, kernels
    >>> from bochner.learn._row_source import ArrayRows
    >>> X = np.random.default_rng(0).standard_normal((500, 3))
    >>> phi = Approximation(kernels.Gaussian(), n_projections=100).draw(3, rng=0)
    >>> rows, scaling = ArrayRows("example", X, X[:, :1]), Scaling(np.zeros(1), np.ones(1))
    >>> found = iterated_posterior(phi, rows, scaling, 0.1, 1.0, 0.0, np.random.default_rng(0))
    >>> found.mean.shape, found.root.shape
    ((200, 1), (200, 64))
    """
    t, ratio = rows.n_targets, noise / amplitude
    add = partial(_beside_noise, scaling=scaling, noise=noise, rng=rng)
    noisy = rows.relabelled(add, t + N_FUNCTIONS, weighted=rows.weighted)
    prior = np.zeros((phi.n_features_out, t + N_FUNCTIONS))
    prior[:, t:] = np.sqrt(noise * ratio) * rng.standard_normal((phi.n_features_out, N_FUNCTIONS))
    found = iterated_ridge(phi, noisy, ratio, intercept=False, plus=prior, remedy=_REMEDY, verbose=verbose)
    assert found is not None  # it may cost what it does
    root = found.coefficients[:, t:] / np.sqrt(N_FUNCTIONS * noise)
    return Posterior(found.coefficients[:, :t], root, noise, amplitude, value)


def _beside_noise(
    Y: np.ndarray, weights: np.ndarray | None, *, scaling: Scaling, noise: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray | None]:
    """Scaled targets, and columns of noise beside them; rows of weight zero have none."""
    drawn = np.sqrt(noise) * rng.standard_normal((len(Y), N_FUNCTIONS))
    if weights is not None:
        drawn *= np.where(weights > 0, 1 / np.sqrt(np.where(weights > 0, weights, 1.0)), 0.0)[:, None]
    return np.hstack([scaling.apply(Y), drawn]), weights
