r"""Radii D: the lengths of the rows.

A kernel whose spectrum is a Gaussian scale mixture, w = s g with g ~ N(0, I), has rows whose direction is uniform and
whose length is an independent :math:`s\,\chi_d`.  So one law serves every rotation and every geometry, and padding
to d' dimensions is right with :math:`s\,\chi_{d'}`: the first d coordinates of such a row are s g again.
"""

from .base import RadialLaw
from .chi import Chi
from .fixed import Fixed
from .scale_mixture import ScaleMixture
from .table import radial_law

__all__ = ["Chi", "Fixed", "RadialLaw", "ScaleMixture", "radial_law"]
