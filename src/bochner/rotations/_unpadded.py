"""Hadamard rotations in dimensions that are not powers of two, without padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .._arrays import array_namespace, like
from .._validation import check_flag
from ..linalg import references
from ._hadamard import Hadamard
from ._rotation import Directions, FastRotation, check_factors
from ._stages import Stage, levels_of, rademacher, require_valid, stored_numbers


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
        from ..linalg.compiled.lanes import givens_walk, scale_lines, walsh_levels

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
