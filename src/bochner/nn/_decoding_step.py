r"""One step of decoding with positive exponential features: one query, one key, and the sums over earlier keys.

`linear_attention` computes the same; this is the same arithmetic for a single position without all that a sequence
needs, since the time of a step is that of calling operations.  Logarithms of features are

.. math:: l_m(z) = w_m\cdot z + c|z|^2 + a_m, \qquad z = T^T(\sqrt s\,x - o),

so w, T, o and the scale s become one matrix and one row of constants for queries, keys, and z.  The squared norm of the
query is a factor of numerator and denominator, and is left out.  On CPUs a compiled loop does all of it; elsewhere a
dozen operations do, in which a query divides by the sum of its features, a softmax over m, which cancels as well.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from ..approximation.log_features import KeySums
from ..linalg.compiled.decoding import decode
from ._tensor_features import QuadraticFeatures, Side, TensorFeatures


class DecodingStep:
    """A step with the features of one attention.

    Parameters
    ----------
    features : QuadraticFeatures
        Positive features.
    scale : float
        Factor of the dot products.
    heads : int
        Number of heads.
    like : Tensor
        Of the type and place of queries and keys.
    """

    def __init__(self, features: QuadraticFeatures, scale: float, heads: int, like: Tensor) -> None:
        root, self.c = math.sqrt(scale), features.c
        queries, keys = (side.map(lambda part: part.to(like)) for side in (features.queries, features.keys))
        turn = torch.eye(features.d).to(like) if keys.turn is None else keys.turn
        moved = torch.zeros_like(turn[..., :1, :]) if keys.centre is None else -keys.centre @ turn
        parts = (_affine(queries), _affine(keys), (turn, moved))
        self.queries, self.keys, self.frame = (
            tuple(x.expand(heads, *x.shape[-2:]).contiguous() for x in (root * matrix, constants))
            for matrix, constants in parts
        )
        self.held: KeySums | None = None
        self.arrays = [(a.numpy(), b.numpy()) for a, b in (self.queries, self.keys, self.frame)] if like.is_cpu else []

    @classmethod
    def of(cls, features: TensorFeatures, scale: float, heads: int, like: Tensor) -> DecodingStep | None:
        """The step with any features; None for those that have no such form."""
        known = isinstance(features, QuadraticFeatures) and features.positive
        return cls(features, scale, heads, like) if known else None  # type: ignore[arg-type]

    def __call__(self, sums: KeySums, q: Tensor, k: Tensor, v: Tensor, there: Tensor | None) -> tuple[Tensor, KeySums]:
        """What the queries see, with their own keys, and the sums with these; sums from an earlier step may be overwritten.

        Parameters
        ----------
        sums : KeySums
            Sums of (batch, heads, m, e + 1).
        q : Tensor (batch, heads, 1, d)
            A query of each sequence.
        k, v : Tensor (batch, key heads, 1 or 0, d), (batch, key heads, 1 or 0, e)
            A key and a value of each sequence, or none; each for as many neighbouring heads.
        there : Tensor (batch,) of bool or None
            Where there is a key.
        """
        if self.arrays:
            return self._compiled(sums, q, k, v, there)
        group = q.shape[1] // k.shape[1]
        k, v = (x.repeat_interleave(group, dim=1) for x in (k, v))
        if k.shape[-2]:
            sums = self._absorbed(sums, k, v, there)
        return self._read(sums, q), sums

    def _compiled(self, sums: KeySums, q: Tensor, k: Tensor, v: Tensor, there: Tensor | None) -> tuple[Tensor, KeySums]:
        if sums is not self.held:  # from elsewhere; a copy is then changed in place from step to step
            self.held = KeySums(sums.values.clone(), sums.shift.clone())
            self.views = self.held.values.numpy(), self.held.shift.numpy()
            self.every = np.ones(len(q), dtype=bool)
        out = np.empty((*q.shape[:-1], v.shape[-1]), dtype=self.views[0].dtype)
        rows = [x.contiguous().numpy() for x in (q, k, v)]
        decode(*rows, self.every if there is None else there.numpy(), *self.arrays, self.c, *self.views, out)
        return torch.from_numpy(out), self.held

    def _absorbed(self, sums: KeySums, k: Tensor, v: Tensor, there: Tensor | None) -> KeySums:
        z = k @ self.frame[0] + self.frame[1]
        log = k @ self.keys[0] + self.keys[1] + self.c * z.square().sum(dim=-1, keepdim=True)
        if there is not None:
            log = log.masked_fill(~there[:, None, None, None], -torch.inf)
        shift = torch.maximum(sums.shift, log)
        values = sums.values * (sums.shift - shift).exp_().mT
        return KeySums(values.addcmul_((log - shift).exp_().mT, pad(v, (0, 1), value=1.0)), shift)

    def _read(self, sums: KeySums, q: Tensor) -> Tensor:
        """What queries see; zero where there is no key, and at least 1/m for the denominator where there is one."""
        log = q @ self.queries[0] + self.queries[1]
        out = (log + sums.shift).softmax(dim=-1) @ sums.values
        return out[..., :-1] / out[..., -1:].clamp_(min=torch.finfo(out.dtype).tiny)


def _affine(side: Side) -> tuple[Tensor, Tensor]:
    """Matrix (..., d, m) and constants (..., 1, m) of a side, without its norms."""
    d = side.matrix.shape[-2] - 2
    matrix, constants = side.matrix[..., :d, :], side.matrix[..., d + 1 :, :]
    if side.turn is None or side.centre is None:
        return matrix, constants
    matrix = side.turn @ matrix
    return matrix, constants - side.centre @ matrix
