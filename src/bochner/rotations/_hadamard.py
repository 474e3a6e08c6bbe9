"""Products of Hadamard matrices and random signs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ._rotation import Directions, FastRotation, check_factors
from ._stages import SignedWalsh, Stage, hd_block, levels_of, rademacher


@dataclass(frozen=True)
class Hadamard(FastRotation):
    r"""Hadamard-Rademacher rotations :math:`(H D_k)\cdots(H D_1)`, the SORF and ROM construction.

    Parameters
    ----------
    blocks : int
        Number k of HD factors.

    Notes
    -----
    H is the normalised Hadamard matrix and each :math:`D_i` a diagonal of fair signs: k d log d additions and kd signs
    per block.  Rows are *not* uniform on the sphere.  With one block they are random signs over :math:`\sqrt d`, so the
    trigonometric estimate has the mean :math:`E_R \prod_k \cos(R z_k/\sqrt d)`, R ~ chi_d; its bias at
    :math:`|z| = 1.5` along :math:`e_1` is -0.21 (d = 8).  Two blocks leave +0.031 (d = 8) and +0.016 (d = 16), three
    -0.014 and -0.003; along a generic direction three leave nothing measurable.  `StructuredGivens` is exact,
    for about one and a half times the time.

    Dimensions that are not powers of two are padded with zeros.

    References
    ----------
    OMC Section 3.2; Yu et al. 2016 (SORF); QBF calls the fixed-radius version ROM.

    Examples
    --------
    >>> from bochner.rotations import Hadamard
    >>> Hadamard(3).sample(48, rng=0).dim
    64
    """

    blocks: int = 3
    name: ClassVar[str] = "hadamard"
    references: ClassVar[tuple[str, ...]] = ("omc", "yu2016", "choromanski2017")

    def __post_init__(self) -> None:
        object.__setattr__(self, "blocks", check_factors("Hadamard", "blocks", self.blocks))

    @property
    def uniform_directions(self) -> Directions:
        """None, exactly."""
        return "none"

    def stages(self, dim: int, n_blocks: int, rng: np.random.Generator) -> Sequence[Stage]:
        """One HD block after the other."""
        return [hd_block(rng, n_blocks, dim) for _ in range(self.blocks)]


@dataclass(frozen=True)
class MultiHadamard(FastRotation):
    r"""Hadamard-multi-Rademacher rotations :math:`(\tilde F^L D_L)\cdots(\tilde F^1 D_1)` (HMD).

    Parameters
    ----------
    blocks : int
        How many such products are multiplied.

    Notes
    -----
    :math:`\tilde F^j` reflects all pairs of coordinates that differ in bit j by the angle :math:`\pi/4`; their
    product is the Hadamard matrix, into which HMD puts new signs before every level.  A single row is, as for one HD
    block, a vector of independent signs over :math:`\sqrt d`: the two have the same bias (-0.21 at d = 8, :math:`|z|` = 1.5,
    along :math:`e_1`) and the same dot-product error.  What HMD changes is the joint law of rows.

    Dimensions that are not powers of two are padded with zeros.

    References
    ----------
    OMC Definition 4.1.

    Examples
    --------
    >>> from bochner.rotations import MultiHadamard
    >>> len(MultiHadamard().sample(16, rng=0).stages)
    4
    """

    blocks: int = 1
    name: ClassVar[str] = "multi-hadamard"
    references: ClassVar[tuple[str, ...]] = ("omc",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "blocks", check_factors("MultiHadamard", "blocks", self.blocks))

    @property
    def uniform_directions(self) -> Directions:
        """None, exactly."""
        return "none"

    def stages(self, dim: int, n_blocks: int, rng: np.random.Generator) -> Sequence[Stage]:
        """Signs and one level, for all levels."""
        return [
            SignedWalsh(rademacher(rng, n_blocks, dim), level, level + 1)
            for _ in range(self.blocks)
            for level in range(levels_of(dim))
        ]
