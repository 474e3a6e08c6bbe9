r"""Finite mixtures of Gaussian kernels, :math:`\kappa(q) = \sum_i w_i e^{-a_i q}`, and that of the Matern kernel.

With :math:`\nu e^t` a Gamma number of shape :math:`\nu`, the Matern kernel is :math:`\mathrm{E} \exp(-q\,e^{-t}/2)`.
In t the density is analytic and decays fast on both sides, so the trapezoidal rule converges exponentially.  Against
the Bessel function :math:`K_\nu` this has no underflow times overflow at small q or large :math:`\nu`, is exactly one
at q = 0, is positive definite as it stands, and runs in any array library and precision.
"""

from __future__ import annotations

import math
import sys
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np

from .._arrays import like

NEGLIGIBLE = 2.0**-57  # the share of a sum that may be left out at either end
LOG_NEGLIGIBLE = 40.0
LOG_TINY = 690.0  # weights below exp(-690) would underflow
LOG_FAST = 83.0  # rates up to exp(83) are kept where they have a weight at all: derivatives need them
LOG_LARGE = 700.0  # rates above exp(700) would overflow
POWERS = 4  # exponentials in use for each one computed: squares cost less, and double the rounding error each time
BLOCK = 2**15  # exponentials at a time: they stay in the cache


class Mixture(NamedTuple):
    """Weights and rates, from slow to fast; rates ``octave`` places apart differ by a factor of two."""

    weights: np.ndarray
    rates: np.ndarray
    octave: int
    mass: float  # the sum of the weights

    def derivative(self) -> Mixture:
        """Return the mixture that is minus the derivative of this one."""
        weights = self.weights * self.rates
        return self._replace(weights=weights, mass=float(weights.sum()))


@lru_cache(maxsize=64)
def matern_mixture(nu: float) -> Mixture:
    """Return the mixture, of weight one, that is the Matern kernel of order ``nu`` as a function of q.

    At z = sqrt(2 nu q) the integrand is a bell of width (nu^2 + z^2)^(-1/4).  The step resolves it to 13 digits as
    long as the kernel is above 1e-16 (z^2 < 148 nu + 1600); smaller values gradually lose digits.
    """
    octave = math.ceil(math.log(2) * (nu * nu + 148 * nu + 1600) ** 0.25 / 0.8)
    step = math.log(2) / octave
    fast = min(max(_reach(LOG_NEGLIGIBLE / nu), min(_reach(LOG_TINY / nu), LOG_FAST)), LOG_LARGE)
    slow = math.log1p(_reach(LOG_TINY / nu))
    t = step * np.arange(math.floor(slow / step), -math.floor(fast / step) - 1, -1)
    log_weights = -nu * _exponential_remainder(t)
    kept = log_weights > -LOG_TINY
    weights = np.exp(log_weights[kept])
    weights[-1] /= -math.expm1(-nu * step)  # the faster rates left out, a geometric progression, join the fastest
    return Mixture(weights / weights.sum(), 0.5 * np.exp(-t[kept]), octave, 1.0)


def evaluate(xp: Any, q: Any, mixture: Mixture) -> Any:
    """Return the mixture at each q >= 0; tensors of torch are differentiated through."""
    if hasattr(q, "requires_grad"):
        return _differentiable().apply(q, mixture)
    return _evaluate(xp, q, mixture)


def _reach(x: float) -> float:
    """Return t > 0 with e^(-t) - 1 + t >= x; its log1p is such a t for e^t - 1 - t."""
    return x + math.sqrt(2 * x)


def _exponential_remainder(t: np.ndarray) -> np.ndarray:
    """Return e^t - 1 - t, without its cancellation at small t."""
    small = np.clip(t, -0.5, 0.5)
    series = np.polyval([1 / math.factorial(k) for k in range(16, 1, -1)], small)
    return np.asarray(np.where(small == t, small * small * series, np.expm1(t) - t))


def _evaluate(xp: Any, q: Any, mixture: Mixture) -> Any:
    largest = float(xp.finfo(q.dtype).max)
    at_zero = min(mixture.mass, math.sqrt(largest))  # an infinite derivative, times a difference of 0, is no number
    positive = q > 0
    if not xp.any(positive):
        return xp.full_like(q, at_zero)
    needed = _needed(mixture, float(xp.min(q[positive])), float(xp.max(q)))
    rates, weights_of_powers = _packed(needed)
    a = like(np.asarray(-np.minimum(rates, largest)), q)
    w = [like(np.asarray(weights), q) for weights in weights_of_powers]
    flat = xp.reshape(q, (-1, 1))
    total = xp.zeros_like(flat[:, 0])
    step = max(1, BLOCK // len(rates))
    for start in range(0, flat.shape[0], step):
        total[start : start + step] = _sum_of_powers(xp.exp(flat[start : start + step] * a), w)
    return xp.where(positive, xp.reshape(xp.clip(total, None, at_zero), q.shape), xp.full_like(q, at_zero))


def _sum_of_powers(E: Any, weights_of_powers: list[Any]) -> Any:
    """Return E @ w_0 + E^2 @ w_1 + E^4 @ w_2 + ..., with powers entry by entry."""
    total = E @ weights_of_powers[0]
    for w in weights_of_powers[1:]:
        E = E * E
        total += E @ w
    return total


def _packed(mixture: Mixture) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the rates of the exponentials to compute, and the weights of their powers 1, 2, 4, ..."""
    weights, rates, octave, _ = mixture
    n_powers = min(POWERS, math.ceil(len(rates) / octave))
    shape = (-1, n_powers, octave if n_powers > 1 else len(rates))
    missing = -len(rates) % (shape[1] * shape[2])
    w = np.pad(weights, (0, missing)).reshape(shape)
    a = np.pad(rates, (0, missing), mode="edge").reshape(shape)
    return a[:, 0].ravel(), [w[:, j].ravel() for j in range(n_powers)]


def _needed(mixture: Mixture, nearest: float, farthest: float) -> Mixture:
    """Return the terms that count for q from ``nearest`` to ``farthest``.

    As q grows, slow terms gain on fast ones.  So fast terms that are negligible at the nearest point are so
    everywhere, and slow ones that are negligible at the farthest.
    """
    first = np.searchsorted(np.cumsum(_shares(mixture, farthest)), NEGLIGIBLE)
    last = len(mixture.rates) - np.searchsorted(np.cumsum(_shares(mixture, nearest)[::-1]), NEGLIGIBLE)
    return mixture._replace(weights=mixture.weights[first:last], rates=mixture.rates[first:last])


def _shares(mixture: Mixture, q: float) -> np.ndarray:
    """Return each term's share of the sum at q; in logarithms, as all of them may underflow."""
    q = min(q, 2 * LOG_TINY / mixture.rates[0])  # beyond, every term is zero
    with np.errstate(over="ignore"):
        log_terms = np.log(mixture.weights) - mixture.rates * q
    terms = np.exp(log_terms - log_terms.max())
    return np.asarray(terms / terms.sum())


@cache
def _differentiable() -> Any:
    """Return `_evaluate` as a function of torch that keeps q alone for its derivative, not an array for each term."""
    torch: Any = sys.modules["torch"]  # the tensor at hand came from it

    class Evaluate(torch.autograd.Function):
        @staticmethod
        def forward(q: Any, mixture: Mixture) -> Any:
            return _evaluate(torch, q, mixture)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, Any], output: Any) -> None:
            q, ctx.mixture = inputs
            ctx.save_for_backward(q)

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> tuple[Any, None]:
            (q,) = ctx.saved_tensors
            return -gradient * Evaluate.apply(q, ctx.mixture.derivative()), None

    return Evaluate
