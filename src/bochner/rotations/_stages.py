r"""The stages, orthogonal factors of which fast rotations are chains.

A stage holds the random numbers of one orthogonal factor for all blocks, and implements products with the factor and
its transpose, on rows of any array library and on compiled lanes (`bochner.linalg.compiled`).  A fast rotation is a
list of stages.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from itertools import groupby
from typing import Any, ClassVar

import numpy as np

from .._arrays import array_namespace, like
from .._random import RNG, as_generator
from .._validation import check_count, check_memory, shown
from ..linalg import references


class Stage(ABC):
    """Base class of stages: one orthogonal factor of a rotation, drawn for several independent blocks.

    To add your own stage, name its arrays in ``numbers`` and implement `rows`.  The base class derives `lanes` from it,
    which may be overridden by a faster version.
    """

    numbers: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def rows(self, x: Any, blocks: slice, *, back: bool) -> Any:
        """Multiply rows of any array library by the factors of several blocks, or by their transposes if ``back``.

        ``x`` has the shape (..., b, dim), one row for each of the b blocks, or (..., 1, dim), one row for all.
        """

    def lanes(self, lanes: np.ndarray, block: int, dim: int, *, back: bool) -> None:
        """Multiply the first ``dim`` lines of compiled lanes by the factor of one block, in place."""
        x = lanes[:, :dim].swapaxes(1, 2)[..., None, :]  # (groups, 16, 1, dim)
        lanes[:, :dim] = self.rows(x, slice(block, block + 1), back=back)[..., 0, :].swapaxes(1, 2)

    def reach(self, dim: int) -> int:
        """Neighbours among which coordinates are mixed: aligned groups of so many are not mixed with each other."""
        return dim

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays that define the stage, by name; the first axis of each counts the blocks."""
        return {name: getattr(self, name) for name in self.numbers}

    def valid(self, dim: int) -> bool:
        """Whether finite arrays of the right shapes and types define an orthogonal factor."""
        return True

    def flops(self, dim: int) -> int:
        """Additions and multiplications of a product with one vector."""
        raise NotImplementedError(
            f"{type(self).__name__}: the number of operations of a product is not defined; implement flops(dim)."
        )

    def cost(self, dim: int) -> float:
        """Time of the stage on lanes per number of the data, in multiply-adds of a matrix product."""
        return 100.0


class SignedWalsh(Stage):
    r"""Random signs, then normalised Walsh-Hadamard levels: :math:`H D`, or :math:`\tilde F^j D` for one level.

    Parameters
    ----------
    signs : int8 array (n_blocks, dim)
        Random signs.
    low, high : int
        The index bits ``low`` to ``high - 1`` are transformed; all bits give the Hadamard matrix, none only the signs.
    """

    numbers: ClassVar[tuple[str, ...]] = ("signs",)

    def __init__(self, signs: np.ndarray, low: int, high: int) -> None:
        self.signs = stored_numbers("SignedWalsh", "signs", signs, 2, np.int8)
        self.low = check_count("SignedWalsh", "low", low, 0)
        self.high = check_count("SignedWalsh", "high", high, self.low)
        require_valid("SignedWalsh", self, self.signs.shape[1])
        self._scale = 2.0 ** (-(self.high - self.low) / 2)

    def valid(self, dim: int) -> bool:
        """Signs are +1 and -1, and there are as many index bits as levels ask for."""
        return self.signs.shape[1] == dim and dim % 2**self.high == 0 and bool((np.abs(self.signs) == 1).all())

    def reach(self, dim: int) -> int:
        """Groups of the highest level."""
        return int(2**self.high)

    def flops(self, dim: int) -> int:
        """One multiplication by a scaled sign, and one addition per level, for each number."""
        return dim * (1 + self.high - self.low)

    def cost(self, dim: int) -> float:
        """One pass for the signs, and a third of one for each level."""
        return 30.0 + self.high - self.low

    def rows(self, x: Any, blocks: slice, *, back: bool) -> Any:
        signs = like(self.signs[blocks] * self._scale, x)
        if back:
            return signs * references.walsh_levels(x, self.low, self.high)
        return references.walsh_levels(signs * x, self.low, self.high)

    def lanes(self, lanes: np.ndarray, block: int, dim: int, *, back: bool) -> None:
        from ..linalg.loops import signed_walsh

        signed_walsh(lanes, (self.signs[block] * self._scale).astype(lanes.dtype), self.low, self.high, back)


class _WalshLevels(SignedWalsh):
    """The levels of a transform whose signs and scale are in another stage, for NumPy's loops on lanes."""

    def __init__(self, signs: np.ndarray, low: int, high: int) -> None:
        super().__init__(np.ones_like(signs), low, high)
        self._scale = 1.0

    def lanes(self, lanes: np.ndarray, block: int, dim: int, *, back: bool) -> None:
        from ..linalg.plain_lanes import walsh_levels

        walsh_levels(lanes, dim, self.low, self.high)


class AngledStage(Stage):
    """A stage made of plane rotations: angles in float64, their cosines and sines kept in the precision in use."""

    angles: np.ndarray

    @cached_property
    def _tables(self) -> dict[np.dtype, tuple[np.ndarray, np.ndarray]]:
        return {}

    def _table(self, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
        if dtype not in self._tables:
            self._tables[dtype] = (np.cos(self.angles).astype(dtype), np.sin(self.angles).astype(dtype))
        return self._tables[dtype]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_tables"}


class GivensLevel(AngledStage):
    r"""Rotations of all pairs of coordinates that differ in one index bit: :math:`F^j` of OMC Eq. 4.

    Parameters
    ----------
    level : int
        The bit; pairs are ``2**level`` apart.
    angles : float64 array (n_blocks, dim / 2**(level + 1), 2**level or 1)
        One angle per pair (structured Givens products), or one shared over the lower bits (butterflies).
    """

    numbers: ClassVar[tuple[str, ...]] = ("angles",)

    def __init__(self, level: int, angles: np.ndarray) -> None:
        self.level = check_count("GivensLevel", "level", level, 0)
        self.angles = stored_numbers("GivensLevel", "angles", angles, 3, np.float64)
        require_valid("GivensLevel", self, self.angles.shape[1] * 2 ** (self.level + 1))

    def valid(self, dim: int) -> bool:
        """One angle per pair, or one per group."""
        groups, angles = self.angles.shape[1:]
        return groups * 2 ** (self.level + 1) == dim and angles in (1, 2**self.level)

    def reach(self, dim: int) -> int:
        """Pairs and all that is between them."""
        return int(2 ** (self.level + 1))

    def flops(self, dim: int) -> int:
        """Four multiplications and two additions for each pair."""
        return 3 * dim

    def cost(self, dim: int) -> float:
        """One pass of rotations."""
        return 18.0

    def rows(self, x: Any, blocks: slice, *, back: bool) -> Any:
        c, s = self._table(np.dtype(np.float64))
        return references.givens_level(x, 2**self.level, c[blocks], -s[blocks] if back else s[blocks])

    def lanes(self, lanes: np.ndarray, block: int, dim: int, *, back: bool) -> None:
        from ..linalg.loops import givens_level

        c, s = self._table(lanes.dtype)
        givens_level(lanes, dim, 2**self.level, c[block], s[block], back)


class GivensWalk(AngledStage):
    """A sequence of rotations of single pairs of coordinates: Kac's random walk, OMC Eq. 1.

    Parameters
    ----------
    first, second : int32 array (n_blocks, steps)
        The pairs.
    angles : float64 array (n_blocks, steps)
    """

    numbers: ClassVar[tuple[str, ...]] = ("first", "second", "angles")

    def __init__(self, first: np.ndarray, second: np.ndarray, angles: np.ndarray) -> None:
        self.first = stored_numbers("GivensWalk", "first", first, 2, np.int32)
        self.second = stored_numbers("GivensWalk", "second", second, 2, np.int32)
        self.angles = stored_numbers("GivensWalk", "angles", angles, 2, np.float64)
        require_valid("GivensWalk", self, np.iinfo(np.int32).max)

    def valid(self, dim: int) -> bool:
        """Pairs are two different coordinates, each with its angle."""
        if not self.first.shape == self.second.shape == self.angles.shape:
            return False
        inside = (self.first >= 0) & (self.first < dim) & (self.second >= 0) & (self.second < dim)
        return bool((inside & (self.first != self.second)).all())

    def flops(self, dim: int) -> int:
        """Four multiplications and two additions for each step."""
        return 6 * int(self.angles.shape[1])

    def cost(self, dim: int) -> float:
        """Every step rotates two of the lines."""
        return 22.0 * float(self.angles.shape[1]) / dim

    def rows(self, x: Any, blocks: slice, *, back: bool) -> Any:
        c, s = self._table(np.dtype(np.float64))
        i, j, c, s = self.first[blocks], self.second[blocks], c[blocks], s[blocks]
        if back:
            i, j, c, s = i[:, ::-1], j[:, ::-1], c[:, ::-1], -s[:, ::-1]
        return references.givens_walk(x, i, j, c, s)

    def lanes(self, lanes: np.ndarray, block: int, dim: int, *, back: bool) -> None:
        from ..linalg.loops import givens_walk

        c, s = self._table(lanes.dtype)
        givens_walk(lanes, self.first[block], self.second[block], c[block], s[block], back)


class Permutation(Stage):
    """A random order of the coordinates: entry i of the result is entry ``order[i]`` of the input.

    Parameters
    ----------
    order : int32 array (n_blocks, dim)
    """

    numbers: ClassVar[tuple[str, ...]] = ("order",)

    def __init__(self, order: np.ndarray) -> None:
        self.order = stored_numbers("Permutation", "order", order, 2, np.int32)
        require_valid("Permutation", self, self.order.shape[1])

    def valid(self, dim: int) -> bool:
        """Every coordinate comes once."""
        return self.order.shape[1] == dim and bool((np.sort(self.order, axis=-1) == np.arange(dim)).all())

    def flops(self, dim: int) -> int:
        """None: numbers are only moved."""
        return 0

    def cost(self, dim: int) -> float:
        """Two passes of copies in no order."""
        return 85.0

    def rows(self, x: Any, blocks: slice, *, back: bool) -> Any:
        order = np.argsort(self.order[blocks], axis=-1) if back else self.order[blocks]
        x = array_namespace(x).broadcast_to(x, (*x.shape[:-2], *order.shape))
        return x[..., np.arange(len(order))[:, None], order]

    def lanes(self, lanes: np.ndarray, block: int, dim: int, *, back: bool) -> None:
        order = self.order[block]
        if back:
            lanes[:, order] = lanes[:, :dim].copy()
        else:
            lanes[:, :dim] = lanes[:, order]


class SmallBlocks(Stage):
    """Consecutive stages as one product with small matrices, for NumPy's loops on lanes.

    Parameters
    ----------
    stages : sequence of Stage
        In the order in which they are applied.
    dim : int
        Number of coordinates, a multiple of the reach of all stages.
    run : int
        One if the stages mix neighbours.  Otherwise, they mix coordinates that are multiples of this apart, and all of a
        run alike.
    """

    def __init__(self, stages: Sequence[Stage], dim: int, run: int = 1) -> None:
        self.stages, self.run = tuple(stages), run
        size = max(stage.reach(dim) for stage in stages) // run
        images = np.tile(np.repeat(np.eye(size), run, axis=1), dim // (size * run))[
            :, None, :
        ]  # an axis of every group
        for stage in stages:
            images = stage.rows(images, slice(None), back=False)
        images = images[..., ::run].reshape(size, -1, dim // (size * run), size)
        self._matrices = np.moveaxis(images, 0, 2)  # (blocks, groups, size, size)
        self._cast: dict[np.dtype, np.ndarray] = {}

    def cost(self, dim: int) -> float:
        """One multiply-add for each entry of a column."""
        return float(self._matrices.shape[-1])

    def rows(self, x: Any, blocks: slice, *, back: bool) -> Any:
        for stage in self.stages[::-1] if back else self.stages:
            x = stage.rows(x, blocks, back=back)
        return x

    def lanes(self, lanes: np.ndarray, block: int, dim: int, *, back: bool) -> None:
        from ..linalg.plain_lanes import multiply_blocks

        if lanes.dtype not in self._cast:
            self._cast[lanes.dtype] = np.ascontiguousarray(self._matrices, dtype=lanes.dtype)
        matrices = self._cast[lanes.dtype][block]
        multiply_blocks(lanes, matrices.swapaxes(1, 2) if back else matrices, self.run)


_JOINED_BYTES = 1 << 26  # largest size of the matrices of stages that are put together


def joined(stages: Sequence[Stage], dim: int, n_blocks: int) -> tuple[Stage, ...]:
    """Stages with neighbours put together, which is faster where products are faster than passes."""
    from ..linalg.plain_lanes import FAR, SMALL

    if 8 * n_blocks * dim * SMALL > _JOINED_BYTES:
        return tuple(stages)

    def run_of(stage: Stage) -> int:
        """The run of the products that a stage can be part of, or zero."""
        if stage.reach(dim) <= SMALL:
            return 1
        shared = isinstance(stage, GivensLevel) and stage.angles.shape[2] == 1 and 2**stage.level >= SMALL
        return SMALL if shared and stage.reach(dim) <= SMALL * FAR else 0

    found: list[Stage] = []
    for run, group in groupby(_split(stages, dim, levels_of(SMALL)), key=run_of):
        together = tuple(group)
        found += [SmallBlocks(together, dim, run)] if run and len(together) > 1 else together
    return tuple(found)


def _split(stages: Sequence[Stage], dim: int, level: int) -> list[Stage]:
    """Walsh-Hadamard transforms in two, those of neighbours next to another stage of neighbours: their order is free."""
    found: list[Stage] = []
    for stage, after in zip(stages, (*stages[1:], None), strict=True):
        if not (isinstance(stage, SignedWalsh) and stage.low < level < stage.high):
            found.append(stage)
            continue
        alone = not found or found[-1].reach(dim) > 2**level
        near_last = alone and after and (after.reach(dim) <= 2**level or isinstance(after, SignedWalsh))
        parts = ((level, stage.high), (stage.low, level)) if near_last else ((stage.low, level), (level, stage.high))
        first, second = SignedWalsh(stage.signs, *parts[0]), _WalshLevels(stage.signs, *parts[1])
        first._scale = stage._scale
        found += [first, second]
    return found


def rademacher(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Draw random signs, +1 or -1 with equal probability.

    Parameters
    ----------
    rng : numpy.random.Generator
        Source of randomness.
    *shape : int
        Shape of the result.

    Returns
    -------
    int8 array of shape ``shape``
    """
    return (2 * rng.integers(0, 2, size=shape, dtype=np.int8) - 1).astype(np.int8)


def levels_of(dim: int) -> int:
    """L with 2^L = dim."""
    return int(dim).bit_length() - 1


def hd_block(rng: RNG, n_blocks: int, dim: int) -> SignedWalsh:
    """Draw one H D factor: random signs, then the normalised Hadamard matrix.

    Parameters
    ----------
    rng : int, numpy.random.Generator or None
        Source of randomness.
    n_blocks : int
        Number of independent blocks.
    dim : int
        Dimension, a power of two.

    Returns
    -------
    SignedWalsh
    """
    n_blocks, dim = check_count("hd_block", "n_blocks", n_blocks), check_count("hd_block", "dim", dim)
    if dim & (dim - 1):
        raise ValueError(f"hd_block: dim must be a power of two, got {dim}; fast rotations pad to one.")
    check_memory("hd_block", float(n_blocks) * dim, "use fewer blocks or dimensions")
    return SignedWalsh(rademacher(as_generator(rng), n_blocks, dim), 0, levels_of(dim))


def stored_numbers(owner: str, name: str, values: Any, n_axes: int, dtype: Any) -> np.ndarray:
    """Return the numbers of a stage as a contiguous array of that type, whose first axis counts the blocks."""
    try:
        array = np.asarray(values)
    except ValueError:
        array = np.empty(0)
    kinds = "iu" if np.dtype(dtype).kind == "i" else "iuf"
    if array.ndim != n_axes or array.dtype.kind not in kinds or not array.size or not np.isfinite(array).all():
        what = "integers" if kinds == "iu" else "finite numbers"
        raise ValueError(
            f"{owner}: {name} must be an array of {what} with {n_axes} axes, blocks first, got {shown(values)}."
        )
    return np.ascontiguousarray(array, dtype)


def require_valid(owner: str, stage: Stage, dim: int) -> None:
    """Raise a ValueError if the numbers do not make an orthogonal factor."""
    if not stage.valid(dim):
        raise ValueError(f"{owner}: these numbers do not make an orthogonal factor: {stage.valid.__doc__}")
