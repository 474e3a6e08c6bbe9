"""One head's queries, keys and exact weights, as arrays small enough to be compared."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..conversion.exact import exact_weights, visible
from .recording import Recorded


@dataclass(frozen=True, eq=False)
class HeadSample:
    """Queries X (batch, n, d) and keys Y (batch, p, d) times the root of the scale, and what they have to do.

    Attributes
    ----------
    seen : bool array (batch, n, p)
        Which keys each query sees.
    weights : array (batch, n, p)
        Exact attention.
    """

    X: np.ndarray
    Y: np.ndarray
    seen: np.ndarray
    weights: np.ndarray

    @property
    def norms(self) -> float:
        """Mean of :math:`|x|` times mean of :math:`|y|`: how large logits can be."""
        return float(np.linalg.norm(self.X, axis=-1).mean() * np.linalg.norm(self.Y, axis=-1).mean())


def head_samples(call: Recorded, max_sequences: int, max_queries: int, max_keys: int) -> list[HeadSample]:
    """The heads of a call, on equally spaced members, queries and keys where there are too many."""
    members, queries, keys = (
        _spaced(count, most)
        for count, most in ((len(call.q), max_sequences), (call.q.shape[2], max_queries), (call.k.shape[2], max_keys))
    )
    seen = visible(call.q, call.k, causal=call.causal, prefixes=call.prefixes, key_mask=call.key_mask)
    shape = (*call.q.shape[:3], call.k.shape[2])
    full = torch.ones(shape, dtype=torch.bool) if seen is None else seen.expand(shape).cpu()
    full = full[members][:, :, queries][:, :, :, keys]
    root = torch.as_tensor(call.scale).double().cpu().sqrt()
    q, k = (x.detach().double().cpu() * root for x in (call.q, call.k))
    q, k = q[members][:, :, queries], k[members][:, :, keys]
    weights = exact_weights(q, k, 1.0, full)
    return [HeadSample(*(_array(x[:, h]) for x in (q, k, full, weights))) for h in range(q.shape[1])]


def _spaced(count: int, most: int) -> Tensor:
    return torch.linspace(0, count - 1, min(count, most)).round().long()


def _array(x: Tensor) -> np.ndarray:
    array: np.ndarray = x.numpy()
    return array
