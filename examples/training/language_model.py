"""A small causal language model on a slice of WikiText-2: trained with softmax, converted to random features, trained on.

Without WikiText-2 in the folder that BOCHNER_DATA names, sentences of a small random grammar take its place.

    python language_model.py --profile smoke
"""

from __future__ import annotations

import argparse
import lzma
import math
import os
import random
import time
from collections import Counter
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bochner import mechanism
from bochner.nn import replace_attention

MECHANISMS = ("favor+", "favor++", "simrf-performer")
PROFILES = {
    "smoke": (80, 16, 32, 2, 2, 32, 32, 20_000),
    "full": (250, 8, 96, 2, 4, 96, 128, 300_000),
}
"""Steps, batch, width, layers, heads, rows of W, length of a row of words, and words to train on."""
VOCABULARY, RATE, RATE_OF_UPTRAINING = 2000, 3e-3, 3e-4
NOUNS = "bird river child stone teacher wind garden letter ship window story road tree lamp song field".split()
VERBS = "sees follows finds keeps leaves meets hears paints carries knows turns holds".split()


class LanguageModel(nn.Module):
    """An encoder under a causal mask, with the same vectors for words that come in and that come out."""

    def __init__(self, n_words: int, length: int, width: int, layers: int, heads: int) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(
            width, heads, 4 * width, dropout=0.0, batch_first=True, norm_first=True
        )
        self.words = nn.Embedding(n_words, width)
        self.positions = nn.Parameter(0.1 * torch.randn(length, width))
        self.encoder = nn.TransformerEncoder(
            layer, layers, nn.LayerNorm(width), enable_nested_tensor=False
        )
        nn.init.normal_(self.words.weight, std=width**-0.5)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits of the next word at each place of tokens (batch, length)."""
        n = tokens.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(n)
        hidden = self.encoder(
            self.words(tokens) + self.positions[:n], mask=mask, is_causal=True
        )
        return F.linear(hidden, self.words.weight)


def sentence(rng: random.Random) -> str:
    """A sentence in which nouns are followed by verbs of their own, and may come back at the end."""
    subject, thing = rng.choice(NOUNS), rng.choice(NOUNS)
    verb = (
        VERBS[NOUNS.index(subject) % len(VERBS)] if rng.random() < 0.7 else rng.choice(VERBS)
    )
    end = f" near the {subject}" if rng.random() < 0.4 else ""
    return f"the {subject} {verb} the {thing}{end} ."


def text(n_train: int, seed: int) -> tuple[str, list[str], list[str]]:
    """Words to train on and words for tests."""
    folder, n_test = os.environ.get("BOCHNER_DATA"), 10_000 if n_train > 100_000 else 2000
    if folder:
        parts = [
            lzma.open(Path(folder) / f"wikitext-2.{part}.txt.xz", "rt", encoding="utf-8")
            for part in ("train", "valid")
        ]
        train, test = (
            part.read(20 * n).split()[:n]
            for part, n in zip(parts, (n_train, n_test), strict=True)
        )
        return "WikiText-2", train, test
    rng = random.Random(seed)
    words = " ".join(sentence(rng) for _ in range((n_train + n_test) // 6)).split()
    return (
        "sentences of a random grammar (BOCHNER_DATA is not set)",
        words[n_test:],
        words[:n_test],
    )


def next_words(model: nn.Module, rows: Tensor) -> Tensor:
    """Mean cross-entropy of the words that follow."""
    return F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())


def train(
    model: nn.Module, words: Tensor, length: int, batch: int, steps: int, rate: float
) -> float:
    """Train with Adam and one cycle of the learning rate; returns seconds per step."""
    optimizer, start = torch.optim.Adam(model.parameters(), rate), time.perf_counter()
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, rate, total_steps=max(steps, 6), pct_start=0.2
    )
    model.train()
    for _ in range(steps):
        rows = words[torch.randint(len(words) - length, (batch, 1)) + torch.arange(length + 1)]
        optimizer.zero_grad()
        next_words(model, rows).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    return (time.perf_counter() - start) / max(steps, 1)


@torch.no_grad()
def perplexity(model: nn.Module, words: Tensor, length: int) -> float:
    """The exponential of the mean cross-entropy of a word."""
    model.eval()
    rows = words[: len(words) // (length + 1) * (length + 1)].view(-1, length + 1)
    return math.exp(
        sum(len(part) * next_words(model, part).item() for part in rows.split(32)) / len(rows)
    )


def main(arguments: argparse.Namespace) -> None:
    """Train, convert with each mechanism, train on, and print a table."""
    torch.manual_seed(arguments.seed)
    steps, batch, *shape, n_projections, length, n_train = PROFILES[arguments.profile]
    steps = steps if arguments.steps is None else arguments.steps
    name, *parts = text(n_train, arguments.seed)
    common = [word for word, _ in Counter(parts[0]).most_common(VOCABULARY - 1)]
    numbers = {word: number for number, word in enumerate(common, start=1)}
    words, test = (torch.tensor([numbers.get(word, 0) for word in part]) for part in parts)
    softmax = LanguageModel(len(common) + 1, length, *shape)
    seconds = train(softmax, words, length, batch, steps, RATE)
    print(
        f"data: {name}, {len(words)} words, vocabulary {len(common) + 1}; {steps} steps of {batch}\n"
    )
    print(f"{'attention':18}{'perplexity':>10}{'trained on':>12}{'time per step':>15}")
    print(
        f"{'softmax':18}{perplexity(softmax, test, length):10.2f}{'':12}{1e3 * seconds:12.1f} ms"
    )
    for mechanism_name in MECHANISMS:
        spec = mechanism(mechanism_name, n_projections=n_projections)
        model = replace_attention(
            softmax, spec, copy=True, generator=torch.Generator().manual_seed(arguments.seed)
        )
        converted = perplexity(model, test, length)
        seconds = train(model, words, length, batch, arguments.uptrain, RATE_OF_UPTRAINING)
        print(
            f"{mechanism_name:18}{converted:10.2f}{perplexity(model, test, length):12.2f}{1e3 * seconds:12.1f} ms"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--profile", choices=tuple(PROFILES), default="full", help="seconds, or minutes"
    )
    parser.add_argument("--steps", type=int, help="training steps, in place of the profile's")
    parser.add_argument(
        "--uptrain",
        type=int,
        default=60,
        help="steps with features after the conversion (default 60)",
    )
    parser.add_argument("--seed", type=int, default=0)
    main(parser.parse_args())
