"""Geometries S: how the directions of one block relate to each other.

`bochner.extending` has the base classes of a geometry of your own.  `bochner.projections.Blocks` combines it with every
rotation and every radial law.
"""

from .._facts import publish
from ._geometry import FastGeometry as FastGeometry
from ._geometry import Geometry as Geometry
from ._geometry import Orthogonal, Simplex, SimplexPlus, SimplexVertices

__all__ = ["Orthogonal", "Simplex", "SimplexPlus", "SimplexVertices"]

publish(globals())
