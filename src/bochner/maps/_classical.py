"""Cosines and exponentials of projections: the maps of random Fourier features, FAVOR+ and HRF."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .. import theory
from .._arrays import pad_last
from .._validation import check_flag
from ..kernels import Gaussian, Kernel, Softmax
from ..projections import GaussHermite, Projection
from ..projections._blocks import BlockProjection
from ..radii import Chi
from ._drawing import Draws, Nodes
from ._error import ErrorCase
from ._exponential import ExponentialFeatures, ExponentialMap, exponential_layout, norm_coefficient
from ._features import Features
from ._map import Argument, Coupling, Layout, Map


@dataclass(frozen=True)
class Trigonometric(Map):
    r"""Trigonometric features: all cosines, then all sines.

    These are the classical random Fourier features, and the default for every shift-invariant kernel.  m projections
    give 2m features.
    Use it for every kernel of the difference in more than three columns.

    Parameters
    ----------
    single_last : bool
        Whether the last projection gives a single feature, :math:`\sqrt2\cos(w\cdot x + b)` with a random phase b, in
        place of a cosine and a sine.  The width is then odd, 2m - 1.

    See Also
    --------
    Positive : Features that are positive, for softmax.
    GeneralizedExponential : The family that contains both.

    Notes
    -----
    For a shift-invariant kernel with rows w of its spectral law (Bochner's theorem),

    .. math:: \phi(x) = m^{-1/2} [\cos(w_i\cdot x)]_i, [\sin(w_i\cdot x)]_i, \qquad
              \phi(x)\cdot\phi(y) = \tfrac1m \sum_i \cos(w_i\cdot(x-y)),

    and for the softmax kernel :math:`e^{|x|^2/2}` times that (HRF Eq. 2).  The estimate is unbiased for any law of rows
    with the right marginals, and exact at x = y.  For the Gaussian kernel and independent rows the variance is
    :math:`(1-k^2)^2/(2m)` (CRT Theorem 3.2 with A = 0, s = -1).  The pair of cosine and sine has a lower variance than
    a single cosine with a random offset at the same width; a single last feature adds :math:`1/(2m^2)`.

    References
    ----------
    rahimi2007, hrf (Eq. 2), crt (Section 3).

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import Approximation, kernels, maps
    >>> phi = Approximation(kernels.Gaussian(), maps.Trigonometric(), n_projections=8).draw(3, rng=0)
    >>> bool(np.allclose(phi.gram(np.ones((1, 3))), 1))
    True
    """

    single_last: bool = False
    name: ClassVar[str] = "trigonometric"
    family: ClassVar[str] = "cosines"
    requirement: ClassVar[str] = "a shift-invariant or softmax kernel, since it is a mean of cosines of differences"
    formula: ClassVar[str] = r"\cos(w_i\cdot x),\; \sin(w_i\cdot x)"
    references: ClassVar[tuple[str, ...]] = ("rahimi2007", "hrf", "crt")

    def __post_init__(self) -> None:
        check_flag("Trigonometric", "single_last", self.single_last)

    @classmethod
    def default_for(cls, kernel: Kernel) -> Map | None:
        return cls() if kernel.shift_invariant else None

    def serves(self, kernel: Kernel | None) -> bool:
        return kernel is not None and (kernel.shift_invariant or isinstance(kernel, Softmax))

    def layout(self, projection: Projection) -> Layout:
        return exponential_layout(0, -1, projection, reflect=False, single_last=self.single_last)

    def narrowed(self) -> Map | None:
        return None if self.single_last else Trigonometric(single_last=True)

    def draw(self, draws: Draws, kernel: Kernel | None) -> Features:
        offset = None
        if self.single_last:
            offset = float(draws.table("phase", (1,), lambda rng: rng.uniform(0, 2 * math.pi, 1))[0])
        nodes = Nodes(draws.operator(), reflect=False)
        return ExponentialFeatures(nodes, 0, -1, norm_coefficient(kernel, 0.0), offset)

    def mse(self, case: ErrorCase) -> np.ndarray:
        """Error with independent rows for any spectral law, and with coupled Gaussian rows and quadrature rules."""
        error = self._of_pairs(case)
        return error + case.of_gaussian(1 / (2 * case.m**2)) if self.single_last else error

    def argument(self, case: ErrorCase) -> Argument | None:
        if self.single_last or case.projection.has_origin:
            return None
        return Argument(1j * (case.X[:, None, :] - case.Y[None]), False)

    @staticmethod
    def _of_pairs(case: ErrorCase) -> np.ndarray:
        if not isinstance(case.kernel, Gaussian | Softmax):
            case.require_independent(Trigonometric())
            unit = case.kernel.with_bandwidth(1.0)  # the data are at unit scale already
            k, twice = unit(case.X, case.Y), unit(2 * case.X, 2 * case.Y)
            return np.asarray(((1 + twice) / 2 - k**2) / case.m)  # Var cos(w.z) = (1 + k(2z))/2 - k(z)^2
        if isinstance(case.projection, GaussHermite):
            Z = case.X[:, None, :] - case.Y[None]
            return case.of_gaussian(theory.grid_mse(Z, *case.projection.rule(), case.m))
        rows = case.projection
        if (
            isinstance(rows, BlockProjection)
            and rows.rotation.sign_rows
            and rows.geometry.axes
            and isinstance(rows.radial_law, Chi)
        ):
            case.require_time(Trigonometric())
            Z = pad_last(case.X[:, None, :] - case.Y[None], case.dim)
            return case.of_gaussian(theory.sign_rows_mse(Z, case.m))
        polytope = case.polytope
        if polytope is not None:
            return case.of_gaussian(
                theory.spherical_radial_variance(case.pairs.minus, case.d, polytope, "own", rows=case.m)
            )
        return case.of_differences()

    def why(self, facts: Any) -> str:
        near = facts.distance2 < facts.sum2
        where = "points are closer to each other than to each other's negatives" if near else "norms are moderate"
        return (
            f"Cosines are the most accurate: their error is smallest for close points, and {where} (|x-y|^2 against "
            f"|x+y|^2)."
        )


class _PlainExponential(ExponentialMap):
    """One exponential per row, or one at each of w and -w if ``antithetic``: the body of its two dataclasses."""

    antithetic: ClassVar[bool]

    def layout(self, projection: Projection) -> Layout:
        return exponential_layout(0, 1, projection, reflect=self.antithetic or projection.reflected)

    def draw(self, draws: Draws, kernel: Kernel | None) -> Features:
        operator = draws.operator()
        nodes = Nodes(operator, reflect=self.antithetic or operator.reflected)
        return ExponentialFeatures(nodes, 0, 1, norm_coefficient(kernel, -1.0))

    def mse(self, case: ErrorCase) -> np.ndarray:
        """Error with independent, orthogonal and simplex rows, and of single exponentials with any geometry under Haar."""
        blocks = None if self.antithetic else case.sampled_blocks()
        if blocks is not None:
            case.require_time(self)
            return case.absolute(theory.sampled_positive_log_relative_mse(case.pairs.plus, case.m, case.dim, blocks))
        error = theory.hyperbolic_log_relative_mse if self.antithetic else theory.positive_log_relative_mse
        return case.absolute(error(case.pairs.plus, case.m, case.dim, case.coupling))

    def argument(self, case: ErrorCase) -> Argument | None:
        return None if case.projection.has_origin else Argument(case.X[:, None, :] + case.Y[None] + 0j, self.antithetic)


@dataclass(frozen=True)
class Positive(_PlainExponential):
    r"""Positive features of FAVOR+: one exponential per projection.

    The estimates are never negative, as attention requires.  `OptimalPositive` has a lower variance if there is data to
    choose its constant from.
    Use it for attention if there are no data to choose constants from.

    See Also
    --------
    OptimalPositive : Positive features of least variance.
    Hyperbolic : Antithetic pairs, at both w and -w.

    Notes
    -----
    .. math:: \phi(x) = m^{-1/2} \left[e^{w_i\cdot x - c|x|^2}\right]_i,

    with c = 1/2 for softmax and c = 1 for the Gaussian kernel; w ~ N(0, I).  The estimate is unbiased, and exact at x =
    -y.  The variance with independent rows is :math:`\mathrm{SM}^2(e^{|x+y|^2}-1)/m` (HRF Lemma 2.2, one-sided); it is
    lower with orthogonal rows and lowest with simplex rows (SimRF Theorem 3.4).  The logarithms of the features,
    `log_queries` and `log_keys`, do not overflow.

    References
    ----------
    choromanski2021, hrf, simrf (Eq. 7).

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import Approximation, kernels, maps
    >>> phi = Approximation(kernels.Softmax(), maps.Positive(), n_projections=8).draw(3, rng=0)
    >>> bool((phi.queries(np.ones((1, 3))) > 0).all()), phi.n_features_out
    (True, 8)
    """

    name: ClassVar[str] = "positive"
    formula: ClassVar[str] = r"e^{w_i\cdot x - c|x|^2}"
    references: ClassVar[tuple[str, ...]] = ("choromanski2021", "hrf", "simrf")
    antithetic: ClassVar[bool] = False

    @property
    def coupling(self) -> Coupling:
        """Simplex rows."""
        return "simplex"


@dataclass(frozen=True)
class Hyperbolic(_PlainExponential):
    r"""The ++ features of HRF: antithetic exponentials at w and at -w, two per projection.

    The default coupling is orthogonal: antithetic pairs cancel the gain of a simplex.
    Use it for positive features without data, where large values of the kernel matter less than small ones.

    See Also
    --------
    Positive : One exponential per projection.

    Notes
    -----
    .. math:: \phi(x) = (2m)^{-1/2} \left[e^{w_i\cdot x}\right]_i, \left[e^{-w_i\cdot x}\right]_i \; e^{-c|x|^2},

    whose products are hyperbolic cosines, :math:`e^{-(|x|^2+|y|^2)/2}\,\frac1m\sum_i\cosh(w_i\cdot(x+y))` for softmax
    (HRF Eq. 3).  The estimate is unbiased, and exact at x = -y.  The variance with independent rows is
    :math:`\frac{1}{2m} e^{|x+y|^2}\mathrm{SM}^2(1-e^{-|x+y|^2})^2` (HRF Lemma 2.2, where m counts projections), below
    that of `Positive` at equal width.

    References
    ----------
    hrf (Eq. 3, Lemma 2.2).

    Examples
    --------
    >>> from bochner import Approximation, kernels, maps
    >>> Approximation(kernels.Softmax(), maps.Hyperbolic(), n_projections=8).n_features_out
    16
    """

    name: ClassVar[str] = "hyperbolic"
    formula: ClassVar[str] = r"e^{\pm w_i\cdot x - c|x|^2}"
    references: ClassVar[tuple[str, ...]] = ("hrf",)
    antithetic: ClassVar[bool] = True
