"""Rotations R: random orthogonal matrices, exact (`Haar`) or fast.

`StructuredGivens` is the recommended fast rotation: its rows are exactly uniform on the sphere.

`bochner.extending` has what a rotation of your own needs.
"""

from .._facts import publish
from ._drawn_rotation import DrawnRotation as DrawnRotation
from ._givens import Butterfly, Kac, StructuredGivens
from ._haar import Haar
from ._hadamard import Hadamard, MultiHadamard
from ._rotation import DenseRotation as DenseRotation
from ._rotation import FastRotation as FastRotation
from ._rotation import Rotation as Rotation
from ._stages import (
    GivensLevel as GivensLevel,
)
from ._stages import (
    GivensWalk as GivensWalk,
)
from ._stages import (
    Permutation as Permutation,
)
from ._stages import (
    SignedWalsh as SignedWalsh,
)
from ._stages import (
    Stage as Stage,
)
from ._stages import (
    hd_block as hd_block,
)
from ._unpadded import FoldedWalsh as FoldedWalsh
from ._unpadded import UnpaddedButterfly, UnpaddedHadamard

__all__ = [
    "Butterfly",
    "Haar",
    "Hadamard",
    "Kac",
    "MultiHadamard",
    "StructuredGivens",
    "UnpaddedButterfly",
    "UnpaddedHadamard",
]

publish(globals())
