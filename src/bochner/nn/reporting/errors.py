"""Relative errors of attention with random features: in first order from theory, and measured."""

from __future__ import annotations

import math

import numpy as np

from ..._random import RNG, as_generator
from ...approximation import Approximation, FeatureMap
from ...maps import ExponentialFeatures, Features
from ...maps._features import parts_of
from .heads import HeadSample


def predicted_row_error(spec: Approximation, sample: HeadSample) -> float | None:
    r"""Relative error of the attention matrix with a single row of W; m rows divide it by :math:`\sqrt m`.

    Notes
    -----
    The first-order error of a ratio.  With :math:`a_j` the weights of a query x and
    :math:`M_{jl} = E[Z_jZ_l]/(k_jk_l)` the joint second moment of the estimates for keys j and l,

    .. math:: E(\hat a_j - a_j)^2 \approx \frac{a_j^2}{m}
              \Big(M_{jj} - 2\sum_l a_l M_{jl} + \sum_{l,l'} a_l a_{l'} M_{ll'}\Big),

    and for positive features with parameter A (CRT Theorem 3.1, s = 1) and independent rows

    .. math:: \log M_{jl} = d\log(1-4A) - \tfrac d2\log(1-8A) + \frac{1-4A}{2(1-8A)}|2x+y_j+y_l|^2
              - |x|^2 - \tfrac12|y_j|^2 - \tfrac12|y_l|^2 - x\cdot(y_j+y_l),

    which is :math:`(x+y_j)\cdot(x+y_l)` for A = 0.  Rows that are coupled (orthogonal, simplex) do better.  None for
    maps of another kind.
    """
    features = _plain_positive(spec.fit(sample.X, sample.Y, rng=0).features)
    if features is None:
        return None
    A = (1 - features.b.real**2) / 4
    total = 0.0
    for X, Y, weights in zip(sample.X, sample.Y, sample.weights, strict=True):
        gram = Y @ Y.T
        for x, a in zip(X, weights, strict=True):
            total += _variance_of_weights(A, x, Y, gram, a, features.nodes.dim)
    error = math.sqrt(total) / float(np.linalg.norm(sample.weights)) if math.isfinite(total) else math.inf
    return error


def squared_errors(spec: Approximation, sample: HeadSample, n_draws: int, rng: RNG) -> np.ndarray:
    """Squared relative Frobenius errors of the attention matrix, one for each of some independent draws."""
    source = as_generator(rng)
    squares = [
        np.sum((estimated_weights(spec.fit(sample.X, sample.Y, rng=source), sample) - sample.weights) ** 2)
        for _ in range(n_draws)
    ]
    relative: np.ndarray = np.array(squares) / np.sum(sample.weights**2)
    return relative


def measured_error(spec: Approximation, sample: HeadSample, n_draws: int, rng: RNG) -> float:
    """Relative Frobenius error of the attention matrix, root mean square over independent draws."""
    return math.sqrt(float(np.mean(squared_errors(spec, sample, n_draws, rng))))


def estimated_weights(phi: FeatureMap, sample: HeadSample) -> np.ndarray:
    """Attention with the features, normalised over the keys that are seen; stabilised where it cancels."""
    mantissa, logarithm = parts_of(phi.features, sample.Y, key=True)
    shift = logarithm.max(axis=-2, keepdims=True)
    keys = mantissa * np.exp(logarithm - shift)
    mantissa, logarithm = parts_of(phi.features, sample.X, key=False)
    logarithm = logarithm + shift
    queries = mantissa * np.exp(logarithm - logarithm.max(axis=-1, keepdims=True))
    weights = np.where(sample.seen, queries @ keys.swapaxes(-1, -2), 0.0)
    total = weights.sum(axis=-1, keepdims=True)
    result: np.ndarray = weights / np.where(total == 0, 1.0, total)
    return result


def _plain_positive(features: Features) -> ExponentialFeatures | None:
    """The features, where they are single positive exponentials of rows of equal weight."""
    if not isinstance(features, ExponentialFeatures) or not features.positive or features.s != 1:
        return None
    nodes = features.nodes
    single = not nodes.reflect and not nodes.origin and bool(np.ptp(nodes.weights) == 0)
    return features if single else None


def _variance_of_weights(A: float, x: np.ndarray, Y: np.ndarray, gram: np.ndarray, a: np.ndarray, d: int) -> float:
    """Sum over keys of the squared first-order error of the weights ``a`` of one query, for one row of W."""
    kappa = (1 - 4 * A) / (2 * (1 - 8 * A))
    constant = d * math.log(1 - 4 * A) - d / 2 * math.log(1 - 8 * A) + (4 * kappa - 1) * float(x @ x)
    each = (kappa - 0.5) * np.diagonal(gram) + (4 * kappa - 1) * (Y @ x)
    with np.errstate(over="ignore", invalid="ignore"):
        M = np.exp(constant + each[:, None] + each[None, :] + 2 * kappa * gram)
        mean = M @ a
        variances = np.diagonal(M) - 2 * mean + a @ mean
        total = float(np.sum(a**2 * np.maximum(variances, 0)))
    return total if math.isfinite(total) else math.inf
