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
_LARGEST_CONSTANT = 1000.0


def draw_angles(law: str, level: int, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    r"""Angles of rotations that join two halves of :math:`h = 2^{\text{level}}` coordinates each.

    - ``"beta"``: :math:`\cos^2\theta \sim \mathrm{Beta}(h/2, h/2)`, in a random quadrant.  A row of the product is
      then :math:`(c\,b_1, -s\,b_2)` with :math:`b_1, b_2` independent and uniform on the spheres of the halves, which
      is uniform on the sphere of both: exactly isotropic rows, by induction.
    - ``"uniform"``: uniform on the circle (OMC); isotropic rows only at the first level.
    - ``"tree"``: the angles of a uniform point u of the sphere (QBF Section 3, read rightly): at the leaves the angle
      of a pair of its coordinates, above them :math:`\mathrm{atan2}` of the norms of the two halves.  Those are
      independent, and distributed as the Beta angles in the first quadrant; the quadrants are carried by the leaves.
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
    """Levels of plane rotations, with an HD block in front or without."""

    angles: str = "beta"
    mix: bool = True

    def __post_init__(self) -> None:
        check_option(type(self).__name__, "angles", self.angles, ANGLES)
        check_flag(type(self).__name__, "mix", self.mix)

    @property
    def uniform_directions(self) -> Directions:
        """The axes, unless the angles are uniform."""
        return "none" if self.angles == "uniform" else "axes"

    def _mixing(self, dim: int, n_blocks: int, rng: np.random.Generator) -> list[Stage]:
        return [hd_block(rng, n_blocks, dim)] if self.mix else []

    def _levels(self, dim: int, n_blocks: int, rng: np.random.Generator, *, shared: bool) -> list[Stage]:
        """All levels; the pairs of a group share their angle, or have one each."""
        stages: list[Stage] = []
        for level in range(levels_of(dim)):
            shape = (n_blocks, dim >> (level + 1), 1 if shared else 1 << level)
            stages.append(GivensLevel(level, draw_angles(self.angles, level, shape, rng)))
        return stages


@dataclass(frozen=True)
class StructuredGivens(AngledRotation):
    r"""Structured Givens products (SGP): the levels of a fast transform, every pair with an angle of its own.

    Parameters
    ----------
    angles : {"beta", "uniform", "tree"}
        Law of the angles: exactly uniform rows, uniform angles (OMC), or the angles of a uniform point (QBF).
    mix : bool
        Whether one HD block is applied first.

    Notes
    -----
    :math:`R = F^L \cdots F^1 (H D)`; level j rotates each pair of coordinates that differ in bit j by an independent
    angle.  With Beta angles (see *Deviations*) each row is **exactly** uniform on the sphere, so orthogonal features
    are exactly unbiased in O(d log d) time: our default fast rotation.  The block HD in front (``mix``) is an
    independent orthogonal factor, so it keeps that, and brings the variance on sparse inputs down to nearly Haar's:
    at m = d = 16, :math:`|z|` = 2 along :math:`e_1` the error is 0.0212 against 0.0435 without it and 0.0202 for Haar.

    Pairs of rows are not coupled as Haar's are, and only coordinate axes come out uniform: simplex couplings on top
    are approximate.  Dimensions that are not powers of two are padded with zeros; (d/2) log d angles per block.

    Deviations
    ----------
    OMC draws uniform angles and has no mixing block: ``StructuredGivens("uniform", mix=False)``.  That is biased by
    +0.11 (d = 8) and +0.20 (d = 16) for the trigonometric estimate at :math:`|z|` = 1.5 along :math:`e_1`.

    References
    ----------
    OMC Section 4.1; the Beta angles are of this library.

    Examples
    --------
    >>> from bochner.rotations import StructuredGivens
    >>> StructuredGivens().isotropy, StructuredGivens("uniform").isotropy
    ('exact', 'approximate')
    """

    name: ClassVar[str] = "structured-givens"
    references: ClassVar[tuple[str, ...]] = ("omc", "mathieu2014")

    def stages(self, dim: int, n_blocks: int, rng: np.random.Generator) -> Sequence[Stage]:
        """The mixing block and all levels."""
        return self._mixing(dim, n_blocks, rng) + self._levels(dim, n_blocks, rng, shared=False)


@dataclass(frozen=True)
class Butterfly(AngledRotation):
    r"""Butterfly rotations: d - 1 angles, shared by all pairs of a block at each level.

    Parameters
    ----------
    angles : {"beta", "uniform", "tree"}
        Law of the angles: exactly uniform rows, uniform angles (OMC), or the angles of a uniform point (QBF).
    mix : bool
        Whether one HD block is applied first.
    products : int
        How many independent butterflies are multiplied, each with a random permutation if there are several.

    Notes
    -----
    :math:`R = F^L\cdots F^1 (H D)`, level j with one angle for each value of the index bits above j (OMC Eq. 4).
    With Beta angles each row is **exactly** uniform on the sphere, with O(d) stored numbers; pairs of rows are more
    dependent than those of `StructuredGivens`.  The block HD in front (``mix``) keeps the exactness and restores low
    variance on sparse inputs (m = d = 16, :math:`|z|` = 2 along :math:`e_1`: 0.0214 against 0.0527 without it; Haar 0.0202).

    QBF writes the transpose, B, and takes its *columns* as directions, since its rules evaluate
    :math:`f(\rho B v_j)`; here a direction is a *row* of R, so :math:`R = B^T`.  With ``angles="tree"`` QBF's columns,
    our rows, are exactly uniform.  ``products=3`` is QBF's :math:`(B P)(B P)(B P)` with random permutations P.

    Only coordinate axes come out uniform: on simplex vertices a single butterfly is biased (by up to 0.07 at d = 8,
    :math:`|z|` = 2, along an axis), three products by at most 0.003.  Dimensions that are not powers of two are padded.

    Deviations
    ----------
    OMC draws uniform angles and has no mixing block: ``Butterfly("uniform", mix=False)``, biased by +0.11 (d = 8) and
    +0.20 (d = 16) at :math:`|z|` = 1.5 along :math:`e_1`.  QBF reads its angles off ratios :math:`u_i/u_{i+1}` that are not
    angles, and calls the result Haar, which it is not for d > 2.

    References
    ----------
    OMC Section 3.3; QBF Section 3; the Beta angles are of this library.

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
        """The mixing block, and each product's levels and permutation."""
        stages = self._mixing(dim, n_blocks, rng)
        for _ in range(self.products):
            stages += self._levels(dim, n_blocks, rng, shared=True)
            if self.products > 1:  # (B P)^T = P^T B^T: the butterfly acts first, then the permutation
                order = rng.permuted(np.tile(np.arange(dim, dtype=np.int32), (n_blocks, 1)), axis=1)
                stages.append(Permutation(order))
        return stages


@dataclass(frozen=True)
class Kac(FastRotation):
    r"""Kac's random walk: :math:`\lceil C d \ln d\rceil` rotations of random pairs of coordinates by random angles.

    Parameters
    ----------
    constant : float
        C.

    Notes
    -----
    Each step rotates a uniformly chosen pair of distinct coordinates by a uniform angle.  Any d, no padding.  Row i
    is not uniform: :math:`d\,E[(r_i\cdot x)(r_i\cdot y)] = x\cdot y + ((d-2)/(d-1))^k (d x_i y_i - x\cdot y)` after k
    steps.  The trigonometric estimate at :math:`|z|` = 1.5 along :math:`e_1` is biased by +0.026 (d = 8) and +0.040 (d = 16)
    with C = 2; C = 4 leaves about +0.0015 at both.

    Deviations
    ----------
    OMC uses C = 2.  For the dot product, C = 4 beats independent rows for every input, every m and every d of at
    least 3, and every smaller C fails for large d (x = y = :math:`e_1`, m = 1): so C = 4 is the default.

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
        """None, exactly."""
        return "none"

    def steps(self, d: int) -> int:
        """Number of plane rotations in dimension ``d``."""
        return math.ceil(self.constant * d * math.log(d))

    def block_bytes(self, dim: int) -> float:
        """Two indices and an angle per step."""
        return 16.0 * (1 + self.constant * dim * math.log(dim))

    def stages(self, dim: int, n_blocks: int, rng: np.random.Generator) -> Sequence[Stage]:
        """One walk."""
        shape = (n_blocks, self.steps(dim))
        first = rng.integers(0, dim, size=shape, dtype=np.int32)
        second = rng.integers(0, dim - 1, size=shape, dtype=np.int32)
        second += second >= first  # uniform over the other coordinates
        return [GivensWalk(first, second, rng.uniform(0, 2 * np.pi, shape))]
