"""A character model with a long context, and its bits per character."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .._transformers import LanguageModel, Shape, Words, seeded

_BEFORE = 3
"""Characters before each one that enter with it."""


class CharacterModel(LanguageModel):
    """A language model in which each character enters with those before it, and which can see a window only."""

    def __init__(self, n_characters: int, length: int, shape: Shape, seed: int) -> None:
        super().__init__(n_characters, length, shape, seed)
        with seeded(seed + 1):
            self.before = nn.ModuleList([nn.Embedding(n_characters, shape.width) for _ in range(_BEFORE)])
            for embedding in self.before:
                nn.init.normal_(embedding.weight, std=0.1)
        self.window: int | None = None

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits of the next character at each place of tokens (batch, length)."""
        n = tokens.shape[1]
        x = self.words(tokens) + self.positions[:n]
        for k, embedding in enumerate(self.before, start=1):
            x = x + F.pad(embedding(tokens[:, :-k]), (0, 0, k, 0))
        mask = nn.Transformer.generate_square_subsequent_mask(n)
        if self.window is not None:
            far = torch.ones(n, n, dtype=torch.bool).tril(-self.window)
            mask = mask.masked_fill(far, -torch.inf)
        return F.linear(self.encoder(x, mask=mask, is_causal=self.window is None), self.words.weight)


@torch.no_grad()
def bits(model: nn.Module, task: Words, window: int | None = None) -> float:
    """Mean bits per character on the test part, with exact attention to a window only if one is given."""
    model.eval()
    assert isinstance(model, CharacterModel)
    model.window = window
    n = task.length + 1
    rows = task.test[: len(task.test) // n * n].view(-1, n)
    losses = [F.cross_entropy(model(row[None, :-1])[0], row[1:]).item() for row in rows]
    model.window = None
    return float(sum(losses)) / len(losses) / math.log(2)
