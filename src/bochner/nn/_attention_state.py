"""The state of autoregressive decoding."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from ..approximation.log_features import KeySums


class AttentionState:
    r"""Sums over all keys seen so far, for step-by-step decoding: M (e + 1) numbers per head for any number of keys.

    A new state is empty.  `linear_attention` and `RandomFeatureAttention` read it and add the keys of the call after
    computing their result; a call that fails leaves it unchanged.

    Attributes
    ----------
    length : int
        Number of positions absorbed, including masked ones; rotary embeddings continue from it.

    Examples
    --------
    >>> import torch
    >>> from bochner import Approximation, kernels, maps
    >>> from bochner.nn import AttentionState, linear_attention
    >>> phi = Approximation(kernels.Softmax(), maps.Positive(), n_projections=32).draw(8, rng=0)
    >>> q, k, v = torch.randn(3, 2, 6, 8, generator=torch.Generator().manual_seed(0))
    >>> state = AttentionState()
    >>> steps = [linear_attention(q[:, t : t + 1], k[:, t : t + 1], v[:, t : t + 1], features=phi, causal=True, state=state)
    ...          for t in range(6)]
    >>> whole = linear_attention(q, k, v, features=phi, causal=True)
    >>> torch.allclose(torch.cat(steps, dim=1), whole, atol=1e-5), state.length
    (True, 6)
    """

    def __init__(self) -> None:
        self.sums: KeySums | None = None
        self.length = 0

    @property
    def empty(self) -> bool:
        """Whether no key was absorbed yet."""
        return self.sums is None

    def update(self, sums: KeySums | None, added: int) -> None:
        """Replace the sums, ``added`` positions later."""
        self.sums, self.length = sums, self.length + added

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
        other.update(None if self.sums is None else KeySums(*map(change, self.sums)), self.length)
        return other

    def __repr__(self) -> str:
        held = "empty" if self.sums is None else f"sums of shape {tuple(self.sums.values.shape)}"
        return f"<AttentionState: {self.length} positions, {held}>"
