"""Projections: laws of the rows of W = D S R, and the drawn operators."""

from .base import Projection
from .gauss_hermite import GaussHermite
from .iid import IID
from .operator import Operator
from .orthogonal import Orthogonal
from .qmc import QMC
from .quadrature import Quadrature
from .simplex import Simplex
from .simplex_plus import SimplexPlus

__all__ = [
    "IID",
    "QMC",
    "GaussHermite",
    "Operator",
    "Orthogonal",
    "Projection",
    "Quadrature",
    "Simplex",
    "SimplexPlus",
]
