"""A small Conformer for speech, with any attention: blocks, and the mechanisms that are compared.

Import this file only where torch is known to be installed.
"""

from __future__ import annotations

import copy
from typing import TypeAlias, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bochner import Approximation
from bochner.nn import AttentionFeatures, ElementwiseFeatures, Rotary, linear_attention

from ._transformers import Shape, seeded

EXACT, UNIFORM, NONE = "softmax", "uniform attention", "no attention"
"""Exact attention, the mean of all values, and nothing in its place."""
ELEMENTWISE = ("elu", "relu")
Kind: TypeAlias = Approximation | str
"""Features of softmax, one of the three above, or a function of single coordinates."""


class Attention(nn.Module):
    """Attention of several heads with rotary positions; how queries meet keys is exchangeable.

    Parameters
    ----------
    width, heads : int
    kind : Approximation or str
        A `Kind`.
    seed : int
        Of the draw.
    rotary : bool
        Whether queries and keys are turned by their positions.
    unit : float, optional
        Queries and keys are divided by their lengths, and logits are so many times their cosines.
    """

    features: AttentionFeatures | ElementwiseFeatures | None

    def __init__(
        self, width: int, heads: int, kind: Kind, seed: int, *, rotary: bool = True, unit: float | None = None
    ) -> None:
        super().__init__()
        self.inward, self.outward = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.heads, self.kind, self.seed = heads, kind, seed
        self.rotary, self.unit = Rotary(width // heads) if rotary else None, unit
        self.fit_again()

    def fit_again(self) -> None:
        """Have constants of the map chosen from the next batch; the rows of W stay those of the seed."""
        self.features = None
        if isinstance(self.kind, Approximation):
            self.features = AttentionFeatures(self.kind, generator=torch.Generator().manual_seed(self.seed))
        elif self.kind in ELEMENTWISE:
            self.features = ElementwiseFeatures(self.outward.in_features // self.heads, self.kind)

    def forward(self, x: Tensor, there: Tensor) -> Tensor:
        """Attention within sequences x (batch, n, width); ``there`` (batch, n) is False for padding."""
        if self.kind == NONE:
            return torch.zeros_like(x)
        q, k, v = self.inward(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        if self.kind == UNIFORM:
            weights = there[:, None, :, None] / there.sum(1)[:, None, None, None]
            out = (weights * v).sum(-2, keepdim=True).expand_as(v)
        else:
            q, k = (q, k) if self.rotary is None else (self.rotary(q), self.rotary(k))
            q, k = (q, k) if self.unit is None else (F.normalize(q, dim=-1), F.normalize(k, dim=-1))
            if self.features is None:
                out = F.scaled_dot_product_attention(q, k, v, attn_mask=there[:, None, None], scale=self.unit)
            else:
                out = linear_attention(q, k, v, features=self.features, key_mask=there[:, None], scale=self.unit)
        return cast("Tensor", self.outward(out.transpose(1, 2).flatten(2)))


def fit_again(model: nn.Module) -> None:
    """Have constants of all maps of a model chosen from the next batch."""
    for module in model.modules():
        if isinstance(module, Attention):
            module.fit_again()


def with_kind(model: nn.Module, kind: Kind, seed: int | None = None) -> nn.Module:
    """A copy whose attention is of another kind, with the same weights, and with draws of another seed if one is given."""
    new = copy.deepcopy(model)
    for k, module in enumerate(m for m in new.modules() if isinstance(m, Attention)):
        module.kind = kind
        module.seed = module.seed if seed is None else seed + k
        module.fit_again()
    return new


class Convolution(nn.Module):
    """Gated convolution over time, each channel by itself."""

    def __init__(self, width: int, kernel: int) -> None:
        super().__init__()
        self.gate, self.out = nn.Linear(width, 2 * width), nn.Linear(width, width)
        self.over_time = nn.Conv1d(width, width, kernel, padding=kernel // 2, groups=width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Tensor, there: Tensor) -> Tensor:
        """Convolve sequences whose padding is zero."""
        x = F.glu(self.gate(x), -1) * there[..., None]
        return cast("Tensor", self.out(F.silu(self.norm(self.over_time(x.mT).mT))))


class Block(nn.Module):
    """Half a feed-forward layer, attention, convolution, and the other half."""

    def __init__(self, shape: Shape, kernel: int, kind: Kind, seed: int, unit: float | None) -> None:
        super().__init__()
        d = shape.width
        self.norms = nn.ModuleList(nn.LayerNorm(d) for _ in range(5))
        self.halves = nn.ModuleList(
            nn.Sequential(nn.Linear(d, 2 * d), nn.SiLU(), nn.Linear(2 * d, d)) for _ in range(2)
        )
        self.attention = Attention(d, shape.heads, kind, seed, unit=unit)
        self.convolution = Convolution(d, kernel)

    def forward(self, x: Tensor, there: Tensor) -> Tensor:
        """One block; the order is that of Gulati et al. (2020)."""
        x = x + 0.5 * self.halves[0](self.norms[0](x))
        x = x + self.attention(self.norms[1](x), there)
        x = x + self.convolution(self.norms[2](x), there)
        x = x + 0.5 * self.halves[1](self.norms[3](x))
        return cast("Tensor", self.norms[4](x))


class Conformer(nn.Module):
    """Blocks over groups of frames, and logarithms of the probabilities of words and blanks.

    Parameters
    ----------
    n_inputs : int
        Numbers of a frame.
    stride : int
        Frames that make one position.
    n_outputs : int
        Words and the blank, which is 0.
    shape : Shape
    kernel : int
        Positions of a convolution.
    kind : Approximation or str
        As in `Attention`.
    seed : int
        Of initial weights and draws: the same for all kinds.
    unit : float, optional
        As in `Attention`.
    """

    def __init__(
        self,
        n_inputs: int,
        stride: int,
        n_outputs: int,
        shape: Shape,
        kernel: int,
        kind: Kind,
        seed: int,
        unit: float | None = None,
    ) -> None:
        super().__init__()
        self.stride = stride
        with seeded(seed):
            self.embedding = nn.Linear(stride * n_inputs, shape.width)
            self.blocks = nn.ModuleList(Block(shape, kernel, kind, seed + k, unit) for k in range(shape.layers))
            self.head = nn.Linear(shape.width, n_outputs)

    def forward(self, frames: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probabilities (batch, positions, outputs) of frames (batch, n, inputs), and numbers of positions."""
        x = self.embedding(frames.unflatten(1, (-1, self.stride)).flatten(2))
        lengths = lengths // self.stride
        there = torch.arange(x.shape[1]) < lengths[:, None]
        for block in self.blocks:
            x = block(x, there)
        return F.log_softmax(self.head(x), -1), lengths
