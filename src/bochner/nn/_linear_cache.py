"""A cache for ``generate``: converted layers keep running sums in place of keys and values.

Its layers of running sums are in `bochner.nn._linear_layer`; layers that are not converted keep those of ``transformers``.

This module imports ``transformers``; `bochner.nn` imports it when `LinearCache` is asked for.
"""

from __future__ import annotations

from functools import wraps
from typing import Any

from torch import Tensor, nn
from transformers import Cache, DynamicCache, EncoderDecoderCache, GenerationMixin
from transformers.cache_utils import DynamicLayer

from .._validation import check_instance, shown
from ._bounded_module import BoundedAttention
from ._families import changes_cached, is_cross
from ._hugging_face import ATTRIBUTE, HeadAttention
from ._linear_layer import OWNER, BoundedLayer, LinearLayer


class LinearCache(Cache):
    r"""A cache for ``generate`` of converted models, whose size and time per token do not grow with the context.

    ``generate`` creates one automatically for a converted model; pass your own as ``past_key_values`` to continue with
    it later.  Each converted layer holds an `AttentionState`: sums over keys, and with a window or anchors those few
    keys; all other layers behave as in ``transformers.DynamicCache``, so that sliding windows stay sliding windows.
    Greedy decoding, sampling, beams, batches with padding on either side, prompts in several parts, and several prompts
    that share a beginning work as with other caches.

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

    All shapes stay the same from token to token, so that ``torch.compile(model, fullgraph=True)`` compiles one graph
    for all steps.

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


def serve_generate() -> None:
    """Let ``generate`` make the cache of a converted model itself, and refuse one that holds the prompt already.

    ``transformers`` has no registry for caches of models, so the method of ``generate`` that makes one is wrapped, once, and
    acts for models with converted attention only.  It can go when a model can name the class of its cache.
    """
    usual = GenerationMixin._prepare_cache_for_generation
    if getattr(usual, "serves_bochner", False):
        return

    @wraps(usual)
    def prepare(self: Any, generation_config: Any, model_kwargs: dict[str, Any], *others: Any, **options: Any) -> Any:
        given = model_kwargs.get("past_key_values")
        if given is not None:
            _check_unused(given, _prompt_length(generation_config, model_kwargs.get("attention_mask")))
        elif generation_config.use_cache is not False and generation_config.cache_implementation is None:
            own = _own_cache(self)
            if own is not None:
                model_kwargs["past_key_values"] = own
                return None
        return usual(self, generation_config, model_kwargs, *others, **options)

    prepare.serves_bochner = True  # type: ignore[attr-defined]
    GenerationMixin._prepare_cache_for_generation = prepare


def _own_cache(model: Any) -> Any:
    """A new cache for a model whose attention was converted, to codes or to features; None for any other."""
    from ._coded_cache import CodedCache
    from ._coded_module import CodedAttention

    found = [module for module in model.modules() if getattr(module, ATTRIBUTE, None) is not None]
    parts = [getattr(module, ATTRIBUTE) for module in found]
    if not any(
        getattr(module, "is_causal", True) for module in found
    ):  # a new token changes all others: nothing to hold
        return None
    coded, whole = any(isinstance(part, CodedAttention) for part in parts), model.config.is_encoder_decoder
    if not any(isinstance(part, HeadAttention) for part in parts) or (coded and whole):  # sums hold no keys for codes
        return None
    try:
        return CodedCache(model) if coded else LinearCache.encoder_decoder(model) if whole else LinearCache(model)
    except (
        TypeError,
        ValueError,
    ):  # what is converted uses no cache, such as an encoder of images, or changes what it holds
        return None


def _prompt_length(generation_config: Any, attention_mask: Any) -> int | None:
    """Number of tokens that ``generate`` was given, where it can be known."""
    if isinstance(attention_mask, Tensor):
        return int(attention_mask.shape[-1])
    new = generation_config.max_new_tokens
    return None if new is None or generation_config.max_length is None else generation_config.max_length - new


def _check_unused(cache: Any, length: int | None) -> None:
    """Raise a ValueError where one of our caches holds as many positions as the prompt: nothing would be left to compute."""
    from ._coded_cache import CodedCache

    own = getattr(cache, "self_attention_cache", cache)
    if not isinstance(own, LinearCache | CodedCache) or length is None:
        return
    held = max((layer.get_seq_length() for layer in own.layers), default=0)
    if held and held >= length:
        raise ValueError(
            f"{type(own).__name__}: the cache holds {held} positions, and the prompt has {length}; a prompt must "
            f"extend the cached tokens: pass all tokens so far followed by new ones, or a new cache."
        )


def _tensors(layer: Any) -> list[Tensor]:
    if isinstance(layer, BoundedLayer):
        found: list[Tensor] = layer.state.tensors()
        return found
    if isinstance(layer, LinearLayer):
        parts = [part for part in (layer.state.sums, layer.state.near) if part is not None]
        return [tensor for part in parts for tensor in part]
    return [tensor for tensor in (layer.keys, layer.values) if tensor is not None]


def _layers(model: Any, *, cross: bool, encoder: bool = False) -> list[Any]:
    """A layer of the cache for each layer of a decoder: sums where attention is converted."""
    check_instance(OWNER, "model", model, nn.Module, "a model of transformers after replace_attention")
    config: Any = getattr(model, "config", None)
    if not hasattr(config, "get_text_config"):
        raise TypeError(
            f"{OWNER}: model must be one of transformers, which has a configuration, got {shown(type(model))}."
        )
    if config.is_encoder_decoder and not (cross or encoder):
        raise ValueError(
            f"{OWNER}: {type(model).__name__} has an encoder; use LinearCache.encoder_decoder(model), which holds both the "
            f"keys of the decoder and those of the encoder."
        )
    decoder = model.get_decoder() if config.is_encoder_decoder else model
    places = {
        module.layer_idx: getattr(module, ATTRIBUTE)
        for name, module in decoder.named_modules()
        if hasattr(module, ATTRIBUTE)
        and getattr(module, "layer_idx", None) is not None
        and is_cross(name) == cross
        and not changes_cached(type(module))  # type: ignore[arg-type]  # classes are hashable
    }
    usual = DynamicCache(config=config).layers
    if not cross:  # other layers hold more than keys, such as the state of a convolution
        places = {i: by for i, by in places.items() if i < len(usual) and type(usual[i]) is DynamicLayer}
    if not places and not (cross or encoder):
        raise ValueError(
            f"{OWNER}: no attention of {type(model).__name__} that uses a cache is converted; call replace_attention "
            f"first, or use the usual cache."
        )
    return [
        BoundedLayer()
        if isinstance(places.get(i), BoundedAttention)
        else LinearLayer()
        if i in places
        else DynamicLayer()
        if cross
        else layer
        for i, layer in enumerate(usual)
    ]
