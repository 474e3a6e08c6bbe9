"""A cache for ``generate`` of models with coded attention: keys, values and codes, of which a step scans the codes.

This module imports ``transformers``; `bochner.nn` imports it when `CodedCache` is asked for.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from transformers import Cache, DynamicCache
from transformers.cache_utils import DynamicLayer

from .._validation import check_instance, shown
from ._coded_module import CodedAttention, exact
from ._coded_step import CodedStep, working
from ._families import changes_cached
from ._hugging_face import ATTRIBUTE, LAYER

_OWNER = "CodedCache"
_LEAST = 64  # places that a new cache has room for; it doubles when they are used up
DECODED_BELOW = 4096
"""Keys below which a step is exact: a whole model gains little there, and exact attention loses nothing.

With SmolLM2 (9 heads of 64, 3 of keys) and plans of 128 keys, on one thread of a CPU, an attention of one step takes 74, 81,
89 and 93 microseconds by codes at 512, 1024, 2048 and 4096 keys, and 63, 105, 191 and 370 if it is exact; a token takes 66
milliseconds, of which 30 attentions at 2048 keys would save 3."""


class CodedCache(Cache):
    r"""A cache for ``generate`` of models with coded attention, which reads codes and few keys per step.

    ``generate`` creates one automatically for a model converted by a `CodedPlan`.  Layers with coded attention hold
    keys, values, and the codes of keys; all other layers behave as in ``transformers.DynamicCache``.  Greedy
    decoding, sampling, beams, padding on either side, prompts in several parts and removal of tokens work as with other
    caches.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        A decoder, some of whose attention is converted by a `CodedPlan`.

    See Also
    --------
    LinearCache : A cache of constant size, for attention by features.

    Notes
    -----
    A step costs 8 bytes and two numbers per key and head of keys with codes of 64 bits, and the few keys that it uses;
    memory grows in doublings, so that a step does not copy what is held.  On CPUs a step in float32 or float64 is a
    compiled loop; elsewhere, and in half precisions, it uses torch operations.

    Examples
    --------
    >>> import numpy as np, torch, transformers
    >>> from bochner.maps import Frame
    >>> from bochner.nn import CodedCache, CodedHead, CodedPlan, replace_attention
    >>> sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    >>> model = transformers.LlamaForCausalLM(transformers.LlamaConfig(vocab_size=50, eos_token_id=None, **sizes)).eval()
    >>> head = CodedHead(Frame(np.zeros(8), np.zeros(8), np.eye(8)), kept=16)
    >>> model = replace_attention(model, CodedPlan([head] * 4, window=16))
    >>> cache = CodedCache(model)
    >>> out = model.generate(torch.tensor([[3, 1, 4]]), past_key_values=cache, max_new_tokens=8, do_sample=False)
    >>> out.shape, cache.get_seq_length()
    (torch.Size([1, 11]), 10)
    """

    def __init__(self, model: nn.Module) -> None:
        check_instance(_OWNER, "model", model, nn.Module, "a model of transformers after replace_attention")
        config: Any = getattr(model, "config", None)
        if not hasattr(config, "get_text_config"):
            raise TypeError(f"{_OWNER}: model must be one of transformers, got {shown(type(model))}.")
        usual = DynamicCache(config=config).layers
        # a layer of another kind holds something else besides, such as the state of a convolution; its attention is exact
        places = coded_layers(model) & {i for i, layer in enumerate(usual) if type(layer) is DynamicLayer}
        if not places or config.is_encoder_decoder:
            raise ValueError(
                f"{_OWNER}: {type(model).__name__} has no decoder with coded attention that uses a cache; convert it by "
                f"replace_attention(model, calibrate(model, batches, cost=128)), or use the usual cache."
            )
        super().__init__(layers=[CodedLayer() if i in places else layer for i, layer in enumerate(usual)])


def coded_layers(model: nn.Module) -> set[int]:
    """Places of the layers with coded attention."""
    return {
        int(place)
        for module in model.modules()
        if isinstance(getattr(module, ATTRIBUTE, None), CodedAttention)
        and (place := getattr(module, "layer_idx", None)) is not None
        and not changes_cached(type(module))  # type: ignore[arg-type]  # classes are hashable
    }


class CodedLayer(DynamicLayer):
    """The layer of a cache that holds keys, values, masks, and codes as far as they have been computed.

    Attributes
    ----------
    keys, values : Tensor (batch, key heads, length, d or e)
        What is held, as in ``DynamicLayer``: views of larger tensors.
    bias : Tensor (batch, length)
        Zero, or minus infinity where there is no key.
    coded : int
        Number of keys with codes.
    """

    step: CodedStep | None

    def __init__(self, *_: Any, **__: Any) -> None:
        super().__init__()
        self._clear()

    def _clear(self) -> None:
        self.length, self.coded, self.step = 0, 0, None
        self.room: list[Tensor] = []
        self.codes: list[Tensor] = []
        self.totals: tuple[int, Tensor, Tensor] | None = None

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Make room for keys like these."""
        self.dtype, self.device = key_states.dtype, key_states.device
        shape = key_states.shape[:2]
        self.room = [
            key_states.new_empty(*shape, _LEAST, key_states.shape[-1]),
            value_states.new_empty(*shape, _LEAST, value_states.shape[-1]),
            torch.zeros(shape[0], 1, _LEAST, dtype=working(key_states.dtype), device=self.device)[:, 0],
        ]
        self.is_initialized = True

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        """Add keys and values; return those of this step, with a mark by which attention finds this layer."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        stop = self.length + key_states.shape[-2]
        self._grow(stop)
        for held, new in zip(self.room, (key_states, value_states), strict=False):
            held[..., self.length : stop, :] = new
        self.room[2][..., self.length : stop] = 0
        self.length = stop
        self._show()
        marked = key_states[...]
        setattr(marked, LAYER, self)
        return marked, value_states

    def _grow(self, length: int) -> None:
        """Room for as many keys; what is held is copied when it doubles."""
        capacity = self.room[0].shape[-2]
        if length <= capacity:
            return
        capacity, self.step = max(length + length // 8, 2 * capacity), None

        def larger(x: Tensor, dim: int) -> Tensor:
            shape = list(x.shape)
            shape[dim] = capacity
            new = x.new_empty(shape)
            new.narrow(dim, 0, x.shape[dim]).copy_(x)
            return new

        keys, values, bias = self.room
        self.room = [larger(keys, -2), larger(values, -2), larger(bias, -1)]
        self.codes = [larger(x, 2) for x in self.codes]

    def _show(self) -> None:
        keys, values, bias = self.room
        self.keys, self.values = keys[..., : self.length, :], values[..., : self.length, :]
        self.bias = bias[:, : self.length]

    def attend(self, computed_by: nn.Module, q: Tensor, k: Tensor, v: Tensor, **call: Any) -> Tensor:
        """Attention of queries to everything held, of which the keys of this step are the last."""
        n, p = q.shape[-2], self.length
        self._mask(call["key_mask"], k.shape[-2])
        prefixes = torch.arange(p - n + 1, p + 1, device=q.device) if n != p else None
        mask = None if not self._masked else self.bias > -torch.inf
        options = call | {"causal": n == p, "prefixes": prefixes, "key_mask": mask}
        out: Tensor = computed_by(q, self.keys, self.values, **options)
        return out

    def _mask(self, key_mask: Tensor | None, count: int) -> None:
        """Hide the last keys where a mask says so."""
        if key_mask is None:
            return
        there = key_mask if key_mask.dtype == torch.bool else key_mask > -1e4
        there = there.any(dim=1) if there.ndim == 3 else there
        self.bias[:, self.length - count :].masked_fill_(~there.expand(len(self.bias), -1)[:, -count:], -torch.inf)

    @property
    def _masked(self) -> bool:
        return bool((self.bias == -torch.inf).any())

    def single_step(
        self, computed_by: Any, q: Tensor, k: Tensor, v: Tensor, key_mask: Tensor | None, scale: float
    ) -> Tensor | None:
        """Attention of one query of each sequence to everything held; None if it is another case."""
        if not isinstance(computed_by, CodedAttention) or q.shape[-2] != 1 or torch.is_grad_enabled():
            return None
        self._mask(key_mask, 1)
        if self.length < min(DECODED_BELOW, computed_by.exact_below) or torch.is_autocast_enabled(q.device.type):
            masked = self.bias > -torch.inf if key_mask is not None or self._masked else None
            return exact(q, self.keys, self.values, False, None, masked, scale)
        if self.step is None or self.step.scale != scale:
            self.step = CodedStep(computed_by, self, scale)
        return self.step(q)

    def get_seq_length(self) -> int:
        """Number of positions, with padding."""
        return self.length

    def reset(self) -> None:
        """Forget everything."""
        super().reset()
        self._clear()

    def crop(self, tokens_to_remove: int) -> None:
        """Remove the last tokens.

        Parameters
        ----------
        tokens_to_remove : int
            Their number, as a negative number; 0 keeps all.
        """
        if tokens_to_remove > 0:
            raise ValueError(f"{_OWNER}: tokens_to_remove must be a negative number or 0, got {tokens_to_remove}.")
        if not self.is_initialized or not tokens_to_remove:
            return
        self.length = max(self.length + tokens_to_remove, 0)
        self.coded, self.totals = min(self.coded, self.length), None
        self._show()

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """Select the members of beams."""
        self.batch_select_indices(beam_idx)

    def batch_repeat_interleave(self, repeats: int) -> None:
        """Repeat each member of the batch."""
        if self.is_initialized:
            self.batch_select_indices(torch.arange(len(self.keys)).repeat_interleave(repeats))

    def batch_select_indices(self, indices: Tensor) -> None:
        """Select members of the batch."""
        if not self.is_initialized:
            return
        indices = indices.to(self.device)
        self.room, self.codes = [x[indices] for x in self.room], [x[indices] for x in self.codes]
        self.totals, self.step = None, None
        self._show()

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"step": None}  # of a copy, or elsewhere, it is made again
