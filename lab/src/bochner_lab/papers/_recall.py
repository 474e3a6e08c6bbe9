"""Associative recall: a sequence of keys with values, and a key whose value is asked for.

Import this file only where torch is known to be installed.
"""

from __future__ import annotations

from typing import cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ._conformer import Attention, Kind
from ._transformers import seeded


class Recall:
    """Pairs of different keys and any values; the value of one of the keys is asked for at the end.

    Parameters
    ----------
    symbols : int
        Number of keys, and of values.
    pairs : int
        Pairs of a sequence.
    batch, test : int
        Sequences of a step, and of the test.
    seed : int
    """

    measure = "accuracy"

    def __init__(self, symbols: int, pairs: int, batch: int, test: int, seed: int) -> None:
        self.symbols, self.pairs, self.batch, self.test, self.seed = symbols, pairs, batch, test, seed

    def rows(self, rng: np.random.Generator, n: int) -> tuple[Tensor, Tensor, Tensor]:
        """Keys (n, pairs + 1), of which the last is asked for, values (n, pairs), and the answers (n,)."""
        keys = rng.permuted(np.tile(np.arange(self.symbols), (n, 1)), axis=1)[:, : self.pairs]
        values = rng.integers(self.symbols, size=(n, self.pairs))
        asked = rng.integers(self.pairs, size=(n, 1))
        keys = np.concatenate([keys, np.take_along_axis(keys, asked, 1)], axis=1)
        return (
            torch.from_numpy(keys),
            torch.from_numpy(values),
            torch.from_numpy(np.take_along_axis(values, asked, 1)[:, 0]),
        )

    def loss(self, model: nn.Module, step: int) -> Tensor:
        """Cross-entropy of the answers."""
        keys, values, answers = self.rows(np.random.default_rng([self.seed, step]), self.batch)
        return F.cross_entropy(model(keys, values), answers)

    @torch.no_grad()
    def evaluate(self, model: nn.Module) -> float:
        """Share of right answers, on the same sequences for all seeds."""
        model.eval()
        keys, values, answers = self.rows(np.random.default_rng(0), self.test)
        return float((model(keys, values).argmax(-1) == answers).double().mean())


class RecallModel(nn.Module):
    """Pairs as tokens, one layer of attention, and the logits of values at the key that is asked for."""

    def __init__(self, symbols: int, width: int, heads: int, kind: Kind, seed: int) -> None:
        super().__init__()
        with seeded(seed):
            self.keys, self.values = nn.Embedding(symbols, width), nn.Embedding(symbols + 1, width)
            self.norm, self.last = nn.LayerNorm(width), nn.LayerNorm(width)
            self.attention = Attention(width, heads, kind, seed, rotary=False)
            self.head = nn.Linear(width, symbols)

    def forward(self, keys: Tensor, values: Tensor) -> Tensor:
        """Logits (batch, symbols) of the answers."""
        question = torch.full_like(values[:, :1], self.values.num_embeddings - 1)
        x = self.keys(keys) + self.values(torch.cat([values, question], dim=1))
        there = torch.ones(x.shape[:2], dtype=torch.bool)
        x = x + self.attention(self.norm(x), there)
        return cast("Tensor", self.head(self.last(x[:, -1])))
