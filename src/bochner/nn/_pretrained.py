"""Converted models in ``save_pretrained`` and ``from_pretrained``: what ``config.json`` says, and how it is read.

Two entries of the configuration of a converted model belong to us:

- ``quantization_config``, the entry by which ``transformers`` finds code that changes modules before it loads weights:
  ``{"quant_method": "bochner", "version": 1, "layers": {name: record}}``, with a record for each converted attention:
  specification, sizes, window and anchors, and the types and shapes of its buffers, whose numbers are in the file of
  weights.  Nothing is quantised, and a loaded model does not claim to be.
- ``attn_implementation: "bochner"``, so that ``transformers`` without this library refuses the model, and never loads it
  with softmax attention.

Loading gives each named attention its features, has ``transformers`` fill the buffers, and checks them as those of a
``state_dict`` are checked.  Nothing is drawn or executed.

This module imports ``transformers`` and registers its entry there; others import it where they need it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn
from transformers import PreTrainedModel
from transformers.quantizers.auto import AUTO_QUANTIZATION_CONFIG_MAPPING, AUTO_QUANTIZER_MAPPING
from transformers.quantizers.base import HfQuantizer
from transformers.utils.quantization_config import QuantizationConfigMixin

from ._bounded_module import BoundedAttention
from ._coded_module import CodedAttention
from ._families import family_of, sizes
from ._hugging_face import ATTRIBUTE, NAME, HeadAttention, attach, make_masks_linear
from ._multihead import RandomFeatureAttention

VERSION = 1  # version of the entry that is written; no other one is read

_OWNER = "from_pretrained"


class ConvertedLayers(QuantizationConfigMixin):
    """The entry of a configuration.

    Parameters
    ----------
    layers : dict
        Records by the name of the attention.
    version : int
        Version of the entry.
    quant_method : str
        Our name, by which the entry is found.
    """

    def __init__(self, layers: dict[str, dict[str, Any]], version: int = VERSION, quant_method: str = NAME) -> None:
        self.quant_method, self.version, self.layers = quant_method, version, layers


def record(model: nn.Module) -> None:
    """Write what is converted into the configurations of all models of ``transformers`` within a model."""
    written: set[int] = set()
    for part in model.modules():  # the outermost first: of models that share a configuration, it gives the names
        if isinstance(part, PreTrainedModel) and id(part.config) not in written:
            layers = {name: _record_of(module) for name, module in part.named_modules() if _is_converted(module)}
            if layers:
                written.add(id(part.config))
                part.config.quantization_config = ConvertedLayers(layers)
                part.config.attn_implementation = NAME


def _is_converted(module: nn.Module) -> bool:
    return isinstance(getattr(module, ATTRIBUTE, None), HeadAttention) or isinstance(module, RandomFeatureAttention)


def _record_of(module: nn.Module) -> dict[str, Any]:
    """The record of an attention: the very object that its features keep up to date."""
    computed_by: Any = getattr(module, ATTRIBUTE, module)
    if isinstance(computed_by, HeadAttention):
        found: dict[str, Any] = computed_by.record()
    else:
        found = computed_by.features.record
        found.update({"window": computed_by.window, "anchors": computed_by.anchors})
    found["class"] = type(module).__name__
    return found


def check_recordable(owner: str, model: nn.Module) -> None:
    """Raise a ValueError for a quantised model, whose configuration cannot hold the record as well."""
    for part in model.modules():
        other: Any = getattr(getattr(part, "config", None), "quantization_config", None)
        method = other.get("quant_method") if isinstance(other, Mapping) else getattr(other, "quant_method", None)
        if other is not None and method not in (NAME, "gguf"):  # weights from GGUF are whole numbers no more
            raise ValueError(
                f"{owner}: the model is quantised by {getattr(method, 'value', method)}, so that its config.json could not "
                f"say that attention is converted; convert the model before it is quantised."
            )


class ConvertedLayersReader(HfQuantizer):
    """Restores converted attention while ``from_pretrained`` loads a model."""

    is_trainable = True

    def is_serializable(self) -> bool:
        """Whether the model can be saved again."""
        return True

    def update_attn_implementation(self, config: Any) -> Any:
        """The attention of other layers: what was asked for, or the default."""
        if config._attn_implementation == NAME:
            config._attn_implementation = None
        return config

    def _process_model_before_weight_loading(self, model: Any, **_: Any) -> Any:
        version, layers = self.quantization_config.version, self.quantization_config.layers
        if version != VERSION:
            raise ValueError(
                f"{_OWNER}: config.json describes converted attention in version {version!r}, and this version of bochner "
                f"reads {VERSION}; nothing was loaded."
            )
        # where modules are changed before loading, transformers does not compare the shapes of weights
        self.shapes = {name: tuple(weight.shape) for name, weight in model.named_parameters()}
        for name, found in layers.items():
            module = _module(model, name, found)
            kind = CodedAttention if "codes" in found else BoundedAttention if "bounds" in found else HeadAttention
            attach(module, kind.from_record(found))
        make_masks_linear(model)
        return model

    def _process_model_after_weight_loading(self, model: Any, **_: Any) -> Any:
        for name, weight in model.named_parameters():
            if tuple(weight.shape) != self.shapes.get(name, weight.shape):
                raise ValueError(
                    f"{_OWNER}: {name} has shape {tuple(weight.shape)} in the file of weights, and {self.shapes[name]} by "
                    f"config.json; load the model with the configuration that it was saved with, and then replace layers."
                )
        for name, module in model.named_modules():
            if isinstance(module, HeadAttention):
                try:
                    module.restore()
                except ValueError as error:
                    raise ValueError(f"{_OWNER}: {name}: the features were not loaded: {error}.") from None
        for part in model.modules():  # nothing is quantised: types and devices can be changed, and training is possible
            if isinstance(part, PreTrainedModel):
                part.config._is_quantized = False
        del model.hf_quantizer, model.quantization_method
        model.is_quantized = False
        record(model)
        return model


def _module(model: Any, name: str, found: Mapping[str, Any]) -> nn.Module:
    """The attention that a record belongs to, also where a model with another head was saved."""
    prefix = f"{model.base_model_prefix}."
    modules = dict(model.named_modules())
    places = [place for place in (name, prefix + name, name.removeprefix(prefix)) if place in modules]
    if not places or family_of(modules[places[0]]) is None:
        raise ValueError(
            f"{_OWNER}: {name} of class {found.get('class')} is converted by config.json, but {type(model).__name__} has no "
            f"attention of a known family there; build the model, convert it by replace_attention, and use load_state_dict."
        )
    module: nn.Module = modules[places[0]]
    heads, d = sizes(module)
    if (heads, d) != (found["heads"], found["d"]):
        raise ValueError(
            f"{_OWNER}: {name} has {heads} heads of width {d}, but its features were saved for {found['heads']} heads of "
            f"width {found['d']}."
        )
    return module


AUTO_QUANTIZATION_CONFIG_MAPPING[NAME] = ConvertedLayers  # from now on ``from_pretrained`` reads our entry
AUTO_QUANTIZER_MAPPING[NAME] = ConvertedLayersReader
