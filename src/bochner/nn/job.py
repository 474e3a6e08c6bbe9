"""One attention to be computed, and how it is cut into walks along single sequences."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from .denominators import divide
from .features import QuadraticFeatures, TensorFeatures
from .parallel import before, total
from .steps import Everything, Prefixes
from .sums import Sums
from .walk import Walk

if TYPE_CHECKING:
    from .parallel import Group


@dataclass(frozen=True)
class Job:
    """Checked tensors in working precision, with the features that meet them.

    Attributes
    ----------
    lengths : sequence of int, or Tensor (Lq,) or (batch, Lq)
        How many keys each query sees; a tensor in any order.
    group : ProcessGroup or None
        Processes over which the sequence is spread.
    """

    features: TensorFeatures
    q: Tensor
    k: Tensor
    v: Tensor
    key_mask: Tensor | None
    lengths: Sequence[int] | Tensor
    root: float | Tensor
    chunk: int
    nonpositive: str
    group: Group | None = None

    def run(self, sums: Sums | None) -> tuple[Tensor, Sums | None]:
        """The output, and the sums with all keys."""
        if not isinstance(self.lengths, Tensor):
            return self._walk(sums)
        if self.lengths.ndim == 2:
            return self._member_by_member(), None
        if bool((self.lengths.diff() < 0).any()):
            return self._sorted(sums)
        return replace(self, lengths=self.lengths.tolist()).run(sums)

    def _walk(self, sums: Sums | None) -> tuple[Tensor, Sums | None]:
        assert not isinstance(self.lengths, Tensor)
        k, v = self.k, self.v
        if self.key_mask is not None:  # numbers in the padding, even NaN, must not meet a zero
            k, v = (x.masked_fill(~self.key_mask[..., None], 0.0) for x in (k, v))
        run = Walk.run if self._traceable() else _outside_of_graphs()
        walk = Walk(self.features, self.q, k, v, self.key_mask, Prefixes(self.lengths), None, self.root)
        if self.group is not None:
            walk, sums = self._with_others(walk)
        walk.seen = self._seen(sums)
        totals, sums = run(walk, sums, self.chunk)
        return divide(totals, walk.seen, positive=self.features.positive, nonpositive=self.nonpositive), sums

    def _with_others(self, walk: Walk) -> tuple[Walk, Sums]:
        """The walk that remains, and the sums to start from, where a sequence is spread over processes."""
        assert self.group is not None and not isinstance(self.lengths, Tensor)
        own = replace(walk, q=walk.q[..., :0, :], prefixes=Prefixes([])).run(None, self.chunk)[1]
        assert own is not None
        if not isinstance(self.lengths, Everything):
            return walk, before(own, self.group)
        reading = replace(
            walk, k=walk.k[..., :0, :], v=walk.v[..., :0, :], prefixes=Prefixes(Everything(0, len(self.lengths)))
        )
        return reading, total(own, self.group)

    def _traceable(self) -> bool:
        """Whether nothing that is done depends on numbers in tensors: all see all, by matrix products."""
        plain = isinstance(self.lengths, Everything) and isinstance(self.features, QuadraticFeatures)
        return plain and self.group is None

    def _seen(self, sums: Sums | None) -> Tensor | None:
        """Which queries see any key, (..., Lq); None means all."""
        assert not isinstance(self.lengths, Tensor)
        if self.key_mask is None and (not len(self.lengths) or self.lengths[0] > 0):
            return None
        mask = self.key_mask if self.key_mask is not None else self.k.new_ones(self.k.shape[-2], dtype=torch.bool)
        counts = torch.nn.functional.pad(mask.cumsum(dim=-1), (1, 0))
        seen = counts[..., torch.tensor(list(self.lengths), device=counts.device)] > 0
        return seen if sums is None else seen | sums.seen

    def _sorted(self, sums: Sums | None) -> tuple[Tensor, Sums | None]:
        """Queries in order of what they see, and back."""
        assert isinstance(self.lengths, Tensor)
        lengths, order = self.lengths.sort(stable=True)
        out, sums = replace(self, q=self.q[..., order, :], lengths=lengths.tolist()).run(sums)
        return out[..., order.argsort(), :], sums

    def _member_by_member(self) -> Tensor:
        """Each member of the first axis by itself, since its queries see other prefixes."""
        q, k, v = (x.expand(len(self.lengths), *x.shape[1:]) for x in (self.q, self.k, self.v))
        mask = self.key_mask
        if mask is not None:
            mask = mask.expand(*k.shape[:-1])
        parts = [
            replace(self, q=q[b], k=k[b], v=v[b], key_mask=None if mask is None else mask[b], lengths=row).run(None)[0]
            for b, row in enumerate(self.lengths)
        ]
        return torch.stack(parts)

    def part(self, queries: slice, keys: slice, causal: bool) -> Job:
        """The attention of one of several sequences that lie one after the other."""
        q, k, v = self.q[..., queries, :], self.k[..., keys, :], self.v[..., keys, :]
        mask = None if self.key_mask is None else self.key_mask[..., keys]
        n, p = q.shape[-2], k.shape[-2]
        return replace(self, q=q, k=k, v=v, key_mask=mask, lengths=range(1, n + 1) if causal else Everything(p, n))


def _outside_of_graphs() -> Callable[..., Any]:
    """A walk that `torch.compile` leaves alone, since it looks at numbers; torch's compiler is not loaded for that."""
    if "torch._dynamo" not in sys.modules:
        return Walk.run
    disabled: Callable[..., Any] = torch.compiler.disable(Walk.run)
    return disabled
