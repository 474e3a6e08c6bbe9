r"""Radii D: the lengths of the rows.

A kernel whose spectrum is a Gaussian scale mixture, w = s g with g ~ N(0, I), has rows whose direction is uniform and
whose length is an independent :math:`s\,\chi_d`.  One law therefore works with every rotation and every geometry.  Rows
padded to d' dimensions have length :math:`s\,\chi_{d'}`; their first d coordinates are again distributed as s g.

`bochner.extending` has the base class of a law of your own.  `bochner.projections.Blocks`
combines it with every rotation and every geometry.
"""

from .._facts import publish
from ._laws import Chi, Coupled, Fixed, Shared, SphericalRadial
from ._laws import RadialLaw as RadialLaw

__all__ = ["Chi", "Coupled", "Fixed", "Shared", "SphericalRadial"]

publish(globals())
