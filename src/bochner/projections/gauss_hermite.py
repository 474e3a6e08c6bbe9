"""Subsampled Gauss-Hermite grids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .._random import RNG
from .._validation import check_count
from ..kernels import Kernel
from ..radii.table import check_radial
from .base import Projection, named_streams, scaled_rows
from .dense import DenseOperator
from .operator import Operator

_LARGEST_ORDER = 200
"""Above it the weights of the outer nodes underflow."""


@dataclass(frozen=True)
class GaussHermite(Projection):
    r"""Nodes of the dense Gauss-Hermite grid, drawn with probabilities equal to their weights.

    Notes
    -----
    The grid of ``order`` nodes to a coordinate has order^d nodes and product weights, which sum to one; m of them are
    drawn independently, so that every coordinate of every row is a node drawn by its weight.  The average over rows
    estimates the grid's value without bias, and that is exact for polynomials of degree up to 2 order - 1 in each
    coordinate.  For the kernel itself it is biased: the estimate along :math:`e_1` is a finite sum of cosines.  A
    baseline of QBF, kept for comparison.

    Parameters
    ----------
    order : int
        Nodes to a coordinate.

    References
    ----------
    dao2017, qbf (Section 4).

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.projections import GaussHermite
    >>> sorted(set(GaussHermite(2).sample(3, 50, rng=0).to_dense().ravel().round(12).tolist()))
    [-1.0, 1.0]
    """

    order: int
    name: ClassVar[str] = "gauss-hermite"
    references: ClassVar[tuple[str, ...]] = ("dao2017", "qbf")

    def __post_init__(self) -> None:
        object.__setattr__(self, "order", check_count("GaussHermite", "order", self.order))
        if self.order > _LARGEST_ORDER:
            raise ValueError(f"GaussHermite: order must be at most {_LARGEST_ORDER}, got {self.order}; a few nodes do.")

    @property
    def gaussian_rows(self) -> bool:
        """Never: coordinates take finitely many values."""
        return False

    @property
    def scales(self) -> bool:
        """A biased baseline for small dimensions."""
        return False

    @classmethod
    def variants(cls) -> dict[str, Any]:
        """Five nodes to a coordinate."""
        return {"gauss-hermite": cls(5)}

    def _draw(self, name: str, d: int, m: int, rng: RNG, kernel: Kernel | None) -> Operator:
        if kernel is not None:
            check_radial(name, kernel)
        directions, lengths = named_streams(rng)
        nodes, weights = np.polynomial.hermite_e.hermegauss(self.order)
        W = scaled_rows(directions.choice(nodes, size=(m, d), p=weights / weights.sum()), kernel, lengths)
        return DenseOperator(name, W, d, np.linalg.norm(W, axis=1), (1,) * m)
