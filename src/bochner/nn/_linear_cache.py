"""A cache for ``generate``: converted layers keep running sums in place of keys and values.

A module of ``transformers`` gives the keys of a step to its layer of the cache, and what it gets back to the attention
function, with its queries.  A layer of running sums gives back the keys of the step alone, with a mark that says where
they come from; the attention function finds the state by the mark, lets the queries see it, and adds the keys to it.

This module imports ``transformers``; `bochner.nn` imports it when `LinearCache` is asked for.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from transformers import Cache, DynamicCache, EncoderDecoderCache
from transformers.cache_utils import CacheLayerMixin, DynamicLayer

from .._validation import check_instance, shown
from ._attention_state import AttentionState
from ._decoding_step import DecodingStep
from ._families import is_cross
from ._hugging_face import ATTRIBUTE, LAYER

_OWNER = "LinearCache"


class LinearCache(Cache):
    r"""A cache for ``generate`` of converted models, whose size and time per token do not grow with the context.

    Pass a new one to ``generate`` as ``past_key_values``.  Each converted layer holds an `AttentionState`: sums over keys,
    and with a window or anchors those few keys; all other layers hold what they do in ``transformers.DynamicCache``, so
    that sliding windows stay sliding windows.  Greedy decoding, sampling, beams, batches with padding on either side,
    prompts in several parts, and several prompts that share a beginning work as with other caches.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        A decoder, some of whose attention is converted by `replace_attention`.  For models with an encoder use
        `LinearCache.encoder_decoder`.

    See Also
    --------
    AttentionState : The state of one layer.

    Notes
    -----
    Sums cannot forget a single key, so `crop` needs to know in advance that tokens will be removed: decoding that
    verifies candidates (``prompt_lookup_num_tokens``, an assistant) says so through ``activate_past_recording``, and a layer
    then keeps the keys that may be removed until the next `crop`.

    Examples
    --------
    >>> import torch, transformers
    >>> from bochner.nn import LinearCache, replace_attention
    >>> sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    >>> model = transformers.LlamaForCausalLM(transformers.LlamaConfig(vocab_size=50, eos_token_id=None, **sizes)).eval()
    >>> model = replace_attention(model, "dense", n_projections=64)
    >>> prompt, cache = torch.tensor([[3, 1, 4, 1, 5]]), LinearCache(model)
    >>> out = model.generate(prompt, past_key_values=cache, max_new_tokens=8, do_sample=False)
    >>> out.shape, cache.get_seq_length(), tuple(cache.layers[0].state.sums.values.shape)
    (torch.Size([1, 13]), 12, (1, 4, 64, 9))
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__(layers=_layers(model, cross=False))

    @classmethod
    def encoder_decoder(cls, model: nn.Module) -> EncoderDecoderCache:
        """Return a cache for models with an encoder: sums for self-attention, and for attention to the encoder.

        Parameters
        ----------
        model : transformers.PreTrainedModel
            A model with an encoder and a decoder, some of whose attention is converted.

        Returns
        -------
        transformers.EncoderDecoderCache
        """
        cross = cls.__new__(cls)
        Cache.__init__(cross, layers=_layers(model, cross=True))
        own = cls.__new__(cls)
        Cache.__init__(own, layers=_layers(model, cross=False, encoder=True))
        return EncoderDecoderCache(own, cross)

    @property
    def nbytes(self) -> int:
        """Memory of all layers in bytes."""
        return sum(tensor.nbytes for layer in self.layers for tensor in _tensors(layer))


def _tensors(layer: Any) -> list[Tensor]:
    if isinstance(layer, LinearLayer):
        parts = [part for part in (layer.state.sums, layer.state.near) if part is not None]
        return [tensor for part in parts for tensor in part]
    return [tensor for tensor in (layer.keys, layer.values) if tensor is not None]


def _layers(model: Any, *, cross: bool, encoder: bool = False) -> list[Any]:
    """A layer of the cache for each layer of a decoder: sums where attention is converted."""
    check_instance(_OWNER, "model", model, nn.Module, "a model of transformers after replace_attention")
    config: Any = getattr(model, "config", None)
    if not hasattr(config, "get_text_config"):
        raise TypeError(
            f"{_OWNER}: model must be one of transformers, which has a configuration, got {shown(type(model))}."
        )
    if config.is_encoder_decoder and not (cross or encoder):
        raise ValueError(
            f"{_OWNER}: {type(model).__name__} has an encoder; use LinearCache.encoder_decoder(model), which holds both the "
            f"keys of the decoder and those of the encoder."
        )
    decoder = model.get_decoder() if config.is_encoder_decoder else model
    places = {
        module.layer_idx
        for name, module in decoder.named_modules()
        if hasattr(module, ATTRIBUTE) and getattr(module, "layer_idx", None) is not None and is_cross(name) == cross
    }
    if not places and not (cross or encoder):
        raise ValueError(
            f"{_OWNER}: no attention of {type(model).__name__} that uses a cache is converted; call replace_attention "
            f"first, or use the usual cache."
        )
    usual = DynamicCache(config=config).layers
    return [LinearLayer() if i in places else DynamicLayer() if cross else layer for i, layer in enumerate(usual)]


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
        Sums over keys, and the keys that are met exactly.
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
        """The same for one more position of each sequence, or one query to an encoder; None if it is another case.

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
        self.state, self.length = AttentionState(), 0
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
                f"{_OWNER}: members cannot be selected while tokens may still be removed; call crop(0) first."
            )
        indices = indices.to(self.keys.device)
        self.state = self.state.select(indices)
        self.keys, self.values = self._marked(self.keys[indices]), self.values[indices]

    def offload(self) -> None:
        """Nothing is moved: a state is as small as the keys of a few hundred tokens."""

    def prefetch(self) -> None:
        """Nothing was moved."""

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
            raise ValueError(f"{_OWNER}: tokens_to_remove must be a negative number or 0, got {tokens_to_remove}.")
        count = -tokens_to_remove
        if count >= self.length:
            recording = self.record_past
            self.reset()
            self.record_past = recording
            return
        if count > sum(step.length for step in self.steps):
            raise ValueError(
                f"{_OWNER}: {count} of {self.length} tokens cannot be removed, since sums over keys do not know them any "
                f"more; call activate_past_recording() before the calls that add them, or crop all tokens and start again."
            )
        self.length -= count
        while count:
            step = self.steps.pop()
            self.state = step.before
            if step.length > count:
                step.repeat(self.state, step.length - count)
            count = max(0, count - step.length)
        self.steps.clear()
