"""A character model whose heads start as those that look up where the same characters came before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

from .._transformers import Shape, seeded
from ._character_training import start
from ._characters import CharacterModel

Parts = Sequence[tuple[slice, Tensor]]
"""Parts of the coordinates, each with a matrix that is applied to it."""
_LONGEST = 2000.0
"""Longest period of the sinusoids that positions start from, over two pi."""
_SIZE = 0.4
"""Standard deviation of the coordinates of a character at the start."""


class LookUpModel(CharacterModel):
    """A character model that starts with heads which use the whole context, as a long training finds them.

    The coordinates are divided in four parts: the character, its place as sinusoids, and the characters one and two before
    it.  Two heads of the first layer start by copying those.  Two heads of the second start at the places that follow the
    same two characters, wherever they came before, and copy what stands there.  Other weights start at random, and all are
    trained.
    """

    def __init__(self, n_characters: int, length: int, shape: Shape, seed: int) -> None:
        super().__init__(n_characters, length, shape, seed)
        d = shape.width // 4
        character, place, *before = (slice(k * d, (k + 1) * d) for k in range(4))
        frequencies = 2 * _LONGEST ** -(torch.arange(0, d, 2) / d)
        angles = torch.arange(length)[:, None] * frequencies
        with seeded(seed + 1), torch.no_grad():
            start(self)
            cast("nn.LayerNorm", self.encoder.norm).weight.fill_(_SIZE)
            self.words.weight.zero_()[:, character].normal_(std=_SIZE)
            self.positions.zero_()[:, place] = _SIZE * 2**0.5 * torch.cat([angles.sin(), angles.cos()], dim=1)
            first, second = (_Heads(layer.self_attn) for layer in self.encoder.layers[:2])
            for h, distance in enumerate((1, 2, 3, 0)):
                turned = _turn(distance * frequencies)
                first.match(h, [(place, turned)], [(place, torch.eye(d))], 2.0)
            for h, part in enumerate(before):
                first.copy(h, character, part, _SIZE / 2**0.5)
            for h in range(2):
                A, B = _rotation(d), _rotation(d)
                second.match(h, [(character, A), (before[0], B)], [(before[0], A), (before[1], B)], 1.3)
                second.copy(h, character, character, _SIZE)


class _Heads:
    """The weights of a layer's attention by head, to choose where a head starts."""

    def __init__(self, attention: nn.MultiheadAttention) -> None:
        d, heads = attention.embed_dim, attention.num_heads
        assert attention.in_proj_weight is not None
        self.inward = attention.in_proj_weight.view(3, heads, -1, d)
        self.outward = attention.out_proj.weight.view(d, heads, -1)

    def match(self, head: int, query: Parts, key: Parts, size: float) -> None:
        """Have queries match keys by what these matrices make of parts of the coordinates."""
        rotation = size * _rotation(self.inward.shape[2])
        for weight, parts in zip(self.inward[:2, head], (query, key), strict=True):
            weight.zero_()
            for part, matrix in parts:
                weight[:, part] = rotation @ matrix

    def copy(self, head: int, source: slice, target: slice, size: float) -> None:
        """Have the head write one part of the coordinates at the places it attends to into another."""
        rotation = _rotation(self.inward.shape[2])
        self.inward[2, head].zero_()[:, source] = rotation
        self.outward[:, head].zero_()[target] = size * rotation.mT


def _rotation(d: int) -> Tensor:
    rotation: Tensor = torch.linalg.qr(torch.randn(d, d))[0]
    return rotation


def _turn(angles: Tensor) -> Tensor:
    """The matrix that takes the sinusoids of a place to those of the place at these angles before."""
    cosines, sines = angles.cos().diag(), angles.sin().diag()
    return torch.cat([torch.cat([cosines, -sines], dim=1), torch.cat([sines, cosines], dim=1)])
