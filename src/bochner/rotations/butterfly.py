"""Random butterfly matrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .._validation import check_count
from .angled import AngledRotation
from .drawn import DrawnRotation, FastRotation
from .stages import Permutation


@dataclass(frozen=True)
class Butterfly(AngledRotation):
    r"""Butterfly rotations: d - 1 angles, shared by all pairs of a block at each level.

    Notes
    -----
    :math:`R = F^L\cdots F^1 (H D)`, level j with one angle for each value of the index bits above j (OMC Eq. 4).
    With Beta angles each row is **exactly** uniform on the sphere, with O(d) stored numbers; pairs of rows are more
    dependent than those of `StructuredGivens`.  The block HD in front (``mix``) keeps the exactness and restores low
    variance on sparse inputs (m = d = 16, :math:`|z|` = 2 along :math:`e_1`: 0.0214 against 0.0527 without it; Haar 0.0202).

    QBF writes the transpose, B, and takes its *columns* as directions, since its rules evaluate
    :math:`f(\rho B v_j)`; here a direction is a *row* of R, so :math:`R = B^T`.  With ``angles="tree"`` QBF's columns,
    our rows, are exactly uniform.  ``products=3`` is QBF's :math:`(B P)(B P)(B P)` with random permutations P.

    Only coordinate axes come out uniform: on simplex vertices a single butterfly is biased (by up to 0.07 at d = 8,
    :math:`|z|` = 2, along an axis), three products by at most 0.003.  Dimensions that are not powers of two are padded.

    Deviations
    ----------
    OMC draws uniform angles and has no mixing block: ``Butterfly("uniform", mix=False)``, biased by +0.11 (d = 8) and
    +0.20 (d = 16) at :math:`|z|` = 1.5 along :math:`e_1`.  QBF reads its angles off ratios :math:`u_i/u_{i+1}` that are no
    angles, and calls the result Haar, which it is not for d > 2.

    Parameters
    ----------
    angles : {"beta", "uniform", "tree"}
        Law of the angles, see `bochner.rotations.angles.draw_angles`.
    mix : bool
        Whether one HD block is applied first.
    products : int
        How many independent butterflies are multiplied, each with a random permutation if there are several.

    References
    ----------
    OMC Section 3.3; QBF Section 3; the Beta angles are of this library.

    Examples
    --------
    >>> from bochner.rotations import Butterfly
    >>> R = Butterfly("tree", mix=False).sample(8, rng=0)
    >>> sum(stage.angles.size for stage in R.stages)
    7
    """

    products: int = 1
    name: ClassVar[str] = "butterfly"
    references: ClassVar[tuple[str, ...]] = ("omc", "qbf")

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "products", check_count("Butterfly", "products", self.products))

    def _draw(self, name: str, dim: int, n_blocks: int, rng: np.random.Generator) -> DrawnRotation:
        stages = self._mixing(dim, n_blocks, rng)
        for _ in range(self.products):
            stages += self._levels(dim, n_blocks, rng, shared=True)
            if self.products > 1:  # (B P)^T = P^T B^T: the butterfly acts first, then the permutation
                order = rng.permuted(np.tile(np.arange(dim, dtype=np.int32), (n_blocks, 1)), axis=1)
                stages.append(Permutation(order))
        return FastRotation(name, n_blocks, dim, stages)
