"""Powers drawn from the Poisson law."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .._validation import check_positive
from .discrete import DiscreteMap, PowerFeatures
from .draws import Draws
from .features import Features
from .statistics import Data

_SMALLEST_RATE = 1e-8


@dataclass(frozen=True)
class Poisson(DiscreteMap):
    r"""Poisson features (PoisRF): products of powers of the coordinates, with Poisson exponents.

    Notes
    -----
    With :math:`w_l` independent Poisson of rate :math:`\lambda`,

    .. math:: f(x) = e^{\lambda d/2 - |x|^2/2} \prod_l x_l^{w_l} \lambda^{-w_l/2}

    is unbiased for the Gaussian kernel (times :math:`e^{|x|^2/2}` for softmax) (CRT Eq. 10, which prints :math:`x_i` for
    :math:`x_l`), with variance :math:`e^{\lambda d + \sum_l x_l^2y_l^2/\lambda - |x|^2 - |y|^2} - k^2` for one row.  The
    rate that minimises the mean log second moment over the data is
    :math:`\lambda^* = (\frac1d\sum_l E x_l^2\,E y_l^2)^{1/2}` (CRT Eq. 12).  Signs are kept apart, powers are sums of
    logarithms, and :math:`0^0 = 1`.

    Parameters
    ----------
    positive : bool
        Whether to subtract from all points their coordinatewise minimum (and a margin), which changes no Gaussian kernel
        and makes every feature positive; unbiased even for points that later fall below it.
    rate : float, optional
        :math:`\lambda`; from the data without it.

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

    rate: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rate is not None:
            object.__setattr__(self, "rate", check_positive("Poisson", "rate", self.rate))

    @property
    def needs_data(self) -> bool:
        """For the rate, and for the shift."""
        return self.rate is None or self.positive

    @property
    def remedy_without_data(self) -> str:
        """A number for the rate."""
        return "call fit(X, Y) with data, or give a rate and positive=False"

    def parameter(self, data: Data | None, shift: np.ndarray, rng: np.random.Generator) -> float:
        """The rate."""
        if self.rate is not None:
            return self.rate
        assert data is not None
        # E (x - c)^2 from the moments of x
        x, y = (m.square - 2 * shift * m.mean + shift**2 for m in (data.queries, data.keys))
        return max(math.sqrt(float(np.mean(x * y))), _SMALLEST_RATE)

    def _features(self, draws: Draws, parameter: float, shift: np.ndarray, softmax: bool) -> Features:
        rate = parameter
        table = draws.stream("table").poisson(rate, (draws.m, draws.d))
        constants = np.full(draws.m, rate * draws.d / 2)
        return PowerFeatures(table, constants, 0.5 * math.log(rate), shift, softmax=softmax, positive=self.positive)
