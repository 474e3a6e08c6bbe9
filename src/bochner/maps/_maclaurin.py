"""Features of power series of the dot product: exact monomials of low degrees, and sketches of the others."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from .. import theory
from .._arrays import array_namespace, like, pad_last
from .._validation import check_flag
from ..kernels import Kernel, PowerSeries
from ..projections import Operator, Projection
from ..projections._blocks import BlockProjection
from ..radii import Chi, Fixed
from ..rotations import Haar
from ._drawing import Draws
from ._error import ErrorCase, NoClosedForm
from ._features import Features, Scaled
from ._map import Coupling, Layout, Map

TYPICAL = 0.5  # cosine of the angle for which widths are divided among degrees; unit lengths


@dataclass(frozen=True)
class Maclaurin(Map):
    r"""Features of a power series of the dot product, degree by degree: exact monomials, then sketches.

    The default for polynomial kernels.  Low degrees, whose monomials fit in the width, are exact; the rest of the width is
    divided among the other degrees so that the error is smallest for unit vectors.
    Use it for polynomial kernels of dense rows.

    Parameters
    ----------
    exact : bool, default True
        Whether degrees may be exact.
    complex_to_real : bool, default True
        Whether rows of sketches are complex, and features their real and imaginary parts: half as many rows, whose variance
        is less than half for degrees above one.

    See Also
    --------
    TensorSketch : Faster on sparse rows of many columns.

    Notes
    -----
    For :math:`k(x, y) = \sum_n c_n (x\cdot y)^n` the features of degree n are the monomials
    :math:`\sqrt{c_n\,n!/(\alpha_1!\cdots\alpha_d!)}\;x^\alpha`, :math:`|\alpha| = n`, or
    :math:`\sqrt{c_n/r}\,\prod_{j\le n} w_{ij}\cdot x` for r rows of n independent matrices, complex ones
    :math:`w = (a + ib)/\sqrt2`.  Rows need :math:`\mathrm{E}\,ww^T = I` only, and may be orthogonal, with fast rotations or
    not.  Every degree has features of its own, in place of the random degrees of random Maclaurin features (kar2012), whose
    variance it removes.  Degrees are independent, so the variance is the sum over n of :math:`c_n^2` times
    `theory.product_sketch_variance`.  Columns that are left over are zero.  With
    fewer features than degrees, degrees are random after all, and the estimate stays unbiased.

    References
    ----------
    kar2012, wacker2024 (complex-to-real sketches, Section 4), hamid2014.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import Approximation, kernels, maps
    >>> X = np.random.default_rng(0).standard_normal((5, 3))
    >>> spec = Approximation(kernels.Polynomial(2), maps.Maclaurin(), n_projections=10)
    >>> bool(np.allclose(spec.draw(3, rng=0).gram(X), spec.kernel(X)))            # ten monomials: all of them
    True
    """

    exact: bool = True
    complex_to_real: bool = True
    name: ClassVar[str] = "maclaurin"
    family: ClassVar[str] = "polynomials"
    requirement: ClassVar[str] = "a polynomial kernel or another power series of the dot product"
    formula: ClassVar[str] = r"\sqrt{c_n}\,x^\alpha,\; \sqrt{c_n}\prod_{j\le n} w_{ij}\cdot x"
    cost: ClassVar[str] = r"O(nd)\text{ in degree }n\text{, or }O(n\log d)"
    references: ClassVar[tuple[str, ...]] = ("kar2012", "wacker2024", "hamid2014")

    def __post_init__(self) -> None:
        check_flag("Maclaurin", "exact", self.exact)
        check_flag("Maclaurin", "complex_to_real", self.complex_to_real)

    @classmethod
    def variants(cls) -> dict[str, Maclaurin]:
        """Return the default, and sketches of all degrees."""
        return {"maclaurin": cls(), "maclaurin-sketch": cls(exact=False), "maclaurin-real": cls(False, False)}

    @classmethod
    def default_for(cls, kernel: Kernel) -> Map | None:
        return cls() if isinstance(kernel, PowerSeries) else None

    def serves(self, kernel: Kernel | None) -> bool:
        return isinstance(kernel, PowerSeries)

    @property
    def coupling(self) -> Coupling:
        """Orthogonal directions with fixed lengths, which have no radial noise."""
        return "directions"

    def unbiased(self, projection: Projection) -> bool:
        """Whether directions are uniform: lengths are not used, and all that products need are second moments."""
        return projection.uniform_directions

    def worth_trying(self, projection: Projection) -> bool:
        return projection.uniform_directions and not projection.has_origin

    def layout(self, projection: Projection) -> Layout:
        return Layout(per_row=1, extra=0, symmetric=True, positive=False)

    def draw(self, draws: Draws, kernel: Kernel | None) -> Features:
        assert isinstance(kernel, PowerSeries)
        c = kernel.series
        if draws.m < _n_terms(kernel):
            return PolynomialFeatures(self._random_degrees(draws, kernel), draws.m)
        parts: list[_Monomials | _Products] = []
        for share in self.shares(kernel, draws.d, draws.m):
            weight = math.sqrt(c[share.degree])
            if share.exact:
                parts.append(_Monomials(draws.d, share.degree, weight))
            else:
                parts.append(_Products(draws.apart(f"degree {share.degree}"), share, weight))
        return PolynomialFeatures(parts, draws.m)

    @staticmethod
    def _random_degrees(draws: Draws, kernel: PowerSeries) -> list[_Monomials | _Products]:
        """Features of random degrees, as kar2012 has them, where there are fewer features than degrees."""
        q = _probabilities(kernel)
        degrees = draws.table("degrees", (draws.m,), lambda rng: rng.choice(len(q), draws.m, p=q).astype(np.float64))
        parts: list[_Monomials | _Products] = []
        for i, n in enumerate(degrees.astype(int)):
            weight = math.sqrt(kernel.series[n] / (draws.m * q[n]))
            own = draws.apart(f"feature {i}")
            parts.append(_Products(own, Share(n, 1, False), weight) if n else _Monomials(draws.d, 0, weight))
        return parts

    def shares(self, kernel: PowerSeries, d: int, m: int) -> list[Share]:
        """Divide m features among the degrees of the kernel, for data of d columns."""
        c = {n: value for n, value in enumerate(kernel.series) if value > 0}
        found = [self._divided(c, d, m, n_exact) for n_exact in range(int(0 in c), len(c) + 1)]
        return min(found, key=lambda divided: divided[0])[1]

    def _divided(self, c: dict[int, float], d: int, m: int, n_exact: int) -> tuple[float, list[Share]]:
        """The typical squared error with the first degrees exact, and the shares."""
        degrees = sorted(c)
        exact, rest = degrees[:n_exact], degrees[n_exact:]
        if not self.exact and exact not in ([], [0]):  # a constant is always exact
            return math.inf, []
        shares = [Share(n, math.comb(d + n - 1, n), True) for n in exact]
        left = m - sum(share.width for share in shares)
        if left < len(rest):
            return math.inf, []
        spread = {n: c[n] * math.sqrt(((1 + TYPICAL**2) ** n + (2 * TYPICAL**2) ** n) / 2) for n in rest}
        widths = _rounded(spread, left)
        error = sum(spread[n] ** 2 / (widths[n] / 2) for n in rest)
        return error, [*shares, *(Share(n, widths[n], False, self.complex_to_real and widths[n] > 1) for n in rest)]

    def mse(self, case: ErrorCase) -> np.ndarray:
        """Error with independent rows, and with Haar blocks of Gaussian or fixed lengths."""
        rows, kernel = case.projection, case.kernel
        orthogonal = isinstance(rows, BlockProjection) and rows.geometry.axes and isinstance(rows.rotation, Haar)
        lengths = {Chi: "gaussian", Fixed: "fixed"}.get(type(rows.radial_law)) if orthogonal else "gaussian"  # type: ignore[attr-defined]
        if not (orthogonal and lengths) and rows.coupling != "iid":
            raise NoClosedForm(
                f"no closed form is known for the error of {self!r} with {rows!r}; the nearest that has one is "
                f"Orthogonal(Haar())."
            )

        def variance(degree: int, n_rows: int, complex_rows: bool = False) -> np.ndarray:
            return theory.product_sketch_variance(
                case.X[:, None],
                case.Y[None],
                degree,
                n_rows,
                d=case.d,
                block=case.d if orthogonal else 1,
                lengths=lengths,  # type: ignore[arg-type]
                complex_rows=complex_rows,
            )

        c, t = kernel.series, case.X @ case.Y.T
        if case.m < _n_terms(kernel):
            q = _probabilities(kernel)
            squares = [
                c[n] ** 2 / q[n] * ((variance(n, 1) if n else 0.0) + t ** (2 * n)) for n in range(len(c)) if c[n] > 0
            ]
            k = sum(c[n] * t**n for n in range(len(c)))
            return np.asarray((sum(squares) - k**2) / case.m)
        total = np.zeros_like(t)
        for share in self.shares(kernel, case.d, case.m):
            if not share.exact:
                total += c[share.degree] ** 2 * variance(share.degree, share.rows, share.complex_rows)
        return np.asarray(total)


class Share(NamedTuple):
    """The part of the width that one degree has."""

    degree: int
    width: int
    exact: bool
    complex_rows: bool = False

    @property
    def rows(self) -> int:
        """Rows of its matrices."""
        return self.width // 2 if self.complex_rows else self.width


class _Monomials:
    """All monomials of one degree, with the weights of the multinomial theorem."""

    def __init__(self, d: int, degree: int, weight: float) -> None:
        self.degree, self.width = degree, math.comb(d + degree - 1, degree)
        self.columns = np.array(list(itertools.combinations_with_replacement(range(d), degree)), dtype=np.int64)
        repeats = [math.prod(math.factorial(len(list(g))) for _, g in itertools.groupby(row)) for row in self.columns]
        self.weights = weight * np.sqrt(math.factorial(degree) / np.array(repeats, dtype=np.float64))

    def __call__(self, xp: Any, X: Any) -> Any:
        weights = like(self.weights, X)
        if not self.degree:
            return xp.zeros_like(X[..., :1]) + weights
        values = X[..., self.columns[:, 0]] * weights
        for j in range(1, self.degree):
            values = values * X[..., self.columns[:, j]]
        return values


class _Products:
    """Products of random projections, real, or complex as all real parts, then all imaginary ones."""

    def __init__(self, draws: Draws, share: Share, weight: float) -> None:
        names = ("real", "imaginary") if share.complex_rows else ("real",)
        self.factors = [
            [draws.operator(f"factor {j}, {name}", share.rows) for name in names] for j in range(share.degree)
        ]
        self.weight = weight / math.sqrt(share.rows) / len(names) ** (share.degree / 2)
        self.width = share.rows * len(names)

    def __call__(self, xp: Any, X: Any) -> Any:
        real, *imaginary = (_projected(part, X) for part in self.factors[0])
        if not imaginary:
            for (part,) in self.factors[1:]:
                real = real * _projected(part, X)
            return real * self.weight
        turned = imaginary[0]
        for factor in self.factors[1:]:
            a, b = (_projected(part, X) for part in factor)
            real, turned = real * a - turned * b, real * b + turned * a
        return xp.concat([real, turned], axis=-1) * self.weight


def _projected(operator: Operator, X: Any) -> Any:
    """Projections on rows with E w w^T = I: the rows as they are, or directions of length sqrt(d)."""
    u = operator.apply(X)
    if operator.gaussian_lengths and not operator.origin:
        return u
    return u * like(math.sqrt(operator.dim) / operator.radii, u)


class PolynomialFeatures(Features):
    """Drawn features of a power series: those of every degree side by side, then columns of zeros."""

    symmetric, positive = True, False

    def __init__(self, parts: list[_Monomials | _Products], width: int) -> None:
        self.parts, self.width = parts, width

    def scaled(self, X: Any, *, key: bool) -> Scaled:
        xp = array_namespace(X)
        return pad_last(xp.concat([part(xp, X) for part in self.parts], axis=-1), self.width), None


def _n_terms(kernel: PowerSeries) -> int:
    return sum(c > 0 for c in kernel.series)


def _probabilities(kernel: PowerSeries) -> np.ndarray:
    """Probabilities of random degrees, in proportion to the standard deviation of their features for unit vectors."""
    spread = np.array([c * (1 + 2 * TYPICAL**2) ** (n / 2) for n, c in enumerate(kernel.series)])
    return np.asarray(spread / spread.sum())


def _rounded(spread: dict[int, float], width: int) -> dict[int, int]:
    """Whole shares in proportion, at least one each; what is left goes to the largest."""
    total = sum(spread.values()) or 1.0
    free = width - len(spread)
    widths = {n: 1 + int(free * value / total) for n, value in spread.items()}
    if widths:
        widths[max(spread, key=lambda n: spread[n])] += width - sum(widths.values())
    return widths
