"""Laplace's approximation: the mode of the weights' posterior, its curvature there, evidence, and class probabilities."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import qr
from scipy.sparse.linalg import LinearOperator, cg

from ...approximation import FeatureMap
from ...linalg.cholesky import Cholesky
from .._row_source import check_finite
from .evidence import Evidence
from .likelihoods import Likelihood, expected_probabilities
from .posterior import left_out

Passes = Callable[[], Iterator[tuple[np.ndarray, Likelihood]]]
"""Walks over chunks of features (n, D) with the likelihoods of their rows; called once for each pass."""

_MAX_STEPS = 100  # scikit-learn's ``max_iter_predict``; Newton's method needs about ten
_TOLERANCE = 1e-13  # tolerance of the Newton decrement, relative to the likelihood: the mode is then exact to rounding


class Mode(NamedTuple):
    """The mode of the posterior."""

    weights: np.ndarray  # (D, k)
    value: float  # log likelihood minus squared weights over twice the amplitude
    n_steps: int  # Newton steps taken


def find_mode(rows: Passes, D: int, k: int, amplitude: float, start: np.ndarray | None = None) -> Mode:
    r"""Maximise :math:`\log p(y|\Phi W) - |W|^2/(2a)` over W (D, k) by damped Newton steps.

    Notes
    -----
    The Hessian is :math:`H = \sum_n R_n\otimes\phi_n\phi_n^T + I/a`.  With one latent each step is one Cholesky
    factorisation.  With several, it is solved by conjugate gradients preconditioned by the factors of its k diagonal blocks,
    so the (D k) x (D k) matrix is not formed.  The objective is strictly concave: the mode is unique.
    """
    W = np.zeros((D, k)) if start is None else start
    value = _penalised(rows, W, amplitude)
    for step in range(_MAX_STEPS):
        gradient, direction = _newton(rows, W, amplitude)
        decrement = float(np.vdot(gradient, direction))
        if decrement <= _TOLERANCE * (1 + abs(value)):
            return Mode(W, value, step)
        length, new = 1.0, -np.inf
        while length > 1e-10:
            new = _penalised(rows, W + length * direction, amplitude)
            if new >= value + 1e-4 * length * decrement:
                break
            length /= 2
        else:  # no step improves it: the value is exact to rounding
            return Mode(W, value, step)
        W, value = W + length * direction, new
    return Mode(W, value, _MAX_STEPS)


def hessian(rows: Passes, W: np.ndarray, amplitude: float) -> np.ndarray:
    """The negative Hessian at W in full, (k D, k D): block (i, j) belongs to the latents i and j."""
    D, k = W.shape
    H = np.zeros((k, D, k, D))
    for Phi, likelihood in rows():
        R = likelihood.curvature(Phi @ W)
        for i in range(k):
            for j in range(i + 1):
                block = (Phi * R[:, i, j, None]).T @ Phi
                H[i, :, j] += block
                if i != j:
                    H[j, :, i] += block
    full: np.ndarray = H.reshape(k * D, k * D)
    full[np.diag_indices(k * D)] += 1 / amplitude
    return full


def log_evidence(mode: Mode, factor: Cholesky, amplitude: float) -> float:
    r"""The approximate log marginal likelihood: value at the mode minus :math:`\tfrac12\log|aH|`, from H's factor."""
    return mode.value - 0.5 * factor.log_determinant - 0.5 * len(factor.diagonal) * float(np.log(amplitude))


def laplace_evidence(Phi: np.ndarray, likelihood: Likelihood, amplitude: float) -> Evidence:
    r"""Laplace's log marginal likelihood of rows, and its gradient in the features and in the log of the amplitude.

    Notes
    -----
    :math:`L = \log p(y|\Phi\hat W) - |\hat W|^2/(2a) - \tfrac12\log|aH|`.  The first two terms are stationary in
    :math:`\hat W`; the third moves with it through R.  With :math:`C_n` the covariance of the latents of row n,
    :math:`s = -\tfrac12\partial\,\mathrm{tr}(C R)/\partial F` and :math:`V = H^{-1}\Phi^Ts`,

    .. math:: \frac{\partial L}{\partial\phi_n} = \hat W(r_n + s_n - R_nV^T\phi_n) + V r_n
              - \sum_{ij}R_{n,ij}(H^{-1})_{ij}\phi_n,

    where r is the residual, and :math:`\partial L/\partial\log a = |\hat W|^2/(2a) - \tfrac12(Dk - \mathrm{tr}H^{-1}/a) +
    \langle V,\hat W\rangle/a` (Rasmussen and Williams, Section 5.5, in the space of the weights).
    """
    if (
        len(Phi) < Phi.shape[1]
    ):  # it is a function of Phi Phi^T: weights outside the span of the rows have no part in it
        Q = qr(Phi.T, mode="economic", check_finite=False)[0]
        within = laplace_evidence(Phi @ Q, likelihood, amplitude)
        return within._replace(features=within.features @ Q.T)
    D, k = Phi.shape[1], likelihood.n_latents
    mode = find_mode(lambda: iter([(Phi, likelihood)]), D, k, amplitude)
    W = mode.weights
    H = hessian(lambda: iter([(Phi, likelihood)]), W, amplitude)
    factor = Cholesky.of(H, overwrite=True)
    inverse = factor.inverse().reshape(k, D, k, D)
    G, V = _feature_gradient(Phi, likelihood, W, inverse)
    trace = float(np.einsum("idid->", inverse)) / amplitude
    size, mixed = float(np.vdot(W, W)) / amplitude, float(np.vdot(V, W)) / amplitude
    return Evidence(log_evidence(mode, factor, amplitude), G, np.array([0.5 * (size - D * k + trace) + mixed]))


def probabilities(
    X: np.ndarray, *, phi: FeatureMap, weights: np.ndarray, root: np.ndarray, amplitude: float
) -> np.ndarray:
    """Probabilities (n, k) of the classes, from means and covariances of the latent functions."""
    Phi, (D, k) = check_finite("GaussianProcessClassifier", phi.queries(X)), weights.shape
    V = [Phi @ root[i * D : (i + 1) * D] for i in range(k)]
    covariance = np.empty((len(Phi), k, k))
    for i in range(k):
        for j in range(i + 1):
            covariance[:, i, j] = covariance[:, j, i] = np.einsum("nd,nd->n", V[i], V[j])
        covariance[:, i, i] += amplitude * left_out(phi, X, Phi)
    return expected_probabilities(Phi @ weights, covariance)


def winners(X: np.ndarray, *, classes: np.ndarray, **fitted: Any) -> np.ndarray:
    """The most probable classes."""
    return np.asarray(classes[np.argmax(probabilities(X, **fitted), axis=1)])


def _feature_gradient(
    Phi: np.ndarray, likelihood: Likelihood, W: np.ndarray, inverse: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The gradient in the features, and V."""
    k, F = likelihood.n_latents, Phi @ W
    R, residual = likelihood.curvature(F), likelihood.residual(F)
    C, bend = np.empty((len(Phi), k, k)), np.zeros_like(Phi)
    for i in range(k):
        for j in range(k):
            product = Phi @ inverse[i, :, j]
            C[:, i, j] = np.einsum("nd,nd->n", product, Phi)
            bend += R[:, i, j, None] * product
    s = -0.5 * likelihood.curvature_slope(F, C)
    V = np.einsum("idje,ej->di", inverse, Phi.T @ s)
    pushed = residual + s - np.einsum("nij,nj->ni", R, Phi @ V)
    return pushed @ W.T + residual @ V.T - bend, V


def _penalised(rows: Passes, W: np.ndarray, amplitude: float) -> float:
    return sum(likelihood.value(Phi @ W) for Phi, likelihood in rows()) - float(np.vdot(W, W)) / (2 * amplitude)


def _newton(rows: Passes, W: np.ndarray, amplitude: float) -> tuple[np.ndarray, np.ndarray]:
    """Gradient and Newton direction at W."""
    D, k = W.shape
    gradient, blocks = -W / amplitude, np.zeros((k, D, D))
    for Phi, likelihood in rows():
        F = Phi @ W
        R = likelihood.curvature(F)
        gradient += Phi.T @ likelihood.residual(F)
        for i in range(k):
            blocks[i] += (Phi * R[:, i, i, None]).T @ Phi
    blocks[:, np.arange(D), np.arange(D)] += 1 / amplitude
    factors = [Cholesky.of(block, overwrite=True) for block in blocks]

    def by_blocks(g: np.ndarray) -> np.ndarray:
        columns = g.reshape(D, k)
        return np.hstack([factors[i].solve(columns[:, i : i + 1]) for i in range(k)]).ravel()

    if k == 1:
        return gradient, by_blocks(gradient).reshape(D, k)
    H = LinearOperator((D * k, D * k), matvec=lambda v: _product(rows, W, amplitude, v.reshape(D, k)).ravel())
    M = LinearOperator((D * k, D * k), matvec=by_blocks)
    direction = cg(H, gradient.ravel(), rtol=1e-8, maxiter=20 * k, M=M)[0]
    return gradient, direction.reshape(D, k)


def _product(rows: Passes, W: np.ndarray, amplitude: float, V: np.ndarray) -> np.ndarray:
    """H times V, both (D, k)."""
    out: np.ndarray = V / amplitude
    for Phi, likelihood in rows():
        out += Phi.T @ np.einsum("nij,nj->ni", likelihood.curvature(Phi @ W), Phi @ V)
    return out
