"""The orthogonal matrices that OMC compares, and the FLOPs of a product with one block."""

from __future__ import annotations

from dataclasses import replace

from bochner import catalogue, rotations
from bochner.extending import Projection, Rotation
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
    return float(ROTATIONS["ORF" if method == "IID" else method].flops(d))
