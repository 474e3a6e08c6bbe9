"""The state of autoregressive decoding."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from ..approximation.log_features import KeySums
from ._near import NearKeys


class AttentionState:
    r"""Sums over all keys seen so far, for step-by-step decoding: M (e + 1) numbers per head for any number of keys.

    `linear_attention` takes a state and returns another one; a new state is empty.  `RandomFeatureAttention` and
    `LinearCache` hold one state and replace its contents after each call; a call that fails leaves it unchanged.

    Attributes
    ----------
    length : int
        Number of positions absorbed, including masked ones; rotary embeddings continue from it.
    sums : KeySums or None
        Sums over the keys; None while there are none.
    near : NearKeys or None
        Keys with exact weights, those of ``window`` and ``anchors``; the shapes are the same from the first call on.

    Examples
    --------
    >>> import torch
    >>> from bochner import Approximation, kernels, maps
    >>> from bochner.nn import AttentionState, linear_attention
    >>> phi = Approximation(kernels.Softmax(), maps.Positive(), n_projections=32).draw(8, rng=0)
    >>> q, k, v = torch.randn(3, 2, 6, 8, generator=torch.Generator().manual_seed(0))
    >>> state, steps = AttentionState(), []
    >>> for token in zip(*(x.split(1, dim=1) for x in (q, k, v))):
    ...     out, state = linear_attention(*token, features=phi, causal=True, state=state, return_state=True)
    ...     steps.append(out)
    >>> whole = linear_attention(q, k, v, features=phi, causal=True)
    >>> torch.allclose(torch.cat(steps, dim=1), whole, atol=1e-5), state.length
    (True, 6)
    """

    def __init__(self) -> None:
        self.sums: KeySums | None = None
        self.near: NearKeys | None = None
        self.length = 0

    @property
    def empty(self) -> bool:
        """Whether no key was absorbed yet."""
        return self.sums is None and self.near is None

    @property
    def shape(self) -> tuple[tuple[int, ...], int]:
        """Leading axes and width of the values that are held, if there are any."""
        if self.near is not None:
            return tuple(self.near.v.shape[:-2]), self.near.v.shape[-1]
        assert self.sums is not None  # the caller asked
        return tuple(self.sums.values.shape[:-2]), self.sums.values.shape[-1] - 1

    def update(self, sums: KeySums | None, added: int, near: NearKeys | None = None) -> None:
        """Replace the sums and the keys with exact weights, ``added`` positions later."""
        self.sums, self.near, self.length = sums, near, self.length + added

    def take(self, other: AttentionState) -> None:
        """Become equal to another state, whose tensors are shared."""
        self.sums, self.near, self.length = other.sums, other.near, other.length

    def clone(self) -> AttentionState:
        """Return an independent copy."""
        return self._map(Tensor.clone)

    def detach(self) -> AttentionState:
        """Return the same state detached from the graph of gradients, for training on long sequences in parts."""
        return self._map(Tensor.detach)

    def select(self, index: Tensor, dim: int = 0) -> AttentionState:
        """Select members of a batch axis, for beam search; a beam may be repeated or dropped.

        Parameters
        ----------
        index : Tensor of integers
            Members to select, in order.
        dim : int
            Batch axis; the first by default.

        Returns
        -------
        AttentionState
        """
        return self._map(lambda tensor: tensor.index_select(dim, index))

    def _map(self, change: Callable[[Tensor], Tensor]) -> AttentionState:
        other = AttentionState()
        sums = None if self.sums is None else KeySums(*map(change, self.sums))
        near = None if self.near is None else NearKeys(*map(change, self.near))
        other.update(sums, self.length, near)
        return other

    def __repr__(self) -> str:
        held = "empty" if self.empty else "no sums yet"
        if self.sums is not None:
            held = f"sums of shape {tuple(self.sums.values.shape)}"
        exact = "" if self.near is None else f", {self.near.seen.shape[-1]} keys with exact weights"
        return f"<AttentionState: {self.length} positions, {held}{exact}>"
