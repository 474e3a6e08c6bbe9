"""Small transformers for images and for text, with softmax attention or random features: models, tasks and training.

The experiments on attention share them.  Import this file only where torch is known to be installed.
"""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bochner.catalogue import mechanism
from bochner.nn import RandomFeatureAttention, replace_attention

from .._experiment import dataset

RATE = 3e-3
RATE_OF_UPTRAINING = 3e-4
STEPS_BETWEEN_ADAPTATIONS = 10
PATCHES = {28: 4, 16: 4, 8: 2}
"""Side of a patch, by the side of the image."""


@dataclass(frozen=True)
class Shape:
    """The size of an encoder."""

    width: int
    layers: int
    heads: int

    def encoder(self, hidden: int) -> nn.TransformerEncoder:
        """Layers with the norm first, without dropout."""
        d = self.width
        layer = nn.TransformerEncoderLayer(d, self.heads, hidden, dropout=0.0, batch_first=True, norm_first=True)
        return nn.TransformerEncoder(layer, self.layers, nn.LayerNorm(d), enable_nested_tensor=False)


class VisionTransformer(nn.Module):
    """Patches as tokens, an encoder, and the mean of its output."""

    def __init__(self, side: int, shape: Shape, seed: int, patch: int | None = None) -> None:
        super().__init__()
        with seeded(seed):
            self.patch, d = patch or PATCHES[side], shape.width
            self.embedding = nn.Linear(self.patch**2, d)
            self.positions = nn.Parameter(0.3 * torch.randn((side // self.patch) ** 2, d))
            self.encoder = shape.encoder(2 * d)
            self.head = nn.Linear(d, 10)

    def forward(self, images: Tensor) -> Tensor:
        """Logits of images (batch, side, side)."""
        patches = F.unfold(images[:, None], self.patch, stride=self.patch).mT
        logits: Tensor = self.head(self.encoder(self.embedding(patches) + self.positions).mean(1))
        return logits


class LanguageModel(nn.Module):
    """An encoder under a causal mask, with the same vectors for words that come in and that come out."""

    def __init__(self, n_words: int, length: int, shape: Shape, seed: int) -> None:
        super().__init__()
        with seeded(seed):
            d = shape.width
            self.words = nn.Embedding(n_words, d)
            self.positions = nn.Parameter(0.1 * torch.randn(length, d))
            self.encoder = shape.encoder(4 * d)
            nn.init.normal_(self.words.weight, std=d**-0.5)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits of the next word at each place of tokens (batch, length)."""
        n = tokens.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(n)
        hidden = self.encoder(self.words(tokens) + self.positions[:n], mask=mask, is_causal=True)
        return F.linear(hidden, self.words.weight)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Have torch draw from a seed; afterwards its global generator is as it was."""
    state = torch.get_rng_state()
    torch.manual_seed(seed)
    try:
        yield
    finally:
        torch.set_rng_state(state)


class Task(Protocol):
    """Data with a loss and a measure of success."""

    def loss(self, model: nn.Module, step: int) -> Tensor:
        """The loss on the batch of a step, the same for all models."""

    def evaluate(self, model: nn.Module) -> float:
        """The measure on data that are not trained on."""


class Images:
    """Images of ten classes, in a part for training and one for tests."""

    measure = "accuracy"

    def __init__(self, name: str, n_test: int, batch: int, seed: int) -> None:
        data = dataset(name)
        self.side, self.batch, self.seed = math.isqrt(data.X.shape[1]), batch, seed
        self.order = np.random.default_rng(seed).permutation(len(data.X))
        self.X, self.y, self.largest, self.n_test = data.X, data.y, float(data.X.max()), n_test
        self.data = f"{name}, {len(data.X) - n_test} images and {n_test} for tests"

    def take(self, rows: Any) -> tuple[Tensor, Tensor]:
        """Images (n, side, side) with values up to 1, and their classes; the first ones are those for tests."""
        chosen = self.order[rows]
        images = torch.tensor(self.X[chosen] / self.largest, dtype=torch.float32).view(-1, self.side, self.side)
        return images, torch.tensor(self.y[chosen].astype(np.int64))

    def training_batch(self, step: int, size: int | None = None) -> tuple[Tensor, Tensor]:
        """Random images for training."""
        rng = np.random.default_rng([self.seed, step])
        return self.take(rng.integers(self.n_test, len(self.order), size or self.batch))

    def loss(self, model: nn.Module, step: int) -> Tensor:
        """Cross-entropy on random images."""
        images, labels = self.training_batch(step)
        return F.cross_entropy(model(images), labels)

    @torch.no_grad()
    def evaluate(self, model: nn.Module) -> float:
        """Accuracy on the test part."""
        model.eval()
        images, labels = self.take(np.arange(self.n_test))
        found = torch.cat([model(part).argmax(-1) for part in images.split(500)])
        return float((found == labels).double().mean())

    def example(self) -> Tensor:
        """Some images of the test part."""
        return self.take(np.arange(16))[0]


def accuracies_of_rivals(images: Images, steps: int) -> dict[str, float]:
    """Accuracies of the most frequent class, and of a linear classifier of pixels with as many images as models see."""
    from sklearn.linear_model import LogisticRegression

    n = min(steps * images.batch, len(images.order) - images.n_test)
    (x, y), (test, answers) = (
        (found.flatten(1).numpy(), labels.numpy())
        for found, labels in (
            images.take(np.arange(images.n_test, images.n_test + n)),
            images.take(np.arange(images.n_test)),
        )
    )
    linear = LogisticRegression(C=0.05, max_iter=100).fit(x, y)
    return {
        "one class for all": float((answers == np.bincount(y).argmax()).mean()),
        "linear classifier of pixels": float(linear.score(test, answers)),
    }


class Words:
    """Text as numbers of words, those beyond the vocabulary as one; windows of a length are trained on and tested."""

    measure = "perplexity"

    def __init__(
        self, train: Sequence[str], test: Sequence[str], vocabulary: int, length: int, batch: int, seed: int
    ) -> None:
        common = [word for word, _ in Counter(train).most_common(vocabulary - 1)]
        numbers = {word: number for number, word in enumerate(common, start=1)}
        self.train, self.test = (torch.tensor([numbers.get(word, 0) for word in part]) for part in (train, test))
        self.n_words, self.length, self.batch, self.seed = len(common) + 1, length, batch, seed
        self.data = f"{len(train)} words and {len(test)} for tests, vocabulary {self.n_words}"

    @classmethod
    def wikitext(cls, n_train: int, n_test: int, vocabulary: int, length: int, batch: int, seed: int) -> Words:
        """The first words of WikiText-2."""
        text = dataset("wikitext-2")  # words have fewer than 20 letters on average, so that not all is split
        train, test = text.train[: 20 * n_train].split()[:n_train], text.valid[: 20 * n_test].split()[:n_test]
        return cls(train, test, vocabulary, length, batch, seed)

    def training_rows(self, step: int, batch: int | None = None) -> Tensor:
        """Rows of words in random places, each with the word after it."""
        rng = np.random.default_rng([self.seed, step])
        starts = torch.tensor(rng.integers(len(self.train) - self.length, size=(batch or self.batch, 1)))
        return self.train[starts + torch.arange(self.length + 1)]

    def loss(self, model: nn.Module, step: int) -> Tensor:
        """Cross-entropy of the next words in random places."""
        return _next_words(model, self.training_rows(step))

    @torch.no_grad()
    def evaluate(self, model: nn.Module) -> float:
        """Perplexity: the exponential of the mean cross-entropy of a word."""
        model.eval()
        rows = self.test[: len(self.test) // (self.length + 1) * (self.length + 1)].view(-1, self.length + 1)
        losses = [len(part) * _next_words(model, part).item() for part in rows.split(32)]
        return math.exp(sum(losses) / len(rows))

    def example(self) -> Tensor:
        """Some rows of the test part."""
        return self.test[: 4 * self.length].view(4, self.length)


def _next_words(model: nn.Module, rows: Tensor) -> Tensor:
    return F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())


def with_attention(model: nn.Module, name: str, n_projections: int, seed: int) -> nn.Module:
    """A copy of the model with the features of a mechanism such as "favor++", or with its own attention for "softmax"."""
    if name == "softmax":
        return copy.deepcopy(model)
    spec = mechanism(name, n_projections=n_projections)
    return replace_attention(model, spec, copy=True, generator=torch.Generator().manual_seed(seed))


def converted(model: nn.Module, task: Task, name: str, n_projections: int, seed: int) -> nn.Module:
    """A copy with the features of a mechanism, whose constants are chosen from a batch for training."""
    new = with_attention(model, name, n_projections, seed)
    adapt(new)
    with torch.no_grad():
        task.loss(new, 0)
    return new


def adapt(model: nn.Module) -> None:
    """Have maps with constants chosen from data choose them again from the next batch: norms grow in training."""
    for module in model.modules():
        if isinstance(module, RandomFeatureAttention) and module.features.adaptive:
            _fit_to_next_batch(module)


def _fit_to_next_batch(attention: RandomFeatureAttention) -> None:
    def hook(module: RandomFeatureAttention, inputs: tuple[Any, ...], options: dict[str, Any]) -> None:
        handle.remove()
        query, key = inputs[:2]
        module.fit_statistics(query, key, key_padding_mask=options.get("key_padding_mask"))

    handle = attention.register_forward_pre_hook(hook, with_kwargs=True)


def train(model: nn.Module, task: Task, steps: int, rate: float = RATE) -> Iterator[int]:
    """Train with Adam and one cycle of the learning rate; yields the number of steps that are done, after each."""
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=max(steps, 6), pct_start=0.2)
    for step in range(steps):
        model.train()
        if step % STEPS_BETWEEN_ADAPTATIONS == 0:
            adapt(model)
        optimizer.zero_grad()
        task.loss(model, step).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        yield step + 1


def learning_curve(model: nn.Module, task: Task, steps: int, evaluations: int, rate: float = RATE) -> list[float]:
    """Train, and measure so many times at equal distances, the last time at the end."""
    times = {round(k * steps / evaluations) for k in range(1, evaluations + 1)}
    return [task.evaluate(model) for done in train(model, task, steps, rate) if done in times]
