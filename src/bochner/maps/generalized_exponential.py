"""Generalised exponential features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .._validation import check_flag, check_option
from ..kernels import Kernel
from .base import Coupling
from .draws import Draws
from .exponential import ExponentialFeatures, ExponentialMap, check_A, norm_coefficient
from .features import Features
from .gerf_variance import minimise
from .nodes import Nodes
from .statistics import Data


@dataclass(frozen=True)
class GeneralizedExponential(ExponentialMap):
    r"""GERF: exponentials of quadratics in the projection, with one complex parameter and a sign.

    Notes
    -----
    .. math::

        f_1 = D e^{A|w|^2 + B\,w\cdot x - \frac{s+1}{2}|x|^2}, \quad f_2 = D e^{A|w|^2 + sB\,w\cdot y -
        \frac{s+1}{2}|y|^2}, \qquad B = \sqrt{s(1-4A)}, \quad D = (1-4A)^{d/4}

    for the Gaussian kernel (times :math:`e^{|x|^2/2}` for softmax); the estimate is the mean of
    :math:`\mathrm{Re} f_1 f_2` (CRT Theorem 3.1).  A = 0 gives `Positive` (s = 1) and `Trigonometric` (s = -1).  Real A:
    m features for s = 1, cosines and sines for s = -1, symmetric.  Complex A: real pairs of twice the width, not
    symmetric.  Unbiased for Re A < 1/4; the variance (CRT Theorem 3.2) is finite for Re A < 1/8.

    ``A="optimal"`` minimises that variance numerically over complex A, and over both signs unless s is given, at the
    mean of :math:`|x + s y|^2` over the data (`bochner.maps.gerf_variance`).

    With padded dimensions d is the padded one, and \|w\| the length there.

    Parameters
    ----------
    A : complex or "optimal"
        The parameter.
    s : {1, -1, None}
        The sign; None means 1, or with ``A="optimal"`` whichever is better.
    antithetic : bool
        Whether to use both of w and -w.

    References
    ----------
    crt (Theorems 3.1 and 3.2).

    Examples
    --------
    >>> from bochner import Approximation, kernels, maps
    >>> spec = Approximation(kernels.Gaussian(), maps.GeneralizedExponential(-0.1 + 0.05j, 1), n_projections=8)
    >>> phi = spec.draw(3, rng=0)
    >>> phi.n_features_out, phi.symmetric
    (16, False)
    """

    A: complex | str
    s: int | None = None
    antithetic: bool = False
    references: ClassVar[tuple[str, ...]] = ("crt",)

    def __post_init__(self) -> None:
        if isinstance(self.A, str):
            check_option("GeneralizedExponential", "A", self.A, ("optimal",))
        else:
            A = check_A("GeneralizedExponential", self.A)
            object.__setattr__(self, "A", A if A.imag else A.real)
        check_option("GeneralizedExponential", "s", self.s, (1, -1, None))
        check_flag("GeneralizedExponential", "antithetic", self.antithetic)

    @property
    def needs_data(self) -> bool:
        """For the optimal parameter."""
        return self.A == "optimal"

    @property
    def remedy_without_data(self) -> str:
        """A number for A."""
        return "call fit(X, Y) with data, or give A as a number"

    @property
    def coupling(self) -> Coupling:
        """Simplex rows for positive features, orthogonal ones otherwise."""
        return "simplex" if self.positive and not self.antithetic else "orthogonal"

    @property
    def symmetric(self) -> bool:
        """For real A."""
        return not isinstance(self.A, str | complex)

    @property
    def positive(self) -> bool:
        """For real A and s = 1."""
        return self.symmetric and self.s in (1, None)

    def draw(self, draws: Draws, kernel: Kernel | None, data: Data | None) -> Features:
        """Choose A and s if need be; cosines (real A, s = -1) need no reflection."""
        operator = draws.operator()
        A, s = self.constants(operator.dim, data)
        even = s == -1 and not complex(A).imag
        nodes = Nodes(operator, reflect=self.antithetic or (operator.reflected and not even))
        return ExponentialFeatures(nodes, A, s, norm_coefficient(kernel, -(s + 1) / 2))

    def constants(self, d: int, data: Data | None) -> tuple[complex, int]:
        """A and s: as given, or the best for the data in d dimensions."""
        if not isinstance(self.A, str):
            return self.A, self.s or 1
        assert data is not None
        signs = (1, -1) if self.s is None else (self.s,)
        found = {s: minimise(data.mean_square(s), s, d) for s in signs}
        best = min(signs, key=lambda s: found[s][0])
        return found[best][1], best
