"""The posterior of a Gaussian process on features: weights given data, and the functions that they make."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError

from ...approximation import FeatureMap
from ...linalg.cholesky import Cholesky, symmetric_product
from .._row_source import check_finite
from .evidence import SpectralEvidence, penalised_residual
from .spectrum import NormalEquations, Scaling, plus

_OWNER = "GaussianProcess"


class Posterior(NamedTuple):
    r"""Weights given data: :math:`w \mid y \sim N(\mu, \sigma^2 R R^T)`.

    Notes
    -----
    The prior is :math:`w \sim N(0, aI)` and :math:`y = \Phi w + \varepsilon`,
    :math:`\varepsilon \sim N(0, \sigma^2 I)`, so :math:`\mu = B^{-1}\Phi^Ty`, :math:`RR^T = B^{-1}`,
    :math:`B = \Phi^T\Phi + (\sigma^2/a) I`.  R is the inverse of the transposed Cholesky factor, which is unique, so
    that equal data give equal samples; where rounding leaves B without a factor it is
    :math:`Q(\Lambda+\sigma^2/a)^{-1/2}`.
    """

    mean: np.ndarray  # (D, t)
    root: Any  # (D, D): R, which is wide if it was estimated from s functions; None if only the mean was kept
    noise: float  # sigma^2 and a
    amplitude: float
    log_marginal_likelihood: float
    # number of directions in which the noise is within the rounding error of the features, and nothing is fitted
    lost: int = 0
    residual: float = float("nan")  # squared residuals plus the penalty of the weights, summed over targets

    @property
    def kept_root(self) -> np.ndarray:
        """R, or an error if it was dropped."""
        if self.root is None:
            raise ValueError(
                "GaussianProcess: compact(std=False) has dropped the covariance of the weights, which standard deviations "
                "and samples need; fit again, or call compact()."
            )
        return np.asarray(self.root)

    def variance(self, Phi: np.ndarray) -> np.ndarray:
        """Variance of the function at rows of features, (n,)."""
        V = Phi @ self.kept_root
        variance: np.ndarray = self.noise * np.einsum("nk,nk->n", V, V)
        return variance

    def covariance(self, Phi: np.ndarray) -> np.ndarray:
        """Covariance of the function at rows of features, (n, n)."""
        V = Phi @ self.kept_root
        covariance: np.ndarray = self.noise * symmetric_product(V)
        return covariance

    def sample(self, n_samples: int, rng: np.random.Generator) -> np.ndarray:
        """Weights drawn from it, (D, t, n_samples): each is one function on the whole space."""
        t, root = self.mean.shape[1], self.kept_root
        z = rng.standard_normal((n_samples, t, root.shape[1])).transpose(2, 1, 0)
        drawn: np.ndarray = self.mean[:, :, None] + np.sqrt(self.noise) * np.tensordot(root, z, axes=1)
        return drawn


def posterior(equations: NormalEquations, noise: float, amplitude: float) -> Posterior:
    """The posterior of given noise and amplitude, by one Cholesky factorisation where rounding allows it."""
    ratio = noise / amplitude
    if ratio <= equations.floor:
        return _by_spectrum(equations, noise, amplitude)
    try:
        factor = Cholesky.of(plus(equations.gram, ratio), overwrite=True)
    except LinAlgError:  # the ratio is lost in the rounding of the Gram matrix
        return _by_spectrum(equations, noise, amplitude)
    root, (D, t) = factor.inverse_root(), equations.cross.shape
    mean = root @ (root.T @ equations.cross)
    explained, penalty = float(np.vdot(equations.cross, mean)), ratio * float(np.vdot(mean, mean))
    residual = penalised_residual(float(equations.total.sum()), explained, penalty)
    fit = residual / noise
    log_det = factor.log_determinant - D * float(np.log(ratio))
    value = -0.5 * (fit + t * log_det + equations.units * t * float(np.log(2 * np.pi * noise)))
    return Posterior(mean, root, noise, amplitude, value, residual=residual)


def _by_spectrum(equations: NormalEquations, noise: float, amplitude: float) -> Posterior:
    """Compute the posterior from all D eigenvectors; directions within rounding error keep their prior."""
    spectrum, ratio = equations.spectrum(), noise / amplitude
    mean, lost = spectrum.within_rounding(ratio) if ratio <= equations.floor else (spectrum.coefficients(ratio), 0)
    root = spectrum.vectors / np.sqrt(spectrum.values + ratio)
    evidence = SpectralEvidence.of(spectrum)
    return Posterior(mean, root, noise, amplitude, evidence.value(noise, amplitude), lost, evidence.residual(ratio))


def left_out(phi: FeatureMap, X: np.ndarray, Phi: np.ndarray) -> Any:
    r"""The part :math:`k(x, x) - |\phi(x)|^2` of the prior variance that features from below leave out, (n,) or zero.

    With landmarks it makes the variance that of the deterministic training conditional of quinonero2005, which is the
    prior's far from all landmarks.
    """
    kernel = phi.spec.kernel
    if kernel is None or not phi.spec.map.from_below:
        return 0.0
    return np.maximum(kernel.diagonal(X) - np.einsum("nk,nk->n", Phi, Phi), 0)


def means(X: np.ndarray, *, phi: FeatureMap, fitted: Posterior, scaling: Scaling, single: bool) -> np.ndarray:
    """Means at rows, (n, t) or (n,), in the units of the targets."""
    values = check_finite(_OWNER, scaling.shift + scaling.scale * (phi.queries(X) @ fitted.mean))
    return np.asarray(values[:, 0] if single else values)


def means_and_spreads(
    X: np.ndarray, *, phi: FeatureMap, fitted: Posterior, scaling: Scaling, noise: float
) -> np.ndarray:
    """Means and standard deviations side by side, (n, 2t), in the units of the targets."""
    Phi = phi.queries(X)
    spread = np.sqrt(fitted.variance(Phi) + fitted.amplitude * left_out(phi, X, Phi) + noise)
    found = np.hstack([scaling.shift + scaling.scale * (Phi @ fitted.mean), spread[:, None] * scaling.scale])
    return check_finite(_OWNER, found)


def means_and_covariance(
    X: np.ndarray, *, phi: FeatureMap, fitted: Posterior, scaling: Scaling, noise: float
) -> tuple[np.ndarray, np.ndarray]:
    """Means (n, t), and the covariance between all rows, (n, n, t), in the units of the targets."""
    Phi = phi.queries(X)
    covariance = fitted.covariance(Phi)
    kernel = phi.spec.kernel
    if phi.spec.map.from_below and kernel is not None:
        covariance += fitted.amplitude * (kernel(X) - symmetric_product(Phi))
    covariance[np.diag_indices(len(Phi))] += noise
    mean = check_finite(_OWNER, scaling.shift + scaling.scale * (Phi @ fitted.mean))
    return mean, covariance[..., None] * scaling.scale**2
