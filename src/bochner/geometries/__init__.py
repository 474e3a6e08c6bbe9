"""Geometries S: how the directions of one block relate to each other.

To add your own geometry, derive from `Geometry` and return its directions, or derive from `FastGeometry` and implement
its products.  `bochner.projections.Blocks` combines either with every rotation and every radial law.
"""

from .._facts import publish
from ._geometry import FastGeometry, Geometry, Orthogonal, Simplex, SimplexVertices
from ._simplex_plus import SimplexPlus

__all__ = ["FastGeometry", "Geometry", "Orthogonal", "Simplex", "SimplexPlus", "SimplexVertices"]

publish(globals())
