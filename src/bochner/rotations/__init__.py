"""Rotations R: random orthogonal matrices, exact (`Haar`) or fast.

`StructuredGivens` is the fast rotation to take when in doubt: its rows are exactly uniform on the sphere.
"""

from .base import Rotation
from .butterfly import Butterfly
from .drawn import DrawnRotation
from .haar import Haar
from .hadamard import Hadamard
from .kac import Kac
from .multi_hadamard import MultiHadamard
from .structured_givens import StructuredGivens

__all__ = [
    "Butterfly",
    "DrawnRotation",
    "Haar",
    "Hadamard",
    "Kac",
    "MultiHadamard",
    "Rotation",
    "StructuredGivens",
]
