r"""Radii D: the lengths of the rows.

A kernel whose spectrum is a Gaussian scale mixture, w = s g with g ~ N(0, I), has rows whose direction is uniform and
whose length is an independent :math:`s\,\chi_d`.  So one law serves every rotation and every geometry, and padding
to d' dimensions is right with :math:`s\,\chi_{d'}`: the first d coordinates of such a row are s g again.

A law of one's own inherits from `RadialLaw` and writes its lengths at unit scale; `bochner.projections.Blocks` takes it with
every rotation and every geometry.
"""

from ._laws import Chi, Fixed, RadialLaw, SphericalRadial

__all__ = ["Chi", "Fixed", "RadialLaw", "SphericalRadial"]
