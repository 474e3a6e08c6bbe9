"""The laws of the angles in structured Givens products and butterflies."""

from __future__ import annotations

import numpy as np

ANGLES = ("beta", "uniform", "tree")


def draw_angles(law: str, level: int, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    r"""Angles of rotations that join two halves of :math:`h = 2^{\text{level}}` coordinates each.

    - ``"beta"``: :math:`\cos^2\theta \sim \mathrm{Beta}(h/2, h/2)`, in a random quadrant.  A row of the product is
      then :math:`(c\,b_1, -s\,b_2)` with :math:`b_1, b_2` independent and uniform on the spheres of the halves, which
      is uniform on the sphere of both: exactly isotropic rows, by induction.
    - ``"uniform"``: uniform on the circle (OMC); isotropic rows only at the first level.
    - ``"tree"``: the angles of a uniform point u of the sphere (QBF Section 3, read rightly): at the leaves the angle
      of a pair of its coordinates, above them :math:`\mathrm{atan2}` of the norms of the two halves.  Those are
      independent, and distributed as the Beta angles in the first quadrant; the quadrants are carried by the leaves.
    """
    if law == "uniform" or level == 0:
        return rng.uniform(0, 2 * np.pi, shape)
    h = 2.0**level
    theta = np.arctan2(np.sqrt(rng.chisquare(h, shape)), np.sqrt(rng.chisquare(h, shape)))
    if law == "beta":
        theta += np.pi / 2 * rng.integers(0, 4, shape)
    return theta
