"""Discrete features: products of powers of the coordinates, with random integers in place of W."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from .. import theory
from .._arrays import array_namespace, has_values, like
from .._validation import check_flag, check_fraction, check_positive, shown
from ..kernels import Kernel, Softmax
from ..projections import Projection
from ._data import Data
from ._drawing import Draws
from ._error import ErrorCase
from ._exponential import ExponentialMap
from ._features import Features, Scaled, as_tuple, squared_norms
from ._map import Coupling, Layout, Map

_MARGIN = 0.01
"""Distance of the shift below the data, in units of their root mean square; at zero the variance would degenerate."""
_SMALLEST_RATE = 1e-8  # a rate of zero has no features at all, and would divide by zero
_PAIRS, _PAIRS_AT_LEAST, _NUMBERS = 2000, 200, 400_000
"""Pairs of points from which the probability is chosen: largest and smallest number, and their total size."""


class DiscreteMap(ExponentialMap):
    """Products of powers :math:`x_l^{w_l}` with random integers (CRT Section 3.3): the body of its two dataclasses."""

    positive: bool
    shift: tuple[float, ...] | None
    parameter_name: ClassVar[str]
    family: ClassVar[str] = "powers"
    uses_rows: ClassVar[bool] = False
    references: ClassVar[tuple[str, ...]] = ("crt",)

    def __post_init__(self) -> None:
        check_flag(type(self).__name__, "positive", self.positive)
        if self.shift is not None:
            if not self.positive:
                raise ValueError(f"{type(self).__name__}: shift needs positive=True.")
            object.__setattr__(self, "shift", _numbers(type(self).__name__, self.shift))

    @classmethod
    def variants(cls) -> dict[str, Any]:
        """Return signed and positive features."""
        return {cls.name: cls(), f"{cls.name}+": cls(positive=True)} if cls.name else {}  # type: ignore[call-arg]

    @property
    def parameter(self) -> Any:
        """The parameter of the law, or None if it is not chosen yet."""
        value: Any = getattr(self, self.parameter_name)
        return value

    @property
    def planned(self) -> bool:
        return self.parameter is not None and (not self.positive or self.shift is not None)

    @property
    def coupling(self) -> Coupling:
        return "independent"

    def unbiased(self, projection: Projection) -> bool:
        return True

    def layout(self, projection: Projection) -> Layout:
        return Layout(1, 0, True, self.positive)

    def plan(self, data: Data, projection: Projection, kernel: Kernel | None, rng: np.random.Generator, m: int) -> Map:
        """Return the map with a shift slightly below the data, and the best parameter at the shifted points."""
        shift = self.shift
        if self.positive and shift is None:
            size = float(np.sqrt(np.mean([data.queries.square, data.keys.square])))
            lowest = np.minimum(data.queries.minimum, data.keys.minimum)
            shift = tuple((lowest - _MARGIN * max(size, 1e-6)).tolist())
        parameter = self.parameter
        if parameter is None:
            parameter = self._best(data, np.zeros(data.d) if shift is None else np.array(shift), rng)
        return replace(self, shift=shift, **{self.parameter_name: parameter})  # type: ignore[type-var]

    @abstractmethod
    def _best(self, data: Data, shift: np.ndarray, rng: np.random.Generator) -> Any:
        """The parameter of least mean log second moment."""

    @abstractmethod
    def _table(self, rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
        """Random integers."""

    @abstractmethod
    def _constants(self, table: np.ndarray) -> tuple[np.ndarray, float | np.ndarray]:
        """Logarithms of the factors of the features, and what is subtracted from the logarithms of coordinates."""

    def draw(self, draws: Draws, kernel: Kernel | None) -> Features:
        if self.shift is not None and len(self.shift) != draws.d:
            raise ValueError(
                f"{type(self).__name__}: shift has {len(self.shift)} entries, the data has {draws.d} columns."
            )
        shape = (draws.m, draws.d)
        table = draws.table("table", shape, lambda rng: self._table(rng, shape)).astype(np.float64)
        shift = np.zeros(draws.d) if self.shift is None else np.array(self.shift)
        return PowerFeatures(
            table, *self._constants(table), shift, softmax=isinstance(kernel, Softmax), positive=self.positive
        )

    def _shifted(self, case: ErrorCase) -> tuple[np.ndarray, np.ndarray]:
        shift = 0.0 if self.shift is None else np.array(self.shift)
        return case.X[:, None, :] - shift, case.Y[None] - shift


class PowerFeatures(Features):
    r"""Features :math:`c_i \prod_l x_l^{w_{il}}\, e^{-|x|^2/2}`, in logarithms.

    Parameters
    ----------
    table : integer array (m, d)
    log_constants : array (m,)
        Logarithms of :math:`c_i`.
    log_scale : float or array (d,)
        Subtracted from :math:`\log|x_l|`.
    shift : array (d,)
        Subtracted from the data; the Gaussian kernel does not change by it.
    softmax : bool
        Whether to multiply by :math:`e^{|x|^2/2}` of the data before the shift.
    positive : bool
        Whether the shift lies below the data, so that no sign occurs.
    """

    def __init__(
        self,
        table: np.ndarray,
        log_constants: np.ndarray,
        log_scale: float | np.ndarray,
        shift: np.ndarray,
        *,
        softmax: bool,
        positive: bool,
    ) -> None:
        self.table = table
        self.constant = log_constants - 0.5 * np.log(len(table)) - (log_scale * self.table).sum(axis=1)
        self.shift, self.softmax = shift, softmax
        self.width, self.symmetric, self.positive = len(table), True, positive

    def scaled(self, X: Any, *, key: bool) -> Scaled:
        """Logarithms by one product with the table; the sign counts odd powers of negative entries, and 0^0 = 1."""
        xp = array_namespace(X)
        Z = X - like(self.shift, X) if self.shift.any() else X
        table = like(self.table, X).T
        zero = Z == 0
        logs = xp.log(xp.where(zero, xp.ones_like(Z), xp.abs(Z)))
        logarithm = xp.matmul(logs, table) + like(self.constant, X)
        if not self.softmax:
            logarithm = logarithm - squared_norms(Z) / 2
        elif self.shift.any():  # (|x|^2 - |z|^2)/2, in which large norms would cancel
            logarithm = logarithm + xp.sum((X - like(self.shift / 2, X)) * like(self.shift, X), axis=-1, keepdims=True)
        if self.positive and has_values(Z) and bool(xp.all(Z > 0)):
            return None, logarithm
        return self._mantissa(xp, Z, zero, table), logarithm

    @staticmethod
    def _mantissa(xp: Any, Z: Any, zero: Any, table: Any) -> Any:
        """Signs, times the powers of the entries that are zero: 1, the entry itself (which has a gradient), or 0."""
        none = xp.zeros_like(Z)
        odd = xp.matmul(xp.where(Z < 0, xp.ones_like(Z), none), table) % 2
        power = xp.matmul(xp.where(zero, xp.ones_like(Z), none), table)
        linear = xp.matmul(xp.where(zero, Z, none), table)
        vanishing = xp.where(power == 1, linear, xp.zeros_like(odd))
        return (1 - 2 * odd) * xp.where(power == 0, xp.ones_like(odd), vanishing)


def _numbers(owner: str, values: Any, name: str = "shift") -> tuple[float, ...]:
    if not isinstance(values, Sequence | np.ndarray) or isinstance(values, str):
        raise TypeError(f"{owner}: {name} must be a sequence of numbers, one for each column, got {shown(values)}.")
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"{owner}: {name} must be a sequence of numbers, one for each column, got {shown(values)}."
        ) from None
    if numbers.ndim != 1 or not np.isfinite(numbers).all():
        raise ValueError(f"{owner}: {name} must be finite numbers, one for each column, got {shown(values)}.")
    return tuple(numbers.tolist())


@dataclass(frozen=True)
class Poisson(DiscreteMap):
    r"""Poisson features (PoisRF): products of powers of the coordinates, with Poisson exponents.

    Use it for sparse or non-negative data of moderate dimension.

    Parameters
    ----------
    positive : bool
        Whether to shift all points by slightly more than their coordinatewise minimum, which does not change the
        Gaussian kernel and makes every feature positive.  The estimate stays unbiased for new points that fall below
        it.
    rate : float or sequence of float, optional
        The rate :math:`\lambda` of all coordinates, or one for each; chosen from the data by default.
    shift : sequence of float, optional
        The point that is subtracted from all points, only with ``positive``; chosen from the data by default.
    separate : bool
        Whether each coordinate has its own rate, where it is chosen from the data.

    See Also
    --------
    Discrete : Any law of the exponents.

    Notes
    -----
    With :math:`w_l` independent Poisson of rates :math:`\lambda_l`,

    .. math:: f(x) = e^{\sum_l\lambda_l/2 - |x|^2/2} \prod_l x_l^{w_l} \lambda_l^{-w_l/2}

    is unbiased for the Gaussian kernel (times :math:`e^{|x|^2/2}` for softmax) (CRT Eq. 10, which has :math:`x_i`
    for :math:`x_l`), with variance :math:`e^{\sum_l[\lambda_l + x_l^2y_l^2/\lambda_l] - |x|^2 - |y|^2} - k^2` for one row.
    The common rate that minimises the mean log second moment over the data is
    :math:`\lambda^* = (\frac1d\sum_l E x_l^2\,E y_l^2)^{1/2}` (CRT Eq. 12), and separate ones are
    :math:`\lambda_l^* = (E x_l^2\,E y_l^2)^{1/2}`: a contribution of this library, with the smallest variance of all laws
    for a single pair of points.  Signs are kept apart, powers are sums of logarithms, and :math:`0^0 = 1`.

    References
    ----------
    crt (Eq. 9-12).

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import Approximation, kernels, maps
    >>> X = np.random.default_rng(0).standard_normal((20, 3)) / 2
    >>> phi = Approximation(kernels.Gaussian(), maps.Poisson(positive=True), n_projections=8).fit(X, rng=0)
    >>> bool((phi.queries(X) > 0).all())
    True
    """

    positive: bool = False
    rate: float | tuple[float, ...] | None = None
    shift: tuple[float, ...] | None = None
    separate: bool = False
    name: ClassVar[str] = "poisson"
    formula: ClassVar[str] = r"\prod_k x_k^{n_{ik}}/\sqrt{n_{ik}!\,p(n_{ik})}"
    cost: ClassVar[str] = r"O(d)"
    parameter_name: ClassVar[str] = "rate"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_flag("Poisson", "separate", self.separate)
        if self.rate is None:
            return
        if isinstance(self.rate, Sequence | np.ndarray):
            rates = _numbers("Poisson", self.rate, "rate")
            if not (np.array(rates) > 0).all():
                raise ValueError(f"Poisson: rate must be positive numbers, got {shown(self.rate)}.")
            object.__setattr__(self, "rate", rates)
            object.__setattr__(self, "separate", True)
        else:
            object.__setattr__(self, "rate", check_positive("Poisson", "rate", self.rate))

    @property
    def remedy_without_data(self) -> str:
        return "call fit(X, Y) with data, or give a rate and positive=False"

    def _best(self, data: Data, shift: np.ndarray, rng: np.random.Generator) -> float | tuple[float, ...]:
        # E (x - c)^2 from the moments of x
        x, y = (np.maximum(m.square - 2 * shift * m.mean + shift**2, 0) for m in (data.queries, data.keys))
        rates = theory.optimal_poisson_rate(x, y, separate=self.separate)
        best: float | tuple[float, ...] = as_tuple(np.maximum(rates, _SMALLEST_RATE))
        return best

    def _table(self, rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
        return rng.poisson(self._rates(shape[1]), shape)

    def _constants(self, table: np.ndarray) -> tuple[np.ndarray, float | np.ndarray]:
        rates = self._rates(table.shape[1])
        return np.full(len(table), rates.sum() / 2), 0.5 * np.log(rates)

    def _rates(self, d: int) -> np.ndarray:
        """One rate for each coordinate."""
        assert self.rate is not None  # planned
        rates = np.asarray(self.rate)
        if rates.shape not in ((), (d,)):
            raise ValueError(f"Poisson: rate has {len(rates)} entries, the data has {d} columns.")
        return np.broadcast_to(rates, d)

    def mse(self, case: ErrorCase) -> np.ndarray:
        """Error of CRT Eq. 11."""
        rates, (X, Y) = self._rates(case.d), self._shifted(case)
        return case.absolute(theory.poisson_log_relative_mse(X, Y, rates, case.m, separate=True))


@dataclass(frozen=True)
class Geometric(DiscreteMap):
    r"""Geometric features (GeomRF): products of powers of the coordinates, with geometric exponents.

    Use it for sparse or non-negative data with many small entries.

    Parameters
    ----------
    positive : bool
        Whether to shift all points by slightly more than their coordinatewise minimum, which does not change the
        Gaussian kernel and makes every feature positive.  The estimate stays unbiased for new points that fall below
        it.
    success : float, optional
        The success probability p, between 0 and 1; chosen from the data by default.
    shift : sequence of float, optional
        The point that is subtracted from all points, only with ``positive``; chosen from the data by default.

    Notes
    -----
    With :math:`w_l` independent geometric on 0, 1, 2, ..., of success probability p,

    .. math:: f(x) = p^{-d/2} e^{-|x|^2/2} \prod_l x_l^{w_l} (1-p)^{-w_l/2} (w_l!)^{-1/2}

    is unbiased for the Gaussian kernel (times :math:`e^{|x|^2/2}` for softmax), with variance
    :math:`p^{-d} e^{-|x|^2-|y|^2} \prod_l I_0(2|x_ly_l|/\sqrt{1-p}) - k^2` for one row (CRT Eq. 13).

    The probability minimises the mean log second moment over a sample of pairs of the data, in one dimension.

    Deviations
    ----------
    CRT Eq. 14 puts averages of :math:`|x_l y_l|` into the variance of a single pair.  Since :math:`\log I_0` is convex,
    this underestimates the variance and gives too large a p for small inputs.

    References
    ----------
    crt (Eq. 13 and 14).

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import Approximation, kernels, maps
    >>> X = np.random.default_rng(0).standard_normal((20, 3)) / 2
    >>> phi = Approximation(kernels.Softmax(), maps.Geometric(), n_projections=8).fit(X, rng=0)
    >>> phi.n_features_out, phi.positive
    (8, False)
    """

    positive: bool = False
    success: float | None = None
    shift: tuple[float, ...] | None = None
    name: ClassVar[str] = "geometric"
    formula: ClassVar[str] = r"\prod_k x_k^{n_{ik}}/\sqrt{n_{ik}!\,p(n_{ik})}"
    cost: ClassVar[str] = r"O(d)"
    parameter_name: ClassVar[str] = "success"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.success is not None:
            object.__setattr__(self, "success", check_fraction("Geometric", "success", self.success))

    @property
    def remedy_without_data(self) -> str:
        return "call fit(X, Y) with data, or give a success probability and positive=False"

    def _best(self, data: Data, shift: np.ndarray, rng: np.random.Generator) -> float:
        X, Y = data.pairs(max(_PAIRS_AT_LEAST, min(_PAIRS, _NUMBERS // len(shift))), rng)
        return float(np.clip(theory.optimal_geometric_p(X - shift, Y - shift), 1e-6, 1 - 1e-9))

    def _table(self, rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
        assert self.success is not None  # planned
        return rng.geometric(self.success, shape) - 1  # NumPy's geometric law starts at one

    def _constants(self, table: np.ndarray) -> tuple[np.ndarray, float]:
        from scipy.special import gammaln

        assert self.success is not None  # planned
        constants = -table.shape[1] / 2 * math.log(self.success) - 0.5 * gammaln(table + 1.0).sum(axis=1)
        return constants, 0.5 * math.log1p(-self.success)

    def mse(self, case: ErrorCase) -> np.ndarray:
        """Error of CRT Eq. 13."""
        return case.absolute(theory.geometric_log_relative_mse(*self._shifted(case), self.success, case.m))
