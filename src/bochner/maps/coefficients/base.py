"""What every coefficient is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...projections import Operator
from ..draws import Draws
from ..linear import transform
from ..statistics import Data


@dataclass(frozen=True, eq=False)
class DrawnCoefficient:
    r"""A random coefficient :math:`\hat\lambda = a + s\,\rho_1(x)\cdot\rho_2(y)` with its numbers drawn.

    Here :math:`\rho_1(x) = c\,g(\tau\cdot Lx)` and :math:`\rho_2(y) = c\,g(\tau\cdot Ry)`.

    Attributes
    ----------
    a : float
        The constant.
    s : int
        The sign of the product, 1 or -1.
    width : int
        Number of entries of rho.
    tau : Operator
        Independent Gaussian rows.
    nonlinearity : callable
        g.
    factor : float
        c.
    left, right : arrays
        L and R: numbers, diagonals or matrices.
    """

    a: float
    s: int
    width: int
    tau: Operator
    nonlinearity: Callable[[Any], Any]
    factor: float
    left: np.ndarray
    right: np.ndarray

    def features(self, X: Any, *, key: bool) -> Any:
        """Rho of queries or keys, (..., width)."""
        return self.factor * self.nonlinearity(self.tau.apply(transform(self.right if key else self.left, X)))


class Coefficient(ABC):
    """A law of random coefficients; a frozen value.

    The hybrid is unbiased whatever the coefficients, as long as they are drawn apart from the bases' projections.
    """

    @property
    def needs_data(self) -> bool:
        """Whether constants must be chosen from data."""
        return False

    @abstractmethod
    def draw(self, draws: Draws, data: Data | None) -> DrawnCoefficient:
        """Draw its numbers."""
