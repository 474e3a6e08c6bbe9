r"""Kernels of a power of the distance, whose scales are positive stable variates: exponential power and its mixtures.

A positive stable variate S of index :math:`a \in (0, 1)` has :math:`\mathrm{E}\,e^{-tS} = e^{-t^a}`.  So a mixture
:math:`\mathrm{E}\,e^{-c\,q^a}` over a random rate c is one of Gaussian kernels, :math:`\mathrm{E}\,e^{-c^{1/a} S q}`, with
scales :math:`s^2 = 2\,c^{1/a} S`: exact, in every dimension.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NoReturn

import numpy as np

from .._random import RNG, as_generator
from .._validation import check_count, check_positive, shown
from ._distances import Lengthscale, scale_like
from ._matern import SMALLEST_GAMMA, Matern
from ._shift_invariant import Radial, ShiftInvariant

LOG_LARGEST_SQUARE = 138.0  # squares of scales stay below exp(138) = 1e60, and float32 rows finite


def check_power(owner: str, name: str, value: Any, largest: float = 2.0) -> float:
    """Return ``value`` as a float in (0, largest]."""
    power = check_positive(owner, name, value)
    if power > largest:
        raise ValueError(
            f"{owner}: {name} must be at most {largest:g}, above which the function is not a kernel, got {shown(value)}."
        )
    return power


def log_positive_stable(a: float, shape: Any, rng: np.random.Generator) -> np.ndarray:
    r"""Draw logarithms of positive stable variates of index ``a``, by Kanter's product; zeros for a = 1.

    With U uniform on :math:`(0, \pi)` and E standard exponential,
    :math:`S = \sin(aU)\,\sin(U)^{-1/a}\,(\sin((1-a)U)/E)^{(1-a)/a}`.
    """
    if a == 1:
        return np.zeros(shape)
    u = math.pi * (1 - rng.random(shape))  # never zero; at pi itself the sine is 1e-16, not zero
    e = np.maximum(rng.standard_exponential(shape), np.finfo(np.float64).tiny)
    ratio = np.log(np.sin((1 - a) * u)) - np.log(e)
    return np.asarray(np.log(np.sin(a * u)) - np.log(np.sin(u)) / a + ratio * ((1 - a) / a))


def scales_from_log_rates(log_rates: Any, a: float, shape: Any, rng: np.random.Generator) -> np.ndarray:
    r"""Draw scales of :math:`\mathrm{E}\,e^{-c\,q^a}` from the logarithms of its rates c."""
    log_squares = math.log(2) + log_rates / a + log_positive_stable(a, shape, rng)
    return np.asarray(np.exp(np.clip(log_squares, -LOG_LARGEST_SQUARE, LOG_LARGEST_SQUARE) / 2))


def raised(xp: Any, q: Any, a: float) -> Any:
    """``q`` >= 0 to the power a <= 1, with gradient 0 in place of infinity at ``q`` = 0."""
    if a == 1:
        return q
    if xp is np:
        return q**a
    positive = q > 0
    return xp.where(positive, xp.pow(xp.where(positive, q, xp.ones_like(q)), xp.asarray(a, dtype=q.dtype)), 0 * q)


class PowerOfDistance(Radial):
    """Base class of radial kernels that are functions of the distance to a power in (0, 2]."""

    power: float

    def __post_init__(self) -> None:
        """Check the power and the lengthscale."""
        object.__setattr__(self, "power", check_power(type(self).__name__, "power", self.power))
        super().__post_init__()


@dataclass(frozen=True)
class ExponentialPower(PowerOfDistance):
    r"""The exponential power kernel, between the Gaussian kernel and rough ones; also called powered exponential.

    Use it for tables: smaller powers follow jumps and kinks that a Gaussian kernel smooths away, at the cost of a slower
    decay of the spectrum.

    Parameters
    ----------
    power : float
        Exponent p of the distance, :math:`0 < p \le 2`.
    lengthscale : float or sequence of float, default 1.0
        The length :math:`\ell` at which the kernel is 1/e, or one length per dimension.

    See Also
    --------
    LpExponential : An Lp distance in place of the Euclidean one.  GeneralizedCauchy : Heavier tails.

    Notes
    -----
    Kernel: :math:`k(x, y) = \exp(-(|x - y|/\ell)^p)`.  ``power=1`` is ``Matern(nu=0.5)``, and ``power=2`` is
    ``Gaussian(lengthscale / sqrt(2))``.

    Law of the rows at :math:`\ell = 1`: :math:`\omega = s\,g` with :math:`g \sim N(0, I)` and :math:`s^2 = 2S`, S positive
    stable of index p/2, since :math:`\mathrm{E}\,e^{-tS} = e^{-t^{p/2}}`; drawn exactly by kanter1975.  Rows are themselves
    symmetric stable vectors of index p.

    Gradients at x = y are zero, also for :math:`p \le 1` where the kernel has a cusp.

    References
    ----------
    langrene2024, Table 1; kanter1975.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.kernels import ExponentialPower, Gaussian
    >>> bool(np.allclose(ExponentialPower(0.5)([[0.0, 0.0]], [[0.0, 4.0]]), np.exp(-2)))
    True
    >>> bool(np.allclose(ExponentialPower(2.0, 2**0.5)([[0.0]], [[1.0]]), Gaussian()([[0.0]], [[1.0]])))
    True
    """

    power: float
    lengthscale: Lengthscale = 1.0

    references: ClassVar[tuple[str, ...]] = ("langrene2024", "kanter1975")

    @classmethod
    def variants(cls) -> dict[str, ExponentialPower]:
        """Return two powers below those of the exponential and the Gaussian kernel."""
        return {"exponential-power-1/2": cls(0.5), "exponential-power-3/2": cls(1.5)}

    def sample_scales(self, shape: int | tuple[int, ...], rng: RNG) -> np.ndarray:
        """Draw s, the root of twice a positive stable variate of index power / 2."""
        return scales_from_log_rates(0.0, self.power / 2, shape, as_generator(rng))

    def profile(self, xp: Any, q: Any) -> Any:
        return xp.exp(-raised(xp, q, self.power / 2))


@dataclass(frozen=True)
class GeneralizedCauchy(PowerOfDistance):
    r"""The generalised Cauchy kernel, with separate parameters for roughness and tail.

    Use it where distant rows still matter: it decays like a power of the distance, as the rational quadratic kernel
    does, and is as rough as the exponential power kernel at short distances.

    Parameters
    ----------
    power : float
        Exponent p of the distance, :math:`0 < p \le 2`: roughness at short distances.
    decay : float
        Exponent :math:`\beta > 0` of the tail, :math:`k \sim (|x - y|/\ell)^{-\beta}`.
    lengthscale : float or sequence of float, default 1.0
        The length :math:`\ell`, or one length per dimension.

    See Also
    --------
    ExponentialPower : Exponential tails.
    Cauchy, RationalQuadratic : The case of ``power=2``.

    Notes
    -----
    Kernel: :math:`k(x, y) = (1 + (|x - y|/\ell)^p)^{-\beta/p}`.  ``power=2, decay=2`` is the Cauchy kernel.

    Law of the rows at :math:`\ell = 1`: :math:`\omega = s\,g` with :math:`g \sim N(0, I)` and
    :math:`s^2 = 2\,\Gamma^{2/p} S`, :math:`\Gamma` a Gamma variate of shape :math:`\beta/p` and S positive stable of index
    p/2, since :math:`\mathrm{E}\,e^{-\Gamma t} = (1 + t)^{-\beta/p}`.

    References
    ----------
    langrene2024, Table 1; gneiting2004.

    Examples
    --------
    >>> from bochner.kernels import GeneralizedCauchy
    >>> GeneralizedCauchy(power=1.0, decay=2.0)([[0.0]], [[1.0]])
    array([[0.25]])
    """

    power: float
    decay: float
    lengthscale: Lengthscale = 1.0

    references: ClassVar[tuple[str, ...]] = ("langrene2024", "gneiting2004")

    def __post_init__(self) -> None:
        """Check the power, the decay and the lengthscale."""
        object.__setattr__(self, "decay", check_positive("GeneralizedCauchy", "decay", self.decay))
        super().__post_init__()

    @classmethod
    def variants(cls) -> dict[str, GeneralizedCauchy]:
        """Return a rough kernel with a heavy tail."""
        return {"generalized-cauchy": cls(1.0, 1.0)}

    def sample_scales(self, shape: int | tuple[int, ...], rng: RNG) -> np.ndarray:
        """Draw s from a Gamma variate of shape decay / power and a positive stable variate of index power / 2."""
        rng = as_generator(rng)
        gamma = np.maximum(rng.standard_gamma(self.decay / self.power, shape), np.finfo(np.float64).tiny)
        return scales_from_log_rates(np.log(gamma), self.power / 2, shape, rng)

    def profile(self, xp: Any, q: Any) -> Any:
        return xp.exp(-(self.decay / self.power) * xp.log1p(raised(xp, q, self.power / 2)))


@dataclass(frozen=True)
class GeneralizedMatern(PowerOfDistance):
    r"""The Matern kernel of a power of the distance: rough at short distances, with exponential-power tails.

    Use it where functions are rougher than those of a `Matern` kernel with the same tails, or equally rough functions
    with lighter tails.

    Parameters
    ----------
    nu : float
        Order :math:`\nu > 0`.
    power : float
        Exponent p, :math:`0 < p \le 2`; 2 is the Matern kernel itself.
    lengthscale : float or sequence of float, default 1.0
        The length :math:`\ell`, or one length per dimension.

    See Also
    --------
    Matern : The case of ``power=2``.

    Notes
    -----
    Kernel: :math:`k(x, y) = M_\nu((|x - y|/\ell)^{p/2})` with :math:`M_\nu(r)` the Matern kernel of order :math:`\nu` at
    distance r and unit lengthscale.

    Law of the rows at :math:`\ell = 1`: :math:`\omega = s\,g` with :math:`g \sim N(0, I)` and
    :math:`s^2 = 2\,(\nu/(2\Gamma_\nu))^{2/p} S`, :math:`\Gamma_\nu` a Gamma variate of shape :math:`\nu` and S positive
    stable of index p/2: the Matern kernel is :math:`\mathrm{E}\,e^{-\nu r^2/(2\Gamma_\nu)}`, with :math:`r^2` in the
    place of :math:`|x-y|^p`.

    References
    ----------
    langrene2024, Table 1.

    Examples
    --------
    >>> from bochner.kernels import GeneralizedMatern, Matern
    >>> bool(GeneralizedMatern(1.5, 2.0)([[0.0]], [[0.7]]) == Matern(1.5)([[0.0]], [[0.7]]))
    True
    """

    nu: float
    power: float
    lengthscale: Lengthscale = 1.0

    references: ClassVar[tuple[str, ...]] = ("langrene2024",)

    def __post_init__(self) -> None:
        """Check the order, the power and the lengthscale."""
        object.__setattr__(self, "nu", check_positive("GeneralizedMatern", "nu", self.nu))
        super().__post_init__()

    @classmethod
    def variants(cls) -> dict[str, GeneralizedMatern]:
        """Return the order 3/2 at the distance to the power 1/2."""
        return {"generalized-matern": cls(1.5, 1.0)}

    def sample_scales(self, shape: int | tuple[int, ...], rng: RNG) -> np.ndarray:
        """Draw s from a Gamma variate of shape nu and a positive stable variate of index power / 2."""
        rng = as_generator(rng)
        gamma = np.maximum(rng.standard_gamma(self.nu, shape), SMALLEST_GAMMA)
        return scales_from_log_rates(np.log(self.nu / 2 / gamma), self.power / 2, shape, rng)

    def profile(self, xp: Any, q: Any) -> Any:
        return Matern(self.nu).profile(xp, raised(xp, q, self.power / 2))


@dataclass(frozen=True)
class LpExponential(ShiftInvariant):
    r"""The exponential of a power of the Lp distance, the kernel :math:`K_{p,q}` of xRFM for tables.

    Use it for heterogeneous columns, for which rotations are meaningless; ``norm=1`` does not mix columns at all.

    Parameters
    ----------
    norm : float
        Exponent p of the distance :math:`|z|_p = (\sum_i |z_i|^p)^{1/p}`, :math:`0 < p \le 2`.
    power : float, optional
        Exponent q of the distance, :math:`0 < q \le p`; by default p, a product of kernels of single columns.
    lengthscale : float or sequence of float, default 1.0
        The length :math:`\ell` at which the kernel is 1/e, or one length per dimension.

    See Also
    --------
    Laplacian : The case of ``norm=1, power=1``.
    ExponentialPower : The case of ``norm=2``, whose rows can also be orthogonal.

    Notes
    -----
    Kernel: :math:`k(x, y) = \exp(-(|x - y|_p/\ell)^q)`.

    Law of the rows at :math:`\ell = 1`: :math:`\omega = S^{1/p} (z_1, \dots, z_d)` with independent symmetric stable
    :math:`z_i` of index p, :math:`\mathrm{E}\cos(t z_i) = e^{-|t|^p}` (Cauchy for p = 1), and one positive stable S of index
    q/p, since :math:`\mathrm{E}\,e^{-S|t|_p^p} = e^{-|t|_p^q}`.  Both are drawn exactly.  Directions are not uniform, and
    ``spectrum`` is ``"product"``.

    References
    ----------
    beaglehole2025; chambers1976; kanter1975.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.kernels import LpExponential
    >>> bool(np.allclose(LpExponential(1.0, 0.5)([[0.0, 0.0]], [[1.0, -3.0]]), np.exp(-2)))
    True
    """

    norm: float
    power: float | None = None
    lengthscale: Lengthscale = 1.0

    spectrum: ClassVar[Literal["radial", "product"]] = "product"
    metric: ClassVar[Literal["euclidean", "cityblock"] | None] = "cityblock"
    references: ClassVar[tuple[str, ...]] = ("beaglehole2025", "chambers1976", "kanter1975")

    def __post_init__(self) -> None:
        """Check the two exponents and the lengthscale."""
        norm = check_power("LpExponential", "norm", self.norm)
        power = norm if self.power is None else check_power("LpExponential", "power", self.power, norm)
        object.__setattr__(self, "norm", norm)
        object.__setattr__(self, "power", power)
        super().__post_init__()

    @classmethod
    def variants(cls) -> dict[str, LpExponential]:
        """Return the kernel of the L1 distance to the power 0.7, which xRFM's search often chooses."""
        return {"lp-exponential": cls(1.0, 0.7)}

    def sample_rows(self, d: int, m: int, rng: RNG) -> np.ndarray:
        """Draw m independent rows of d entries for unit lengthscale: a float64 array of shape (m, d)."""
        shape = (check_count("LpExponential", "m", m), check_count("LpExponential", "d", d))
        rng = as_generator(rng)
        z = symmetric_stable(self.norm, shape, rng)
        log_scale = log_positive_stable(self.power / self.norm, (shape[0], 1), rng) / self.norm  # type: ignore[operator]
        return np.asarray(np.clip(z * np.exp(np.minimum(log_scale, LOG_LARGEST_SQUARE / 2)), -1e30, 1e30))

    def sample_scales(self, shape: int | tuple[int, ...], rng: RNG) -> NoReturn:
        """Raise a ValueError, since the rows are not Gaussian vectors of random scale."""
        raise ValueError(
            "LpExponential: its rows have stable entries and are not Gaussian vectors of random scale; "
            "use sample_rows(d, m, rng)."
        )

    def entries(self, xp: Any, X: Any, Y: Any) -> Any:
        """Return the exponential of minus a power of the sums over columns, which are added one by one."""
        scale, total = xp.broadcast_to(scale_like(self.lengthscale, X), X.shape[-1:]), 0
        with np.errstate(over="ignore"):
            for i in range(X.shape[-1]):
                total = total + powers(xp, (X[..., :, None, i] - Y[..., None, :, i]) / scale[i], self.norm)
            return xp.exp(-raised(xp, total, self.power / self.norm))  # type: ignore[operator]


def powers(xp: Any, z: Any, p: float) -> Any:
    """|z| to the power p <= 2, with gradient zero at z = 0."""
    if p == 2:
        return z * z
    return xp.abs(z) if p == 1 else raised(xp, xp.abs(z), p)


def symmetric_stable(p: float, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    r"""Draw symmetric stable numbers of index p, :math:`\mathrm{E}\cos(tz) = e^{-|t|^p}`, by Chambers, Mallows and Stuck."""
    if p == 1:
        return rng.standard_cauchy(shape)
    v = math.pi * (rng.random(shape) - 0.5)
    e = np.maximum(rng.standard_exponential(shape), np.finfo(np.float64).tiny)
    with np.errstate(over="ignore", divide="ignore"):
        log_ratio = np.log(np.cos((1 - p) * v)) - np.log(e)
        log_size = np.log(np.abs(np.sin(p * v))) - np.log(np.cos(v)) / p + log_ratio * ((1 - p) / p)
        return np.asarray(np.sign(v) * np.exp(np.clip(log_size, None, LOG_LARGEST_SQUARE / 2)))
