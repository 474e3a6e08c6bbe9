"""Geometries S: how the directions of one block stand to each other."""

from .base import Geometry
from .orthogonal import Orthogonal
from .simplex import Simplex
from .simplex_plus import SimplexPlus, balance
from .vertices import SimplexVertices

__all__ = ["Geometry", "Orthogonal", "Simplex", "SimplexPlus", "SimplexVertices", "balance"]
