"""What some families of models do to the scores of queries and keys: a bias of pairs, a cap, and sinks.

Coded attention computes the scores of the keys that it uses one by one, so that all of these are exact there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from .._validation import check_positive, shown


class ScoreRule(NamedTuple):
    """Changes of scores, in this order: the cap, the bias of pairs, and a logit beside those of the keys."""

    # (batch, heads, n, p): what is added to the scores; minus infinity hides a key from a query
    bias: Tensor | None = None
    softcap: float | None = None  # scores s become ``softcap tanh(s / softcap)``
    sinks: Tensor | None = None  # (heads,): logit of a key without a value, which takes weight from the others

    @property
    def plain(self) -> bool:
        """Whether scores stay as they are."""
        return self.bias is None and self.softcap is None and self.sinks is None

    def changed(self, scores: Tensor, rows: slice = slice(None)) -> Tensor:
        """Scores (batch, heads, n, p) of some of the queries, capped and with their bias."""
        if self.softcap is not None:
            scores = self.softcap * (scores / self.softcap).tanh()
        return scores if self.bias is None else scores + self.bias.to(scores)[..., rows, :]

    def hidden_by(self, mask: Tensor) -> ScoreRule:
        """The rule with a mask of a model: True for pairs that are seen, or numbers that are added to scores."""
        if mask.dtype == torch.bool:
            mask = torch.zeros(mask.shape, device=mask.device).masked_fill(~mask, -torch.inf)
        return self._replace(bias=mask if self.bias is None else self.bias + mask)

    def weights(self, scores: Tensor) -> Tensor:
        """Softmax of changed scores, beside the sinks; zero in a row without keys."""
        if self.sinks is not None:
            logit = self.sinks.to(scores)[:, None, None].expand(*scores.shape[:-1], 1)
            return torch.cat([scores, logit], dim=-1).softmax(dim=-1)[..., :-1]
        return softmax(scores)


AS_THEY_ARE = ScoreRule()  # scores as they are


def softmax(scores: Tensor) -> Tensor:
    """Softmax in which a row without keys is zero."""
    empty = (scores.detach() == -torch.inf).all(dim=-1, keepdim=True)
    return scores.masked_fill(empty, 0.0).softmax(dim=-1).masked_fill(empty, 0.0)


def checked_rule(owner: str, q: Tensor, k: Tensor, bias: Any, softcap: Any, sinks: Any) -> ScoreRule:
    """The rule of queries (batch, heads, n, d) and keys (batch, heads, p, d), checked."""
    if bias is not None:
        whole = (len(q), q.shape[1], q.shape[-2], k.shape[-2])
        fits = isinstance(bias, Tensor) and bias.ndim == 4
        if not fits or any(size not in (1, most) for size, most in zip(bias.shape, whole, strict=True)):
            raise ValueError(f"{owner}: position_bias must be a tensor that broadcasts to {whole}, got {shown(bias)}.")
        bias = bias.expand(*bias.shape[:2], *whole[2:])
    if softcap is not None:
        softcap = check_positive(owner, "softcap", softcap)
    if sinks is not None and not (isinstance(sinks, Tensor) and tuple(sinks.shape) == (q.shape[1],)):
        raise ValueError(f"{owner}: sinks must be a tensor of {q.shape[1]} numbers, one per head, got {shown(sinks)}.")
    return ScoreRule(bias, softcap, sinks)
