"""The layer of a cache that keeps running sums in place of keys and values.

A module of ``transformers`` gives the keys of a step to its layer of the cache, and what it gets back to the attention
function, with its queries.  A layer of running sums gives back the keys of the step alone, with a mark that says where
they come from; the attention function finds the state by the mark, lets the queries see it, and adds the keys to it.

This module imports ``transformers``, as `bochner.nn._linear_cache` does, which makes the layers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from transformers.cache_utils import CacheLayerMixin

from ._attention_state import AttentionState
from ._bounded_attention import BoundedState
from ._decoding_step import DecodingStep
from ._hugging_face import LAYER

OWNER = "LinearCache"  # class name in error messages


class _Step(NamedTuple):
    """A call that may be taken back: the state before it, and how to add its first positions again."""

    before: AttentionState
    length: int
    repeat: Any


class LinearLayer(CacheLayerMixin):
    """The layer of a cache that holds an `AttentionState`.

    Attributes
    ----------
    state : AttentionState
        Sums over keys, and the keys with exact weights.
    keys, values : Tensor (batch, heads, 0, d)
        No keys, with the mark of this layer: what attention to an encoder reads after its first call.
    """

    is_compileable = False
    is_sliding = False
    is_croppable = False
    supports_early_init = False

    step: DecodingStep | None
    record_past: bool

    def __init__(self) -> None:
        super().__init__()
        self.reset()

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"step": None}  # of a copy, or elsewhere, it is made again

    def _empty_state(self) -> Any:
        return AttentionState()

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Keep the types and widths of keys and values."""
        self.keys, self.values = self._marked(key_states[..., :0, :]), value_states[..., :0, :]
        self.is_initialized = True

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        """Give back the keys and values of this step, with the mark of this layer; attention adds them to the state."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        self.length += key_states.shape[-2]
        return self._marked(key_states), value_states

    def _marked(self, keys: Tensor) -> Tensor:
        setattr(keys, LAYER, self)
        return keys

    def attend(self, computed_by: nn.Module, q: Tensor, k: Tensor, v: Tensor, **call: Any) -> Tensor:
        """Attention of queries to the state and to the keys of this step, which are added to the state."""
        self.step = None
        if self.record_past and k.shape[-2]:

            def repeat(state: AttentionState, count: int) -> None:
                mask = None if call["key_mask"] is None else call["key_mask"][:, :count]
                part = [x[..., :count, :] for x in (q, k, v)]
                computed_by(*part, **call | {"key_mask": mask}, state=state)

            self.steps.append(_Step(self.state.clone(), k.shape[-2], repeat))
        out: Tensor = computed_by(q, k, v, **call, state=self.state)
        return out

    def single_step(
        self, computed_by: Any, q: Tensor, k: Tensor, v: Tensor, key_mask: Tensor | None, scale: float
    ) -> Tensor | None:
        """Attention for one more position of each sequence, or one query to an encoder; None if it is another case.

        Parameters
        ----------
        computed_by : HeadAttention
        q, k, v : Tensor (batch, heads, length, width)
            As the module gives them: fewer heads of keys and values stand for as many neighbouring ones each.
        key_mask : Tensor (batch, 1) of bool or None
            Where there is a key.
        scale : float
            Factor of the dot products.
        """
        sums, near = self.state.sums, self.state.near
        if sums is None or self.record_past or torch.is_grad_enabled():
            return None
        if near is not None and not (k.shape[-2] and q.is_cpu):
            return None
        if not q.shape[-2] == 1 >= k.shape[-2] or torch.is_autocast_enabled(q.device.type):
            return None
        dtype = q.dtype
        if dtype not in (torch.float32, torch.float64):
            q, k, v = q.float(), k.float(), v.float()
        if self.step is None:
            self.step = DecodingStep.of(computed_by.features.current, scale, q.shape[1], q)
        if self.step is None:
            return None
        there = None if key_mask is None else key_mask[:, -1]
        if near is None:
            out, sums = self.step(sums, q, k, v, there)
        else:
            out, sums, near = self.step.beside(self.state, (computed_by.window, computed_by.anchors), q, k, v, there)
        self.state.update(sums, k.shape[-2], near)
        return out.to(dtype)

    def get_seq_length(self) -> int:
        """Number of positions, with padding."""
        return self.length

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Lengths for masks, which are those of a cache of all keys: layers that are not converted read them too."""
        return self.length + query_length, 0

    def get_max_length(self) -> int:
        """No limit."""
        return -1

    def reset(self) -> None:
        """Forget everything."""
        self.state, self.length = self._empty_state(), 0
        self.steps: list[_Step] = []
        self.step = None
        self.record_past, self.is_initialized = False, False

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """Select the states of beams."""
        self.batch_select_indices(beam_idx)

    def batch_repeat_interleave(self, repeats: int) -> None:
        """Repeat each member of the batch."""
        if self.is_initialized:
            self.batch_select_indices(torch.arange(len(self.keys)).repeat_interleave(repeats))

    def batch_select_indices(self, indices: Tensor) -> None:
        """Select members of the batch."""
        if not self.is_initialized:
            return
        if self.steps:
            raise ValueError(
                f"{OWNER}: members cannot be selected while tokens may still be removed; call crop(0) first."
            )
        indices = indices.to(self.keys.device)
        self.state = self.state.select(indices)
        self.keys, self.values = self._marked(self.keys[indices]), self.values[indices]

    def offload(self) -> None:
        """Move nothing: a state is as small as the keys of a few hundred tokens."""

    def prefetch(self) -> None:
        """Do nothing, since nothing was moved."""

    def activate_past_recording(self) -> None:
        """Keep the keys of the following calls until `crop`, so that they can be removed."""
        self.record_past = True

    def crop(self, tokens_to_remove: int) -> None:
        """Remove the last tokens, at most those of the calls since recording was activated or since the last crop.

        Parameters
        ----------
        tokens_to_remove : int
            Their number, as a negative number; 0 keeps all, and what was kept for removal is dropped.
        """
        if tokens_to_remove > 0:
            raise ValueError(f"{OWNER}: tokens_to_remove must be a negative number or 0, got {tokens_to_remove}.")
        count = -tokens_to_remove
        if count >= self.length:
            recording = self.record_past
            self.reset()
            self.record_past = recording
            return
        if count > sum(step.length for step in self.steps):
            raise ValueError(
                f"{OWNER}: {count} of {self.length} tokens cannot be removed, since they are already part of the sums "
                f"over keys; call activate_past_recording() before the calls that add them, or crop all tokens and "
                f"start again."
            )
        self.length -= count
        while count:
            step = self.steps.pop()
            self.state = step.before
            if step.length > count:
                step.repeat(self.state, step.length - count)
            count = max(0, count - step.length)
        self.steps.clear()


class BoundedLayer(LinearLayer):
    """The layer of a cache that holds a `BoundedState`: a window, the first keys, and the most used others."""

    def _empty_state(self) -> Any:
        return BoundedState()

    def single_step(self, *_: Any, **__: Any) -> Tensor | None:
        """None: one more position is computed as several are."""
        return None
