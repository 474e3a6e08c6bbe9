"""Linearisable coefficients of hybrid maps: unbiased estimates of weights lambda(x, y), as dot products."""

from .angular import AngularCoefficient
from .base import Coefficient
from .gaussian import GaussianCoefficient
from .normalized import NormalizedGaussianCoefficient

__all__ = ["AngularCoefficient", "Coefficient", "GaussianCoefficient", "NormalizedGaussianCoefficient"]
