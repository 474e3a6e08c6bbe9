"""The posterior over the weights of the features: a Gaussian, kept as its mean and a root of its covariance."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cholesky
from scipy.linalg.lapack import dtrtri

from .spectrum import Normal, Spectrum


class Posterior(NamedTuple):
    r"""Weights given data: :math:`w \mid y \sim N(\mu, \sigma^2 R R^T)`.

    Notes
    -----
    The prior is :math:`w \sim N(0, aI)` and :math:`y = \Phi w + \varepsilon`, :math:`\varepsilon \sim N(0, \sigma^2 I)`, so
    :math:`\mu = B^{-1}\Phi^Ty`, :math:`RR^T = B^{-1}`, :math:`B = \Phi^T\Phi + (\sigma^2/a) I`.  R is the inverse of the
    transposed Cholesky factor, which is unique, so that equal data give equal samples; where rounding leaves B without a
    factor it is :math:`Q(\Lambda+\sigma^2/a)^{-1/2}`.

    Attributes
    ----------
    mean : float64 array (D, t)
    root : float64 array (D, D)
        R.
    noise, amplitude : float
        :math:`\sigma^2` and a.
    log_marginal_likelihood : float
    """

    mean: np.ndarray
    root: np.ndarray
    noise: float
    amplitude: float
    log_marginal_likelihood: float

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


def posterior(normal: Normal, noise: float, amplitude: float) -> Posterior:
    """The posterior of given noise and amplitude, by one Cholesky factorisation."""
    ratio = noise / amplitude
    B = normal.gram.copy()
    B[np.diag_indices(len(B))] += ratio
    try:
        L = cholesky(B, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:  # the ratio is lost in the rounding of the Gram matrix
        return _of_spectrum(Spectrum.of(normal), noise, amplitude)
    root = np.ascontiguousarray(dtrtri(L, lower=1)[0].T)
    mean = root @ (root.T @ normal.cross)
    count = normal.n_rows * normal.cross.shape[1]
    residual = float(normal.square.sum() - np.vdot(normal.cross, mean))
    fit = max(residual, ratio * float(np.vdot(mean, mean))) / noise
    log_det = 2 * float(np.log(np.diag(L)).sum()) - len(B) * float(np.log(ratio))
    value = -0.5 * (fit + normal.cross.shape[1] * log_det + count * float(np.log(2 * np.pi * noise)))
    return Posterior(mean, root, noise, amplitude, value)


def _of_spectrum(spectrum: Spectrum, noise: float, amplitude: float) -> Posterior:
    """The posterior of given noise and amplitude, from all D eigenvectors."""
    root = spectrum.vectors / np.sqrt(spectrum.values + noise / amplitude)
    mean = spectrum.vectors @ (spectrum.cross / (spectrum.values + noise / amplitude)[:, None])
    return Posterior(mean, root, noise, amplitude, spectrum.log_marginal_likelihood(noise, amplitude))
