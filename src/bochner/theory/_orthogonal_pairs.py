"""Exponentials of two orthogonal rows along different directions, real or complex."""

from __future__ import annotations

import itertools
import math
from functools import lru_cache
from typing import Any

import numpy as np

_DEGREE = 14  # nodes of the interpolation along each of its three axes
FAR = 300.0  # squared norm from which on covariances of different rows are below rounding, relative to those of one row


def orthogonal_pair_covariance(alpha: Any, beta: Any, gamma: Any, d: int) -> np.ndarray:
    r"""Relative covariance :math:`E[e^{w_1\cdot a + w_2\cdot b}]\,e^{-(a\cdot a + b\cdot b)/2} - 1` of two orthogonal rows.

    Parameters
    ----------
    alpha, beta, gamma : complex arrays
        The unconjugated products :math:`a\cdot a`, :math:`b\cdot b` and :math:`a\cdot b` of vectors in :math:`C^d`.
    d : int
        Dimension, at least 2.

    Returns
    -------
    complex ndarray
        Zero for independent rows.

    Notes
    -----
    The rows have independent :math:`\chi_d` lengths.  Given the direction u of the first, the second is uniform in the
    orthogonal complement, so that

    .. math::

        E[e^{w_1\cdot a + w_2\cdot b}] = E_u\Big[{}_1F_1\big(\tfrac d2; \tfrac12; \tfrac{(u\cdot a)^2}2\big)\;
        {}_1F_1\big(\tfrac d2; \tfrac{d-1}2; \tfrac{b\cdot b - (u\cdot b)^2}2\big)\Big].

    Both sides are power series in a and b that no rotation changes: they depend on the three products alone, also for
    complex vectors, and two vectors in :math:`C^2` with these products (a Takagi factor of their Gram matrix, which has
    the smallest norms) stand for a and b.  What remains is an integral over the disc of the first two coordinates of u:
    Gauss-Jacobi nodes for the radius, equally spaced angles, both exact to rounding.  For a = b it is
    :math:`{}_1F_1(d; \tfrac d2; \tfrac{a\cdot a}2)` (SimRF Eq. 24).  This formula is not in the papers.
    """
    alpha, beta, gamma = np.broadcast_arrays(*(np.asarray(v, dtype=np.complex128) for v in (alpha, beta, gamma)))
    size = np.maximum(np.abs(alpha), np.maximum(np.abs(beta), np.abs(gamma)))
    result = np.zeros(alpha.shape, dtype=np.complex128)
    # pairs of similar size together, so that short vectors do not pay for the nodes and terms of long ones
    edges = [0.0, 1.0, 4.0, 12.0, 40.0, 120.0, FAR]
    for low, high in itertools.pairwise(edges):
        chosen = (size > low) & (size <= high)
        if chosen.any():
            evaluate = _interpolated if _worth_a_table(alpha[chosen], beta[chosen], gamma[chosen]) else _in_parts
            result[chosen] = evaluate(alpha[chosen], beta[chosen], gamma[chosen], d, high)
    return result


def _worth_a_table(alpha: np.ndarray, beta: np.ndarray, gamma: np.ndarray) -> bool:
    """Whether there are many pairs, and both vectors of each are real or imaginary: then three real numbers decide."""
    real = not alpha.imag.any() and not beta.imag.any() and (not gamma.imag.any() or not gamma.real.any())
    inside = (gamma**2).real * (alpha * beta).real >= 0
    return real and bool(inside.all()) and len(alpha) > 4 * _DEGREE**3


def _interpolated(alpha: np.ndarray, beta: np.ndarray, gamma: np.ndarray, d: int, reach: float) -> np.ndarray:
    """Covariance by a polynomial in a.a, b.b and the squared cosine, of which the covariance is an entire function."""
    a, b = alpha.real, beta.real
    product = a * b
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(product == 0, 0.0, np.clip((gamma**2).real / product, 0, 1))
    nodes = np.cos(np.pi * (np.arange(_DEGREE) + 0.5) / _DEGREE)
    axes = [(v.min(), max(v.max(), v.min() + 1e-9)) for v in (a, b, t)]
    grids = [low + (high - low) * (nodes + 1) / 2 for low, high in axes]
    A, B, T = (g.ravel() for g in np.meshgrid(*grids, indexing="ij"))
    root = np.sqrt((T * A * B).astype(np.complex128))
    table = _in_parts(A.astype(complex), B.astype(complex), root, d, reach).real
    table = table.reshape(_DEGREE, _DEGREE, _DEGREE)
    # values at the nodes to Chebyshev coefficients, along each axis
    transform = np.polynomial.chebyshev.chebvander(nodes, _DEGREE - 1).T * (2 / _DEGREE)
    transform[0] /= 2
    table = np.einsum("ijk,ai,bj,ck->abc", table, transform, transform, transform, optimize=True)
    vanders = [
        np.polynomial.chebyshev.chebvander(2 * (v - low) / (high - low) - 1, _DEGREE - 1)
        for v, (low, high) in zip((a, b, t), axes, strict=True)
    ]
    return np.asarray(np.einsum("ni,nj,nk,ijk->n", *vanders, table, optimize=True), dtype=np.complex128)


def _in_parts(alpha: np.ndarray, beta: np.ndarray, gamma: np.ndarray, d: int, reach: float) -> np.ndarray:
    nodes, weights = _disc(d, int(8 + 2.5 * math.sqrt(reach)), int(10 + 4 * math.sqrt(reach) + reach / 10))
    step = max(1, (1 << 18) // len(weights))
    parts = [
        _covariance(alpha[i : i + step], beta[i : i + step], gamma[i : i + step], d, nodes, weights, reach)
        for i in range(0, len(alpha), step)
    ]
    return np.concatenate(parts)


def _covariance(
    alpha: np.ndarray, beta: np.ndarray, gamma: np.ndarray, d: int, nodes: np.ndarray, weights: np.ndarray, reach: float
) -> np.ndarray:
    a, b = _takagi(alpha, beta, gamma)
    first, second = (a @ nodes.T) ** 2, beta[:, None] - (b @ nodes.T) ** 2  # (pairs, nodes)
    if max(np.abs(first.imag).max(), np.abs(second.imag).max()) < 1e-12:  # cosines and hyperbolic cosines, for instance
        first, second = first.real, second.real
    value = (_kummer(d / 2, 0.5, first / 2, reach) * _kummer(d / 2, (d - 1) / 2, second / 2, reach)) @ weights
    return np.asarray(value * np.exp(-(alpha + beta) / 2) - 1)


def _takagi(alpha: np.ndarray, beta: np.ndarray, gamma: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Vectors a, b in C^2, (n, 2) each, of smallest norm with these unconjugated products."""
    G = np.stack([np.stack([alpha, gamma], -1), np.stack([gamma, beta], -1)], -2)  # (n, 2, 2)
    real = np.concatenate(
        [np.concatenate([G.real, G.imag], -1), np.concatenate([G.imag, -G.real], -1)], -2
    )  # its eigenvalues are plus and minus the singular values of G
    values, vectors = np.linalg.eigh(real)
    u = vectors[:, :2, 2:] + 1j * vectors[:, 2:, 2:]
    S = u * np.sqrt(np.maximum(values[:, None, 2:], 0))
    return S[:, 0], S[:, 1]


def _kummer(a: float, b: float, z: np.ndarray, reach: float) -> np.ndarray:
    """1F1(a; b; z) for |z| up to ``reach``, by its series in Horner's form."""
    ratios, term, total = [1.0], 1.0, 1.0
    while term > 1e-18 * total:
        k = len(ratios)
        ratios.append((a + k - 1) / ((b + k - 1) * k))
        term *= ratios[-1] * reach
        total += term
    result = np.ones_like(z)
    for ratio in ratios[:0:-1]:
        result *= ratio * z
        result += 1
    return result


@lru_cache(maxsize=64)
def _disc(d: int, n_radii: int, n_angles: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes (n, 2) and weights of two coordinates of a uniform point of the sphere, for even functions."""
    from scipy.special import roots_jacobi

    angles = np.pi * np.arange(n_angles) / n_angles  # u and -u are alike: half of the circle
    circle = np.stack([np.cos(angles), np.sin(angles)], -1)
    if d == 2:
        return circle, np.full(n_angles, 1 / n_angles)
    x, w = roots_jacobi(n_radii, d / 2 - 2, 0)  # rho^2 has the law Beta(1, d/2 - 1)
    radii = np.sqrt((1 + x) / 2)
    nodes = (radii[:, None, None] * circle).reshape(-1, 2)
    weights = np.repeat(w / w.sum() / n_angles, n_angles)
    nodes.setflags(write=False)
    weights.setflags(write=False)
    return nodes, weights
