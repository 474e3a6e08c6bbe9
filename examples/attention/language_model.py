"""A small causal language model on a slice of WikiText-2, with softmax attention and with random features.

Without WikiText-2 in the folder that BOCHNER_DATA names, sentences of a small random grammar take its place.

    python examples/attention/language_model.py --attention all --profile smoke
"""

from __future__ import annotations

import argparse
import math
import os
from collections import Counter
from dataclasses import dataclass

import torch
from grammar import sentences
from torch import Tensor, nn
from torch.nn import functional as F
from training import Profile, command_line, compare

from bochner import datasets


@dataclass(frozen=True)
class TextProfile(Profile):
    """How much text, too."""

    length: int
    vocabulary: int
    train_words: int
    test_words: int


PROFILES = {
    "smoke": TextProfile(
        steps=80,
        batch=16,
        width=32,
        layers=2,
        heads=2,
        n_projections=32,
        length=32,
        vocabulary=500,
        train_words=20_000,
        test_words=2_000,
    ),
    "full": TextProfile(
        steps=250,
        batch=8,
        width=96,
        layers=2,
        heads=4,
        n_projections=96,
        length=128,
        vocabulary=2_000,
        train_words=300_000,
        test_words=10_000,
    ),
}


class LanguageModel(nn.Module):
    """An encoder under a causal mask, with the same vectors for words that come in and that come out."""

    def __init__(self, n_words: int, profile: TextProfile) -> None:
        super().__init__()
        d = profile.width
        self.words = nn.Embedding(n_words, d)
        self.positions = nn.Parameter(0.1 * torch.randn(profile.length, d))
        layer = nn.TransformerEncoderLayer(d, profile.heads, 4 * d, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, profile.layers, nn.LayerNorm(d), enable_nested_tensor=False)
        nn.init.normal_(self.words.weight, std=d**-0.5)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits of the next word at each place of tokens (batch, length)."""
        n = tokens.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(n)
        hidden = self.encoder(self.words(tokens) + self.positions[:n], mask=mask, is_causal=True)
        return F.linear(hidden, self.words.weight)


class Words:
    """Text as numbers of words, those beyond the vocabulary as one."""

    measure = "perplexity"

    def __init__(self, profile: TextProfile, seed: int) -> None:
        train, test, name = _text(profile, seed)
        common = [word for word, _ in Counter(train).most_common(profile.vocabulary - 1)]
        numbers = {word: number for number, word in enumerate(common, start=1)}
        self.train, self.test = (torch.tensor([numbers.get(word, 0) for word in part]) for part in (train, test))
        self.n_words, self.profile, self.seed = len(common) + 1, profile, seed
        self.data = f"{name}, {len(train)} words and {len(test)} for tests, vocabulary {self.n_words}"

    def loss(self, model: nn.Module, step: int) -> Tensor:
        """Cross-entropy of the next words in random places."""
        length = self.profile.length
        generator = torch.Generator().manual_seed(10_000 * self.seed + step)
        starts = torch.randint(len(self.train) - length - 1, (self.profile.batch, 1), generator=generator)
        return _loss(model, self.train[starts + torch.arange(length + 1)])

    @torch.no_grad()
    def evaluate(self, model: nn.Module) -> float:
        """Perplexity: the exponential of the mean cross-entropy of a word."""
        model.eval()
        length = self.profile.length
        rows = self.test[: len(self.test) // (length + 1) * (length + 1)].view(-1, length + 1)
        losses = [len(part) * _loss(model, part).item() for part in rows.split(32)]
        return math.exp(sum(losses) / len(rows))

    def example(self) -> Tensor:
        """Some rows of the test part."""
        length = self.profile.length
        return self.test[: 4 * length].view(4, length)


def _loss(model: nn.Module, rows: Tensor) -> Tensor:
    return F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())


def _text(profile: TextProfile, seed: int) -> tuple[list[str], list[str], str]:
    """Words for training and for tests, and where they come from."""
    if os.environ.get("BOCHNER_DATA"):
        text = datasets.load("wikitext-2")
        return text.train.split()[: profile.train_words], text.valid.split()[: profile.test_words], "WikiText-2"
    train, test = (sentences(n, seed + k).split()[:n] for k, n in enumerate((profile.train_words, profile.test_words)))
    return train, test, "sentences of a random grammar (BOCHNER_DATA is not set)"


def main(arguments: argparse.Namespace) -> None:
    """Compare on the text that there is."""
    profile = PROFILES[arguments.profile]
    words = Words(profile, arguments.seed)
    torch.manual_seed(arguments.seed)
    compare(LanguageModel(words.n_words, profile), words, profile, arguments)


if __name__ == "__main__":
    main(command_line(__doc__))
