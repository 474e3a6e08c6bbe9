"""Models of ``transformers`` with small sizes and random weights, and inputs of the kinds that they take.

A configuration says what its sizes are by their names only, and nothing says which sizes fit together.  There are therefore
several ways to make a model small, and several inputs, and the first that a model computes with is taken.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

LENGTH, VOCABULARY, WIDTH, HEADS = 12, 64, 32, 4
_MOST = 40_000_000
"""Parameters of a model that is still tried."""
_DEPTHS: dict[str, Any] = {
    **dict.fromkeys(
        ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers", "decoder_layers", "depth",
         "encoder_num_hidden_layers", "decoder_num_hidden_layers", "num_encoder_layers", "num_decoder_layers",
         "encoder_num_layers", "decoder_num_layers"),
        2,
    ),
    **dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"), 4),
    **dict.fromkeys(
        ("num_experts_per_tok", "moe_topk", "moe_k", "num_experts_per_token", "top_k_experts", "top_k"), 2
    ),
    **dict.fromkeys(("n_group", "topk_group", "n_shared_experts", "first_k_dense_replace"), 1),
    **dict.fromkeys(("max_position_embeddings", "max_source_positions", "max_target_positions", "n_positions"), 128),
    "vocab_size": VOCABULARY, "sliding_window": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
    "decoder_start_token_id": 1, "prediction_length": 4, "context_length": LENGTH, "attn_layer_period": 2,
    "attn_layer_offset": 1, "attn_layer_indices": [1], "vocab_size_per_layer_input": VOCABULARY,
}  # fmt: skip
"""Numbers of layers, experts, tokens and positions, by their usual names."""
_WIDTHS: dict[str, Any] = {
    **dict.fromkeys(
        ("hidden_size", "d_model", "n_embd", "dim", "embed_dim", "hidden_dim", "encoder_hidden_size", "projection_dim",
         "decoder_hidden_size", "embedding_size", "word_embed_proj_dim", "true_hidden_size", "projector_hidden_size",
         "attention_hidden_size", "n_embed", "encoder_embed_dim", "vision_hidden_size", "out_hidden_size", "kv_dim",
         "d_embed", "hidden_channels", "vision_output_dim", "text_hidden_size", "lm_hidden_size",
         "cross_attention_hidden_size"),
        WIDTH,
    ),
    **dict.fromkeys(
        ("num_attention_heads", "n_head", "n_heads", "num_heads", "encoder_attention_heads", "decoder_attention_heads",
         "attention_heads", "encoder_num_attention_heads", "decoder_num_attention_heads", "num_key_value_heads",
         "encoder_num_key_value_heads", "decoder_num_key_value_heads", "num_encoder_attention_heads",
         "num_decoder_attention_heads", "n_kv_heads", "multi_query_group_num", "num_kv_heads"),
        HEADS,
    ),
    **dict.fromkeys(
        ("intermediate_size", "ffn_dim", "encoder_ffn_dim", "decoder_ffn_dim", "d_ff", "n_inner", "moe_intermediate_size",
         "shared_expert_intermediate_size", "encoder_intermediate_size", "decoder_intermediate_size", "ffn_hidden_size",
         "mlp_dim", "dense_intermediate_size", "encoder_ffn_embed_dim", "intermediate_size_mlp"),
        64,
    ),
    **dict.fromkeys(("head_dim", "d_kv", "kv_channels", "attention_head_dim", "head_size", "qk_head_dim"), WIDTH // HEADS),
    **dict.fromkeys(("image_size", "img_size"), 32),
    "patch_size": 8, "q_lora_rank": 16, "kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 8, "v_head_dim": 8,
    "num_mel_bins": 16, "rotary_dim": 4, "max_length": 32,
}  # fmt: skip
"""Widths, by their usual names."""
_FILLED = ("vocab_size", "head_dim", "num_key_value_heads", "num_experts_per_tok", "moe_intermediate_size",
           "prediction_length", "attn_layer_indices", "num_experts", "n_routed_experts")  # fmt: skip
"""Sizes that a model needs where its configuration says None."""


def small(config: Any, sizes: dict[str, Any], whole: bool, filled: bool) -> Any:
    """Make a configuration small, and all configurations within it.

    Parameters
    ----------
    config : transformers.PretrainedConfig
        What is changed.
    sizes : dict
        Sizes by name.
    whole : bool
        Whether all layers are attention to all positions, where the configuration names the kinds of its layers.
    filled : bool
        Whether sizes that are None are set too.
    """
    for name, value in list(vars(config).items()):
        if hasattr(value, "to_dict") and hasattr(value, "model_type"):
            small(value, sizes, whole, filled)
        elif name == "sliding_window" and (whole or value is None):
            config.sliding_window = None
        elif name in sizes and (_is_count(value) or (filled and value is None and name in _FILLED)):
            few = name.startswith("num_experts") and value is not None
            setattr(config, name, min(value, sizes[name]) if few else sizes[name])
        elif name.endswith("_token_id") and _is_count(value) and value >= VOCABULARY:
            setattr(config, name, 3 + sum(map(ord, name)) % 50)
        elif name in ("eos_token_id", "bos_token_id", "pad_token_id") and (value is None or isinstance(value, list)):
            setattr(config, name, _DEPTHS[name])
        elif name.endswith(("layer_types", "layers_block_type")) and isinstance(value, list):
            setattr(config, name, _layer_types(value, whole))
        elif name == "stage_names" and isinstance(value, list):
            config.stage_names, config._out_features, config._out_indices = (
                ["stem", "stage1", "stage2"],
                ["stage2"],
                [2],
            )
        elif name in ("rope_parameters", "rope_scaling") and isinstance(value, dict) and "head_dim" in sizes:
            _smaller_sections(value)
        elif name == "image_size" and isinstance(value, list | tuple) and name in sizes:
            config.image_size = type(value)(sizes[name] for _ in value)
        elif name == "per_layer_config" and isinstance(value, dict):
            config.per_layer_config = {}
    return config


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _smaller_sections(rope: dict[str, Any]) -> None:
    """Parts of rotary positions that fit a head of the small width."""
    for part in (rope, *(value for value in rope.values() if isinstance(value, dict))):
        if "rope_type" in part or "rope_theta" in part:
            half = int(WIDTH // HEADS // 2 * part.get("partial_rotary_factor", 1))
            part["mrope_section"] = [half - 2 * (half // 3), half // 3, half // 3]


def _layer_types(types: list[str], whole: bool) -> list[str]:
    """Two layers, of which one sees everything where any does, or both."""
    sees = [kind for kind in types if kind in ("full_attention", "attention", "hybrid")][:1]
    others = [kind for kind in types if kind not in sees][:1]
    if whole:
        return (sees or ["full_attention"]) * 2
    return ((others + sees) * 2)[-2:] if sees else (others * 2)[:2]


_ALL = _DEPTHS | _WIDTHS
WAYS: tuple[Callable[[Any], Any], ...] = (
    partial(small, sizes=_ALL, whole=False, filled=False),
    partial(small, sizes=_ALL, whole=False, filled=True),
    partial(small, sizes=_ALL, whole=True, filled=True),
    partial(small, sizes=_DEPTHS | {"image_size": 112}, whole=False, filled=True),
)
"""Ways to make a configuration small, in the order in which they are tried; the last keeps the widths, which then fit."""


def built(kind: Any, way: Callable[[Any], Any], cross: bool) -> Any:
    """The model with small sizes and larger random weights, as a decoder with cross-attention if that is asked for."""
    import torch

    torch.manual_seed(0)
    config = way(kind.config_class())
    if cross:
        config.is_decoder = config.add_cross_attention = True
    with torch.device("meta"):
        count = sum(parameter.numel() for parameter in kind(copy.deepcopy(config)).parameters())
    if count > _MOST:
        raise ValueError(f"{count / 1e6:.0f} million parameters with small sizes")
    model = kind(config).eval()
    if hasattr(model, "set_default_language"):
        model.set_default_language(next(iter(model.config.languages)))
    for parameter in model.parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(
                parameter, std=0.2 if parameter.shape[-1] <= 4 * WIDTH else parameter.shape[-1] ** -0.5
            )
    return model


def batches(model: Any, cross: bool) -> Iterator[dict[str, Any]]:
    """Small inputs of the kinds that the model may take: what it must have with its main input, then other layouts."""
    known, wanted = _inputs(model), inspect.signature(model.forward).parameters
    needed = {name for name, given in wanted.items() if given.default is given.empty and name in known}
    main = model.main_input_name if model.main_input_name in known else next((n for n in known if n in wanted), "")
    if main == "pixel_values" and "input_ids" in wanted and "Vision" not in type(model).__name__:
        main = "input_ids"
    extra = {"decoder_input_ids"} & set(wanted)
    if cross:
        extra.add("encoder_hidden_states")
    first = needed | extra | ({main} if main in wanted else set())
    choices = [first, first | {n for n in _ASKED_FOR if n in wanted}]
    choices += [needed | extra | {name} for name in _ALONE if name in wanted]
    tried: list[set[str]] = []
    for names in choices:
        if names and names not in tried:
            tried.append(names)
            for layout in range(max(len(known[name]) for name in names)):
                yield {name: known[name][min(layout, len(known[name]) - 1)] for name in sorted(names)}


_ASKED_FOR = ("input_features_mask", "bbox", "pixel_values", "input_features")
"""Inputs that have a default, and that some models do not do without."""
_ALONE = ("inputs_embeds", "pixel_values", "pixel_values_videos", "flattened_patches", "input_features", "input_values")
"""Inputs in place of the main one."""


def _inputs(model: Any) -> dict[str, list[Any]]:
    """Inputs by name, each in one or more layouts."""
    import torch

    config, draw = model.config, partial(torch.randn, generator=torch.Generator().manual_seed(0))
    number = partial(_number, config)
    tokens = torch.randint(3, 50, (2, LENGTH), generator=torch.Generator().manual_seed(0))
    channels, size = number("num_channels", "in_channels", default=3), number("image_size", default=32)
    patch = number("patch_size", default=8)
    width, mel = number("hidden_size", "d_model", "dim", "embed_dim", default=WIDTH), number("num_mel_bins", default=16)
    frames = number("num_frames", "frames_per_clip", default=2)
    audio = 2 * number("max_source_positions", default=64)
    temporal = number("temporal_patch_size", "tubelet_size", default=1)
    rows = draw(16, channels * temporal * patch**2)
    images, video = draw(2, channels, size, size), draw(2, frames, channels, size, size)
    in_grid = "grid_thw" in inspect.signature(model.forward).parameters
    hidden = draw(2, LENGTH, width)
    in_patches = [rows, draw(16, channels, patch, patch), draw(16, channels, temporal, patch, patch), rows[None]]
    history = number("context_length", default=LENGTH) + max(getattr(config, "lags_sequence", None) or [0])
    places = torch.arange(1.0, 17).expand(2, 2, 16).mT  # of patches: their row and column
    return {
        "input_ids": [tokens],
        "pixel_values": in_patches if in_grid else [images, video, video[:1], images[:1, None]],
        "input_values": [draw(2, 2000), draw(2, number("max_length", default=32), mel), draw(2, 1, 2000)],
        "input_features": [
            *(draw(2, mel, audio), draw(2, audio, mel), draw(2, 32, width)),
            draw(2, 32, number("feature_projection_input_dim", "input_feat_per_channel", default=width)),
        ],
        "hidden_states": in_patches if in_grid else [hidden],
        "inputs_embeds": [hidden],
        "pixel_values_videos": [video, video[:1]],
        "flattened_patches": [torch.cat([places, draw(2, 16, channels * patch**2)], dim=-1)],
        "grid_thw": [torch.tensor([[1, 4, 4]])],
        "image_grid_thw": [torch.tensor([[1, 4, 4]])],
        "merge_sizes": [torch.tensor([1])],
        "input_features_mask": [torch.ones(2, audio, dtype=torch.long)],
        "encoder_hidden_states": [draw(2, 6, width)],
        "decoder_input_ids": [tokens.flip(1)],
        "past_values": [draw(2, history), draw(2, history, number("num_input_channels", "input_size", default=1))],
        "past_values_padding": [torch.zeros(2, history)],
        "past_time_features": [draw(2, history, max(number("num_time_features", default=0), 0))],
        "past_observed_mask": [torch.ones(2, history)],
        "freq": [torch.zeros(2, 1, dtype=torch.long)],
        "bbox": [torch.arange(4).expand(2, LENGTH, 4) / 8],
        "attention_mask": [torch.ones(2, LENGTH, dtype=torch.long)],
        "context": [hidden],
        "vision_features": [[draw(2, width, 4, 4)]],
        "text_features": [hidden],
        "patch_embeds": [hidden],
    }  # fmt: skip


def _number(config: Any, *names: str, default: int) -> int:
    """A size under the first of these names that the configuration has."""
    for name in names:
        value: Any = getattr(config, name, None)
        value = value[0] if isinstance(value, list | tuple) and value else value
        if _is_count(value):
            return int(value)
    return default


def output(model: Any, batch: dict[str, Any]) -> Any:
    """The first tensor of numbers that a model computes; models that draw do so alike each time."""
    import torch

    torch.manual_seed(0)
    with torch.no_grad():
        found = model(**copy.deepcopy(batch))
    return next(_tensors(found))


def _tensors(found: Any) -> Iterator[Any]:
    import torch

    if isinstance(found, torch.Tensor):
        if found.is_floating_point():
            yield found
    elif hasattr(found, "to_tuple") or isinstance(found, list | tuple):
        for part in found.to_tuple() if hasattr(found, "to_tuple") else found:
            yield from _tensors(part)
