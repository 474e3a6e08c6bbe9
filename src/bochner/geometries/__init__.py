"""Geometries S: how the directions of one block relate to each other.

A geometry of one's own inherits from `Geometry` and returns its directions, or from `FastGeometry` and writes its
products; `bochner.projections.Blocks` takes either, with every rotation and every radial law.
"""

from ._geometry import FastGeometry, Geometry, Orthogonal, Simplex, SimplexVertices
from ._simplex_plus import SimplexPlus

__all__ = ["FastGeometry", "Geometry", "Orthogonal", "Simplex", "SimplexPlus", "SimplexVertices"]
