"""Sentences judged by a trained encoder: its lower layers are computed once, the upper ones are trained with any attention.

Import this file only where torch and transformers are known to be installed.
"""

from __future__ import annotations

import functools
import zlib
from typing import Any, cast

import numpy as np
import torch
import transformers
from sklearn.metrics import matthews_corrcoef
from torch import Tensor, nn
from torch.nn import functional as F

from ..._experiment import dataset
from ..._trained_models import minilm
from .._conformer import EXACT, Attention
from .._transformers import seeded, train

_SMALL = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
_SMALL_VOCABULARY = 60


class Acceptability:
    """Judgements of CoLA as a task: hidden states below the layers that are trained, and labels.

    Parameters
    ----------
    small : bool
        Whether the encoder is a small one without training, for the smoke profile.
    trained : int
        Number of layers above the hidden states.
    limit : int, optional
        How many sentences of each part are used; all if it is None.
    held_out : bool
        Whether the test is the last eighth of the sentences for training, in place of both development sets: settings are
        chosen there.
    batch : int
    seed : int
        Of the order of the sentences.
    """

    measure = "Matthews correlation"

    def __init__(
        self, small: bool, trained: int, limit: int | None, batch: int, seed: int, *, held_out: bool = False
    ) -> None:
        self.encoder, self.lower = _encoder(small), trained
        (self.rows, self.labels), test = (_hidden(small, trained, limit, part) for part in ("train", "test"))
        self.test, self.answers = test
        if held_out:
            n = len(self.rows) * 7 // 8
            self.test, self.answers = self.rows[n:], self.labels[n:]
            self.rows, self.labels = self.rows[:n], self.labels[:n]
        self.lengths = np.array([len(row) for row in self.rows])
        self.batch, self.seed = batch, seed
        self.steps_per_epoch = -(-len(self.rows) // batch)

    def loss(self, model: nn.Module, step: int) -> Tensor:
        """Cross-entropy of the judgements of a batch; batches have sentences of similar length."""
        chosen = self._batches(step // self.steps_per_epoch)[step % self.steps_per_epoch]
        target = torch.tensor(self.labels[chosen], dtype=torch.float32)
        return F.binary_cross_entropy_with_logits(model(*_padded([self.rows[i] for i in chosen])), target)

    @functools.lru_cache(maxsize=1)  # noqa: B019
    def _batches(self, epoch: int) -> list[np.ndarray]:
        rng = np.random.default_rng([self.seed, epoch])
        order = np.argsort(self.lengths + 3 * rng.random(len(self.lengths)))
        found = np.array_split(order, self.steps_per_epoch)
        return [found[k] for k in rng.permutation(len(found))]

    @torch.no_grad()
    def evaluate(self, model: nn.Module) -> float:
        """Matthews correlation with the judgements of the test, in percent."""
        model.eval()
        order = np.argsort([len(row) for row in self.test], kind="stable")
        logits = torch.cat([model(*_padded([self.test[i] for i in part])) for part in np.array_split(order, 16)])
        return float(100 * matthews_corrcoef(self.answers[order], logits.numpy() > 0))


class UpperLayers(nn.Module):
    """The last layers of a BERT with exchangeable attention, the mean over a sentence, and one logit."""

    def __init__(self, task: Acceptability, seed: int) -> None:
        super().__init__()
        layers = task.encoder.encoder.layer[-task.lower :]
        with seeded(seed):
            self.layers = nn.ModuleList(_Layer(layer, seed + k) for k, layer in enumerate(layers))
            self.head = nn.Linear(task.encoder.config.hidden_size, 1)

    def forward(self, x: Tensor, there: Tensor) -> Tensor:
        """Logits (batch,) of hidden states (batch, n, width); ``there`` (batch, n) is False for padding."""
        for layer in self.layers:
            x = layer(x, there)
        mean = (x * there[..., None]).sum(1) / there.sum(1, keepdim=True)
        return cast("Tensor", self.head(mean)[:, 0])


class _Layer(nn.Module):
    """One layer of BERT with the weights of another."""

    def __init__(self, layer: Any, seed: int) -> None:
        super().__init__()
        own = layer.attention.self
        width = own.query.in_features
        self.attention = Attention(width, own.num_attention_heads, EXACT, seed, rotary=False)
        parts = (own.query, own.key, own.value)
        with torch.no_grad():
            self.attention.inward.weight.copy_(torch.cat([part.weight for part in parts]))
            self.attention.inward.bias.copy_(torch.cat([part.bias for part in parts]))
        self.attention.outward.load_state_dict(layer.attention.output.dense.state_dict())
        self.inner, self.outer = (
            nn.Linear(width, layer.intermediate.dense.out_features),
            nn.Linear(layer.intermediate.dense.out_features, width),
        )
        self.first, self.second = nn.LayerNorm(width, eps=1e-12), nn.LayerNorm(width, eps=1e-12)
        for new, old in (
            (self.inner, layer.intermediate.dense), (self.outer, layer.output.dense),
            (self.first, layer.attention.output.LayerNorm), (self.second, layer.output.LayerNorm),
        ):  # fmt: skip
            new.load_state_dict(old.state_dict())

    def forward(self, x: Tensor, there: Tensor) -> Tensor:
        x = self.first(x + self.attention(x, there))
        return cast("Tensor", self.second(x + self.outer(F.gelu(self.inner(x)))))


@functools.cache
def trained_with_softmax(
    small: bool, trained: int, limit: int | None, batch: int, epochs: int, rate: float
) -> UpperLayers:
    """The upper layers after training with softmax, always the same; do not change them."""
    task = Acceptability(small, trained, limit, batch, seed=0)
    model = UpperLayers(task, seed=0)
    for _ in train(model, task, epochs * task.steps_per_epoch, rate):
        pass
    return model


def _padded(rows: list[Tensor]) -> tuple[Tensor, Tensor]:
    x = nn.utils.rnn.pad_sequence(rows, batch_first=True)
    there = torch.arange(x.shape[1]) < torch.tensor([len(row) for row in rows])[:, None]
    return x, there


@functools.cache
def _encoder(small: bool) -> Any:
    if small:
        with seeded(0):
            return transformers.BertModel(transformers.BertConfig(vocab_size=_SMALL_VOCABULARY, **_SMALL)).eval()
    return transformers.AutoModel.from_pretrained(minilm()).eval()


@functools.cache
def _hidden(small: bool, trained: int, limit: int | None, part: str) -> tuple[list[Tensor], np.ndarray]:
    """Hidden states below the layers that are trained, sentence by sentence, and judgements; computed once per process."""
    cola = dataset("cola")
    judged = (cola.train if part == "train" else cola.valid + cola.other)[:limit]
    tokens = _tokens(small, [sentence for sentence, _ in judged])
    encoder, found = _encoder(small), [torch.empty(0)] * len(tokens)
    keep = encoder.config.num_hidden_layers - trained
    order = np.argsort([len(row) for row in tokens], kind="stable")
    with torch.no_grad():
        for chosen in np.array_split(order, -(-len(order) // 64)):
            ids, there = _padded([torch.tensor(tokens[i]) for i in chosen])
            states = encoder(ids, attention_mask=there.long(), output_hidden_states=True).hidden_states[keep]
            for i, row in zip(chosen, states, strict=True):
                found[i] = row[: len(tokens[i])].clone()
    return found, np.array([label for _, label in judged])


def _tokens(small: bool, sentences: list[str]) -> list[list[int]]:
    if small:
        return [[zlib.crc32(word.encode()) % _SMALL_VOCABULARY for word in text.split()] for text in sentences]
    found: list[list[int]] = transformers.AutoTokenizer.from_pretrained(minilm())(sentences)["input_ids"]
    return found


def word_counts(limit: int | None) -> dict[str, float]:
    """Matthews correlations, in percent, of one answer for all and of logistic regressions on words and pairs of words."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression

    cola = dataset("cola")
    (train, y), (test, answers) = (
        zip(*part[:limit], strict=True) for part in (cola.train, cola.valid + cola.other)
    )  # fmt: skip
    n, found = len(train) * 7 // 8, {"one answer for all": 0.0}

    def fitted(x: Any, y: Any, penalty: float) -> Any:
        return LogisticRegression(C=1 / penalty, class_weight="balanced", max_iter=500).fit(x, y)

    for name, longest in (("words", 1), ("pairs of words", 2)):
        counts = CountVectorizer(ngram_range=(1, longest), binary=True, token_pattern=r"\S+")
        x = counts.fit_transform(train)

        def held_out(penalty: float, x: Any = x) -> float:
            return float(matthews_corrcoef(y[n:], fitted(x[:n], y[:n], penalty).predict(x[n:])))

        best = max((0.01, 0.1, 1.0, 10.0, 100.0), key=held_out)
        guess = fitted(x, y, best).predict(counts.transform(test))
        found[f"logistic regression on {name}"] = float(100 * matthews_corrcoef(answers, guess))
    return found
