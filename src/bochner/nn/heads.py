"""Features of several heads, each with its own."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import pad

from .features import TensorFeatures


class HeadFeatures(TensorFeatures):
    """Features of data (..., heads, n, d) by one map for each head; narrower ones are filled up with zero features."""

    def __init__(self, members: Sequence[TensorFeatures]) -> None:
        self.members, self.lead = tuple(members), (len(members),)
        self.d, self.width = members[0].d, max(member.width for member in members)
        self.positive = all(member.positive and member.width == self.width for member in members)

    def parts(self, X: Tensor, *, key: bool) -> tuple[Tensor | None, Tensor]:
        """Parts of each head, one beside the other."""
        X = X.expand(*X.shape[:-3], len(self.members), *X.shape[-2:])
        found = [member.parts(X[..., h, :, :], key=key) for h, member in enumerate(self.members)]
        logarithm = torch.stack(
            [pad(log, (0, self.width - log.shape[-1]), value=-torch.inf) for _, log in found], dim=-3
        )
        if all(mantissa is None for mantissa, _ in found):
            return None, logarithm
        mantissas = [torch.ones_like(log) if mantissa is None else mantissa.expand_as(log) for mantissa, log in found]
        return torch.stack(
            [pad(mantissa, (0, self.width - mantissa.shape[-1])) for mantissa in mantissas], dim=-3
        ), logarithm
