"""Common body of the maps that draw tables of integers in place of W."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .._arrays import array_namespace, has_values, like
from .._validation import check_flag
from ..kernels import Kernel, Softmax
from .base import Coupling
from .draws import Draws
from .exponential import ExponentialMap
from .features import Features, Scaled, squared_norms
from .statistics import Data

_MARGIN = 0.01
"""Distance of the shift below the data, in units of their root mean square: at zero the variance would degenerate."""


@dataclass(frozen=True)
class DiscreteMap(ExponentialMap):
    """Products of powers :math:`x_l^{w_l}` with random integers (CRT Section 3.3)."""

    positive: bool = False
    discrete: ClassVar[bool] = True
    references: ClassVar[tuple[str, ...]] = ("crt",)

    def __post_init__(self) -> None:
        check_flag(type(self).__name__, "positive", self.positive)

    @property
    def coupling(self) -> Coupling:
        """There is no W."""
        return "independent"

    def draw(self, draws: Draws, kernel: Kernel | None, data: Data | None) -> Features:
        """Shift if asked, choose the parameter at the shifted points, draw the table."""
        shift = self.shift(draws.d, data)
        parameter = self.parameter(data, shift, draws.stream("pairs"))
        return self._features(draws, parameter, shift, isinstance(kernel, Softmax))

    def shift(self, d: int, data: Data | None) -> np.ndarray:
        """What is subtracted from all points: a little less than their minimum, for positive features."""
        if not self.positive:
            return np.zeros(d)
        assert data is not None
        size = float(np.sqrt(np.mean([data.queries.square, data.keys.square])))
        lowest: np.ndarray = np.minimum(data.queries.minimum, data.keys.minimum)
        return lowest - _MARGIN * max(size, 1e-6)

    @abstractmethod
    def parameter(self, data: Data | None, shift: np.ndarray, rng: np.random.Generator) -> float:
        """The parameter of the law: as given, or the best for the shifted data."""

    @abstractmethod
    def _features(self, draws: Draws, parameter: float, shift: np.ndarray, softmax: bool) -> Features:
        """The features with the table drawn."""


class PowerFeatures(Features):
    r"""Features :math:`c_i \prod_l x_l^{w_{il}}\, e^{-|x|^2/2}`, in logarithms.

    Parameters
    ----------
    table : integer array (m, d)
    log_constants : array (m,)
        Logarithms of :math:`c_i`.
    log_scale : float
        Subtracted from :math:`\log|x_l|`.
    shift : array (d,)
        Subtracted from the data; the Gaussian kernel does not change by it.
    softmax : bool
        Whether to multiply by :math:`e^{|x|^2/2}` of the data before the shift.
    positive : bool
        Whether the shift lies below the data, so that no sign occurs.
    """

    def __init__(self, table: np.ndarray, log_constants: np.ndarray, log_scale: float, shift: np.ndarray, *,
                 softmax: bool, positive: bool) -> None:  # fmt: skip
        self.table = table.astype(np.float64)
        self.constant = log_constants - 0.5 * np.log(len(table)) - log_scale * self.table.sum(axis=1)
        self.shift, self.softmax = shift, softmax
        self.width, self.symmetric, self.positive = len(table), True, positive

    def scaled(self, X: Any, *, key: bool) -> Scaled:
        """Logarithms by one product with the table; the sign counts odd powers of negative entries, and 0^0 = 1."""
        xp = array_namespace(X)
        Z = X - like(self.shift, X) if self.shift.any() else X
        table = like(self.table, X).T
        zero = Z == 0
        logs = xp.log(xp.where(zero, xp.ones_like(Z), xp.abs(Z)))
        logarithm = xp.matmul(logs, table) + like(self.constant, X) - squared_norms(Z) / 2
        if self.softmax:
            logarithm = logarithm + squared_norms(X) / 2
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
