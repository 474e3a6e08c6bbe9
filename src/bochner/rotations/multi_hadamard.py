"""Hadamard transforms with fresh random signs before every level."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .._validation import check_count
from .base import Directions, Rotation, levels_of, rademacher
from .drawn import DrawnRotation, FastRotation
from .stages import SignedWalsh


@dataclass(frozen=True)
class MultiHadamard(Rotation):
    r"""Hadamard-multi-Rademacher rotations :math:`(\tilde F^L D_L)\cdots(\tilde F^1 D_1)` (HMD).

    Notes
    -----
    :math:`\tilde F^j` reflects all pairs of coordinates that differ in bit j by the angle :math:`\pi/4`; their
    product is the Hadamard matrix, into which HMD puts new signs before every level.  A single row is, as for one HD
    block, a vector of independent signs over :math:`\sqrt d`: the two have the same bias (-0.21 at d = 8, :math:`|z|` = 1.5,
    along :math:`e_1`) and the same dot-product error.  What HMD changes is the joint law of rows.

    Dimensions that are not powers of two are padded with zeros.

    Parameters
    ----------
    blocks : int
        How many such products are multiplied.

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
        object.__setattr__(self, "blocks", check_count("MultiHadamard", "blocks", self.blocks))

    @property
    def uniform_directions(self) -> Directions:
        """None, exactly."""
        return "none"

    def _draw(self, name: str, dim: int, n_blocks: int, rng: np.random.Generator) -> DrawnRotation:
        stages = [
            SignedWalsh(rademacher(rng, n_blocks, dim), level, level + 1)
            for _ in range(self.blocks)
            for level in range(levels_of(dim))
        ]
        return FastRotation(name, n_blocks, dim, stages)
