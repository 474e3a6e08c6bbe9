"""Geometries S: how the directions of one block stand to each other."""

from .base import FastGeometry, Geometry
from .orthogonal import Orthogonal
from .simplex import Simplex
from .simplex_plus import SimplexPlus
from .vertices import SimplexVertices

__all__ = ["FastGeometry", "Geometry", "Orthogonal", "Simplex", "SimplexPlus", "SimplexVertices"]
