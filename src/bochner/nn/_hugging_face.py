"""Attention of ``transformers`` models: the attention function that converted modules call.

Modules of ``transformers`` call the attention function named by their configuration, and models make masks for the
function named by theirs.  A converted module gets features and its own configuration, which names our function; all
other modules keep the shared configuration, and therefore their function with its dropout and speed.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Mapping
from functools import partial
from importlib.abc import MetaPathFinder
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor, nn

from ._attention import linear_attention
from ._attention_state import AttentionState
from ._drawn import DrawnFeatures
from ._families import is_unbiased_cross, sizes
from ._head_spec import HeadSpec, check_heads
from ._hugging_face_masks import key_mask, of_last_keys, read, refused
from ._multihead_call import warn_of_dropout
from ._score_rule import AS_THEY_ARE, ScoreRule

NAME = "bochner"  # name of our functions in the registries of ``transformers``

ATTRIBUTE = "random_features"  # submodule of a converted attention that computes it

LAYER = "_layer_of_linear_cache"
"""Attribute of keys that a `LinearCache` gave: its layer, which has the state that they belong to."""


class HeadAttention(nn.Module):
    """Linear attention of queries, keys and values that another module has projected.

    Parameters
    ----------
    spec : Approximation or tuple of planned ones
        What to draw, for all heads or for each.
    module : torch.nn.Module
        Attention of a known family, whose heads, type and device are taken.
    near : pair of int
        Window and anchors, which are computed exactly.
    per_head : bool
        Whether each head draws its own rows.
    generator : torch.Generator, optional
        Source of the draw.
    """

    changes_scores = False
    """Whether it computes what families do to scores beyond a scale: a bias of pairs, a cap, sinks, any mask."""

    def __init__(
        self,
        spec: HeadSpec,
        module: nn.Module,
        *,
        near: tuple[int, int] = (0, 0),
        per_head: bool,
        generator: torch.Generator | None,
    ) -> None:
        super().__init__()
        self.window, self.anchors = near
        weight, (heads, d) = next(module.parameters()), sizes(module)
        check_heads("replace_attention", spec, heads)
        dtype = torch.float64 if weight.dtype == torch.float64 else torch.float32
        self.features = DrawnFeatures(spec, d, heads, per_head, dtype=dtype, generator=generator).to(weight.device)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> HeadAttention:
        """The attention that a record describes, whose features wait for their numbers (`DrawnFeatures.from_record`)."""
        attention = cls.__new__(cls)
        nn.Module.__init__(attention)
        attention.window, attention.anchors = record["window"], record["anchors"]
        attention.features = DrawnFeatures.from_record(record)
        return attention

    def forward(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        *,
        causal: bool,
        prefixes: Tensor | None,
        key_mask: Tensor | None,
        scale: float,
        state: AttentionState | None = None,
        borders: Tensor | None = None,
    ) -> Tensor:
        """Attention of tensors (batch, heads, length, d).

        Parameters
        ----------
        q, k, v : Tensor (batch, heads, length, d)
            Fewer heads of keys and values stand for as many neighbouring ones each.
        causal : bool
            Whether query i sees the keys up to i.
        prefixes : Tensor (Lq,) of integers or None
            How many keys each query sees.
        key_mask : Tensor (batch, Lk) of bool, (batch, heads or 1, Lk) of numbers, or None
            Which keys there are, or what is added to their logits.
        scale : float
            Factor of the dot products.
        state : AttentionState, optional
            Keys of earlier calls, which all queries see; these keys are added to it.
        borders : Tensor (n + 1,) of integers, optional
            Cumulative lengths of n packed sequences.
        """
        mask = key_mask if key_mask is None or key_mask.ndim == 3 else key_mask.expand(len(k), -1)[:, None, :]
        new = self.features.is_new(alone=not self.window)
        if new or state is not None or (mask is not None and mask.shape[1] > 1):
            k, v = (_for_all_heads(x, q.shape[1]) for x in (k, v))
        if new:
            there = None if mask is None else (mask if mask.dtype == torch.bool else mask > -torch.inf).any(dim=1)
            self.features.fit_call(q, k, there, scale, alone=not self.window)
        options: dict[str, Any] = {"causal": causal, "key_mask": mask, "scale": scale, "prefix_lengths": prefixes}
        options |= {"window": self.window, "anchors": self.anchors, "state": state, "features": self.features.current}
        options |= {"enable_gqa": k.shape[1] != q.shape[1], "cu_seqlens": borders}
        keys = (k, v) if state is None or k.shape[-2] else (None, None)  # all are in the state
        if state is None:
            out: Tensor = linear_attention(q, *keys, **options)
            return out
        out, after = linear_attention(q, *keys, return_state=True, **options)
        state.take(after)
        return out

    def record(self) -> dict[str, Any]:
        """JSON values that say what it is, for `from_record`: the very object that its features keep up to date."""
        found: dict[str, Any] = self.features.record
        found.update({"window": self.window, "anchors": self.anchors})
        return found

    def restore(self) -> None:
        """Check the numbers that were put into the buffers after `from_record`."""
        self.features.restore()

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        register()  # a model unpickled in another process is dispatched to our function there too


def register() -> None:
    """Register our functions with ``transformers``, and our entry of configurations; repeated calls change nothing."""
    from transformers import AttentionInterface, AttentionMaskInterface

    from . import _pretrained  # noqa: F401  it registers its entry; where it is just being imported, at its end

    AttentionInterface.register(NAME, attention)
    AttentionMaskInterface.register(NAME, key_mask)
    from ._linear_cache import serve_generate

    serve_generate()


_READS_MODELS = "transformers.modeling_utils"


def reads_models() -> bool:
    """Whether ``transformers`` is imported far enough for its models to exist."""
    return _READS_MODELS in sys.modules


def register_with_transformers() -> None:
    """Register now, or as soon as ``transformers`` is imported, so that ``from_pretrained`` reads converted models."""
    if reads_models():
        register()
    elif not any(isinstance(finder, _AfterImport) for finder in sys.meta_path):
        sys.meta_path.insert(0, _AfterImport())


class _AfterImport(MetaPathFinder):
    """Finds no module itself; it registers after the one that reads models has been imported."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """The usual specification of that module, with one more step at its end; None for all others."""
        if name != _READS_MODELS:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_register(module: Any) -> None:
                execute(module)
                register()

            spec.loader.exec_module = execute_and_register  # type: ignore[method-assign]
        return spec


def attach(module: nn.Module, computed_by: nn.Module) -> None:
    """Let ``computed_by`` compute an attention, as `HeadAttention` does, through its own configuration."""
    register()
    setattr(module, ATTRIBUTE, computed_by)
    config: Any = copy.deepcopy(module.config)
    config._attn_implementation = NAME
    module.config = config


def make_masks_linear(model: nn.Module) -> None:
    """Have models all of whose attention is converted make masks of keys only, which take linear memory.

    A configuration that unconverted attention shares stays as it is, and converted attention reads the masks that are
    made for the others.
    """
    waiting = [m for m in model.modules() if _is_attention(m) and not hasattr(m, ATTRIBUTE)]
    shared, exact = {id(m.config) for m in waiting}, {id(m) for m in waiting}
    for module in model.modules():
        config: Any = getattr(module, "config", None)
        if not hasattr(config, "_attn_implementation") or id(config) in shared:
            continue
        parts = list(module.modules())
        if any(hasattr(part, ATTRIBUTE) for part in parts) and not any(id(part) in exact for part in parts):
            config._attn_implementation = NAME


def _is_attention(module: nn.Module) -> bool:
    """Whether a module calls the attention function named by its configuration, in any family of models."""
    return hasattr(module, "is_causal") and hasattr(getattr(module, "config", None), "_attn_implementation")


def attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    is_causal: bool | None = None,
    dropout: float = 0.0,
    **others: Any,
) -> tuple[Tensor, None]:
    """Attention of (batch, heads, length, d), called by the module; what else it passes is refused unless it is harmless."""
    computed_by = getattr(module, ATTRIBUTE, None)
    changes = bool(getattr(computed_by, "changes_scores", False))
    rule = _rule(module, others) if changes else AS_THEY_ARE
    _check_others(module, others, key.shape[-2], changes)
    warn_of_dropout(dropout, module.training)
    if computed_by is None:
        raise ValueError(
            f"bochner: this {type(module).__name__} has no features; attn_implementation={NAME!r} is set by "
            f"bochner.nn.replace_attention, so build the model with its usual attention and convert it."
        )
    causal, prefixes = bool(getattr(module, "is_causal", False) if is_causal is None else is_causal), None
    borders: Tensor | None = _borders(others)
    n, layer = query.shape[-2], getattr(key, LAYER, None)
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    if layer is not None:  # the keys of this step alone; earlier ones are in the state of the layer
        attention_mask = of_last_keys(attention_mask, key.shape[-2])
        if rule.bias is not None:
            raise ValueError(
                f"bochner: {type(module).__name__} adds a bias of positions, for which this cache is not made; generate "
                f"with past_key_values=transformers.DynamicCache(), or with use_cache=False."
            )
        single = n == 1 and rule.plain and (attention_mask is None or attention_mask.ndim == 2)
        found = layer.single_step(computed_by, query, key, value, attention_mask, scale) if single else None
        if found is not None:
            return found.transpose(1, 2), None
    if attention_mask is None and causal and n > 1:  # with keys after the queries, those of a static cache to be filled
        key, value = key[..., :n, :], value[..., :n, :]
    elif attention_mask is not None and attention_mask.ndim == 4:
        if attention_mask.shape[-2] == 1 < n:  # one row for all queries
            attention_mask = attention_mask.expand(-1, -1, n, -1)
        seen = read(attention_mask)
        if seen.prefixes is not None:
            prefixes = None if seen.full else seen.prefixes  # a window on both sides takes none
            causal, attention_mask = seen.causal, seen.keys
        elif layer is not None or not (changes or seen.borders is not None):
            raise refused(attention_mask)
        elif changes:  # any mask is a bias of pairs
            rule, causal, attention_mask = rule.hidden_by(attention_mask), False, None
        else:
            borders, causal, attention_mask = seen.borders, True, None
    elif attention_mask is not None:  # a static cache is longer than what it holds
        key, value = key[..., : attention_mask.shape[1], :], value[..., : attention_mask.shape[1], :]
        attention_mask = attention_mask.bool()
    p = key.shape[-2]
    if prefixes is None and causal and n != p:  # a cache holds the keys of the past
        prefixes = torch.arange(p - n + 1, p + 1, device=query.device)
    if causal and n == p:
        prefixes = None
    window: int = getattr(computed_by, "window", 0)
    if prefixes is not None and window:
        raise ValueError(
            "bochner: attention with a window cannot use this cache, which holds all keys; generate with "
            "past_key_values=bochner.nn.LinearCache(model), or with use_cache=False."
        )
    if not isinstance(computed_by, HeadAttention):
        key, value = (_for_all_heads(x, query.shape[1]) for x in (key, value))
    options: dict[str, Any] = {"causal": causal and bool(n == p), "prefixes": prefixes, "key_mask": attention_mask}
    if borders is not None:
        options["borders"] = borders
    if not rule.plain:
        options["rule"] = rule
    attend = computed_by if layer is None else partial(layer.attend, computed_by)
    out = attend(query, key, value, scale=scale, **options)
    return out.transpose(1, 2).contiguous(), None


_REFUSED = {
    "softcap": "a cap of its dot products, which random features of the softmax kernel do not estimate",
    "s_aux": "attention sinks, learned logits without a key",
    "sinks": "attention sinks, learned logits without a key",
    "position_bias": "a bias of each pair of positions, which has no linear form",
    "head_mask": "a factor of attention weights, which are never formed",
    "indices": "a choice of keys",
    "block_indices": "a choice of keys",
}
"""Keywords of attention functions with a meaning that ours does not have."""


_RULES = ("position_bias", "softcap", "s_aux", "sinks")  # keywords that change scores as a `ScoreRule` does


def _rule(module: nn.Module, others: Mapping[str, Any]) -> ScoreRule:
    """What a module does to its scores."""
    bias, sinks = others.get("position_bias"), others.get("s_aux", others.get("sinks"))
    return ScoreRule(None if is_unbiased_cross(module) else bias, others.get("softcap"), sinks)


def _borders(others: Mapping[str, Any]) -> Tensor | None:
    """Cumulative lengths of packed sequences, where a call has them."""
    borders, of_keys = (others.get(f"cu_seq_lens_{side}") for side in "qk")
    if of_keys is not None and borders is not of_keys and not (borders is not None and torch.equal(borders, of_keys)):
        raise ValueError(
            "bochner: cu_seq_lens_q and cu_seq_lens_k must be the same: attention of sequences to themselves."
        )
    return borders


def _check_others(module: nn.Module, others: Mapping[str, Any], n_keys: int, changes: bool) -> None:
    """Raise a ValueError for keywords that change attention, and for tensors under names that nobody knows."""
    kind = type(module).__name__
    for name, value in others.items():
        of_queries = name in ("s_aux", "sinks") and isinstance(value, Tensor) and value.ndim > 1
        if value is None or value is False or name in _HARMLESS or (changes and name in _RULES and not of_queries):
            continue
        if name == "position_bias" and is_unbiased_cross(module):
            continue
        if of_queries and changes:
            meaning = "an attention sink of each query, and codes know one of each head"
        elif name == "sliding_window":
            if n_keys <= value:  # all keys are within it
                continue
            meaning = f"a sliding window of {value}, and there are {n_keys} keys"
        elif name == "output_attentions":
            meaning = (
                "its weights, which are never formed; leave output_attentions out, or keep a copy of the model exact"
            )
        elif name in _REFUSED:
            meaning = _REFUSED[name]
        elif isinstance(value, Tensor):
            meaning = "a meaning that is not known here"
        else:
            continue
        raise ValueError(
            f"bochner: {kind} passes {name} to its attention: {meaning}; keep this attention exact (select=)."
        )


_HARMLESS = {
    *("cu_seq_lens_q", "cu_seq_lens_k", "max_length_q", "max_length_k"),  # read by `_borders`
    *("position_ids", "cache_position", "position_embeddings", "num_items_in_batch", "labels", "logits_to_keep"),
}
"""Keywords that belong to other parts of a model."""


def _for_all_heads(x: Tensor, heads: int) -> Tensor:
    """Keys or values (batch, heads, length, d), each of those given for as many neighbouring heads."""
    return x if x.shape[1] == heads else x.repeat_interleave(heads // x.shape[1], dim=1)
