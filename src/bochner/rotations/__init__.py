"""Rotations R: random orthogonal matrices, exact (`Haar`) or fast.

`StructuredGivens` is the recommended fast rotation: its rows are exactly uniform on the sphere.

To add your own rotation, derive from `FastRotation` and return its stages (`hd_block`, `SignedWalsh`, `FoldedWalsh`,
`GivensLevel`, `GivensWalk`, `Permutation`, or your own `Stage`), or derive from `DenseRotation` and return its matrices.
"""

from .._facts import publish
from ._drawn_rotation import DrawnRotation
from ._givens import Butterfly, Kac, StructuredGivens
from ._haar import Haar
from ._hadamard import Hadamard, MultiHadamard
from ._rotation import DenseRotation, FastRotation, Rotation
from ._stages import GivensLevel, GivensWalk, Permutation, SignedWalsh, Stage, hd_block
from ._unpadded import FoldedWalsh, UnpaddedHadamard

__all__ = [
    "Butterfly",
    "DenseRotation",
    "DrawnRotation",
    "FastRotation",
    "FoldedWalsh",
    "GivensLevel",
    "GivensWalk",
    "Haar",
    "Hadamard",
    "Kac",
    "MultiHadamard",
    "Permutation",
    "Rotation",
    "SignedWalsh",
    "Stage",
    "StructuredGivens",
    "UnpaddedHadamard",
    "hd_block",
]

publish(globals())
