r"""Kernels of a power of the distance whose rates follow a Beta law: Kummer, Tricomi and Beta kernels.

With a random rate R they are :math:`\mathrm{E}\,e^{-R\,r^p}`, the Laplace transform of the law of R at the distance r to the
power p.  Values are sums over a trapezoidal rule for that law, as for `Matern`: no special function is needed, in any array
library, and the sums are positive definite as they stand.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from .._random import RNG, as_generator
from .._validation import check_positive
from ._distances import Lengthscale
from ._matern import LOG_FAST, LOG_NEGLIGIBLE, LOG_TINY, SMALLEST_GAMMA, Mixture, evaluate
from ._scale_mixtures import PowerOfDistance, raised, scales_from_log_rates

_FARTHEST = 300.0  # logarithms of rates beyond which they are the same for all distances that count
SMALLEST_SHAPE, LARGEST_SHAPE = 0.05, 1e4  # shapes of a Beta law whose rule has some thousand nodes at most


@dataclass(frozen=True)
class _RatesOfBetaLaw(PowerOfDistance):
    """Base class: two shapes of a Beta law, the power and the lengthscale; a subclass says how rates follow."""

    alpha: float
    beta: float
    power: float = 2.0
    lengthscale: Lengthscale = 1.0

    references: ClassVar[tuple[str, ...]] = ("langrene2024",)

    def __post_init__(self) -> None:
        """Check the shapes, the power and the lengthscale."""
        owner = type(self).__name__
        for name in ("alpha", "beta"):
            value = check_positive(owner, name, getattr(self, name))
            if not SMALLEST_SHAPE <= value <= LARGEST_SHAPE:
                raise ValueError(
                    f"{owner}: {name} must be from {SMALLEST_SHAPE:g} to {LARGEST_SHAPE:g}, where its values are accurate, "
                    f"got {value:g}."
                )
            object.__setattr__(self, name, value)
        super().__post_init__()

    @abstractmethod
    def _log_rates(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Logarithms of rates from Gamma variates of the shapes alpha and beta."""

    @staticmethod
    @abstractmethod
    def _rule(alpha: float, beta: float) -> Mixture:
        """The law of the rates as weights and rates."""

    def sample_scales(self, shape: int | tuple[int, ...], rng: RNG) -> np.ndarray:
        """Draw s from two Gamma variates and a positive stable variate of index power / 2."""
        rng = as_generator(rng)
        a, b = (np.maximum(rng.standard_gamma(k, shape), SMALLEST_GAMMA) for k in (self.alpha, self.beta))
        return scales_from_log_rates(self._log_rates(a, b), self.power / 2, shape, rng)

    def profile(self, xp: Any, q: Any) -> Any:
        return evaluate(xp, raised(xp, q, self.power / 2), self._rule(self.alpha, self.beta))


@dataclass(frozen=True)
class Kummer(_RatesOfBetaLaw):
    r"""The Kummer kernel, a mixture of exponential powers with rates between zero and one and a power-law tail.

    Use it for smooth functions with correlations over very long distances: it is as smooth as the exponential power it is
    made of, and decays as :math:`r^{-p\alpha}` only.

    Parameters
    ----------
    alpha, beta : float
        Shapes :math:`\alpha, \beta` of the Beta law of the rates; :math:`\alpha` is the exponent of the tail.
    power : float, default 2.0
        Exponent p of the distance, :math:`0 < p \le 2`.
    lengthscale : float or sequence of float, default 1.0
        The length :math:`\ell`, or one length per dimension.

    See Also
    --------
    Tricomi : Rates without an upper limit: rough as well.
    GeneralizedCauchy : Rates of a Gamma law.

    Notes
    -----
    Kernel: :math:`k(x, y) = M(\alpha, \alpha+\beta, -(|x - y|/\ell)^p)`, with Kummer's function
    :math:`M = {}_1F_1`, the Laplace transform of the Beta law.

    Law of the rows at :math:`\ell = 1`: :math:`\omega = s\,g` with :math:`g \sim N(0, I)` and :math:`s^2 = 2 R^{2/p} S`, R
    of the law Beta(:math:`\alpha, \beta`) and S positive stable of index p/2.

    References
    ----------
    langrene2024, Table 1.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.special import hyp1f1
    >>> from bochner.kernels import Kummer
    >>> bool(np.allclose(Kummer(0.5, 1.5)([[0.0]], [[0.7]]), hyp1f1(0.5, 2.0, -0.49)))
    True
    """

    @classmethod
    def variants(cls) -> dict[str, Kummer]:
        """Return smooth rates of the law of the arcsine."""
        return {"kummer": cls(0.5, 0.5)}

    def _log_rates(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.asarray(np.log(a) - np.log(a + b))

    @staticmethod
    @lru_cache(maxsize=64)
    def _rule(alpha: float, beta: float) -> Mixture:
        """Quadrature in the logit of the rate; rates are not in octaves."""
        x = _places(_reach(alpha), min(_reach(beta), LOG_NEGLIGIBLE), alpha + beta)
        log_weights = -alpha * np.logaddexp(0, -x) - beta * np.logaddexp(0, x)
        return _mixture(x, log_weights, 1 / (1 + np.exp(-x)), alpha, beta, octaves=False)


@dataclass(frozen=True)
class Tricomi(_RatesOfBetaLaw):
    r"""The Tricomi (confluent hypergeometric) kernel, with separate parameters for roughness and tail.

    Use it in place of `Matern` where correlations do not die out exponentially: with ``power=2`` it is a mixture of Matern
    kernels of order :math:`\beta` over lengthscales, as rough as they are, with a tail of :math:`r^{-2\alpha}`.

    Parameters
    ----------
    alpha : float
        Exponent of the tail: the kernel decays as :math:`r^{-p\alpha}`.
    beta : float
        Roughness at short distances, as the order of `Matern`.
    power : float, default 2.0
        Exponent p of the distance, :math:`0 < p \le 2`.
    lengthscale : float or sequence of float, default 1.0
        The length :math:`\ell`, or one length per dimension.

    See Also
    --------
    Matern : Tails of an exponential.
    Kummer : Smooth at short distances.

    Notes
    -----
    Kernel: :math:`k(x, y) = \frac{\Gamma(\alpha+\beta)}{\Gamma(\beta)}\,U(\alpha, 1-\beta, (|x - y|/\ell)^p)`, with
    Tricomi's function U, the Laplace transform of the Beta prime law.  With ``power=2`` it is the covariance of ma2022.

    Law of the rows at :math:`\ell = 1`: :math:`\omega = s\,g` with :math:`g \sim N(0, I)` and
    :math:`s^2 = 2 (\Gamma_\alpha/\Gamma_\beta)^{2/p} S`, with two Gamma variates and S positive stable of index p/2.

    References
    ----------
    langrene2024, Table 1; ma2022.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.special import hyperu
    >>> from bochner.kernels import Tricomi
    >>> bool(np.allclose(Tricomi(1.0, 1.0)([[0.0]], [[0.7]]), hyperu(1.0, 0.0, 0.49)))
    True
    """

    references: ClassVar[tuple[str, ...]] = ("langrene2024", "ma2022")

    @classmethod
    def variants(cls) -> dict[str, Tricomi]:
        """Return the roughness of Matern-3/2 with a tail of the distance to the power -1."""
        return {"tricomi": cls(0.5, 1.5)}

    def _log_rates(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.asarray(np.log(a) - np.log(b))

    @staticmethod
    @lru_cache(maxsize=64)
    def _rule(alpha: float, beta: float) -> Mixture:
        """Quadrature in the logarithm of the rate."""
        x = _places(_reach(alpha), _reach(beta), alpha + beta)
        log_weights = -alpha * np.logaddexp(0, -x) - beta * np.logaddexp(0, x)
        return _mixture(x, log_weights, np.exp(x), alpha, beta)


@dataclass(frozen=True)
class Beta(_RatesOfBetaLaw):
    r"""The Beta kernel, a ratio of Beta functions, whose rates are minus the logarithms of Beta variates.

    Use it for power-law tails that begin only at several lengthscales: the kernel is about exponential in :math:`r^p`
    before :math:`r^p = \alpha`, and decays as :math:`r^{-p\beta}` beyond.

    Parameters
    ----------
    alpha, beta : float
        Shapes :math:`\alpha, \beta` of the Beta law; :math:`\alpha` is where the tail begins, :math:`\beta` its exponent.
    power : float, default 2.0
        Exponent p of the distance, :math:`0 < p \le 2`.
    lengthscale : float or sequence of float, default 1.0
        The length :math:`\ell`, or one length per dimension.

    See Also
    --------
    GeneralizedCauchy : The limit of large alpha, at a lengthscale of its own.

    Notes
    -----
    Kernel: :math:`k(x, y) = B(\alpha + (|x - y|/\ell)^p, \beta)/B(\alpha, \beta)`, with the Beta function B: the mean of a
    Beta variate to the power :math:`(|x - y|/\ell)^p`.

    Law of the rows at :math:`\ell = 1`: :math:`\omega = s\,g` with :math:`g \sim N(0, I)` and
    :math:`s^2 = 2 (-\log B)^{2/p} S`, B of the law Beta(:math:`\alpha, \beta`) and S positive stable of index p/2.

    References
    ----------
    langrene2024, Table 1.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import kernels
    >>> bool(np.allclose(kernels.Beta(2.0, 1.0)([[0.0]], [[0.7]]), 2 / (2 + 0.49)))         # beta = 1: rational
    True
    """

    @classmethod
    def variants(cls) -> dict[str, Beta]:
        """Return a tail of the distance to the power -2."""
        return {"beta": cls(1.0, 1.5)}

    def _log_rates(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.asarray(np.log(np.log1p(b / a)))

    @staticmethod
    @lru_cache(maxsize=64)
    def _rule(alpha: float, beta: float) -> Mixture:
        """Quadrature in the logarithm of the rate, whose density ends doubly exponentially."""
        highest = math.log((LOG_TINY + beta) / alpha) + 1
        x = _places(_reach(beta) + math.log1p(alpha), max(highest, 1.0), alpha + beta)
        r = np.exp(x)
        log_weights = x - alpha * r + (beta - 1) * np.log(-np.expm1(-r))
        return _mixture(x, log_weights, r, beta, math.inf)


def _reach(shape: float) -> float:
    """How far from the middle of a rule weights that fall as e^(-shape x) count: for large distances, small ones do."""
    return min(max(LOG_NEGLIGIBLE / shape, min(LOG_TINY / shape, LOG_FAST)), _FARTHEST)


def _places(lowest: float, highest: float, shape: float) -> np.ndarray:
    """Equidistant places of a rule, from minus the lowest to the highest."""
    octave = math.ceil(math.log(2) * (shape * shape + 148 * shape + 1600) ** 0.25 / 0.8)  # as for Matern kernels
    step = math.log(2) / octave
    return np.asarray(step * np.arange(-math.ceil(lowest / step), math.ceil(highest / step) + 1))


def _mixture(
    x: np.ndarray, log_weights: np.ndarray, rates: np.ndarray, slow: float, fast: float, *, octaves: bool = True
) -> Mixture:
    """The rule; what is left out at both ends is a geometric progression, and joins the first and the last rate."""
    step = float(x[1] - x[0])
    kept = log_weights > log_weights.max() - LOG_TINY
    weights, rates = np.exp(log_weights[kept] - log_weights.max()), rates[kept]
    weights[0] /= -math.expm1(-slow * step)
    weights[-1] /= -math.expm1(-fast * step)
    return Mixture(weights / weights.sum(), rates, round(math.log(2) / step) if octaves else len(rates), 1.0)
