"""Laws from which negative classes are drawn, with their probabilities known exactly: uniform, softmax, and features."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from .._validation import shown
from ..approximation.log_features import NOTHING, LogFeatures, key_values, query_values, stabiliser
from ._feature_tree import FeatureTree
from ._tensor_features import TensorFeatures

_CHUNK_NUMBERS = 1 << 23
"""Features computed at a time."""
_HIGHEST_LOGARITHM = 20.0
"""Stabilised logarithms of key features start at zero; past this the stabiliser is chosen anew."""


class ClassSample(NamedTuple):
    """Classes drawn for each query, and the logarithms of their probabilities, (batch, samples) each."""

    classes: Tensor
    log_prob: Tensor


class ClassSampler(ABC):
    """A law of classes given a query, from which one class per query (the true one) may be left out."""

    @abstractmethod
    def sample(
        self, X: Tensor, n_samples: int, left_out: Tensor | None, generator: torch.Generator | None
    ) -> ClassSample:
        """Classes drawn independently, with replacement, for the queries X (batch, d)."""

    @abstractmethod
    def log_prob(self, X: Tensor, classes: Tensor, left_out: Tensor | None) -> Tensor:
        """Logarithms of the probabilities of ``classes`` (batch, k)."""

    def refresh(self, indices: Tensor) -> None:
        """Take note that the vectors of these classes have changed; nothing to do where the law keeps no copy."""
        return


class UniformSampler(ClassSampler):
    """All classes alike."""

    def __init__(self, n_classes: int) -> None:
        self.n_classes = n_classes

    def sample(
        self, X: Tensor, n_samples: int, left_out: Tensor | None, generator: torch.Generator | None
    ) -> ClassSample:
        """Indices among those that remain, moved past the one that is left out."""
        choices = self.n_classes - (left_out is not None)
        drawn = torch.randint(choices, (len(X), n_samples), device=X.device, generator=generator)
        classes = drawn if left_out is None else drawn + (drawn >= left_out[:, None])
        return ClassSample(classes, self.log_prob(X, classes, left_out))

    def log_prob(self, X: Tensor, classes: Tensor, left_out: Tensor | None) -> Tensor:
        """One over the number of classes that remain."""
        choices = torch.full(classes.shape, float(self.n_classes - (left_out is not None)), device=X.device)
        log_prob = -choices.to(X.dtype).log()
        return log_prob if left_out is None else log_prob.masked_fill(classes == left_out[:, None], -torch.inf)


class SoftmaxSampler(ClassSampler):
    """The softmax of the exact logits, in O(n d) per query: the law that kernel samplers approximate.

    Parameters
    ----------
    logits : callable
        Exact logits (batch, n) of queries (batch, d).
    """

    def __init__(self, logits: Callable[[Tensor], Tensor]) -> None:
        self.logits = logits

    def sample(
        self, X: Tensor, n_samples: int, left_out: Tensor | None, generator: torch.Generator | None
    ) -> ClassSample:
        """From the table of all probabilities."""
        table = self._table(X, left_out)
        classes = torch.multinomial(table.exp(), n_samples, replacement=True, generator=generator)
        return ClassSample(classes, table.gather(1, classes))

    def log_prob(self, X: Tensor, classes: Tensor, left_out: Tensor | None) -> Tensor:
        """Entries of the table."""
        return self._table(X, left_out).gather(1, classes)

    def _table(self, X: Tensor, left_out: Tensor | None) -> Tensor:
        logits = self.logits(X)
        if left_out is not None:
            logits = logits.scatter(1, left_out[:, None], -torch.inf)
        return logits.log_softmax(-1)


class KernelSampler(ClassSampler):
    r"""A drawn feature map with the tree of the features of all classes, mixed with the uniform law.

    Parameters
    ----------
    features : TensorFeatures
        Drawn features of the softmax kernel at unit scale.
    n_classes : int
    class_rows : callable
        Vectors (k, d) and biases (k,) or None of the classes with given indices (k,), as they are now.
    uniform_share : float
        Weight of the uniform law in the mixture.

    Notes
    -----
    Key features are :math:`e^{l_{ij} - c_j}` and query features :math:`e^{l_j + c_j - \max}`, with :math:`c_j` the largest
    logarithm of feature j over all classes when the tree was built.  What is taken from one side is given to the
    other, and a constant of a query changes no probability: the law of the samples is that of the plain features, and
    norms for which those overflow are safe.  When classes have grown so much since that a logarithm passes 20, the
    tree is built anew with other :math:`c_j`.
    """

    def __init__(
        self,
        features: TensorFeatures,
        n_classes: int,
        class_rows: Callable[[Tensor], tuple[Tensor, Tensor | None]],
        uniform_share: float,
    ) -> None:
        self.features, self.n_classes, self.class_rows = features, n_classes, class_rows
        self.uniform, self.uniform_share = UniformSampler(n_classes), uniform_share
        self.build()

    def build(self) -> None:
        """Features of all classes and all sums, in O(n D)."""
        step = max(1, _CHUNK_NUMBERS // self.features.width)
        starts = range(0, self.n_classes, step)
        parts = [self._keys(torch.arange(i, min(i + step, self.n_classes))) for i in starts]
        self.shift = parts[0].log.new_full((1, self.features.width), NOTHING)
        for part in parts:
            self.shift = stabiliser(part, self.shift)
        # a feature that no class has keeps its size: zero is as good a stabiliser as any
        self.shift = torch.where(self.shift > NOTHING, self.shift, torch.zeros_like(self.shift))
        self.tree = FeatureTree(torch.cat([key_values(part, self.shift) for part in parts]))

    def refresh(self, indices: Tensor) -> None:
        """Features of these classes (distinct) and the sums above them, in O(k D log n)."""
        keys = self._keys(indices)
        if bool((keys.log - self.shift > _HIGHEST_LOGARITHM).any()):
            self.build()
        else:
            self.tree.refresh(indices, key_values(keys, self.shift))

    def sample(
        self, X: Tensor, n_samples: int, left_out: Tensor | None, generator: torch.Generator | None
    ) -> ClassSample:
        """Ways down the tree, some of them to leaves drawn uniformly."""
        goals = self.uniform.sample(X, n_samples, left_out, generator).classes
        chosen = torch.rand(goals.shape, device=X.device, generator=generator) < self.uniform_share
        classes, log_prob = self.tree.descend(self._queries(X), goals.where(chosen, -1), left_out, generator)
        return ClassSample(classes, self._mixed(X, classes, log_prob, left_out))

    def log_prob(self, X: Tensor, classes: Tensor, left_out: Tensor | None) -> Tensor:
        """Probabilities of the ways down, mixed with the uniform law."""
        log_prob = self.tree.descend(self._queries(X), classes, left_out).log_prob
        return self._mixed(X, classes, log_prob, left_out)

    def _mixed(self, X: Tensor, classes: Tensor, log_prob: Tensor, left_out: Tensor | None) -> Tensor:
        if not self.uniform_share:
            return log_prob
        uniform = self.uniform.log_prob(X, classes, left_out).to(log_prob.dtype) + math.log(self.uniform_share)
        if self.uniform_share == 1:
            return uniform
        return torch.logaddexp(log_prob + math.log1p(-self.uniform_share), uniform)

    def _queries(self, X: Tensor) -> Tensor:
        """Stabilised features of queries (batch, d)."""
        stable: Tensor = query_values(self._log(X, key=False), self.shift)
        return stable

    def _keys(self, indices: Tensor) -> LogFeatures:
        """Features of classes, at least in float32."""
        classes, bias = self.class_rows(indices)
        keys = self._log(classes, key=True)
        return keys if bias is None else keys._replace(log=keys.log + bias[:, None].to(keys.log.dtype))

    def _log(self, X: Tensor, *, key: bool) -> LogFeatures:
        """Features of rows (n, d); drawn features have an axis of heads."""
        mantissa, log = self.features.log(X[None], key=key)
        return LogFeatures(None if mantissa is None else mantissa.expand_as(log)[0], log[0])


def checked_share(owner: str, share: float) -> float:
    """The share of samples that is drawn uniformly, refused where it is not between 0 and 1."""
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
        raise ValueError(f"{owner}: uniform_share must be a number from 0 to 1, got {shown(share)}.")
    return float(share)
