"""Powers drawn from the geometric law."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .._validation import check_fraction
from .discrete import DiscreteMap, PowerFeatures
from .draws import Draws
from .features import Features
from .statistics import Data

_PAIRS, _PAIRS_AT_LEAST, _NUMBERS = 2000, 200, 400_000


@dataclass(frozen=True)
class Geometric(DiscreteMap):
    r"""Geometric features (GeomRF): products of powers of the coordinates, with geometric exponents.

    Notes
    -----
    With :math:`w_l` independent geometric on 0, 1, 2, ..., of success probability p,

    .. math:: f(x) = p^{-d/2} e^{-|x|^2/2} \prod_l x_l^{w_l} (1-p)^{-w_l/2} (w_l!)^{-1/2}

    is unbiased for the Gaussian kernel (times :math:`e^{|x|^2/2}` for softmax), with variance
    :math:`p^{-d} e^{-|x|^2-|y|^2} \prod_l I_0(2|x_ly_l|/\sqrt{1-p}) - k^2` for one row (CRT Eq. 13).

    The probability minimises the mean log second moment over a sample of pairs of the data, in one dimension.

    Deviations
    ----------
    CRT Eq. 14 puts averages of :math:`|x_l y_l|` into the variance of one pair; since :math:`\log I_0` is convex that
    underestimates, and p comes out too large for small inputs.

    Parameters
    ----------
    positive : bool
        Whether to subtract from all points their coordinatewise minimum (and a margin), which changes no Gaussian kernel
        and makes every feature positive; unbiased even for points that later fall below it.
    success : float, optional
        p, between 0 and 1; from the data without it.

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

    success: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.success is not None:
            object.__setattr__(self, "success", check_fraction("Geometric", "success", self.success))

    @property
    def needs_data(self) -> bool:
        """For the probability, and for the shift."""
        return self.success is None or self.positive

    @property
    def remedy_without_data(self) -> str:
        """A number for the probability."""
        return "call fit(X, Y) with data, or give a success probability and positive=False"

    def parameter(self, data: Data | None, shift: np.ndarray, rng: np.random.Generator) -> float:
        """The probability."""
        return self.success if self.success is not None else _probability(data, shift, rng)

    def _features(self, draws: Draws, parameter: float, shift: np.ndarray, softmax: bool) -> Features:
        from scipy.special import gammaln

        p = parameter
        table = draws.stream("table").geometric(p, (draws.m, draws.d)) - 1  # NumPy's geometric law starts at one
        constants = -draws.d / 2 * math.log(p) - 0.5 * gammaln(table + 1.0).sum(axis=1)
        return PowerFeatures(table, constants, 0.5 * math.log1p(-p), shift, softmax=softmax, positive=self.positive)


def _probability(data: Data | None, shift: np.ndarray, rng: np.random.Generator) -> float:
    """The p of least mean log second moment: convex in log(1 - p), so a bounded search finds it."""
    from scipy.optimize import minimize_scalar
    from scipy.special import ive

    assert data is not None
    X, Y = data.pairs(max(_PAIRS_AT_LEAST, min(_PAIRS, _NUMBERS // len(shift))), rng)
    products = 2 * np.abs((X - shift) * (Y - shift))

    def mean_log_second_moment(log_failure: float) -> float:
        z = products * math.exp(-log_failure / 2)
        log_bessel = np.log(ive(0, z)) + z
        return float(-X.shape[1] * math.log(-math.expm1(log_failure)) + log_bessel.sum(axis=1).mean())

    found = minimize_scalar(mean_log_second_moment, bounds=(math.log(1e-9), -1e-6), method="bounded")
    return float(-math.expm1(found.x))
