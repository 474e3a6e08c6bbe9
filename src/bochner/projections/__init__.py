"""Projections: laws of the rows of W = D S R, and the operators drawn from them.

`Blocks` combines any rotation R, geometry S and radial law D; `Orthogonal`, `Simplex`, `SimplexPlus` and `Quadrature`
are presets of it.  `IID`, `QMC` and `GaussHermite` do not use blocks.
"""

from .._facts import publish
from ._blocks import Blocks
from ._operator import Operator as Operator
from ._points import IID, QMC, GaussHermite
from ._presets import Orthogonal, Quadrature, Simplex, SimplexPlus
from ._projection import Projection as Projection

__all__ = [
    "IID",
    "QMC",
    "Blocks",
    "GaussHermite",
    "Orthogonal",
    "Quadrature",
    "Simplex",
    "SimplexPlus",
]

publish(globals())
