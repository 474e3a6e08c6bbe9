"""Orthogonal rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from .. import geometries
from ..rotations import Hadamard, StructuredGivens
from .coupled import Coupled


@dataclass(frozen=True)
class Orthogonal(Coupled):
    r"""Blocks of d orthogonal rows with independent lengths: ORF, and SORF, HMD, Kac, SGP, BFLY by their rotation.

    Notes
    -----
    A block is :math:`W = D R`, with R a random rotation and D the lengths of the kernel's spectral law
    (:math:`\chi_d` for Gaussian rows).  Cutting, stacking and padding leave each row's law as it is.  The error is
    below that of independent rows for positive features always, and for trigonometric ones at moderate distances
    (SimRF Section 4; CRT Theorem 4.1).

    Exactly unbiased with rotations whose rows are exactly uniform: `Haar`, and `StructuredGivens` and `Butterfly`
    with Beta or tree angles.

    Parameters
    ----------
    rotation : Rotation
        R.
    radii : {"kernel", "fixed"}
        Lengths of the kernel's law, or all :math:`\sqrt d` (SORF as printed, ROM, JL transforms), which is biased
        for every kernel but the linear one.

    References
    ----------
    yu2016, omc, simrf (Section 4).

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.projections import Orthogonal
    >>> W = Orthogonal().sample(3, 3, rng=0).to_dense()
    >>> bool(np.allclose(W @ W.T, np.diag(np.diag(W @ W.T))))
    True
    """

    name: ClassVar[str] = "orthogonal"
    references: ClassVar[tuple[str, ...]] = ("yu2016", "omc")
    geometry = geometries.Orthogonal

    @classmethod
    def variants(cls) -> dict[str, Any]:
        """With Haar blocks, and with fast rotations."""
        return {"orthogonal": cls(), "fast-orthogonal": cls(StructuredGivens()), "hadamard": cls(Hadamard())}
