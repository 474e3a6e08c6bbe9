"""Positive features of least variance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .._validation import check_flag, check_fraction
from ..kernels import Kernel
from .base import Coupling
from .draws import Draws
from .exponential import ExponentialMap
from .features import Features
from .generalized_exponential import GeneralizedExponential
from .gerf_variance import A_of_rho, optimal_rho
from .statistics import Data

_PAIRS = 100_000


@dataclass(frozen=True)
class OptimalPositive(ExponentialMap):
    r"""OPRF, the features of FAVOR++: `GeneralizedExponential` with s = 1 and the real A of least variance.

    Notes
    -----
    The relative second moment of one projection is, with :math:`\rho = 1/(1-8A)` and V = :math:`|x + y|^2`,
    :math:`\log\mathrm{rel2} = d\log\frac{1+\rho}{2} - \frac d2\log\rho + \rho V`, and its minimiser

    .. math:: \rho^* = \frac{2d}{(2V + d) + \sqrt{(2V + d)^2 + 8dV}}, \qquad A = (1 - 1/\rho^*)/8 \le 0

    (CRT Theorem 3.3, in a form without cancellation).  V is the mean over all pairs of the data, in O(n d), which
    minimises the mean *logarithm* of the second moment exactly (CRT Eq. 8).  When norms vary much, the largest pairs
    dominate the mean variance, and an upper quantile of V is the better choice.  Since A < 0 the features are bounded.

    Parameters
    ----------
    quantile : float, optional
        Take this quantile of :math:`|x + y|^2` over (a sample of) the pairs in place of the mean.
    antithetic : bool
        Whether to use both of w and -w.

    References
    ----------
    crt (Theorem 3.3, Eq. 7 and 8).

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import Approximation, kernels, maps
    >>> X = np.random.default_rng(0).standard_normal((50, 3))
    >>> phi = Approximation(kernels.Softmax(), maps.OptimalPositive(), n_projections=8).fit(X, rng=0)
    >>> phi.positive, phi.symmetric
    (True, True)
    """

    quantile: float | None = None
    antithetic: bool = False
    always_positive: ClassVar[bool] = True
    references: ClassVar[tuple[str, ...]] = ("crt",)

    def __post_init__(self) -> None:
        if self.quantile is not None:
            object.__setattr__(self, "quantile", check_fraction("OptimalPositive", "quantile", self.quantile))
        check_flag("OptimalPositive", "antithetic", self.antithetic)

    @property
    def needs_data(self) -> bool:
        """For A."""
        return True

    @property
    def remedy_without_data(self) -> str:
        """A number for A."""
        return "call fit(X, Y) with data, or use GeneralizedExponential(A) with a number"

    @property
    def coupling(self) -> Coupling:
        """Simplex rows, unless reflections undo what they gain."""
        return "orthogonal" if self.antithetic else "simplex"

    def draw(self, draws: Draws, kernel: Kernel | None, data: Data | None) -> Features:
        """Choose A, then draw as the general map does."""
        assert data is not None
        return self.chosen(draws.dim, data, draws.stream("pairs")).draw(draws, kernel, None)

    def chosen(self, d: int, data: Data, rng: np.random.Generator) -> GeneralizedExponential:
        """The map with the best A for the data in d dimensions."""
        V = data.mean_square(1) if self.quantile is None else self._quantile(data, rng)
        return GeneralizedExponential(A_of_rho(optimal_rho(V, d)), 1, self.antithetic)

    def _quantile(self, data: Data, rng: np.random.Generator) -> float:
        assert self.quantile is not None
        X, Y = data.pairs(_PAIRS, rng)
        return float(np.quantile(((X + Y) ** 2).sum(axis=1), self.quantile))
