"""Likelihoods of classes given latent functions, with the derivatives that Laplace's approximation needs."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from scipy.special import expit, log_softmax, softmax


class Likelihood(ABC):
    r"""Log likelihood of rows in their latents :math:`F` (n, k), and its derivatives row by row.

    The negative Hessian of each row is R (k, k), positive semi-definite.
    """

    n_latents: int

    @abstractmethod
    def value(self, F: np.ndarray) -> float:
        """Sum of log likelihoods."""

    @abstractmethod
    def residual(self, F: np.ndarray) -> np.ndarray:
        """Gradient in F, (n, k): observed minus expected."""

    @abstractmethod
    def curvature(self, F: np.ndarray) -> np.ndarray:
        """R of each row, (n, k, k)."""

    @abstractmethod
    def curvature_slope(self, F: np.ndarray, C: np.ndarray) -> np.ndarray:
        """Gradient in F of tr(C R) for fixed matrices C (n, k, k), (n, k)."""

    @abstractmethod
    def of_rows(self, rows: slice) -> Likelihood:
        """The likelihood of some of the rows."""


class Logistic(Likelihood):
    r"""Two classes: :math:`p = 1/(1+e^{-f})` of the second, one latent.

    Notes
    -----
    :math:`R = p(1-p)` and :math:`R' = p(1-p)(1-2p)`.

    Parameters
    ----------
    labels : int array (n,)
        0 or 1.
    """

    n_latents = 1

    def __init__(self, labels: np.ndarray) -> None:
        self.labels = labels

    def value(self, F: np.ndarray) -> float:
        """Sum of log sigmoids, without overflow."""
        return -float(np.logaddexp(0, np.where(self.labels == 1, -F[:, 0], F[:, 0])).sum())

    def residual(self, F: np.ndarray) -> np.ndarray:
        """Labels minus probabilities."""
        residual: np.ndarray = self.labels[:, None] - expit(F)
        return residual

    def curvature(self, F: np.ndarray) -> np.ndarray:
        """Of one latent: p (1 - p)."""
        curvature: np.ndarray = (expit(F) * expit(-F))[:, :, None]
        return curvature

    def curvature_slope(self, F: np.ndarray, C: np.ndarray) -> np.ndarray:
        """Of one latent: p (1 - p) (1 - 2p), times C."""
        slope: np.ndarray = C[:, 0] * expit(F) * expit(-F) * (expit(-F) - expit(F))
        return slope

    def of_rows(self, rows: slice) -> Logistic:
        """Of some rows."""
        return Logistic(self.labels[rows])


class Softmax(Likelihood):
    r"""Several classes: :math:`p_c = e^{f_c}/\sum_j e^{f_j}`, a latent for each.

    Notes
    -----
    :math:`R = \mathrm{diag}(p) - pp^T`, and :math:`\partial\,\mathrm{tr}(CR)/\partial f = R(\mathrm{diag}\,C - 2Cp)` for
    symmetric C.

    Parameters
    ----------
    labels : int array (n,)
        From 0 to n_latents - 1.
    n_latents : int
    """

    def __init__(self, labels: np.ndarray, n_latents: int) -> None:
        self.labels, self.n_latents = labels, n_latents

    def value(self, F: np.ndarray) -> float:
        """Sum of log probabilities of the labels."""
        return float(log_softmax(F, axis=1)[np.arange(len(F)), self.labels].sum())

    def residual(self, F: np.ndarray) -> np.ndarray:
        """Indicators minus probabilities."""
        residual: np.ndarray = -softmax(F, axis=1)
        residual[np.arange(len(F)), self.labels] += 1
        return residual

    def curvature(self, F: np.ndarray) -> np.ndarray:
        """diag(p) - p p^T."""
        p = softmax(F, axis=1)
        R: np.ndarray = -p[:, :, None] * p[:, None, :]
        R[:, np.arange(self.n_latents), np.arange(self.n_latents)] += p
        return R

    def curvature_slope(self, F: np.ndarray, C: np.ndarray) -> np.ndarray:
        """R (diag C - 2 C p)."""
        p = softmax(F, axis=1)
        inner = np.einsum("nii->ni", C) - 2 * np.einsum("nij,nj->ni", C, p)
        slope: np.ndarray = p * (inner - (p * inner).sum(axis=1, keepdims=True))
        return slope

    def of_rows(self, rows: slice) -> Softmax:
        """Of some rows."""
        return Softmax(self.labels[rows], self.n_latents)


def likelihood_of(labels: np.ndarray, n_classes: int) -> Likelihood:
    """One latent for two classes, one each for more."""
    return Logistic(labels) if n_classes == 2 else Softmax(labels, n_classes)
