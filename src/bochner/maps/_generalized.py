"""Generalised exponential features, and the positive ones of least variance among them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from .. import theory
from .._validation import check_flag, check_fraction, check_option
from ..kernels import Kernel
from ..projections import Projection
from ._classical import Trigonometric
from ._data import Data
from ._drawing import Draws, Nodes
from ._error import ErrorCase, NoClosedForm
from ._exponential import ExponentialFeatures, ExponentialMap, check_A, exponential_layout, is_real, norm_coefficient
from ._features import Features
from ._map import Coupling, Layout, Map, unplanned

_PAIRS = 100_000  # pairs of queries and keys: moments are known to .3 per cent


@dataclass(frozen=True)
class GeneralizedExponential(ExponentialMap):
    r"""Generalised exponential features (GERF), with one complex parameter and a sign.

    This family contains `Trigonometric`, `Positive` and `OptimalPositive`.  With ``A="optimal"`` the parameter is
    chosen from the data.
    Use it to study the family, or with a constant of your own; `OptimalPositive` is its best positive member.

    Parameters
    ----------
    A : complex or "optimal"
        The parameter.
    s : {1, -1, None}
        The sign; None means 1, or the better one with ``A="optimal"``.
    antithetic : bool
        Whether to use both w and -w.

    See Also
    --------
    OptimalPositive : The best real A for s = 1, in closed form.

    Notes
    -----
    .. math::

        f_1 = D e^{A|w|^2 + B\,w\cdot x - \frac{s+1}{2}|x|^2}, \quad f_2 = D e^{A|w|^2 + sB\,w\cdot y -
        \frac{s+1}{2}|y|^2}, \qquad B = \sqrt{s(1-4A)}, \quad D = (1-4A)^{d/4}

    for the Gaussian kernel (times :math:`e^{|x|^2/2}` for softmax); the estimate is the mean of
    :math:`\mathrm{Re} f_1 f_2` (CRT Theorem 3.1).  A = 0 gives `Positive` (s = 1) and `Trigonometric` (s = -1).  Real
    A: m features for s = 1, cosines and sines for s = -1, symmetric.  Complex A: real pairs of twice the width, not
    symmetric.  Unbiased for Re A < 1/4; the variance (CRT Theorem 3.2) is finite for Re A < 1/8.

    ``A="optimal"`` minimises that variance numerically over complex A, and over both signs unless s is given, at the
    mean of :math:`|x + s y|^2` over the data (`bochner.extending.optimal_gerf`).

    With padded dimensions d is the padded one, and \|w\| the length there.

    References
    ----------
    crt (Theorems 3.1 and 3.2).

    Examples
    --------
    >>> from bochner import Approximation, kernels, maps
    >>> spec = Approximation(kernels.Gaussian(), maps.GeneralizedExponential(-0.1 + 0.05j, 1), n_projections=8)
    >>> spec.n_features_out, spec.symmetric
    (16, False)
    """

    A: complex | str
    s: int | None = None
    antithetic: bool = False
    formula: ClassVar[str] = r"D\,e^{A|w_i|^2 + B\,w_i\cdot x + C|x|^2}"
    references: ClassVar[tuple[str, ...]] = ("crt",)

    def __post_init__(self) -> None:
        if isinstance(self.A, str):
            check_option("GeneralizedExponential", "A", self.A, ("optimal",))
        else:
            A = check_A("GeneralizedExponential", self.A)
            object.__setattr__(self, "A", A if A.imag else A.real)
        check_option("GeneralizedExponential", "s", self.s, (1, -1, None))
        check_flag("GeneralizedExponential", "antithetic", self.antithetic)

    @classmethod
    def variants(cls) -> dict[str, Any]:
        """Return the map whose constant is chosen from the data."""
        return {"generalized-exponential": cls("optimal")}

    @property
    def family(self) -> str:  # type: ignore[override]
        """Exponentials or cosines, by the constants; exponentials as long as they are not chosen."""
        return "exponentials" if isinstance(self.A, str) or is_real(self.A, self._sign) else Trigonometric.family

    def why(self, facts: Any) -> str:
        """Sentence of the family that the constants select."""
        return Trigonometric().why(facts) if self.family == Trigonometric.family else super().why(facts)

    @property
    def planned(self) -> bool:
        return not isinstance(self.A, str)

    @property
    def remedy_without_data(self) -> str:
        return "call fit(X, Y) with data, or give A as a number"

    @property
    def coupling(self) -> Coupling:
        """Simplex rows for positive features, orthogonal ones otherwise."""
        positive = not isinstance(self.A, str) and is_real(self.A, self._sign)
        return "simplex" if positive and not self.antithetic else "orthogonal"

    @property
    def _sign(self) -> int:
        return self.s or 1

    def plan(self, data: Data, projection: Projection, kernel: Kernel | None, rng: np.random.Generator, m: int) -> Map:
        """Return the map with the A and s of smallest variance at the mean of the data."""
        if not isinstance(self.A, str):
            return replace(self, s=self._sign)
        signs, d = (1, -1) if self.s is None else (self.s,), projection.padded(data.d)
        found = {s: theory.optimal_gerf(data.mean_square(s), s, d) for s in signs}
        best = min(signs, key=lambda s: found[s][0])
        return replace(self, A=found[best][1], s=best)

    def layout(self, projection: Projection) -> Layout:
        if isinstance(self.A, str):
            raise unplanned(self, "the width")
        return exponential_layout(self.A, self._sign, projection, reflect=self._reflects(projection.reflected))

    def _reflects(self, reflected: bool) -> bool:
        """Cosines (real A, s = -1) are even and need no reflection of a rule's rows."""
        even = self._sign == -1 and not complex(self.A).imag
        return self.antithetic or (reflected and not even)

    def draw(self, draws: Draws, kernel: Kernel | None) -> Features:
        operator, s = draws.operator(), self._sign
        nodes = Nodes(operator, reflect=self._reflects(operator.reflected))
        return ExponentialFeatures(nodes, complex(self.A), s, norm_coefficient(kernel, -(s + 1) / 2))

    def mse(self, case: ErrorCase) -> np.ndarray:
        """Error of CRT Theorem 3.2, and of Theorem 4.1 for coupled rows."""
        A, s = complex(self.A), self._sign
        antithetic = self.antithetic and not (s == -1 and not A.imag)  # cosines do not change by reflection
        if antithetic:
            if s != 1 or A.imag:
                raise NoClosedForm(f"no closed form is known for the error of {self!r}; leave antithetic out.")
            case.require_independent(self)
        if s == -1:
            return case.of_differences(A)
        V, m, d = case.pairs.plus, case.m, case.dim
        return case.absolute(theory.gerf_log_relative_mse(A, 1, V, m, d, case.coupling, antithetic=antithetic))


@dataclass(frozen=True)
class OptimalPositive(ExponentialMap):
    r"""Optimal positive features (OPRF), the features of FAVOR++: positive features of smallest variance for the data.

    The default for Nadaraya-Watson averages of the Gaussian kernel.  `Approximation.plan` chooses A from the data.
    Use it for attention and averages where a cost of O(d) per row matters more than the lowest error.

    Parameters
    ----------
    quantile : float, optional
        Quantile of :math:`|x + y|^2` over (a sample of) the pairs to use in place of the mean.
    antithetic : bool
        Whether to use both w and -w.
    A : float, optional
        The constant, at most zero; chosen from the data by default.

    See Also
    --------
    DenseExponential : A constant for each coordinate, in a frame fitted to the data.
    GeneralizedExponential : Any constant, also complex.

    Notes
    -----
    `GeneralizedExponential` with s = 1 and the real A of least variance.  The relative second moment of one projection
    is, with :math:`\rho = 1/(1-8A)` and V = :math:`|x + y|^2`,
    :math:`\log\mathrm{rel2} = d\log\frac{1+\rho}{2} - \frac d2\log\rho + \rho V`, and its minimiser

    .. math:: \rho^* = \frac{2d}{(2V + d) + \sqrt{(2V + d)^2 + 8dV}}, \qquad A = (1 - 1/\rho^*)/8 \le 0

    (CRT Theorem 3.3, in a form without cancellation).  V is the mean over all pairs of the data, in O(n d), which
    minimises the mean *logarithm* of the second moment exactly (CRT Eq. 8).  When norms vary much, the largest pairs
    dominate the mean variance, and an upper quantile of V is the better choice.  Since A < 0 the features are bounded.

    References
    ----------
    crt (Theorem 3.3, Eq. 7 and 8).

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import Approximation, kernels, maps
    >>> X = np.random.default_rng(0).standard_normal((50, 3))
    >>> plan = Approximation(kernels.Softmax(), maps.OptimalPositive(), n_projections=8).plan(X)
    >>> round(plan.map.A, 3), plan.positive, plan.symmetric
    (-0.571, True, True)
    """

    quantile: float | None = None
    antithetic: bool = False
    A: float | None = None
    name: ClassVar[str] = "optimal-positive"
    formula: ClassVar[str] = r"D\,e^{A|w_i|^2 + B\,w_i\cdot x + C|x|^2}"
    references: ClassVar[tuple[str, ...]] = ("crt",)

    def __post_init__(self) -> None:
        if self.quantile is not None:
            object.__setattr__(self, "quantile", check_fraction("OptimalPositive", "quantile", self.quantile))
        check_flag("OptimalPositive", "antithetic", self.antithetic)
        if self.A is not None:
            A = check_A("OptimalPositive", self.A)
            if A.imag:
                raise ValueError(
                    f"OptimalPositive: A must be real, got {self.A}; GeneralizedExponential takes complex ones."
                )
            object.__setattr__(self, "A", A.real)

    @property
    def planned(self) -> bool:
        return self.A is not None

    @property
    def remedy_without_data(self) -> str:
        return "call fit(X, Y) with data, or give A as a number"

    @property
    def coupling(self) -> Coupling:
        """Simplex rows, or orthogonal ones with antithetic pairs, which cancel the gain of the simplex."""
        return "orthogonal" if self.antithetic else "simplex"

    def plan(self, data: Data, projection: Projection, kernel: Kernel | None, rng: np.random.Generator, m: int) -> Map:
        """Return the map with the best A for the data, in the dimension of the rows."""
        if self.A is not None:
            return self
        V = data.mean_square(1)
        if self.quantile is not None:
            X, Y = data.pairs(_PAIRS, rng)
            V = float(np.quantile(((X + Y) ** 2).sum(axis=1), self.quantile))
        return replace(self, A=float(theory.optimal_A(V, projection.padded(data.d))))

    def layout(self, projection: Projection) -> Layout:
        return exponential_layout(0, 1, projection, reflect=self.antithetic or projection.reflected)

    def draw(self, draws: Draws, kernel: Kernel | None) -> Features:
        return self._general().draw(draws, kernel)

    def mse(self, case: ErrorCase) -> np.ndarray:
        return self._general().mse(case)

    def _general(self) -> GeneralizedExponential:
        assert self.A is not None  # planned
        return GeneralizedExponential(self.A, 1, self.antithetic)
