"""A character model with a long context, its bits per character, and what its attention looks at."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .._recorded_attention import record
from .._transformers import LanguageModel, Shape, Words


class CharacterModel(LanguageModel):
    """A language model whose attention can be limited to exact keys, to see what these are worth without features.

    Attributes
    ----------
    place : int
        Position of the first token.
    near : pair of int, optional
        The window and the number of first tokens that attention is limited to.
    kept : collection of int
        Layers that are not limited.
    """

    def __init__(self, n_characters: int, length: int, shape: Shape, seed: int) -> None:
        super().__init__(n_characters, length, shape, seed)
        self.place = 0
        self.near: tuple[int, int] | None = None
        self.kept: Collection[int] = ()

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits of the next character at each place of tokens (batch, length)."""
        n = tokens.shape[1]
        x = self.words(tokens) + self.positions[self.place : self.place + n]
        mask = nn.Transformer.generate_square_subsequent_mask(n)
        if self.near is None:
            return F.linear(self.encoder(x, mask=mask, is_causal=True), self.words.weight)
        limited = mask.masked_fill(_far(n, *self.near), -torch.inf)
        for k, layer in enumerate(self.encoder.layers):
            x = layer(x, src_mask=mask if k in self.kept else limited)
        assert self.encoder.norm is not None  # `Shape` has given it one
        return F.linear(self.encoder.norm(x), self.words.weight)


def _far(n: int, window: int, anchors: int) -> Tensor:
    """Which keys before each query are neither in the window nor among the first."""
    far = torch.ones(n, n, dtype=torch.bool).tril(-window)
    far[:, :anchors] = False
    return far


@torch.no_grad()
def bits(model: nn.Module, task: Words, near: tuple[int, int] | None = None, kept: Collection[int] = ()) -> float:
    """Mean bits per character on the test part.

    With a window and a number of first tokens as near, exact attention sees only these, but in the layers that are kept.
    """
    model.eval()
    assert isinstance(model, CharacterModel)
    model.near, model.kept = near, kept
    losses = [F.cross_entropy(model(row[None, :-1])[0], row[1:]).item() for row in test_rows(task)]
    model.near, model.kept = None, ()
    return float(sum(losses)) / len(losses) / math.log(2)


def test_rows(task: Words) -> Tensor:
    """The test part in rows, each with the character after it."""
    n = task.length + 1
    return task.test[: len(task.test) // n * n].view(-1, n)


def attended(model: nn.Module, task: Words, window: int) -> dict[str, Any]:
    """What exact attention looks at in a row of the test part: shares of each head, by layer, and the largest |q||k|.

    The shares are means over the queries whose window does not reach the first token.
    """
    calls = record(model, test_rows(task)[:1, :-1])
    far = _far(task.length, window, 1)
    found: dict[str, Any] = {"largest |q||k|": 0.0, "first token": [], "beyond the window": []}
    for call in calls:
        longest = (call.q.norm(dim=-1).amax(-1) * call.k.norm(dim=-1).amax(-1) * call.scale).amax()
        weights = call.weights()[0]
        found["largest |q||k|"] = max(found["largest |q||k|"], float(longest))
        found["first token"].append(weights[:, window:, 0].mean(-1).tolist())
        found["beyond the window"].append((weights * far)[:, window:].sum(-1).mean(-1).tolist())
    return found
