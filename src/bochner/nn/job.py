"""One attention to be computed, and how it is cut into walks along single sequences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from .denominators import divide
from .features import TensorFeatures
from .steps import Prefixes
from .sums import Sums
from .walk import Walk


@dataclass(frozen=True)
class Job:
    """Checked tensors in working precision, with the features that meet them.

    Attributes
    ----------
    lengths : sequence of int, or Tensor (Lq,) or (batch, Lq)
        How many keys each query sees; a tensor in any order.
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
        prefixes = Prefixes(self.lengths)
        walk = Walk(self.features, self.q, k, v, self.key_mask, prefixes, self._seen(sums), self.root)
        totals, sums = walk.run(sums, self.chunk)
        return divide(totals, walk.seen, positive=self.features.positive, nonpositive=self.nonpositive), sums

    def _seen(self, sums: Sums | None) -> Tensor | None:
        """Which queries see any key, (..., Lq); None means all."""
        assert not isinstance(self.lengths, Tensor)
        if self.key_mask is None and (not len(self.lengths) or self.lengths[0] > 0):
            return None
        mask = self.key_mask if self.key_mask is not None else self.k.new_ones(self.k.shape[-2], dtype=torch.bool)
        counts = torch.nn.functional.pad(mask.cumsum(dim=-1), (1, 0))
        seen = counts[..., torch.tensor(self.lengths, device=counts.device)] > 0
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
        return replace(self, q=q, k=k, v=v, key_mask=mask, lengths=range(1, n + 1) if causal else [p] * n)
