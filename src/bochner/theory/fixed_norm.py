"""Biases of trigonometric features whose rows are not Gaussian: fixed lengths, and one Hadamard block."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def fixed_norm_bias(minus: Any, d: int) -> np.ndarray:
    r"""Mean minus kernel for trigonometric features with Haar rows of length :math:`\sqrt d`, :math:`V = |x-y|^2`.

    Notes
    -----
    :math:`E\cos(\sqrt d\,u\cdot z) - e^{-V/2}`, about :math:`-V^2e^{-V/2}/(4d)` (SORF, and the ROM of QBF).
    By Gauss-Legendre over the angle, since SciPy's ``hyp0f1`` fails at large d.
    """
    V = np.asarray(minus, dtype=np.float64)
    if d == 1:
        return np.cos(np.sqrt(V)) - np.exp(-V / 2)
    half = min(math.pi / 2, 20 / math.sqrt(d))
    n = 160 + 16 * math.ceil(math.sqrt(V.max(initial=0.0)))
    nodes, weights = np.polynomial.legendre.leggauss(n)
    weights = weights * np.exp((d - 2) * np.log(np.cos(half * nodes)))
    projection = math.sqrt(d) * np.sin(half * nodes)
    mean = np.cos(np.sqrt(V)[..., None] * projection) @ (weights / weights.sum())
    return np.asarray(mean - np.exp(-V / 2))


def hadamard_block_mean(Z: Any, *, positive: bool = False) -> np.ndarray:
    r"""Mean of trigonometric features over rows of one Hadamard block HD, or of HMD, with :math:`\chi_d` lengths.

    Notes
    -----
    :math:`E_R\prod_k\cos(Rz_k/\sqrt d)`, :math:`R \sim \chi_d`, for rows z = x - y of Z: the entries of a row are
    independent signs over :math:`\sqrt d`, so both constructions have one bias.  With ``positive`` it is the mean of
    :math:`e^{w\cdot z}`, z = x + y, the product of hyperbolic cosines.
    """
    Z = np.asarray(Z, dtype=np.float64)
    d = Z.shape[-1]
    nodes, weights = np.polynomial.legendre.leggauss(240)
    low, high = max(0.0, math.sqrt(d) - 10), math.sqrt(d) + 10
    R = low + (high - low) * (nodes + 1) / 2
    log_density = (d - 1) * np.log(R) - R**2 / 2
    law = weights * np.exp(log_density - log_density.max())
    arguments = R * Z[..., None] / math.sqrt(d)  # (..., d, nodes)
    factors = np.cosh(arguments) if positive else np.cos(arguments)
    return np.asarray(factors.prod(-2) @ (law / law.sum()))
