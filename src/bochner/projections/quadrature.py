"""Spherical-radial quadrature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .. import geometries
from .._random import RNG, streams
from .._validation import check_instance, check_option
from ..kernels import Kernel
from ..radii import Chi
from ..radii.table import check_radial
from ..rotations import Butterfly, Haar, Rotation
from .base import Projection, block_sizes, draw_blocks
from .coupled import makes_uniform
from .operator import Operator

VERTICES: dict[str, type[geometries.Geometry]] = {
    "simplex": geometries.SimplexVertices,
    "orthoplex": geometries.Orthogonal,
}
ORIGINS = ("signed", "resample")


@dataclass(frozen=True)
class Quadrature(Projection):
    r"""Stacked spherical-radial rules of degree three (QBF): weighted nodes at reflected vertices, and one at zero.

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
    each unbiased by itself.  So m rows, whole rules and a cut one, are averaged with weights
    :math:`d/(m \rho_j^2)`, and the constants of all rules are merged into one node at zero: ``weights`` and
    ``origin_weight`` of the drawn operator, whose rows each stand for both of :math:`\pm w` (``reflected``).

    For the kernel scale mixtures w = s g every node's radius is multiplied by an s of its own.

    Exactly unbiased with ``origin="signed"`` and: `Haar`, for both polytopes; `StructuredGivens` and `Butterfly` with
    Beta or tree angles, for the orthoplex, in O(d log d).

    Deviations
    ----------
    The weight :math:`a_0^2` has mean zero and is negative in nearly half of all draws.  QBF draws radii again until it
    is not (``origin="resample"``); that is biased, and more rules do not help (d = 8, Gaussian kernel at distance 2:
    +0.062).  Keeping its sign is unbiased.  Weights are per node of the rule without reflected points; the paper
    prints those of the other.

    Parameters
    ----------
    rotation : Rotation
        Q, transposed: its rows are directions.
    vertices : {"simplex", "orthoplex"}
        The polytope.
    origin : {"signed", "resample"}
        What is done about a negative weight at zero.

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
    def gaussian_rows(self) -> bool:
        """Never: rows are longer than Gaussian ones, and weighted."""
        return False

    @property
    def uniform_directions(self) -> bool:
        """With a rotation that makes the vertices' directions exactly uniform."""
        return makes_uniform(self.rotation, VERTICES[self.vertices])

    @property
    def unbiased(self) -> bool:
        """With the signed weight at zero and exactly uniform directions."""
        return self.origin == "signed" and self.uniform_directions

    @property
    def gaussian_lengths(self) -> bool:
        """Never: nodes are longer than Gaussian rows."""
        return False

    @property
    def reflected(self) -> bool:
        """Always."""
        return True

    @property
    def has_origin(self) -> bool:
        """Always."""
        return True

    @property
    def signed(self) -> bool:
        """Unless radii are drawn again until the weight at zero is not negative."""
        return self.origin == "signed"

    @property
    def scales(self) -> bool:
        """With a fast rotation."""
        return self.rotation.powers_of_two

    @classmethod
    def variants(cls) -> dict[str, Any]:
        """Both polytopes, and the one that a fast rotation serves exactly."""
        fast = cls(Butterfly("tree"), "orthoplex")
        return {"quadrature": cls(), "orthoplex": cls(vertices="orthoplex"), "fast-orthoplex": fast}

    def rows_per_rule(self, d: int) -> int:
        """Vertices of the polytope, in the dimension that the rotation pads d to."""
        return VERTICES[self.vertices]().rows_per_block(self.padded(d))

    def padded(self, d: int) -> int:
        """What the rotation pads d to."""
        return self.rotation.padded(d)

    def _draw(self, name: str, d: int, m: int, rng: RNG, kernel: Kernel | None) -> Operator:
        if kernel is not None:
            check_radial(name, kernel)
        directions, lengths, scales = streams(rng, "directions", "lengths", "scales")
        geometry = VERTICES[self.vertices]()
        dim = self.rotation.padded(d)
        sizes = block_sizes(m, geometry.rows_per_block(dim))
        rho = self._radii(dim, sizes, lengths)
        radii = rho if kernel is None else rho * kernel.sample_scales((m,), scales)
        nodes = {
            "weights": dim / (m * rho**2),
            "reflected": True,
            "signed": self.origin == "signed",
            "gaussian_lengths": False,
        }
        return draw_blocks(name, d, self.rotation, geometry, sizes, radii, directions, **nodes)

    def _radii(self, dim: int, sizes: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        law = Chi(extra=2)
        rho = law.lengths(dim, sum(sizes), rng)
        if self.origin == "resample":
            for rule, start in zip(sizes, np.cumsum(sizes) - sizes, strict=True):
                while np.mean(dim / rho[start : start + rule] ** 2) > 1:
                    rho[start : start + rule] = law.lengths(dim, rule, rng)
        return rho
