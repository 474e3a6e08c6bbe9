"""Rows that repel each other as far as they can."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from .. import geometries
from ..rotations import Hadamard
from .coupled import Coupled


@dataclass(frozen=True)
class Simplex(Coupled):
    r"""Blocks of d rows at pairwise cosine -1/(d - 1) with independent lengths: SimRF.

    Notes
    -----
    A block is :math:`W = D S R`, S the simplex of SimRF Eq. 9 (corrected, see `bochner.linalg.simplex`), applied in
    O(d).  Among couplings with independent lengths it has the lowest error for positive features (SimRF Theorem
    3.4); for trigonometric ones orthogonal rows are better.  A cut last block of r rows is a true r-simplex.

    Exactly unbiased with `Haar`.  A fast rotation sends only coordinate axes, if any, to uniform directions, so the
    fast SimRF is approximate; with ``Hadamard(3)`` the bias at d = 8 and v = 0.8 is within 0.0013 +- 0.0009.

    Parameters
    ----------
    rotation : Rotation
        R.
    radii : {"kernel", "fixed"}
        Lengths of the kernel's law, or all :math:`\sqrt d` (biased).

    References
    ----------
    simrf (Sections 3.1 and 3.3).

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.projections import Simplex
    >>> P = Simplex().sample(4, 4, rng=0)
    >>> U = P.to_dense() / P.radii[:, None]
    >>> bool(np.allclose((U @ U.T)[0, 1:], -1 / 3))
    True
    """

    name: ClassVar[str] = "simplex"
    references: ClassVar[tuple[str, ...]] = ("simrf",)
    geometry = geometries.Simplex

    @classmethod
    def variants(cls) -> dict[str, Any]:
        """With Haar blocks, and with fast rotations."""
        return {"simplex": cls(), "fast-simplex": cls(Hadamard())}
