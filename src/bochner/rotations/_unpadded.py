"""Hadamard and butterfly rotations in dimensions that are not powers of two, without padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .._arrays import array_namespace, like
from .._validation import check_count, check_flag
from ..linalg import references
from ._givens import Butterfly, random_orders
from ._hadamard import Hadamard
from ._rotation import Directions, FastRotation, check_factors
from ._stages import AngledStage, Permutation, Stage, levels_of, rademacher, require_valid, stored_numbers


class FoldedWalsh(Stage):
    r"""Random signs, a Hadamard matrix on one end of the coordinates, and a quarter of a half turn between both halves.

    Parameters
    ----------
    signs : int8 array (n_blocks, dim)
        Random signs.
    last : bool
        Whether the last :math:`2^L \le` dim coordinates are transformed, or the first.
    """

    numbers: ClassVar[tuple[str, ...]] = ("signs",)

    def __init__(self, signs: np.ndarray, last: bool) -> None:
        check_flag("FoldedWalsh", "last", last)
        self.signs, self.last = stored_numbers("FoldedWalsh", "signs", signs, 2, np.int8), last
        dim = self.signs.shape[1]
        require_valid("FoldedWalsh", self, dim)
        self._levels, self._half = levels_of(dim), int(dim) // 2
        self._size: int = 1 << self._levels
        self._first = dim - self._size if last else 0
        self._scales = np.ones(dim)
        self._scales[self._first : self._first + self._size] = 2.0 ** (-self._levels / 2)
        pairs = np.arange(self._half, dtype=np.int32)
        self._pairs = pairs, (pairs + (dim - self._half)).astype(np.int32), np.full(self._half, np.sqrt(0.5))

    def valid(self, dim: int) -> bool:
        """Signs are +1 and -1."""
        return self.signs.shape[1] == dim and bool((np.abs(self.signs) == 1).all())

    def flops(self, dim: int) -> int:
        """One multiplication by a scaled sign for each number, the additions of the levels, and four for each pair."""
        return dim + self._size * self._levels + 4 * self._half

    def cost(self, dim: int) -> float:
        """A pass for the signs and for each pair, and the levels."""
        return 45.0 + self._levels * self._size / dim

    def rows(self, x: Any, blocks: slice, *, back: bool) -> Any:
        factors = like(self.signs[blocks] * self._scales, x)
        return factors * self._walsh(self._fold(x, -1.0)) if back else self._fold(self._walsh(factors * x), 1.0)

    def _walsh(self, x: Any) -> Any:
        """The levels, on the end."""
        stop = self._first + self._size
        part = references.walsh_levels(x[..., self._first : stop], 0, self._levels)
        return array_namespace(x).concat([x[..., : self._first], part, x[..., stop:]], axis=-1)

    def _fold(self, x: Any, sign: float) -> Any:
        """Rotate pairs of coordinates of the two halves by 45 degrees; the middle of an odd number is in neither."""
        half, dim = self._half, x.shape[-1]
        a, middle, b = x[..., :half], x[..., half : dim - half], x[..., dim - half :]
        c = float(np.sqrt(0.5))
        low, high = (a - b, a + b) if sign > 0 else (a + b, b - a)
        return array_namespace(x).concat([c * low, middle, c * high], axis=-1)

    def lanes(self, lanes: np.ndarray, block: int, dim: int, *, back: bool) -> None:
        from ..linalg.loops import givens_walk, scale_lines, walsh_levels

        i, j, c = self._pairs
        c = c.astype(lanes.dtype)
        factors = self.signs[block] * self._scales
        if back:
            givens_walk(lanes, i, j, c, c, True)
            walsh_levels(lanes, self._size, 0, self._levels, self._first)
        scale_lines(lanes, factors, 1.0)
        if not back:
            walsh_levels(lanes, self._size, 0, self._levels, self._first)
            givens_walk(lanes, i, j, c, c, False)


@dataclass(frozen=True)
class UnpaddedHadamard(FastRotation):
    r"""Hadamard rotations of any dimension: rows are orthogonal in the d coordinates of the data, not in a padded space.

    Use them where d is not a power of two and the number of rows is near d or above it, such as codes of 768 bits for
    embeddings of 768 numbers.

    Parameters
    ----------
    blocks : int
        Number of factors, as in `Hadamard`.

    See Also
    --------
    Hadamard : The same in powers of two; other dimensions are padded with zeros.

    Notes
    -----
    With :math:`p = 2^L` the largest power of two up to d, a factor is :math:`(K H_e D')(K H_b D)`: random signs, the
    normalised Hadamard matrix on the first p coordinates, a rotation K by 45 degrees of every coordinate of the lower
    half with its partner in the upper half, and the same with the last p coordinates.  In powers of two the factor is
    :math:`H D`, and the rotation that of `Hadamard`.  A product takes as long as one in the padded dimension.

    The rows of a padded rotation are orthogonal in the padded space.  Cut to the data, two of them have a squared cosine of
    about (1/d)(1 - d/d') in place of zero, and in small dimensions some are parallel, so that part of the gain
    over independent rows is lost.  These rows lose nothing: the trigonometric estimate at m = d = 20, :math:`|z|` = 2 along
    :math:`e_1` has the error 0.0168, against 0.0204 for padded rows and 0.0164 for Haar.  Like those of
    `Hadamard`, they are not exactly uniform: the bias there is below 0.01 for d >= 12, and up to 0.04 at d = 5.

    References
    ----------
    gao2024 use a similar chain; OMC Section 3.2 for the factors.

    Examples
    --------
    >>> from bochner.rotations import UnpaddedHadamard
    >>> R = UnpaddedHadamard().sample(48, rng=0)
    >>> R.dim, len(R.stages)
    (48, 6)
    """

    blocks: int = 3
    powers_of_two: ClassVar[bool] = False
    name: ClassVar[str] = "unpadded-hadamard"
    references: ClassVar[tuple[str, ...]] = ("omc", "yu2016", "gao2024")

    def __post_init__(self) -> None:
        object.__setattr__(self, "blocks", check_factors("UnpaddedHadamard", "blocks", self.blocks))

    @property
    def uniform_directions(self) -> Directions:
        return "none"

    def stages(self, dim: int, n_blocks: int, rng: np.random.Generator) -> Sequence[Stage]:
        """Return the factors: two stages each, or one in powers of two."""
        if not dim & (dim - 1):
            return Hadamard(self.blocks).stages(dim, n_blocks, rng)
        return [FoldedWalsh(rademacher(rng, n_blocks, dim), last=k % 2 == 1) for k in range(2 * self.blocks)]


class CutLevel(AngledStage):
    r"""One level of a butterfly without the pairs whose second coordinate is beyond the dimension (QBF Section 9.1).

    Parameters
    ----------
    level : int
        Pairs are ``2**level`` apart.
    angles : float64 array (n_blocks, groups)
        One angle for every group of ``2**(level + 1)`` coordinates that has a pair.
    dim : int
        Dimension; coordinates without a partner stay as they are.
    """

    numbers: ClassVar[tuple[str, ...]] = ("angles",)

    def __init__(self, level: int, angles: np.ndarray, dim: int) -> None:
        self.level, self.dim = check_count("CutLevel", "level", level, 0), check_count("CutLevel", "dim", dim, 2)
        self.angles = stored_numbers("CutLevel", "angles", angles, 2, np.float64)
        half = 1 << self.level
        first = np.arange(self.dim - half, dtype=np.int32) if half < self.dim else np.empty(0, np.int32)
        self._first = first[(first & half) == 0]
        self._group = self._first >> (self.level + 1)
        require_valid("CutLevel", self, self.dim)
        paired = np.concatenate([self._first, self._first + half])
        alone = np.setdiff1d(np.arange(self.dim), paired)
        self._alone, self._order = alone, np.argsort(np.concatenate([paired, alone]))

    def valid(self, dim: int) -> bool:
        """There are pairs, and one angle for every group that has some."""  # a part of the error message
        return self.dim == dim and self._first.size > 0 and self.angles.shape[1] == self._group[-1] + 1

    def flops(self, dim: int) -> int:
        """Four multiplications and two additions for each pair."""
        return 6 * len(self._first)

    def cost(self, dim: int) -> float:
        """Pairs are rotated one after the other, as in a walk."""
        return 22.0 * len(self._first) / dim

    def rows(self, x: Any, blocks: slice, *, back: bool) -> Any:
        c, s = (like(table[blocks][:, self._group], x) for table in self._table(np.dtype(np.float64)))
        a, b = x[..., self._first], x[..., self._first + (1 << self.level)]
        a, b = (c * a + s * b, c * b - s * a) if back else (c * a - s * b, s * a + c * b)
        xp = array_namespace(x)
        alone = xp.broadcast_to(x[..., self._alone], (*a.shape[:-1], len(self._alone)))
        return xp.concat([a, b, alone], axis=-1)[..., self._order]

    def lanes(self, lanes: np.ndarray, block: int, dim: int, *, back: bool) -> None:
        from ..linalg.loops import givens_walk

        c, s = (table[block][self._group] for table in self._table(lanes.dtype))
        givens_walk(lanes, self._first, self._first + np.int32(1 << self.level), c, s, back)


@dataclass(frozen=True)
class UnpaddedButterfly(FastRotation):
    r"""Butterfly rotations of any dimension by deletion: products :math:`BPBPBP` with random permutations, method B of QBF.

    Use them for quadrature rules (`projections.Quadrature`) where d is not a power of two: a rule has d + 1 vertices, not
    those of a padded dimension, so whole rules fit in the width that the paper gives them.

    Parameters
    ----------
    products : int
        Number of independent butterflies that are multiplied, each with a random permutation if there are several.

    See Also
    --------
    Butterfly : The same in powers of two; other dimensions are padded with zeros.

    Notes
    -----
    Every level has the pairs :math:`(i, i + 2^j)` of the next power of two without those that leave the d coordinates; a
    coordinate without a partner stays as it is.  Angles are those of a uniform point on the sphere of d coordinates (QBF
    Section 3, corrected): uniform at the leaves, above them :math:`\mathrm{atan2}` of the norms of the two halves, which
    are independent chi variables with as many degrees of freedom as the halves have coordinates.  In powers of two this is
    ``Butterfly("tree", mix=False, products=products)``.

    A single butterfly made by deletion has zeros (QBF Figure 4), and its rows are not uniform; the product of three is
    dense.  Its rows are nearly uniform: the bias of the trigonometric estimate at :math:`|z|` = 2 along an axis was at most
    0.016 (d = 5, the last axis), and at most 0.006 from d = 12 on.

    References
    ----------
    QBF Sections 3 and 9.1.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.rotations import UnpaddedButterfly
    >>> R = UnpaddedButterfly().sample(15, rng=0).to_dense()[0]
    >>> bool(np.allclose(R @ R.T, np.eye(15))), int((np.abs(R) < 1e-12).sum())
    (True, 0)
    """

    products: int = 3
    powers_of_two: ClassVar[bool] = False
    name: ClassVar[str] = "unpadded-butterfly"
    references: ClassVar[tuple[str, ...]] = ("qbf",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "products", check_factors("UnpaddedButterfly", "products", self.products))

    @property
    def uniform_directions(self) -> Directions:
        return "none"

    def stages(self, dim: int, n_blocks: int, rng: np.random.Generator) -> Sequence[Stage]:
        """Return the levels and the permutation of each product."""
        if not dim & (dim - 1):
            return Butterfly("tree", mix=False, products=self.products).stages(dim, n_blocks, rng)
        stages: list[Stage] = []
        for _ in range(self.products):
            for level in range((dim - 1).bit_length()):
                stages.append(CutLevel(level, _cut_angles(level, dim, n_blocks, rng), dim))
            if self.products > 1:
                stages.append(Permutation(random_orders(dim, n_blocks, rng)))
        return stages


def _cut_angles(level: int, dim: int, n_blocks: int, rng: np.random.Generator) -> np.ndarray:
    """Angles of the groups of a level that have a pair, from the norms of two halves of a uniform point."""
    half = 1 << level
    starts = np.arange(0, dim - half, 2 * half)  # of the groups
    if level == 0:
        return rng.uniform(0, 2 * np.pi, (n_blocks, len(starts)))
    right = np.minimum(dim - starts - half, half)
    shape = (n_blocks, len(starts))
    return np.arctan2(np.sqrt(rng.chisquare(right, shape)), np.sqrt(rng.chisquare(half, shape)))
