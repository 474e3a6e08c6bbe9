"""In which order queries and keys are met, so that every query sees a prefix of the keys in linear time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor


class Step(NamedTuple):
    """Queries [q0, q1) see all keys before k0, and of the keys [k0, k1) those in their prefix; then all are absorbed."""

    q0: int
    q1: int
    k0: int
    k1: int


class Everything(Sequence[int]):
    """The same number of keys for all queries, without a list."""

    def __init__(self, n_keys: int, length: int) -> None:
        self.n_keys, self.length = n_keys, length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: Any) -> Any:
        found = range(self.length)[index]
        return self.n_keys if isinstance(found, int) else [self.n_keys] * len(found)


class Prefixes:
    """How many keys, from the first on, each query sees: numbers that do not decrease."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self.numbers = numbers

    def steps(self, n_keys: int, chunk: int) -> Iterator[Step]:
        """Steps of at most ``chunk`` queries and keys; the last ones absorb keys that no query sees."""
        q, k, n = 0, 0, len(self.numbers)
        while q < n:
            first = self.numbers[q]
            if first > k and (first > k + chunk or first == self.numbers[-1]):  # seen by all queries that remain
                end = min(k + chunk, first)
                yield Step(q, q, k, end)
                k = end
                continue
            stop = self._first_above(k + chunk, q + 1, min(n, q + chunk))
            end = max(k, self.numbers[stop - 1])
            yield Step(q, stop, k, end)
            q, k = stop, end
        for start in range(k, n_keys, chunk):
            yield Step(n, n, start, min(start + chunk, n_keys))

    def _first_above(self, bound: int, low: int, high: int) -> int:
        """The first query in [low, high) that sees more keys than ``bound``, or ``high``."""
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if self.numbers[middle] <= bound else (low, middle)
        return low

    def halves(self, step: Step) -> tuple[Step, Step]:
        """The same work in two steps of half of the queries."""
        middle = (step.q0 + step.q1) // 2
        border = max(step.k0, self.numbers[middle - 1])
        return Step(step.q0, middle, step.k0, border), Step(middle, step.q1, border, step.k1)

    def lengths(self, step: Step, device: torch.device) -> Tensor:
        """Number of keys of a step that each of its queries sees, (q1 - q0,)."""
        numbers = torch.tensor(self.numbers[step.q0 : step.q1], device=device)
        return (numbers - step.k0).clamp_(min=0)

    def visible(self, step: Step, device: torch.device) -> Tensor:
        """Which keys of a step each of its queries sees, (q1 - q0, k1 - k0)."""
        return torch.arange(step.k1 - step.k0, device=device) < self.lengths(step, device)[:, None]
