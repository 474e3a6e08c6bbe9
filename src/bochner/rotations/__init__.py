"""Rotations R: random orthogonal matrices, exact (`Haar`) or fast.

`StructuredGivens` is the fast rotation to take when in doubt: its rows are exactly uniform on the sphere.

A rotation of one's own inherits from `FastRotation` and lists its stages (`hd_block`, `SignedWalsh`, `GivensLevel`,
`GivensWalk`, `Permutation`, or a `Stage` of its own), or from `DenseRotation` and returns its matrices.
"""

from ._givens import Butterfly, Kac, StructuredGivens
from ._haar import Haar
from ._hadamard import Hadamard, MultiHadamard
from ._rotation import DenseRotation, DrawnRotation, FastRotation, Rotation
from ._stages import GivensLevel, GivensWalk, Permutation, SignedWalsh, Stage, hd_block

__all__ = [
    "Butterfly",
    "DenseRotation",
    "DrawnRotation",
    "FastRotation",
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
    "hd_block",
]
