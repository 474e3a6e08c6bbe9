"""A word-level language model on WikiText-2: an LSTM whose output and input embeddings are the same vectors."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bochner.nn import SampledSoftmax

from ..._experiment import dataset

UNKNOWN, END = "<unk>", "<eos>"


@dataclass(frozen=True)
class Corpus:
    """Words as classes: the most frequent ones, numbered in the order in which they appear; the rest are one class.

    Attributes
    ----------
    train, valid : ndarray of int64
    n_classes : int
    """

    train: np.ndarray
    valid: np.ndarray
    n_classes: int


@functools.lru_cache(maxsize=1)
def corpus(n_classes: int, characters: int | None = None) -> Corpus:
    """WikiText-2 with at most that many classes, the ends of lines among them; only its beginning if so asked."""
    text = dataset("wikitext-2")
    train, valid = (part[:characters].replace("\n", f" {END} ").split() for part in (text.train, text.valid))
    counts = Counter(train)
    frequent = {word for word, _ in counts.most_common(n_classes)} | {UNKNOWN}
    number = {word: k for k, word in enumerate(word for word in counts if word in frequent)}
    unknown = number[UNKNOWN]
    tokens = [np.array([number.get(word, unknown) for word in words]) for words in (train, valid)]
    return Corpus(tokens[0], tokens[1], len(number))


def windows(tokens: np.ndarray, batch: int, length: int, skip: float = 0.0) -> Iterator[tuple[Tensor, Tensor]]:
    """Inputs and next words, (length, batch) each, of parallel streams from which a share is skipped; without end."""
    steps = (len(tokens) - 1) // batch
    streams = torch.as_tensor(tokens[: steps * batch + 1])
    X, Y = (streams[k : k + steps * batch].view(batch, steps).T for k in (0, 1))
    at = int(skip * (steps - length))
    while True:
        if at + length > steps:
            at = 0
        yield X[at : at + length], Y[at : at + length]
        at += length


class LanguageModel(nn.Module):
    """An LSTM of two layers; the softmax of its outputs (queries) with the vectors of the words (keys) is the prediction.

    Parameters
    ----------
    n_classes, width : int
    dropout : float
        Between the layers, and of inputs and outputs.
    scale : float
        Factor of the logits, the inverse temperature.
    """

    def __init__(self, n_classes: int, width: int, dropout: float, scale: float = 1.0) -> None:
        super().__init__()
        self.keys = nn.Parameter(torch.randn(n_classes, width) / width**0.5)
        self.lstm = nn.LSTM(width, width, 2, dropout=dropout)
        self.dropout, self.scale = nn.Dropout(dropout), scale
        self.state: tuple[Tensor, Tensor] | None = None

    def forward(self, words: Tensor) -> Tensor:
        """Queries (length * batch, width), after the words of the window before."""
        queries, state = self.lstm(self.dropout(F.embedding(words, self.keys)), self.state)
        self.state = (state[0].detach(), state[1].detach())
        rows: Tensor = self.dropout(queries).flatten(0, 1)
        return rows

    @torch.no_grad()
    def loss(self, tokens: np.ndarray, batch: int = 20, length: int = 50) -> float:
        """Mean cross-entropy in nats over tokens, without sampling."""
        state, self.state = self.state, None
        self.eval()
        steps = (len(tokens) - 1) // batch // length
        stream = windows(tokens, batch, length)
        losses = [
            float(F.cross_entropy(self.scale * self(X) @ self.keys.T, Y.flatten()))
            for X, Y in (next(stream) for _ in range(steps))
        ]
        self.train()
        self.state = state
        return float(np.mean(losses))


def train(
    tokens: np.ndarray,
    n_classes: int,
    rng: np.random.Generator,
    *,
    width: int,
    dropout: float,
    scale: float,
    length_penalty: float,
    batch: int,
    length: int,
    steps: int,
    negatives: int,
    rate: float,
) -> LanguageModel:
    """A model after so many steps of Adam, with a rate that falls to zero.

    The loss is the softmax over the true words and negatives that all tokens of a window share, drawn by the frequency
    of words and corrected by it, with the penalties of Eq. 105 on lengths that differ from one.
    """
    torch.manual_seed(int(rng.integers(2**31)))
    model = LanguageModel(n_classes, width, dropout, scale)
    optimizer = torch.optim.Adam(model.parameters(), rate, fused=True)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, steps)
    frequency = torch.as_tensor(np.bincount(tokens, minlength=n_classes) + 1.0)
    frequency = (frequency / frequency.sum()).float()
    stream = windows(tokens, batch, length, float(rng.random()))
    for _ in range(steps):
        X, Y = next(stream)
        queries, targets = model(X), Y.flatten()
        drawn = torch.multinomial(frequency, negatives, replacement=True)
        keys, true = model.keys[drawn], model.keys[targets]
        others = scale * queries @ keys.T - (negatives * frequency[drawn]).log()
        others = others.masked_fill(drawn == targets[:, None], -torch.inf)
        own = scale * (queries * true).sum(-1, keepdim=True)
        loss = F.cross_entropy(torch.cat([own, others], dim=1), torch.zeros_like(targets))
        if length_penalty:
            loss = loss + length_penalty * (off_unit(queries) + off_unit(keys))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    return model


def off_unit(rows: Tensor) -> Tensor:
    """Mean squared difference of lengths from one."""
    lengths: Tensor = rows.norm(dim=-1)
    return (lengths - 1).square().mean()


def trained_vectors(
    words: Corpus, n_queries: int, rng: np.random.Generator, model: Mapping[str, Any]
) -> tuple[np.ndarray, np.ndarray, float]:
    """Queries of validation contexts and keys of all classes, both times the root of the scale, and the loss there.

    The logits of the model are the dot products of what is returned.
    """
    with one_thread():
        trained = train(words.train, words.n_classes, rng, **model)
        loss = trained.loss(words.valid[: 20 * 50 * 10 + 1])
        trained.eval()
        trained.state = None
        with torch.no_grad():
            stream = windows(words.valid, 20, 50)
            queries = torch.cat([trained(next(stream)[0]) for _ in range(4)])
        rows = rng.choice(len(queries), n_queries, replace=False)
        root = model["scale"] ** 0.5
        Q, K = (root * found.detach().double().numpy() for found in (queries[rows], trained.keys))
    return Q, K, loss


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute in one thread, so that sums are rounded alike wherever the experiment runs."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def sampled_training_losses(
    words: Corpus, loss: SampledSoftmax, seed: int, negatives: torch.Generator, p: Mapping[str, Any]
) -> list[float]:
    """Validation losses while a model is trained on sampled classes: before the first step and at equal intervals.

    The seed fixes the initial model and the order of the text, so that samplers are compared on the same ones.  Adam
    moves all classes, hence all features are computed again every ``p["rebuild"]`` steps.
    """
    with one_thread():
        torch.manual_seed(seed)
        model = LanguageModel(words.n_classes, p["width"], dropout=0.0)
        loss.weight = model.keys
        optimizer = torch.optim.Adam(model.parameters(), p["rate"], fused=True)
        schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, p["steps"])
        stream = windows(words.train, p["batch"], p["length"], float(np.random.default_rng(seed).random()))
        held_out = words.valid[: p["validation"] + 1]
        found = [model.loss(held_out)]
        for step in range(1, p["steps"] + 1):
            if step % p["rebuild"] == 1:
                loss.rebuild()
            X, Y = next(stream)
            optimizer.zero_grad()
            loss(model(X), Y.flatten(), generator=negatives).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            if step % (p["steps"] // p["checks"]) == 0:
                found.append(model.loss(held_out))
    return found
