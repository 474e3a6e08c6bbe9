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

    See Also
    --------
    StructuredGivens : Exactly uniform rows, for about one and a half times the time.
    UnpaddedHadamard : Rows that are orthogonal in any dimension.

    Notes
    -----
    H is the normalised Hadamard matrix and each :math:`D_i` a diagonal of random signs: k d log d additions and kd
    signs per block.  Rows are *not* uniform on the sphere.  With one block they are random signs divided by
    :math:`\sqrt d`, so the trigonometric estimate has the mean :math:`E_R \prod_k \cos(R z_k/\sqrt d)`, R ~ chi_d; its
    bias at :math:`|z| = 1.5` along :math:`e_1` is -0.21 (d = 8).  With two blocks the bias is +0.031 (d = 8) and +0.016
    (d = 16), with three -0.014 and -0.003; along a generic direction three blocks have no measurable bias.

    Dimensions that are not powers of two are padded with zeros.  The cut rows are then no longer orthogonal, and below d =
    30 some draws hold parallel rows.  That adds variance and no bias: along :math:`e_1` the error of the trigonometric
    estimate at m = d, :math:`|z|` = 2 is 1.6 times that of Haar for d = 12, and 1.25 times for d = 20.

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
        return "none"

    @property
    def safe(self) -> bool:
        r"""True: the independent signs of a row give :math:`T \le (|x|^2|y|^2 + 2(x\cdot y)^2)/d` in OMC Theorem 5.1."""
        return True

    def fourth_moment_share(self, dim: int) -> float | None:
        """Each HD block multiplies it by -2/d."""
        return float((-2 / dim) ** self.blocks)

    def stages(self, dim: int, n_blocks: int, rng: np.random.Generator) -> Sequence[Stage]:
        """Return the HD blocks in order."""
        return [hd_block(rng, n_blocks, dim) for _ in range(self.blocks)]


@dataclass(frozen=True)
class MultiHadamard(FastRotation):
    r"""Hadamard-multi-Rademacher rotations :math:`(\tilde F^L D_L)\cdots(\tilde F^1 D_1)` (HMD).

    Parameters
    ----------
    blocks : int
        Number of such products that are multiplied.

    Notes
    -----
    :math:`\tilde F^j` reflects all pairs of coordinates that differ in bit j by the angle :math:`\pi/4`; their product
    is the Hadamard matrix, into which HMD inserts new signs before every level.  As for one HD block, a single row is a
    vector of independent signs divided by :math:`\sqrt d`, so the two have the same bias (-0.21 at d = 8, :math:`|z|` =
    1.5, along :math:`e_1`) and the same dot-product error.  They differ in the joint law of the rows.

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
        return "none"

    @property
    def sign_rows(self) -> bool:
        """True for one product."""
        return self.blocks == 1

    @property
    def safe(self) -> bool:
        r"""True: the independent signs of a row give :math:`T \le (|x|^2|y|^2 + 2(x\cdot y)^2)/d` in OMC Theorem 5.1."""
        return True

    def fourth_moment_share(self, dim: int) -> float | None:
        """Each product multiplies it by -2/d, like one HD block."""
        return float((-2 / dim) ** self.blocks)

    def stages(self, dim: int, n_blocks: int, rng: np.random.Generator) -> Sequence[Stage]:
        """Return random signs and one Walsh level, for each level."""
        return [
            SignedWalsh(rademacher(rng, n_blocks, dim), level, level + 1)
            for _ in range(self.blocks)
            for level in range(levels_of(dim))
        ]
