"""Common body of the rotations that are levels of plane rotations with random angles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._validation import check_flag, check_option
from .angles import ANGLES, draw_angles
from .base import Directions, Rotation, hd_block, levels_of
from .stages import GivensLevel, Stage


@dataclass(frozen=True)
class AngledRotation(Rotation):
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
