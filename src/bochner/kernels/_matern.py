r"""The Matern kernels, and finite mixtures of Gaussian kernels, by which those of any order are computed.

A mixture is :math:`\kappa(q) = \sum_i w_i e^{-a_i q}`.  With :math:`\nu e^t` a Gamma variate of shape :math:`\nu`, the
Matern kernel is :math:`\mathrm{E} \exp(-q\,e^{-t}/2)`.  In t the density is analytic and decays fast on both sides, so
the trapezoidal rule converges exponentially.  Compared with the Bessel function :math:`K_\nu` this has no underflow
times overflow at small q or large :math:`\nu`, is exactly one at q = 0, is positive definite as it stands, and runs in
any array library and precision.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from .._arrays import like, root
from .._random import RNG, as_generator, opposite_gamma
from .._validation import check_positive
from ._distances import DistancesTo, Lengthscale
from ._shift_invariant import Radial, check_order

NEGLIGIBLE = 2.0**-57  # the share of a sum that may be left out at either end
LOG_NEGLIGIBLE = 40.0  # weights below exp(-40) = 4e-18 are lost in the rounding of float64
LOG_TINY = 690.0  # weights below exp(-690) would underflow
LOG_FAST = 83.0  # rates up to exp(83) are kept where they have a weight at all: derivatives need them
LOG_LARGE = 700.0  # rates above exp(700) would overflow
POWERS = 4  # exponentials in use for each one computed: squares cost less, and double the rounding error each time
BLOCK = 2**15  # exponentials at a time: they stay in the cache
FAR = 1e4  # lengthscales after which the kernel is zero in float64
SMALLEST_GAMMA = 1e-60  # keeps scales finite in float32; the kernel feels it below 1e-30 lengthscales


@dataclass(frozen=True)
class Matern(Radial):
    r"""The Matern kernel, whose Gaussian processes have samples with :math:`\lceil\nu\rceil - 1` derivatives.

    Use it where functions are rough: ``nu`` of 1/2, 3/2 or 5/2 is the usual choice in geostatistics and for Gaussian
    processes.

    Parameters
    ----------
    nu : float
        Smoothness :math:`\nu > 0`.
    lengthscale : float or sequence of float, default 1.0
        The length :math:`\ell`, or one length per dimension.

    Notes
    -----
    Kernel: with :math:`r = |x - y|/\ell` and :math:`z = \sqrt{2\nu}\,r`,
    :math:`k(x, y) = 2^{1-\nu} z^\nu K_\nu(z)/\Gamma(\nu)`, :math:`K_\nu` the modified Bessel function.  In closed form
    :math:`e^{-z}` for :math:`\nu = 1/2`, :math:`(1 + z)\,e^{-z}` for 3/2, :math:`(1 + z + z^2/3)\,e^{-z}` for 5/2; any
    other order is summed as a mixture of Gaussian kernels, by the law of s below.  It tends to the Gaussian kernel as
    :math:`\nu` grows.

    Law of the rows at :math:`\ell = 1`: :math:`\omega = s\,g` with :math:`g \sim N(0, I)` and
    :math:`s^2 = \nu/\Gamma_\nu`, :math:`\Gamma_\nu` a Gamma variate of shape :math:`\nu`: the multivariate t law with
    :math:`2\nu` degrees of freedom.

    Gradients at x = y are zero, also for :math:`\nu \le 1/2` where the kernel has a cusp.

    References
    ----------
    rasmussen2006, Equations 4.14 to 4.17.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.kernels import Matern
    >>> bool(np.allclose(Matern(nu=0.5)([[0.0, 0.0]], [[3.0, 4.0]]), np.exp(-5)))
    True
    """

    nu: float
    lengthscale: Lengthscale = 1.0

    has_spectral_density: ClassVar[bool] = True
    references: ClassVar[tuple[str, ...]] = ("rasmussen2006",)

    def __post_init__(self) -> None:
        """Check nu and the lengthscale."""
        object.__setattr__(self, "nu", check_positive("Matern", "nu", self.nu))
        check_order("Matern", "nu", self.nu)
        super().__post_init__()

    @classmethod
    def variants(cls) -> dict[str, Matern]:
        """Return the orders with a closed form."""
        return {"matern-1/2": cls(0.5), "matern-3/2": cls(1.5), "matern-5/2": cls(2.5)}

    def sample_scales(self, shape: int | tuple[int, ...], rng: RNG) -> np.ndarray:
        """Draw s, the root of nu over a Gamma variate of shape nu."""
        gamma = as_generator(rng).standard_gamma(self.nu, shape)
        return np.sqrt(self.nu / np.maximum(gamma, SMALLEST_GAMMA))

    def spectral_density(self, frequencies: np.ndarray) -> np.ndarray:
        """Return the density of the multivariate t law."""
        w = np.asarray(frequencies, dtype=np.float64)
        half = w.shape[-1] / 2
        log_constant = math.lgamma(self.nu + half) - math.lgamma(self.nu) - half * math.log(2 * math.pi * self.nu)
        return np.asarray(np.exp(log_constant - (self.nu + half) * np.log1p((w**2).sum(axis=-1) / (2 * self.nu))))

    def opposite_scales(self, scales: np.ndarray) -> np.ndarray:
        """Return the scales of opposite Gamma variates."""
        gamma = np.maximum(opposite_gamma(self.nu, self.nu / scales**2), SMALLEST_GAMMA)
        return np.asarray(np.sqrt(self.nu / gamma))

    def profile(self, xp: Any, q: Any) -> Any:
        if self.nu not in (0.5, 1.5, 2.5):
            return evaluate(xp, q, matern_mixture(self.nu))
        z = math.sqrt(2 * self.nu) * xp.clip(root(xp, q), None, FAR)  # infinity times zero is not a number
        if self.nu == 0.5:
            return xp.exp(-z)
        if self.nu == 1.5:
            return (1 + z) * xp.exp(-z)
        return (1 + z + z * z / 3) * xp.exp(-z)

    def columns(self, points: np.ndarray) -> Callable[[Any], np.ndarray]:
        """Return the profile at the distances to the points, computed in place of these distances."""
        if self.nu not in (0.5, 1.5, 2.5):
            return super().columns(points)
        distances = DistancesTo(points, self.lengthscale)

        def values(X: Any) -> np.ndarray:
            q = distances(X)
            step = max(1, BLOCK // max(q.shape[1], 1))
            scratch = np.empty((min(step, len(q)), q.shape[1]), q.dtype)
            for start in range(0, len(q), step):  # temporary arrays of the whole size took ten times as long
                self._in_place(q[start : start + step], scratch)
            return q

        return values

    def _in_place(self, q: np.ndarray, scratch: np.ndarray) -> None:
        """Replace squared distances by the values of the kernel, with the same formulas as `profile`."""
        z, exponential = q, scratch[: len(q)]
        np.sqrt(np.maximum(q, 0, out=z), out=z)
        np.minimum(z, FAR, out=z)
        z *= -math.sqrt(2 * self.nu)
        np.exp(z, out=exponential)
        if self.nu == 0.5:
            q[...] = exponential
            return
        if self.nu == 2.5:  # 1 - z + z^2/3 = 1 - z (1 - z/3), z being negative here
            factor = z / -3
            factor += 1
            z *= factor
        np.subtract(1, z, out=z)
        z *= exponential


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
    at_zero = min(mixture.mass, math.sqrt(largest))  # an infinite derivative, times a difference of 0, is not a number
    positive = q > 0
    try:
        if not xp.any(positive):
            return xp.full_like(q, at_zero)
        needed = _needed(mixture, float(xp.min(q[positive])), float(xp.max(q)))
    except TypeError:  # traced, as under jax.jit: values are not known, so that all rates are needed
        needed = mixture
    rates, weights_of_powers = _packed(needed)
    a = like(np.asarray(-np.minimum(rates, largest)), q)
    w = [like(np.asarray(weights), q) for weights in weights_of_powers]
    flat = xp.reshape(q, (-1, 1))
    step = max(1, BLOCK // len(rates))
    starts = range(0, max(flat.shape[0], 1), step)
    total = xp.concat([_sum_of_powers(xp.exp(flat[start : start + step] * a), w) for start in starts])
    return xp.where(positive, xp.reshape(xp.clip(total, None, at_zero), q.shape), xp.full_like(q, at_zero))


def _sum_of_powers(E: Any, weights_of_powers: list[Any]) -> Any:
    """Return E @ w_0 + E^2 @ w_1 + E^4 @ w_2 + ..., with powers entry by entry."""
    total = E @ weights_of_powers[0]
    for w in weights_of_powers[1:]:
        E = E * E
        total = total + E @ w
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
