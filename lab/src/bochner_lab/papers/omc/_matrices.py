"""The orthogonal matrices that OMC compares, and the FLOPs of a product with one block."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bochner import catalogue, rotations
from bochner.extending import FastRotation, Projection, Rotation, SignedWalsh
from bochner.projections import IID, Orthogonal

ROTATIONS: dict[str, Rotation] = {
    "ORF": rotations.Haar(),
    "HD": rotations.Hadamard(3),
    "HMD": rotations.MultiHadamard(),
    "KAC": rotations.Kac(2.0),
    "SGP": catalogue.mechanism("sgp").projection.rotation,  # type: ignore[attr-defined]
    "BFLY": catalogue.mechanism("bfly").projection.rotation,  # type: ignore[attr-defined]
}
"""With the paper's C = 2 for Kac's walk and three HD blocks."""

APPROXIMATE = ("HD", "HMD", "KAC", "SGP", "BFLY")
METHODS = ("IID", "ORF", *APPROXIMATE)


def rows_of(method: str, radii: str = "kernel") -> Projection:
    """Rows whose directions are those of a method."""
    return IID() if method == "IID" else replace(Orthogonal(ROTATIONS[method]), radii=radii)


def flops(method: str, d: int) -> float:
    """Additions and multiplications of one product with a d x d block; a dense one for independent rows."""
    return float(product_flops(ROTATIONS["ORF" if method == "IID" else method], d))


def product_flops(rotation: Rotation, d: int) -> int:
    """Additions and multiplications of a product, where stages of signs are scaled once, at the end.

    F D x for one pair is (s a + t b, s a - t b) = s (a + st b, a - st b): the common sign s joins the signs of the next
    level, and st = -1 exchanges an addition and a subtraction.
    """
    if not isinstance(rotation, FastRotation):
        return rotation.flops(d)
    stages = rotation.stages(d, 1, np.random.default_rng(0))
    signs = sum(isinstance(stage, SignedWalsh) for stage in stages)
    return rotation.flops(d) - d * max(signs - 1, 0)
