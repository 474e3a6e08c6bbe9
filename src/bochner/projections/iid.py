"""Independent rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from .._random import RNG
from ..kernels import Kernel
from .base import Projection, named_streams, scaled_rows
from .dense import DenseOperator
from .operator import Operator


@dataclass(frozen=True)
class IID(Projection):
    """Independent rows of the kernel's spectral law: the classical random features.

    Notes
    -----
    The baseline that every coupling is compared with, and the only projection for kernels whose spectrum is no
    radial law (`kernels.Laplacian`).  Memory O(m d), time O(m d) a row.

    References
    ----------
    rahimi2007.

    Examples
    --------
    >>> from bochner.projections import IID
    >>> IID().sample(3, 5, rng=0).shape
    (5, 3)
    """

    name: ClassVar[str] = "iid"
    references: ClassVar[tuple[str, ...]] = ("rahimi2007",)

    @property
    def gaussian_rows(self) -> bool:
        """Always."""
        return True

    @property
    def coupling(self) -> Literal["iid"]:
        """Independent rows."""
        return "iid"

    def _draw(self, name: str, d: int, m: int, rng: RNG, kernel: Kernel | None) -> Operator:
        directions, lengths = named_streams(rng)
        if kernel is not None and kernel.spectrum == "product":
            W = kernel.sample_rows(d, m, directions)
        else:
            W = scaled_rows(directions.standard_normal((m, d)), kernel, lengths)
        return DenseOperator(name, W, d, np.linalg.norm(W, axis=1), (1,) * m)
