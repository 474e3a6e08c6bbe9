"""Functions of single projections: signs, positive parts, the projections themselves, and user-defined functions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .. import theory
from .._arrays import array_namespace, like, pad_last
from .._validation import check_option, shown
from ..kernels import Angular, ArcCosine, Kernel, Linear
from ..projections import Projection
from ..projections._blocks import BlockProjection
from ..radii import Chi, Fixed
from ._drawing import Directions, Draws, Nodes
from ._error import ErrorCase, NoClosedForm
from ._features import Features, Scaled
from ._map import Coupling, Layout, Map


class HomogeneousMap(Map):
    """Base class of features c f(w . x) with f(r u) = r^b f(u) for r > 0, which only need uniform directions.

    With ``radii="fixed"``, or in a quadrature, the radius is integrated out (`Directions`): the estimate is still
    unbiased, and has no radial noise.
    """

    even: ClassVar[bool] = False
    constant: ClassVar[float] = 1.0

    @property
    def coupling(self) -> Coupling:
        """Orthogonal directions with fixed lengths, which have no radial noise."""
        return "directions"

    @property
    @abstractmethod
    def degree(self) -> int:
        """Degree of homogeneity."""

    @abstractmethod
    def function(self, u: Any) -> Any:
        """The nonlinearity f."""

    def _reflects(self, reflected: bool) -> bool:
        """Products that are even in w need no reflection."""
        return reflected and not self.even

    def layout(self, projection: Projection) -> Layout:
        origin = int(projection.has_origin and projection.gaussian_lengths)
        return Layout(
            2 if self._reflects(projection.reflected) else 1, origin, not (origin and projection.signed), False
        )

    def draw(self, draws: Draws, kernel: Kernel | None) -> Features:
        operator = draws.operator()
        nodes = Directions(operator, self.degree, reflect=self._reflects(operator.reflected))
        return PointwiseFeatures(nodes, self.function, self.constant)


@dataclass(frozen=True)
class Sign(HomogeneousMap):
    r"""Sign features :math:`m^{-1/2}\,\mathrm{sgn}(w_i\cdot x)` of the angular kernel :math:`1 - 2\theta/\pi`.

    Use it for angles, and for hashes of one bit per row.

    Notes
    -----
    :math:`E\,\mathrm{sgn}(w\cdot x)\,\mathrm{sgn}(w\cdot y) = 1 - 2\theta/\pi` for any uniform direction.  The variance
    with independent rows is :math:`(1 - k^2)/m`.  The estimate is exact at angles 0 and :math:`\pi`.

    References
    ----------
    goemans1995, charikar2002, hrf (Eq. 19).

    Examples
    --------
    >>> from bochner import Approximation, kernels, maps
    >>> Approximation(kernels.Angular(), maps.Sign(), n_projections=8).draw(3, rng=0).n_features_out
    8
    """

    name: ClassVar[str] = "sign"
    family: ClassVar[str] = "signs"
    requirement: ClassVar[str] = "the angular kernel, which its products of signs have as their mean"
    formula: ClassVar[str] = r"\mathrm{sgn}(w_i\cdot x)"
    references: ClassVar[tuple[str, ...]] = ("goemans1995", "charikar2002", "hrf")
    even: ClassVar[bool] = True

    @classmethod
    def default_for(cls, kernel: Kernel) -> Map | None:
        return cls() if isinstance(kernel, Angular) else None

    def serves(self, kernel: Kernel | None) -> bool:
        return isinstance(kernel, Angular)

    @property
    def degree(self) -> int:
        return 0

    def function(self, u: Any) -> Any:
        return array_namespace(u).sign(u)

    def mse(self, case: ErrorCase) -> np.ndarray:
        """Error with independent rows: products of signs are plus or minus one, and zero if a vector is zero."""
        case.require_independent(self)
        k = case.kernel(case.X, case.Y)
        square = (case.X != 0).any(axis=1)[:, None] & (case.Y != 0).any(axis=1)[None]
        return np.asarray((square - k**2) / case.m)


@dataclass(frozen=True)
class Rectified(HomogeneousMap):
    r"""Features :math:`\sqrt{2/m}\,\max(0, w_i\cdot x)^b` of the arc-cosine kernel of order b = 0, 1, 2.

    Use it for the arc-cosine kernels of infinitely wide layers.

    Parameters
    ----------
    order : {0, 1, 2}
        The order b: steps, positive parts, or their squares.

    Notes
    -----
    :math:`k_b(x, y) = 2 E[\Theta_b(w\cdot x)\Theta_b(w\cdot y)]` with :math:`\Theta_0` the step (one half at zero),
    :math:`\Theta_1` the positive part and :math:`\Theta_2` its square.  The features are homogeneous of degree b, so
    fixed radii and quadrature integrate the length out: with quadrature (simplex vertices, d = 8, a random pair) the
    variance of order 1 falls from 6.6 for independent rows to 0.12 (QBF Section 2, whose published rules keep a radius
    that cancels).

    References
    ----------
    cho2009, qbf.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import Approximation, kernels, maps
    >>> phi = Approximation(kernels.ArcCosine(1), maps.Rectified(1), n_projections=8).draw(3, rng=0)
    >>> bool((phi.queries(np.ones((1, 3))) >= 0).all())
    True
    """

    order: int
    family: ClassVar[str] = "positive parts"
    requirement: ClassVar[str] = "the arc-cosine kernel of the same order"
    formula: ClassVar[str] = r"\max(0, w_i\cdot x)^b"
    references: ClassVar[tuple[str, ...]] = ("cho2009", "qbf")
    constant: ClassVar[float] = 2.0

    def __post_init__(self) -> None:
        check_option("Rectified", "order", self.order, (0, 1, 2))

    @classmethod
    def variants(cls) -> dict[str, Any]:
        """The three orders."""
        return {"step": cls(0), "relu": cls(1), "relu-squared": cls(2)}

    @classmethod
    def default_for(cls, kernel: Kernel) -> Map | None:
        return cls(kernel.order) if isinstance(kernel, ArcCosine) else None

    def serves(self, kernel: Kernel | None) -> bool:
        return isinstance(kernel, ArcCosine) and kernel.order == self.order

    @property
    def degree(self) -> int:
        return self.order

    def function(self, u: Any) -> Any:
        xp = array_namespace(u)
        zero = xp.zeros_like(u)
        if self.order == 0:
            return xp.where(u > 0, xp.ones_like(u), xp.where(u < 0, zero, zero + 0.5))
        part = xp.where(u > 0, u, zero)
        return part if self.order == 1 else part * part

    def mse(self, case: ErrorCase) -> np.ndarray:
        """E[(2 f f)^2] is twice the kernel of double the order: 2 k_0 for steps, 2 k_2 for positive parts."""
        case.require_independent(self)
        if self.order == 2:
            raise NoClosedForm("no closed form is offered for the error of Rectified(order=2); the nearest is order 1.")
        k, double = ArcCosine(self.order)(case.X, case.Y), ArcCosine(2 * self.order)(case.X, case.Y)
        return np.asarray((2 * double - k**2) / case.m)


@dataclass(frozen=True)
class Identity(HomogeneousMap):
    r"""Projections :math:`m^{-1/2} w_i\cdot x` as features of the linear kernel: dimensionality reduction.

    Use it to reduce dimensions while dot products and distances are kept.

    Notes
    -----
    This is the Johnson-Lindenstrauss transform or, with orthogonal rows of fixed length, the orthogonal one (OJLT),
    whose error is lower by at least a factor of (d - m)/(d - 1) (OMC Section 5.1).  The variance with independent rows
    is :math:`(|x|^2|y|^2 + (x\cdot y)^2)/m`.

    References
    ----------
    johnson1984, omc.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import Approximation, kernels, maps
    >>> phi = Approximation(kernels.Linear(), maps.Identity(), n_projections=3).draw(3, rng=0)
    >>> X = np.arange(6.0).reshape(2, 3)
    >>> bool(np.allclose(phi.gram(X), X @ X.T))      # a whole orthogonal block of fixed radius is a rotation
    True
    """

    name: ClassVar[str] = "identity"
    family: ClassVar[str] = "projections"
    requirement: ClassVar[str] = "the linear kernel"
    formula: ClassVar[str] = r"w_i\cdot x"
    references: ClassVar[tuple[str, ...]] = ("johnson1984", "omc")
    even: ClassVar[bool] = True

    @classmethod
    def default_for(cls, kernel: Kernel) -> Map | None:
        return cls() if isinstance(kernel, Linear) else None

    def serves(self, kernel: Kernel | None) -> bool:
        return isinstance(kernel, Linear)

    @property
    def degree(self) -> int:
        return 1

    def function(self, u: Any) -> Any:
        return u

    def mse(self, case: ErrorCase) -> np.ndarray:
        """Error with independent and simplex rows, and with random rows of every rotation whose fourth moment is known."""
        rows = case.projection
        if isinstance(rows, BlockProjection) and rows.geometry.axes:
            share, lengths = rows.rotation.fourth_moment_share(case.dim), _LENGTHS.get(type(rows.radial_law))
            if share is not None and lengths is not None:
                X, Y = (pad_last(Z, case.dim) for Z in (case.X[:, None, :], case.Y[None]))
                T = theory.rotated_fourth_moment(X, Y, share)
                return theory.subsampled_dot_product_mse(X, Y, case.m, T, lengths=lengths)
        return theory.dot_product_mse(case.X[:, None, :], case.Y[None], case.m, case.coupling)


_LENGTHS = {Chi: "gaussian", Fixed: "fixed"}
"""Laws of the lengths whose error of dot products is known, by their names in `bochner.theory`."""


@dataclass(frozen=True, repr=False)
class Pointwise(Map):
    r"""Features :math:`m^{-1/2} f(w_i\cdot x)` for any function f.

    Use it without a kernel, as in ``Approximation(map=Pointwise(f))``: the function induces its own kernel.

    Parameters
    ----------
    f : callable
        Elementwise function of an array of projections, which belongs to the library of the data (NumPy or torch).

    Notes
    -----
    The features are unbiased estimates of the kernel that f induces: :math:`k(x, y) = E f(w\cdot x) f(w\cdot y)`,
    w ~ N(0, I).  ``gram`` estimates this kernel, more accurately with more projections.

    References
    ----------
    qbf (Section 2), choromanski2021 (generalised attention).

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import Approximation, maps
    >>> phi = Approximation(map=maps.Pointwise(np.tanh), n_projections=16).draw(3, rng=0)
    >>> phi.gram(np.ones((2, 3))).shape
    (2, 2)
    """

    f: Callable[[Any], Any]
    requirement: ClassVar[str] = "no kernel of ours, since the function induces its own"
    references: ClassVar[tuple[str, ...]] = ("qbf", "choromanski2021")

    def __post_init__(self) -> None:
        if not callable(self.f):
            raise TypeError(f"Pointwise: f must be a function of an array, got {shown(self.f)}.")

    def __repr__(self) -> str:
        module, name = getattr(self.f, "__module__", None), getattr(self.f, "__qualname__", None)
        if isinstance(self.f, np.ufunc):
            module, name = "numpy", self.f.__name__
        return f"Pointwise(f={module}.{name})" if module and name else f"Pointwise(f={self.f!r})"

    def serves(self, kernel: Kernel | None) -> bool:
        return kernel is None

    def layout(self, projection: Projection) -> Layout:
        return Layout(2 if projection.reflected else 1, int(projection.has_origin), not projection.signed, False)

    def draw(self, draws: Draws, kernel: Kernel | None) -> Features:
        operator = draws.operator()
        return PointwiseFeatures(Nodes(operator, reflect=operator.reflected), self.f, 1.0)


class PointwiseFeatures(Features):
    """Square roots of the weights times f of the projections."""

    positive = False
    sparse_rows = True

    def __init__(self, nodes: Nodes, f: Callable[[Any], Any], constant: float) -> None:
        self.nodes, self.f = nodes, f
        self.roots = np.sqrt(constant * nodes.weights)
        self.width = len(nodes)
        self.symmetric = not nodes.signed

    def scaled(self, X: Any, *, key: bool) -> Scaled:
        """Values of f; the node at zero carries its sign on the side of the keys."""
        u = self.nodes.project(X)
        values = self.f(u)
        if tuple(values.shape) != tuple(u.shape):
            raise ValueError(
                f"Pointwise: f must return one number for each projection, got shape {tuple(values.shape)} for "
                f"{tuple(u.shape)}."
            )
        values = values * like(self.roots, u)
        return (self.nodes.signed_last(values) if key else values), None
