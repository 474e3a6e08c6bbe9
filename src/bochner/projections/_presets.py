"""The presets of `Blocks`, each with a fixed geometry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from .. import geometries
from .._validation import check_instance, check_option
from ..geometries import Geometry
from ..radii import RadialLaw, SphericalRadial
from ..radii._laws import ORIGINS
from ..rotations import Butterfly, Haar, Hadamard, Kac, MultiHadamard, Rotation, StructuredGivens, UnpaddedHadamard
from ._blocks import BlockProjection, law_of


@dataclass(frozen=True)
class _Preset(BlockProjection):
    """Fields of `Orthogonal`, `Simplex` and `SimplexPlus`, which add their geometry."""

    rotation: Rotation = Haar()
    radii: str | RadialLaw = "kernel"

    def __post_init__(self) -> None:
        check_instance(type(self).__name__, "rotation", self.rotation, Rotation, "rotations.Haar()")
        law_of(type(self).__name__, self.radii)

    @property
    def radial_law(self) -> RadialLaw:
        """The radial law D that ``radii`` is or names."""
        return law_of(type(self).__name__, self.radii)


@dataclass(frozen=True)
class Orthogonal(_Preset):
    r"""Blocks of d orthogonal rows with independent lengths: orthogonal random features (ORF).

    The default for cosine features.  The rotation selects the variant: SORF, HMD, Kac's walk, SGP or butterflies.

    Parameters
    ----------
    rotation : Rotation
        The rotation R.
    radii : {"kernel", "fixed"} or RadialLaw
        Lengths of the rows: "kernel" for the kernel's law, or "fixed" for :math:`\sqrt d` (as in the SORF paper, ROM
        and JL transforms), which is biased for every kernel except the linear one.

    Notes
    -----
    A block is :math:`W = D R`, with R a random rotation and D the lengths of the kernel's spectral law (:math:`\chi_d`
    for Gaussian rows).  Cutting, stacking and padding do not change the law of a row.  The error is always below that
    of independent rows for positive features, and at moderate distances for trigonometric ones (SimRF Section 4; CRT
    Theorem 4.1).

    Exactly unbiased with rotations whose rows are exactly uniform: `Haar`, and `StructuredGivens` and `Butterfly`
    with Beta or tree angles.

    References
    ----------
    yu2016, omc, simrf (Section 4).

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.projections import Orthogonal
    >>> W = Orthogonal().sample(3, 3, rng=0).to_dense()
    >>> bool(np.allclose(W @ W.T, np.diag(np.diag(W @ W.T))))
    True
    """

    name: ClassVar[str] = "orthogonal"
    references: ClassVar[tuple[str, ...]] = ("yu2016", "omc")
    geometry = geometries.Orthogonal()

    @property
    def scales(self) -> bool:
        return True

    def why(self, facts: Any) -> str:
        """No two rows of a block point into similar directions."""
        return "Orthogonal rows are the least redundant."

    @classmethod
    def variants(cls) -> dict[str, Any]:
        """Return the projection with Haar blocks and with the fast rotations."""
        fast = {kind.name: cls(kind()) for kind in (Butterfly, Hadamard, MultiHadamard, UnpaddedHadamard, Kac)}
        return {"orthogonal": cls(), "fast-orthogonal": cls(StructuredGivens())} | fast


@dataclass(frozen=True)
class Simplex(_Preset):
    r"""Blocks of d rows at pairwise cosine -1/(d - 1) with independent lengths: simplex random features (SimRF).

    The default for positive features.  For trigonometric features, `Orthogonal` has a lower error.

    Parameters
    ----------
    rotation : Rotation
        The rotation R.
    radii : {"kernel", "fixed"} or RadialLaw
        Lengths of the rows: "kernel" for the kernel's law, or "fixed" for :math:`\sqrt d`, which is biased.

    Notes
    -----
    A block is :math:`W = D S R`, S the simplex of SimRF Eq. 9 (corrected, see `bochner.linalg.references`), applied in
    O(d).  Among couplings with independent lengths it has the lowest error for positive features (SimRF Theorem 3.4).
    An incomplete last block of r rows is a true r-simplex.

    Exactly unbiased with `Haar`.  A fast rotation makes at most coordinate axes uniform, so the fast SimRF is
    approximate; with ``Hadamard(3)`` the bias at d = 8 and v = 0.8 is within 0.0013 +- 0.0009.

    References
    ----------
    simrf (Sections 3.1 and 3.3).

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.projections import Simplex
    >>> P = Simplex().sample(4, 4, rng=0)
    >>> U = P.to_dense() / P.radii[:, None]
    >>> bool(np.allclose((U @ U.T)[0, 1:], -1 / 3))
    True
    """

    name: ClassVar[str] = "simplex"
    references: ClassVar[tuple[str, ...]] = ("simrf",)
    geometry = geometries.Simplex()

    def why(self, facts: Any) -> str:
        """Return where it is worth trying: at obtuse angles."""
        return _why_simplex(facts)

    @classmethod
    def variants(cls) -> dict[str, Any]:
        """Return the projection with Haar blocks and with fast rotations."""
        return {"simplex": cls(), "fast-simplex": cls(Hadamard())}


@dataclass(frozen=True)
class SimplexPlus(_Preset):
    r"""Blocks of d rows that sum to zero, as nearly as their lengths allow: SimRF+.

    Lower error than `Simplex` for positive features, at the cost of forming W.

    Parameters
    ----------
    rotation : Rotation
        The rotation R.
    radii : {"kernel", "fixed"} or RadialLaw
        Lengths of the rows: "kernel" for the kernel's law, or "fixed" for :math:`\sqrt d`, in which case the rows of
        `Simplex` already sum to zero.

    Notes
    -----
    The lengths of each block are drawn first; its directions are then adjusted until :math:`|\sum_i w_i|` is minimal
    (`bochner.geometries`), and an independent rotation is applied.  Each row is therefore exactly N(0, I) with `Haar`,
    and the leading term of the error of positive features, of order :math:`v^2`, vanishes: at d = m = 6 and v = 0.1 the
    scaled error is 6.0e-6, against 1.4e-4 for `Simplex` and 1.7e-3 for `Orthogonal`; at v = 1 it is 0.28, 0.33 and
    0.66.  `Approximation.mse` averages the exact error of given lengths over a fixed sample of lengths.

    Directions take O(d) numbers per row, so W is formed even with a fast rotation: memory and time O(m d).  If one
    length exceeds the sum of all others, the rows sum to that excess: always at d = 2, in a quarter of the blocks at d
    = 3, and almost never in higher dimensions.

    References
    ----------
    simrf (Section 3.2).

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.projections import SimplexPlus
    >>> W = SimplexPlus().sample(8, 8, rng=0).to_dense()
    >>> bool(np.linalg.norm(W.sum(axis=0)) < 1e-4)
    True
    """

    name: ClassVar[str] = "simplex+"
    references: ClassVar[tuple[str, ...]] = ("simrf",)
    geometry = geometries.SimplexPlus()

    def why(self, facts: Any) -> str:
        """Return where it is worth trying: at obtuse angles."""
        return _why_simplex(facts)


def _why_simplex(facts: Any) -> str:
    cause = "Vectors are short" if facts.sum2 < facts.d / 4 else "Features are positive"
    return f"{cause}, so simplex rows win: at obtuse angles their errors cancel most."


VERTICES: dict[str, Geometry] = {
    "simplex": geometries.SimplexVertices(),
    "orthoplex": geometries.Orthogonal(),
}


@dataclass(frozen=True)
class Quadrature(BlockProjection):
    r"""Stacked spherical-radial rules of degree three (QBF): weighted nodes at reflected vertices, and one at zero.

    Parameters
    ----------
    rotation : Rotation
        The transpose of Q: its rows are directions.
    vertices : {"simplex", "orthoplex"}
        The polytope.
    origin : {"signed", "resample"}
        How a negative weight at zero is handled: "signed" keeps it, which is unbiased; "resample" draws the radii
        again.

    Notes
    -----
    One rule for :math:`E f(w)`, w ~ N(0, I), with unit vertices :math:`v_j` of a regular polytope, a rotation Q and
    independent radii :math:`\rho_j \sim \chi_{d+2}`:

    .. math::

        a_0^2 f(0) + \sum_j a_j^2\, \tfrac12 [f(\rho_j Q v_j) + f(-\rho_j Q v_j)], \qquad
        a_j^2 = \frac{d}{k \rho_j^2}, \quad a_0^2 = 1 - \sum_j a_j^2,

    with k = d + 1 vertices of the simplex, or k = d of the orthoplex.  It is exact for every polynomial of degree
    three, whatever Q and the radii, and unbiased for every f when each :math:`Q v_j` is uniform.

    A rule is the average of its single-vertex rules :math:`(1 - d/\rho_j^2) f(0) + (d/\rho_j^2) f(\pm\rho_j Q v_j)`,
    each of which is unbiased.  The m rows, whole rules and possibly an incomplete one, are therefore averaged with
    weights :math:`d/(m \rho_j^2)`, and the constants of all rules are merged into one node at zero: ``weights`` and
    ``origin_weight`` of the drawn operator, each of whose rows stands for both of :math:`\pm w` (``reflected``).

    For kernels that are scale mixtures, w = s g, the radius of each node is multiplied by its own s.

    Exactly unbiased with ``origin="signed"`` and: `Haar`, for both polytopes; `StructuredGivens` and `Butterfly` with
    Beta or tree angles, for the orthoplex, in O(d log d).

    Deviations
    ----------
    The weight :math:`a_0^2` has mean zero and is negative in nearly half of all draws.  QBF draws the radii again until
    it is not negative (``origin="resample"``).  This is biased, and more rules do not help (d = 8, Gaussian kernel at
    distance 2: +0.062).  Keeping the sign is unbiased.  The weights are those of a rule without reflected points; the
    paper gives those of a rule with them.

    References
    ----------
    qbf (Eq. 3-5, Section 3), genz1998.

    Examples
    --------
    >>> from bochner.projections import Quadrature
    >>> P = Quadrature().sample(4, 10, rng=0)          # two rules of five vertices
    >>> round(float(P.weights.sum() + P.origin_weight), 12)
    1.0
    """

    rotation: Rotation = Haar()
    vertices: str = "simplex"
    origin: str = "signed"
    name: ClassVar[str] = "quadrature"
    references: ClassVar[tuple[str, ...]] = ("qbf", "genz1998")

    def __post_init__(self) -> None:
        check_instance("Quadrature", "rotation", self.rotation, Rotation, "rotations.Haar()")
        check_option("Quadrature", "vertices", self.vertices, VERTICES)
        check_option("Quadrature", "origin", self.origin, ORIGINS)

    @property
    def geometry(self) -> Geometry:
        """The vertices of the polytope, as a geometry."""
        return VERTICES[self.vertices]

    @property
    def radial_law(self) -> RadialLaw:
        """The law of the radii and weights of the nodes."""
        return SphericalRadial(self.origin)

    def why(self, facts: Any) -> str:
        """Return where it is worth trying: where low degrees matter most."""
        near = facts.distance2 < facts.d / 4
        cause = "Points are close" if near else "The rule is exact for polynomials of low degree"
        return f"{cause}, so quadrature is the most accurate: it integrates low degrees without error."

    @classmethod
    def variants(cls) -> dict[str, Any]:
        """Return both polytopes, and the one that is exact with a fast rotation."""
        fast = cls(Butterfly("tree"), "orthoplex")
        return {"quadrature": cls(), "orthoplex": cls(vertices="orthoplex"), "fast-orthoplex": fast}
