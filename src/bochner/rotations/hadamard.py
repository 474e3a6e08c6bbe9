"""Products of Hadamard matrices and random signs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .._validation import check_count
from .base import Directions, Rotation, hd_block
from .drawn import DrawnRotation, FastRotation


@dataclass(frozen=True)
class Hadamard(Rotation):
    r"""Hadamard-Rademacher rotations :math:`(H D_k)\cdots(H D_1)`, the SORF and ROM construction.

    Notes
    -----
    H is the normalised Hadamard matrix and each :math:`D_i` a diagonal of fair signs: k d log d additions and kd signs
    a block.  Rows are *not* uniform on the sphere.  With one block they are random signs over :math:`\sqrt d`, so the
    trigonometric estimate has the mean :math:`E_R \prod_k \cos(R z_k/\sqrt d)`, R ~ chi_d; its bias at
    :math:`|z| = 1.5` along :math:`e_1` is -0.21 (d = 8).  Two blocks leave +0.031 (d = 8) and +0.016 (d = 16), three
    -0.014 and -0.003; along a generic direction three leave nothing measurable.  `StructuredGivens` is exact,
    for about one and a half times the time.

    Dimensions that are not powers of two are padded with zeros.

    Parameters
    ----------
    blocks : int
        Number k of HD factors.

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
        object.__setattr__(self, "blocks", check_count("Hadamard", "blocks", self.blocks))

    @property
    def uniform_directions(self) -> Directions:
        """None, exactly."""
        return "none"

    def _draw(self, name: str, dim: int, n_blocks: int, rng: np.random.Generator) -> DrawnRotation:
        return FastRotation(name, n_blocks, dim, [hd_block(rng, n_blocks, dim) for _ in range(self.blocks)])
