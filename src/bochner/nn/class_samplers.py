"""Laws from which negative classes are drawn, with their probabilities known exactly."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor


class Sample(NamedTuple):
    """Classes drawn for each query, and the logarithms of their probabilities, (batch, samples) each."""

    classes: Tensor
    log_prob: Tensor


class ClassSampler(ABC):
    """A law of classes given a query, from which one class a query (the true one) may be left out."""

    @abstractmethod
    def sample(self, X: Tensor, n_samples: int, left_out: Tensor | None, generator: torch.Generator | None) -> Sample:
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

    def sample(self, X: Tensor, n_samples: int, left_out: Tensor | None, generator: torch.Generator | None) -> Sample:
        """Indices among those that remain, moved past the one that is left out."""
        choices = self.n_classes - (left_out is not None)
        drawn = torch.randint(choices, (len(X), n_samples), device=X.device, generator=generator)
        classes = drawn if left_out is None else drawn + (drawn >= left_out[:, None])
        return Sample(classes, self.log_prob(X, classes, left_out))

    def log_prob(self, X: Tensor, classes: Tensor, left_out: Tensor | None) -> Tensor:
        """One over the number of classes that remain."""
        choices = torch.full(classes.shape, float(self.n_classes - (left_out is not None)), device=X.device)
        log_prob = -choices.to(X.dtype).log()
        return log_prob if left_out is None else log_prob.masked_fill(classes == left_out[:, None], -torch.inf)


class SoftmaxSampler(ClassSampler):
    """The softmax of the exact logits, in O(n d) a query: the law that kernel samplers approximate.

    Parameters
    ----------
    logits : callable
        Exact logits (batch, n) of queries (batch, d).
    """

    def __init__(self, logits: Callable[[Tensor], Tensor]) -> None:
        self.logits = logits

    def sample(self, X: Tensor, n_samples: int, left_out: Tensor | None, generator: torch.Generator | None) -> Sample:
        """From the table of all probabilities."""
        table = self._table(X, left_out)
        classes = torch.multinomial(table.exp(), n_samples, replacement=True, generator=generator)
        return Sample(classes, table.gather(1, classes))

    def log_prob(self, X: Tensor, classes: Tensor, left_out: Tensor | None) -> Tensor:
        """Entries of the table."""
        return self._table(X, left_out).gather(1, classes)

    def _table(self, X: Tensor, left_out: Tensor | None) -> Tensor:
        logits = self.logits(X)
        if left_out is not None:
            logits = logits.scatter(1, left_out[:, None], -torch.inf)
        return logits.log_softmax(-1)


def checked_share(owner: str, share: float) -> float:
    """The share of samples that is drawn uniformly, refused where it is none."""
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
        raise ValueError(f"{owner}: uniform_share must be a number from 0 to 1, got {share!r}.")
    return float(share)
