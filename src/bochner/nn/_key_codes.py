"""Codes of keys: signs of a drawn projection in a frame, from which scores are estimated by counting equal bits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from .._random import streams
from .._validation import check_count, check_instance, shown
from ..maps import Frame
from ..projections import Orthogonal, Projection
from ._attention_checks import check_generator
from ._checkpoint import FixedPrecision

_OWNER = "KeyCodes"


class Coded(NamedTuple):
    """Queries or keys as codes know them."""

    signs: Tensor  # (..., n, bits): plus and minus one
    norms: Tensor  # (..., n): lengths in the frame
    offsets: Tensor  # (..., n): what a key adds to its scores whatever the query, ``a.y``; zero for queries
    packed: Tensor | None = None  # (..., n, words): the signs as words of 64 bits, where they have been formed

    def words(self) -> Tensor:
        """Signs as words of 64 bits, (..., n, words)."""
        return packed(self.signs) if self.packed is None else self.packed


class KeyCodes(FixedPrecision):
    r"""Random codes that rank the keys of a query without reading them.

    A key is reduced to a few bits and two numbers.  `coded_attention` ranks all keys by them, and computes the scores of
    the best ones exactly.

    Parameters
    ----------
    frames : sequence of Frame
        The frame of each head, such as `calibrate` finds from the pairs that attention gives weight to.
    bits : int
        Length of a code, the number of rows of the projection.
    projection : Projection, optional
        Law of the rows, by default orthogonal ones; only their directions matter.
    dtype : torch.dtype
        float32 or float64.
    generator : torch.Generator, optional
        Source of the draw; by default torch's global generator.

    Notes
    -----
    In the frame :math:`x' = M^T(x - a)` and :math:`y' = M^{-1}(y - b)`, scores of one query differ between keys by
    :math:`x'\cdot y' + a\cdot y` only.  Signs of a row w with uniform direction disagree with probability
    :math:`\theta/\pi`, where :math:`\theta` is the angle between x' and y', so with h disagreements among B bits

    .. math:: \widehat{x\cdot y} = |x'||y'| \sin\Big(\frac\pi2\big(1 - 2h/B\big)\Big) + a\cdot y

    up to a number that is the same for all keys.  The frame makes the angle as informative as possible: without it, on
    the attention of trained language models, codes lose more.

    Examples
    --------
    >>> import torch
    >>> from bochner.nn import KeyCodes
    >>> q, k = torch.randn(2, 4, 100, 16, generator=torch.Generator().manual_seed(0))
    >>> codes = KeyCodes.fitted(q, k, bits=64)
    >>> codes.scores(codes.queries(q), codes.keys(k)).shape
    torch.Size([4, 100, 100])
    """

    query_center: Tensor
    query_turn: Tensor
    key_center: Tensor
    key_turn: Tensor
    rows: Tensor
    phases: Tensor

    def __init__(
        self,
        frames: Sequence[Frame],
        bits: int = 64,
        projection: Projection | None = None,
        *,
        dtype: torch.dtype = torch.float32,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.bits = check_count(_OWNER, "bits", bits)
        self.projection = Orthogonal() if projection is None else projection
        check_instance(_OWNER, "projection", self.projection, Projection, "projections.Orthogonal()")
        check_generator(_OWNER, generator)
        if not len(frames):
            raise ValueError(f"{_OWNER}: frames must hold a frame for each head, got none.")
        for h, frame in enumerate(frames):
            check_instance(_OWNER, f"frames[{h}]", frame, Frame, "maps.Frame(a, b, M)")
        if len({frame.d for frame in frames}) > 1:
            raise ValueError(f"{_OWNER}: frames must be of one dimension, got {shown([f.d for f in frames])}.")
        for side, key in (("query", False), ("key", True)):
            found = [frame.coordinates(key=key) for frame in frames]
            self.register_buffer(
                f"{side}_center", _stacked([o + f.origin for (o, _), f in zip(found, frames, strict=True)], dtype)
            )
            self.register_buffer(f"{side}_turn", _stacked([turn for _, turn in found], dtype))
        self.register_buffer("rows", torch.empty(self.bits, frames[0].d, dtype=dtype))
        self.register_buffer("phases", torch.empty(len(frames), dtype=torch.float64))
        self.redraw(generator)

    @classmethod
    def fitted(
        cls,
        q: Tensor,
        k: Tensor,
        bits: int = 64,
        projection: Projection | None = None,
        *,
        scale: float | None = None,
        generator: torch.Generator | None = None,
    ) -> KeyCodes:
        """Return codes in the frames that balance these queries and keys, head by head.

        Parameters
        ----------
        q, k : Tensor (..., heads, length, d)
            Queries and keys.
        bits, projection, generator
            As in the constructor.
        scale : float, optional
            Factor of the dot products, by default one over the root of d.
        """
        root = math.sqrt(q.shape[-1] ** -0.5 if scale is None else scale)
        frames = []
        for h in range(q.shape[-3]):
            x, y = (root * z[..., h, :, :].detach().double().flatten(0, -2).cpu().numpy() for z in (q, k))
            S_x, S_y = (np.cov(z, rowvar=False, bias=True).reshape(z.shape[1], -1) for z in (x, y))
            frames.append(Frame.of_moments(x.mean(0), y.mean(0), S_x, S_y, np.zeros_like(S_x)))
        dtype = torch.float64 if q.dtype == torch.float64 else torch.float32
        codes: KeyCodes = cls(frames, bits, projection, dtype=dtype, generator=generator).to(q.device)
        return codes

    def redraw(self, generator: torch.Generator | None = None) -> None:
        """Draw other rows; the frames are kept.

        Parameters
        ----------
        generator : torch.Generator, optional
            Source of the draw; by default torch's global generator.
        """
        check_generator(f"{_OWNER}.redraw", generator)
        device = "cpu" if generator is None else generator.device
        seed = int(torch.randint(2**63 - 1, (), generator=generator, device=device))
        drawn = self.projection.sample(self.rows.shape[1], self.bits, rng=seed).to_dense()
        self.rows.copy_(torch.from_numpy(drawn))
        (phases,) = streams(seed, "phases")
        self.phases.copy_(torch.from_numpy(phases.random(self.heads)))

    @property
    def heads(self) -> int:
        """Number of heads."""
        return len(self.query_center)

    @property
    def d(self) -> int:
        """Width of a head."""
        return int(self.rows.shape[1])

    def queries(self, x: Tensor) -> Coded:
        """Codes of queries (..., heads, n, d), which are multiplied by the root of the scale."""
        inside = (x - self.query_center.to(x)) @ self.query_turn.to(x)
        return Coded(self._signs(inside), inside.norm(dim=-1), torch.zeros_like(inside[..., 0]))

    def keys(self, y: Tensor) -> Coded:
        """Codes of keys (..., heads, n, d), which are multiplied by the root of the scale."""
        inside = (y - self.key_center.to(y)) @ self.key_turn.to(y)
        offsets = (y @ self.query_center.to(y).mT)[..., 0]
        return Coded(self._signs(inside), inside.norm(dim=-1), offsets)

    def scores(self, queries: Coded, keys: Coded) -> Tensor:
        """Estimated scores (..., n, p) of queries and keys, up to a number for each query."""
        cosines = (queries.signs @ keys.signs.mT).mul_(math.pi / 2 / self.bits).sin_()
        return cosines.mul_(queries.norms[..., None]).mul_(keys.norms[..., None, :]).add_(keys.offsets[..., None, :])

    def of_heads(self, heads: Sequence[int]) -> KeyCodes:
        """Return the same codes for some of the heads."""
        some = KeyCodes.__new__(KeyCodes)
        FixedPrecision.__init__(some)
        some.bits, some.projection = self.bits, self.projection
        for name, values in self.named_buffers():
            some.register_buffer(name, values if name == "rows" else values[list(heads)])
        return some

    def cosines(self) -> Tensor:
        """Estimated cosine for each number of different bits, (bits + 1,)."""
        different = torch.arange(self.bits + 1, dtype=torch.float64)
        return (math.pi / 2 * (1 - 2 * different / self.bits)).sin().to(torch.float32)

    def _signs(self, inside: Tensor) -> Tensor:
        return torch.where(inside @ self.rows.to(inside).mT > 0, 1.0, -1.0).to(inside)

    def extra_repr(self) -> str:
        """Heads, width and bits."""
        return f"heads={self.heads}, d={self.d}, bits={self.bits}, projection={self.projection!r}"


def packed(signs: Tensor) -> Tensor:
    """Signs (..., bits) as words of 64 bits, (..., words)."""
    lost = -signs.shape[-1] % 64
    bits: Tensor = torch.nn.functional.pad(signs > 0, (0, lost)).unflatten(-1, (-1, 64))
    word = bits[..., 63].long() << 63
    for place in range(63):  # one column at a time: all columns as 64-bit integers would be 64 times the result
        word |= bits[..., place].long() << place
    return word


def _stacked(parts: Sequence[np.ndarray], dtype: torch.dtype) -> Tensor:
    """The arrays of all heads, (heads, 1 or d, d)."""
    return torch.from_numpy(np.stack([np.atleast_2d(part) for part in parts])).to(dtype)
