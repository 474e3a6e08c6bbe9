"""A language model on pieces of words: an LSTM whose output and input embeddings are the same vectors."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .._corpora import Corpus
from .._word_counts import bigram_table

VALIDATION = 30_001
"""Pieces of the validation text on which models are compared."""


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
    scale : float
        Factor of the logits, the inverse temperature.
    prior : Tensor (n_classes, n_classes), optional
        Logarithms of probabilities of a word after a word, which are added to the logits: a model whose queries are zero
        is this table.
    """

    prior: Tensor | None

    def __init__(self, n_classes: int, width: int, scale: float = 1.0, prior: Tensor | None = None) -> None:
        super().__init__()
        self.keys = nn.Parameter(torch.randn(n_classes, width) / width**0.5)
        self.lstm = nn.LSTM(width, width, 2)
        self.scale = scale
        self.register_buffer("prior", prior)
        self.state: tuple[Tensor, Tensor] | None = None

    def forward(self, words: Tensor) -> Tensor:
        """Queries (length * batch, width), after the words of the window before."""
        queries, state = self.lstm(F.embedding(words, self.keys), self.state)
        self.state = (state[0].detach(), state[1].detach())
        rows: Tensor = queries.flatten(0, 1)
        return rows

    def logits(self, words: Tensor, queries: Tensor) -> Tensor:
        """Logits (length * batch, n_classes) of the words that follow."""
        products: Tensor = self.scale * queries @ self.keys.T
        return products if self.prior is None else products + self.prior[words.flatten()]

    @torch.no_grad()
    def loss(self, tokens: np.ndarray, batch: int = 20, length: int = 50) -> float:
        """Mean cross-entropy in nats over tokens, without sampling."""
        state, self.state = self.state, None
        steps = (len(tokens) - 1) // batch // length
        stream = windows(tokens, batch, length)
        losses = [
            float(F.cross_entropy(self.logits(X, self(X)), Y.flatten()))
            for X, Y in (next(stream) for _ in range(steps))
        ]
        self.state = state
        return float(np.mean(losses))


def train(
    tokens: np.ndarray,
    model: LanguageModel,
    start: float,
    *,
    length_penalty: float,
    batch: int,
    length: int,
    steps: int,
    rate: float,
) -> None:
    """Train by Adam, with a rate that falls to zero, and the penalties of Eq. 105 on lengths that differ from one."""
    optimizer = torch.optim.Adam(model.parameters(), rate, fused=True)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, steps)
    stream = windows(tokens, batch, length, start)
    for _ in range(steps):
        X, Y = next(stream)
        queries = model(X)
        loss = F.cross_entropy(model.logits(X, queries), Y.flatten())
        if length_penalty:
            loss = loss + length_penalty * (off_unit(queries) + off_unit(model.keys))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()


def off_unit(rows: Tensor) -> Tensor:
    """Mean squared difference of lengths from one."""
    lengths: Tensor = rows.norm(dim=-1)
    return (lengths - 1).square().mean()


@dataclass(frozen=True)
class Vectors:
    """What a trained model predicts from: probabilities are proportional to ``prior * exp(queries @ keys.T)``.

    Attributes
    ----------
    queries, keys : ndarray
        Of contexts of the validation text, and of all classes; both times the root of the model's scale.
    prior : ndarray (queries, classes)
        Probabilities by the table of counts.
    loss : float
        Of the model on the validation text, in nats.
    """

    queries: np.ndarray
    keys: np.ndarray
    prior: np.ndarray
    loss: float


def trained_vectors(
    words: Corpus, n_queries: int, rng: np.random.Generator, *, width: int, scale: float, **training: Any
) -> Vectors:
    """Queries and keys of a model that starts at a table of counts of words after a word."""
    with one_thread():
        torch.manual_seed(int(rng.integers(2**31)))
        prior = np.log(bigram_table(words.train, words.n_classes))
        model = LanguageModel(words.n_classes, width, scale, torch.as_tensor(prior, dtype=torch.float32))
        train(words.train, model, float(rng.random()), **training)
        loss = model.loss(words.valid[:VALIDATION])
        model.state = None
        with torch.no_grad():
            stream = windows(words.valid, 20, 50)
            read = [(X, model(X)) for X, _ in (next(stream) for _ in range(4))]
        before, queries = (torch.cat(found) for found in ([X.flatten() for X, _ in read], [q for _, q in read]))
        rows = rng.choice(len(queries), n_queries, replace=False)
        Q, K = (scale**0.5 * found.detach().double().numpy() for found in (queries[rows], model.keys))
    return Vectors(Q, K, np.exp(prior[before[rows].numpy()]), loss)


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute in one thread, so that sums are rounded alike wherever the experiment runs."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class Negatives:
    """Draws classes other than the true one, with replacement, by a law that may follow the model.

    Parameters
    ----------
    law : "uniform", "counts", "softmax" or FeatureMap
        Uniform, the table of counts, the model itself, or features of the queries and classes at length one, whose
        negative estimates count as zero and with a hundredth drawn uniformly (HRF Section I.1).
    model : LanguageModel
    number : int
    generator : torch.Generator
    """

    def __init__(self, law: Any, model: LanguageModel, number: int, generator: torch.Generator) -> None:
        self.law, self.model, self.number, self.generator = law, model, number, generator
        self.rebuild()

    def rebuild(self) -> None:
        """Compute the features of all classes again."""
        if not isinstance(self.law, str):
            self._keys = torch.as_tensor(self.law.keys(_unit(self.model.keys)))

    @torch.no_grad()
    def draw(self, words: Tensor, queries: Tensor, logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Classes and the logarithms of their probabilities, (rows, number) each."""
        if self.law == "softmax":
            weights = logits.softmax(-1)
        elif self.law == "counts":
            assert self.model.prior is not None
            weights = self.model.prior[words.flatten()].exp()
        elif self.law == "uniform":
            weights = torch.ones_like(logits)
        else:
            positive = (torch.as_tensor(self.law.queries(_unit(queries))) @ self._keys.T).clamp_min(0)
            total = positive.sum(-1, keepdim=True)
            weights = 0.99 * positive / total.where(total > 0, 1.0) + 0.01 / logits.shape[1]
        weights = weights.scatter(1, targets[:, None], 0.0)
        weights = weights / weights.sum(-1, keepdim=True)
        classes = torch.multinomial(weights, self.number, replacement=True, generator=self.generator)
        return classes, weights.gather(1, classes).log()


def sampled_training_losses(
    words: Corpus, law: Any, seed: int, generator: torch.Generator, p: Mapping[str, Any]
) -> list[float]:
    """Validation losses while a model is trained on sampled classes: before the first step and at equal intervals.

    The model starts at a table of counts of words after a word, which its logits contain.  The seed fixes the initial
    model and the order of the text, so that laws are compared on the same ones.  Adam moves all classes, hence all features
    are computed again every ``p["rebuild"]`` steps.
    """
    with one_thread():
        torch.manual_seed(seed)
        prior = torch.as_tensor(np.log(bigram_table(words.train, words.n_classes)), dtype=torch.float32)
        model = LanguageModel(words.n_classes, p["width"], prior=prior)
        negatives = Negatives(law, model, p["negatives"], generator)
        optimizer = torch.optim.Adam(model.parameters(), p["rate"], fused=True)
        schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, p["steps"])
        stream = windows(words.train, p["batch"], p["length"], float(np.random.default_rng(seed).random()))
        held_out = words.valid[: p["validation"] + 1]
        found = [model.loss(held_out)]
        for step in range(1, p["steps"] + 1):
            if step % p["rebuild"] == 0:
                negatives.rebuild()
            X, Y = next(stream)
            queries, targets = model(X), Y.flatten()
            logits = model.logits(X, queries)
            classes, log_prob = negatives.draw(X, queries, logits, targets)
            corrected = logits.gather(1, classes) - (log_prob + math.log(p["negatives"]))
            seen = torch.cat([logits.gather(1, targets[:, None]), corrected], dim=1)
            optimizer.zero_grad()
            F.cross_entropy(seen, torch.zeros_like(targets)).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            if step % (p["steps"] // p["checks"]) == 0:
                found.append(model.loss(held_out))
    return found


def _unit(rows: Tensor) -> np.ndarray:
    """Rows at length one, without their gradient."""
    lengths = rows.detach().norm(dim=-1, keepdim=True)
    unit: np.ndarray = (rows.detach() / lengths.clamp_min(1e-12)).numpy()
    return unit
