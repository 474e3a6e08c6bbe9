"""Products of plane rotations: structured Givens products, butterflies, and Kac's random walk."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .._validation import check_flag, check_option, check_positive
from ._rotation import Directions, FastRotation, check_factors
from ._stages import GivensLevel, GivensWalk, Permutation, Stage, hd_block, levels_of

ANGLES = ("beta", "uniform", "tree")
_LARGEST_CONSTANT = 1000.0  # steps in units of d log d: more is a slip, and would take memory


def draw_angles(law: str, level: int, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    r"""Draw the angles of plane rotations that join two halves of :math:`h = 2^{\text{level}}` coordinates each.

    Parameters
    ----------
    law : {"beta", "uniform", "tree"}
        Law of the angles, see Notes.
    level : int
        Level of the transform; the first is zero.
    shape : tuple of int
        Shape of the result.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    float64 array of shape ``shape``

    Notes
    -----
    - ``"beta"``: :math:`\cos^2\theta \sim \mathrm{Beta}(h/2, h/2)`, in a random quadrant.  A row of the product is
      then :math:`(c\,b_1, -s\,b_2)` with :math:`b_1, b_2` independent and uniform on the spheres of the halves, which
      is uniform on the sphere of both: exactly isotropic rows, by induction.
    - ``"uniform"``: uniform on the circle (OMC); isotropic rows only at the first level.
    - ``"tree"``: the angles of a uniform point u on the sphere (QBF Section 3, corrected): at the leaves the angle of a
      pair of its coordinates, above them :math:`\mathrm{atan2}` of the norms of the two halves.  These angles are
      independent and distributed as the Beta angles in the first quadrant; the leaves determine the quadrants.
    """
    if law == "uniform" or level == 0:
        return rng.uniform(0, 2 * np.pi, shape)
    h = 2.0**level
    theta = np.arctan2(np.sqrt(rng.chisquare(h, shape)), np.sqrt(rng.chisquare(h, shape)))
    if law == "beta":
        theta += np.pi / 2 * rng.integers(0, 4, shape)
    return theta


@dataclass(frozen=True)
class AngledRotation(FastRotation):
    """Levels of plane rotations, optionally preceded by an HD block."""

    angles: str = "beta"
    mix: bool = True

    def __post_init__(self) -> None:
        check_option(type(self).__name__, "angles", self.angles, ANGLES)
        check_flag(type(self).__name__, "mix", self.mix)

    @property
    def uniform_directions(self) -> Directions:
        """Coordinate axes become exactly uniform, unless the angles are uniform."""
        return "none" if self.angles == "uniform" else "axes"

    def _mixing(self, dim: int, n_blocks: int, rng: np.random.Generator) -> list[Stage]:
        return [hd_block(rng, n_blocks, dim)] if self.mix else []

    def _levels(self, dim: int, n_blocks: int, rng: np.random.Generator, *, shared: bool) -> list[Stage]:
        """All levels; the pairs of a group share an angle or have one each."""
        stages: list[Stage] = []
        for level in range(levels_of(dim)):
            shape = (n_blocks, dim >> (level + 1), 1 if shared else 1 << level)
            stages.append(GivensLevel(level, draw_angles(self.angles, level, shape, rng)))
        return stages


@dataclass(frozen=True)
class StructuredGivens(AngledRotation):
    r"""Structured Givens products (SGP): the levels of a fast transform, with an independent angle for every pair.

    The recommended fast rotation: orthogonal features are exactly unbiased, in O(d log d) time per block of rows.

    Parameters
    ----------
    angles : {"beta", "uniform", "tree"}
        Law of the angles: exactly uniform rows, uniform angles (OMC), or the angles of a uniform point (QBF).
    mix : bool
        Whether an HD block is applied first, which lowers the variance on sparse inputs.

    Notes
    -----
    :math:`R = F^L \cdots F^1 (H D)`; level j rotates each pair of coordinates that differ in bit j by an independent
    angle.  With Beta angles (see *Deviations*) each row is **exactly** uniform on the sphere.  The HD block in front
    (``mix``) is an independent orthogonal factor, so the rows stay uniform, and the variance on sparse inputs is nearly
    that of Haar: at m = d = 16, :math:`|z|` = 2 along :math:`e_1` the error is 0.0212, against 0.0435 without the block
    and 0.0202 for Haar.

    Pairs of rows are not coupled as those of Haar, and only coordinate axes become uniform, so simplex couplings are
    approximate.  Dimensions that are not powers of two are padded with zeros.  A block has (d/2) log d angles.

    Deviations
    ----------
    OMC uses uniform angles without a mixing block: ``StructuredGivens("uniform", mix=False)``.  This is biased by
    +0.11 (d = 8) and +0.20 (d = 16) for the trigonometric estimate at :math:`|z|` = 1.5 along :math:`e_1`.

    References
    ----------
    OMC Section 4.1; the Beta angles are a contribution of this library.

    Examples
    --------
    >>> from bochner.rotations import StructuredGivens
    >>> StructuredGivens().isotropy, StructuredGivens("uniform").isotropy
    ('exact', 'approximate')
    """

    name: ClassVar[str] = "structured-givens"
    references: ClassVar[tuple[str, ...]] = ("omc", "mathieu2014")

    def stages(self, dim: int, n_blocks: int, rng: np.random.Generator) -> Sequence[Stage]:
        """Return the mixing block and all levels."""
        return self._mixing(dim, n_blocks, rng) + self._levels(dim, n_blocks, rng, shared=False)


@dataclass(frozen=True)
class Butterfly(AngledRotation):
    r"""Butterfly rotations: only d - 1 angles, shared by all pairs of a group at each level.

    Use them in place of `StructuredGivens` if memory matters: they store O(d) numbers per block.

    Parameters
    ----------
    angles : {"beta", "uniform", "tree"}
        Law of the angles: exactly uniform rows, uniform angles (OMC), or the angles of a uniform point (QBF).
    mix : bool
        Whether an HD block is applied first, which lowers the variance on sparse inputs.
    products : int
        Number of independent butterflies that are multiplied, each with a random permutation if there are several.

    Notes
    -----
    :math:`R = F^L\cdots F^1 (H D)`, level j with one angle for each value of the index bits above j (OMC Eq. 4).  With
    Beta angles each row is **exactly** uniform on the sphere; pairs of rows are more dependent than those of
    `StructuredGivens`.  The HD block in front (``mix``) preserves this and lowers the variance on sparse inputs (m = d
    = 16, :math:`|z|` = 2 along :math:`e_1`: 0.0214, against 0.0527 without the block and 0.0202 for Haar).

    QBF writes the transpose, B, and uses its *columns* as directions, since its rules evaluate :math:`f(\rho B v_j)`.
    Here a direction is a *row* of R, so :math:`R = B^T`.  With ``angles="tree"`` the columns of QBF, our rows, are
    exactly uniform.  ``products=3`` is :math:`(B P)(B P)(B P)` of QBF with random permutations P.

    Only coordinate axes become uniform.  On simplex vertices a single butterfly is biased (by up to 0.07 at d = 8,
    :math:`|z|` = 2, along an axis), three products by at most 0.003.  Dimensions that are not powers of two are padded
    with zeros.

    Deviations
    ----------
    OMC uses uniform angles without a mixing block: ``Butterfly("uniform", mix=False)``, biased by +0.11 (d = 8) and
    +0.20 (d = 16) at :math:`|z|` = 1.5 along :math:`e_1`.  QBF defines the angles as ratios :math:`u_i/u_{i+1}`, which
    are not angles, and calls the result Haar, which it is not for d > 2.

    References
    ----------
    OMC Section 3.3; QBF Section 3; the Beta angles are a contribution of this library.

    Examples
    --------
    >>> from bochner.rotations import Butterfly
    >>> R = Butterfly("tree", mix=False).sample(8, rng=0)
    >>> sum(stage.angles.size for stage in R.stages)
    7
    """

    products: int = 1
    name: ClassVar[str] = "butterfly"
    references: ClassVar[tuple[str, ...]] = ("omc", "qbf")

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "products", check_factors("Butterfly", "products", self.products))

    def stages(self, dim: int, n_blocks: int, rng: np.random.Generator) -> Sequence[Stage]:
        """Return the mixing block, and the levels and permutation of each product."""
        stages = self._mixing(dim, n_blocks, rng)
        for _ in range(self.products):
            stages += self._levels(dim, n_blocks, rng, shared=True)
            if self.products > 1:  # (B P)^T = P^T B^T: the butterfly acts first, then the permutation
                stages.append(Permutation(random_orders(dim, n_blocks, rng)))
        return stages


def random_orders(dim: int, n_blocks: int, rng: np.random.Generator) -> np.ndarray:
    """Draw a random order of the coordinates for each block."""
    return rng.permuted(np.tile(np.arange(dim, dtype=np.int32), (n_blocks, 1)), axis=1)


@dataclass(frozen=True)
class Kac(FastRotation):
    r"""Kac's random walk: :math:`\lceil C d \ln d\rceil` rotations of random pairs of coordinates by random angles.

    Works in any dimension without padding, but its rows are only approximately uniform.

    Parameters
    ----------
    constant : float
        The constant C in the number of steps.

    Notes
    -----
    Each step rotates a uniformly chosen pair of distinct coordinates by a uniform angle.  Row i is not uniform:
    :math:`d\,E[(r_i\cdot x)(r_i\cdot y)] = x\cdot y + ((d-2)/(d-1))^k (d x_i y_i - x\cdot y)` after k steps.  The
    trigonometric estimate at :math:`|z|` = 1.5 along :math:`e_1` is biased by +0.026 (d = 8) and +0.040 (d = 16) with C
    = 2, and by about +0.0015 in both cases with C = 4.

    Deviations
    ----------
    OMC uses C = 2.  The default here is C = 4: for the dot product its error is below that of independent rows for
    every input, every m and every d >= 3, and no smaller C achieves this for large d (x = y = :math:`e_1`, m = 1).

    References
    ----------
    OMC Definition 3.2, Theorems 5.2 and 5.5.

    Examples
    --------
    >>> from bochner.rotations import Kac
    >>> Kac().steps(10)
    93
    """

    constant: float = 4.0
    powers_of_two: ClassVar[bool] = False
    name: ClassVar[str] = "kac"
    references: ClassVar[tuple[str, ...]] = ("omc", "kac1956", "pillai2017")

    def __post_init__(self) -> None:
        object.__setattr__(self, "constant", check_positive("Kac", "constant", self.constant))
        if self.constant > _LARGEST_CONSTANT:
            raise ValueError(
                f"Kac: constant must be at most {_LARGEST_CONSTANT:g}, got {self.constant}; the walk has mixed long before."
            )

    @property
    def uniform_directions(self) -> Directions:
        return "none"

    @property
    def safe(self) -> bool:
        """True from C = 4 on (OMC Theorem 5.5, where the constant is not given)."""
        return self.constant >= 4

    def fourth_moment_share(self, dim: int) -> float | None:
        """OMC Theorem 5.2; in one dimension a rotation is a sign, and changes nothing."""
        return 1.0 if dim == 1 else float(((dim - 2) * (2 * dim + 1) / (2 * dim * (dim - 1))) ** self.steps(dim))

    def steps(self, d: int) -> int:
        """Number of plane rotations in dimension ``d``."""
        return math.ceil(self.constant * d * math.log(d))

    def block_bytes(self, dim: int) -> float:
        """Two indices and an angle per step."""
        return 16.0 * (1 + self.constant * dim * math.log(dim))

    def stages(self, dim: int, n_blocks: int, rng: np.random.Generator) -> Sequence[Stage]:
        """Return the walk as a single stage."""
        shape = (n_blocks, self.steps(dim))
        first = rng.integers(0, dim, size=shape, dtype=np.int32)
        second = rng.integers(0, dim - 1, size=shape, dtype=np.int32)
        second += second >= first  # uniform over the other coordinates
        return [GivensWalk(first, second, rng.uniform(0, 2 * np.pi, shape))]
