"""Every class of attention of the installed ``transformers``, converted in a tiny model with random weights.

Each class that calls the attention interface is looked for in the models of its own file, which are built from their default
configurations with small sizes.  A model is converted by codes that keep all keys, which is exact attention, and is compared
with what it computed before; then it is saved, loaded, and generates.
"""

from __future__ import annotations

import contextlib
import copy
import importlib
import inspect
import io
import pkgutil
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from ._bench import Result, at_least, measured, not_measured

GOAL = 300
"""Classes that are to agree with exact attention."""
TOLERANCE = 1e-3
"""Largest difference of outputs, relative to the largest output: float32 in another order of operations."""
_LENGTH, _VOCABULARY, _WIDTH, _HEADS = 12, 64, 32, 4
_TRIED = 8
"""Models of a family that are tried until all of its classes are found."""
_MOST = 30_000_000
"""Parameters of a model that is still tried."""
_SIZES: dict[str, Any] = {
    **dict.fromkeys(
        ("hidden_size", "d_model", "n_embd", "dim", "embed_dim", "hidden_dim", "encoder_hidden_size", "projection_dim",
         "decoder_hidden_size", "embedding_size", "word_embed_proj_dim", "true_hidden_size", "projector_hidden_size",
         "attention_hidden_size", "n_embed", "encoder_embed_dim", "vision_hidden_size", "out_hidden_size", "kv_dim",
         "d_embed", "hidden_channels", "vision_output_dim", "text_hidden_size", "lm_hidden_size"),
        _WIDTH,
    ),
    **dict.fromkeys(
        ("num_attention_heads", "n_head", "n_heads", "num_heads", "encoder_attention_heads", "decoder_attention_heads",
         "attention_heads", "encoder_num_attention_heads", "decoder_num_attention_heads", "num_key_value_heads",
         "encoder_num_key_value_heads", "decoder_num_key_value_heads", "num_encoder_attention_heads",
         "num_decoder_attention_heads", "n_kv_heads", "multi_query_group_num", "num_kv_heads"),
        _HEADS,
    ),
    **dict.fromkeys(
        ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers", "decoder_layers", "depth",
         "encoder_num_hidden_layers", "decoder_num_hidden_layers", "num_encoder_layers", "num_decoder_layers",
         "encoder_num_layers", "decoder_num_layers"),
        2,
    ),
    **dict.fromkeys(
        ("intermediate_size", "ffn_dim", "encoder_ffn_dim", "decoder_ffn_dim", "d_ff", "n_inner", "moe_intermediate_size",
         "shared_expert_intermediate_size", "encoder_intermediate_size", "decoder_intermediate_size", "ffn_hidden_size",
         "mlp_dim", "dense_intermediate_size", "encoder_ffn_embed_dim", "intermediate_size_mlp"),
        64,
    ),
    **dict.fromkeys(("head_dim", "d_kv", "kv_channels", "attention_head_dim", "head_size", "qk_head_dim"), _WIDTH // _HEADS),
    **dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"), 4),
    **dict.fromkeys(("num_experts_per_tok", "moe_topk", "moe_k", "num_experts_per_token", "top_k_experts"), 2),
    **dict.fromkeys(("n_group", "topk_group", "n_shared_experts", "first_k_dense_replace"), 1),
    **dict.fromkeys(("image_size", "img_size"), 32),
    **dict.fromkeys(("max_position_embeddings", "max_source_positions", "max_target_positions", "n_positions"), 128),
    "patch_size": 8, "vocab_size": _VOCABULARY, "q_lora_rank": 16, "kv_lora_rank": 16, "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 8, "v_head_dim": 8, "num_mel_bins": 16, "sliding_window": 64, "rotary_dim": 4,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1, "max_length": 32,
}  # fmt: skip
"""Small sizes by the usual names of configurations."""
_ORDER = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration", "Model", "ForMaskedLM", "")


@dataclass(frozen=True)
class Outcome:
    """What was found of a class of attention; ``reason`` says where it ended, in words, and is empty if all went well."""

    family: str
    attention: str
    model: str = ""
    converts: bool = False
    agrees: bool = False
    saves: bool = False
    generates: bool | None = None
    reason: str = ""

    def record(self) -> dict[str, Any]:
        """JSON values."""
        return asdict(self)


def run() -> Iterator[Result]:
    """A line for each class, and their number."""
    try:
        import transformers
    except ImportError:
        yield not_measured("families", 'needs transformers: pip install "torch>=2.4" "transformers>=5"')
        return
    transformers.logging.set_verbosity_error()
    outcomes = []
    for outcome in sweep():
        outcomes.append(outcome)
        details = outcome.reason or f"in {outcome.model}"
        line = measured(f"{outcome.family}: {outcome.attention}", float(outcome.agrees), "exact", details)
        yield line.with_numbers(**outcome.record())
    count = sum(outcome.agrees for outcome in outcomes)
    yield at_least("classes that agree with exact attention", count, GOAL, "classes", f"of {len(outcomes)}")


def families() -> list[str]:
    """Names of the families of models."""
    import transformers.models

    return sorted(found.name for found in pkgutil.iter_modules(transformers.models.__path__))


def sweep(names: list[str] | None = None) -> Iterator[Outcome]:
    """All classes of attention of these families, or of all, in order."""
    for name in families() if names is None else names:
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            yield from _family(name)


def _family(name: str) -> Iterator[Outcome]:
    try:
        module = importlib.import_module(f"transformers.models.{name}.modeling_{name}")
    except Exception:  # families without a model of their own, or with requirements that are not installed
        return
    waiting = {kind.__name__ for kind in _classes(module) if _calls_interface(kind)}
    found: dict[str, Outcome] = {}
    for kind in sorted(_models(module), key=_rank)[:_TRIED]:
        if all(found.get(attention, Outcome(name, attention)).agrees for attention in waiting):
            break
        for cross in (False, True) if any("Cross" in attention for attention in waiting) else (False,):
            for outcome in _tried(name, kind, waiting, cross):
                best = found.get(outcome.attention)
                if best is None or _progress(outcome) > _progress(best):
                    found[outcome.attention] = outcome
    for attention in sorted(waiting):
        yield found.get(attention, Outcome(name, attention, reason="no small model of this class was built"))


def _progress(outcome: Outcome) -> int:
    return sum(map(bool, (outcome.converts, outcome.agrees, outcome.saves, outcome.generates)))


def _classes(module: Any) -> list[Any]:
    return [kind for kind in vars(module).values() if inspect.isclass(kind) and kind.__module__ == module.__name__]


def _calls_interface(kind: Any) -> bool:
    try:
        return "ALL_ATTENTION_FUNCTIONS" in inspect.getsource(kind.forward)
    except (OSError, TypeError, AttributeError):
        return False


def _models(module: Any) -> list[Any]:
    from transformers import PreTrainedModel

    return [
        kind
        for kind in _classes(module)
        if issubclass(kind, PreTrainedModel) and getattr(kind, "config_class", None) is not None
        and not kind.__name__.endswith("PreTrainedModel")
    ]  # fmt: skip


def _rank(kind: Any) -> tuple[int, str]:
    return next(i for i, end in enumerate(_ORDER) if kind.__name__.endswith(end)), kind.__name__


def small(config: Any) -> Any:
    """A configuration with small sizes, and so for all configurations within it."""
    for name, value in list(vars(config).items()):
        if hasattr(value, "to_dict") and hasattr(value, "model_type"):
            small(value)
        elif name in _SIZES and isinstance(value, int) and not isinstance(value, bool):
            setattr(config, name, min(value, _SIZES[name]) if name.startswith("num_experts") else _SIZES[name])
        elif name.endswith("_token_id") and isinstance(value, int) and value >= _VOCABULARY:
            setattr(config, name, 3 + sum(map(ord, name)) % 50)
        elif name in ("eos_token_id", "bos_token_id", "pad_token_id") and (value is None or isinstance(value, list)):
            setattr(config, name, _SIZES[name])
        elif name.endswith("layer_types") and isinstance(value, list):
            setattr(config, name, _layer_types(value))
        elif name == "stage_names" and isinstance(value, list):
            config.stage_names, config._out_features, config._out_indices = (
                ["stem", "stage1", "stage2"],
                ["stage2"],
                [2],
            )
        elif name in ("rope_parameters", "rope_scaling") and isinstance(value, dict):
            _smaller_sections(value)
        elif name == "sliding_window" and value is None:
            continue
        elif name == "image_size" and isinstance(value, list | tuple):
            setattr(config, name, type(value)(32 for _ in value))
    return config


def _smaller_sections(rope: dict[str, Any]) -> None:
    """Parts of rotary positions that fit a head of the small width."""
    for part in (rope, *(value for value in rope.values() if isinstance(value, dict))):
        if "rope_type" in part or "rope_theta" in part:
            half = int(_WIDTH // _HEADS // 2 * part.get("partial_rotary_factor", 1))
            part["mrope_section"] = [half - 2 * (half // 3), half // 3, half // 3]


def _layer_types(types: list[str]) -> list[str]:
    """Two layers, of which one sees everything where any does."""
    whole = [kind for kind in types if kind == "full_attention"][:1]
    others = [kind for kind in types if kind != "full_attention"][:1]
    return ((others + whole) * 2)[-2:] if whole else (others * 2)[:2]


def _built(kind: Any, cross: bool) -> Any:
    """The model with small sizes, as a decoder with cross-attention if that is asked for."""
    import torch

    torch.manual_seed(0)
    config = small(kind.config_class())
    if cross:
        config.is_decoder = config.add_cross_attention = True
    with torch.device("meta"):
        count = sum(parameter.numel() for parameter in kind(copy.deepcopy(config)).parameters())
    if count > _MOST:
        raise ValueError(f"{count / 1e6:.0f} million parameters with small sizes")
    model = kind(config).eval()
    for parameter in model.parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=0.2)
    return model


def _batch(model: Any, cross: bool) -> dict[str, Any]:
    """A small input of the kind that the model takes."""
    import torch

    source, wanted = torch.Generator().manual_seed(0), inspect.signature(model.forward).parameters
    tokens = torch.randint(3, 50, (2, _LENGTH), generator=source)
    size = getattr(model.config, "image_size", 32)
    size = size if isinstance(size, int) else size[0]
    channels = getattr(model.config, "num_channels", 3)
    kinds = {
        "input_ids": tokens,
        "pixel_values": torch.randn(2, channels, size, size, generator=source),
        "input_values": torch.randn(2, 2000, generator=source),
        "input_features": torch.randn(2, getattr(model.config, "num_mel_bins", 16), 128, generator=source),
    }
    main = (
        model.main_input_name
        if model.main_input_name in kinds
        else next((n for n in kinds if n in wanted), "input_ids")
    )
    if main == "pixel_values" and "input_ids" in wanted and "Vision" not in type(model).__name__:
        main = "input_ids"
    batch = {main: kinds[main]}
    if "decoder_input_ids" in wanted:
        batch["decoder_input_ids"] = tokens.flip(1)
    if cross:
        batch["encoder_hidden_states"] = torch.randn(2, 6, _WIDTH, generator=source)
    return batch


def _output(model: Any, batch: dict[str, Any]) -> Any:
    import torch

    with torch.no_grad():
        found = model(**batch)
    return next(x for x in found.to_tuple() if isinstance(x, torch.Tensor) and x.is_floating_point())


def _tried(family: str, kind: Any, waiting: set[str], cross: bool) -> list[Outcome]:
    """The outcomes of all classes of attention in one model."""
    from bochner.nn import CodedPlan, replace_attention

    try:
        model = _built(kind, cross)
        batch = _batch(model, cross)
        expected = _output(model, copy.deepcopy(batch))
    except Exception as error:
        return [Outcome(family, name, kind.__name__, reason=f"not built here: {_words(error)}") for name in waiting]
    there = {type(module).__name__ for module in model.modules()} & waiting
    called: set[str] = set()
    try:
        plans = CodedPlan.uncalibrated(model, kept=4096, window=4, exact_below=0)
        named = dict(model.named_modules())
        for name in plans:
            named[name].register_forward_pre_hook(lambda module, *_: called.add(type(module).__name__))
        if plans:
            replace_attention(model, plans)
    except Exception as error:
        return [Outcome(family, name, kind.__name__, reason=_words(error)) for name in there]
    if not plans:
        return [Outcome(family, name, kind.__name__, reason="stays exact: it sees a sliding window") for name in there]
    converted = {type(named[name]).__name__ for name in plans}
    result: dict[str, dict[str, Any]] = {name: {"converts": name in converted} for name in there}
    reasons = {name: "" if name in converted else "sizes are not found, or it slides" for name in there}
    generated: bool | None = None
    saves = agrees = False
    reason = ""
    try:
        found = _output(model, copy.deepcopy(batch))
        agrees = bool((found - expected).abs().max() <= TOLERANCE * expected.abs().max())
        reason = "" if agrees else f"differs by {float((found - expected).abs().max() / expected.abs().max()):.1g}"
        saves = agrees and _comes_back(model, batch, found)
        reason = reason or ("" if saves else "another result after loading")
        if saves and model.can_generate() and "input_ids" in batch and not cross:
            generated = _generates(kind, model, batch)
            reason = reason or ("" if generated else "another text")
    except Exception as error:
        reason = _words(error)
    for name in there & converted:
        if name in called:
            result[name] |= {"agrees": agrees, "saves": saves, "generates": generated}
            reasons[name] = reason
        else:
            reasons[name] = reason or "not called by a small input of this model"
    return [Outcome(family, name, kind.__name__, **result[name], reason=reasons[name]) for name in there]


def _comes_back(model: Any, batch: dict[str, Any], expected: Any) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        again = type(model).from_pretrained(folder).eval()
    return bool((_output(again, copy.deepcopy(batch)) - expected).abs().max() <= TOLERANCE * expected.abs().max())


def _generates(kind: Any, model: Any, batch: dict[str, Any]) -> bool:
    """Whether the converted model writes what the model wrote before, greedily."""
    options = {"max_new_tokens": 4, "do_sample": False, "eos_token_id": None, "pad_token_id": 0, "bos_token_id": 1}
    tokens = batch["input_ids"][:1]
    return bool((_built(kind, False).generate(tokens, **options) == model.generate(tokens, **options)).all())


def _words(error: Exception) -> str:
    first = str(error).strip().splitlines()
    return f"{type(error).__name__}: {first[0][:160] if first else ''}"
