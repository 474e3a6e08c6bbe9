"""The public door of conversion."""

from __future__ import annotations

import copy as copying
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import nn

from ..._validation import check_flag
from ...approximation import Approximation
from ...kernels import Softmax
from ...maps import Map
from ...projections import Projection
from ..module import RandomFeatureAttention
from .families import FAMILIES, family_of
from .heads import HeadAttention
from .hugging_face import attach, make_masks_linear
from .multihead import check_multihead, converted, leave_fast_path

_OWNER = "replace_attention"
_PROJECTIONS = 256


def replace_attention(
    model: nn.Module,
    *,
    map: Map | None = None,
    projection: Projection | None = None,
    n_projections: int = _PROJECTIONS,
    features: Approximation | Mapping[str, Approximation] | None = None,
    per_head: bool = False,
    select: Callable[[str, nn.Module], bool] | None = None,
    copy: bool = False,
    generator: torch.Generator | None = None,
) -> nn.Module:
    r"""Turn the softmax attention of a model into attention with random features, keeping its trained projections.

    Notes
    -----
    What is found anywhere in the tree of modules, and becomes what:

    - ``torch.nn.MultiheadAttention``, also inside ``nn.TransformerEncoder``, ``nn.TransformerDecoder`` and
      ``nn.Transformer``: a `RandomFeatureAttention` under the same name with the same parameter objects, so that an
      optimizer made before goes on.  The path of ``nn.TransformerEncoder`` that computes exact attention by
      itself in evaluation is switched off.
    - Attention of ViT, BERT and GPT-2 of ``transformers`` 5: the module stays, gets a submodule ``random_features`` and a
      configuration of its own, which names the attention function ``"bochner"`` in the registry of ``transformers``.
      Attention that is not converted stays exactly as it was, dropout included.  Padding and causal masks work, and
      so does generation with a cache of keys and values.  Where all attention of a model is converted, its own
      configuration names ``"bochner"`` too, so that it makes masks of linear size.
    - What was converted before is converted again.

    Dropout of attention weights is left out, since there are no weights; all other dropout stays.  Maps with constants
    chosen from data choose them from the first batch that the model meets.

    A converted model saves and loads its ``state_dict`` with the draw; to load one, convert a model of the same
    configuration first.

    Parameters
    ----------
    model : torch.nn.Module
        Changed in place, unless ``copy``.  Bad arguments change nothing.
    map : Map, optional
        Map for the softmax kernel; the best one for it without.
    projection : Projection, optional
        Law of the rows; the best one for the map without.
    n_projections : int
        Number of rows.
    features : Approximation or mapping from names of modules to them, optional
        In place of the three above; a mapping, such as the ``recommended`` of `attention_report`, converts the modules
        that it names.
    per_head : bool
        Whether each head draws its own rows.
    select : callable, optional
        ``select(name, module)`` says whether to convert an attention; all are without it.
    copy : bool
        Whether to leave ``model`` alone and convert a copy.
    generator : torch.Generator, optional
        Source of the draws.

    Returns
    -------
    torch.nn.Module
        ``model`` itself or its copy; if it is a ``nn.MultiheadAttention``, what took its place.

    Examples
    --------
    >>> import torch
    >>> from bochner import maps
    >>> from bochner.nn import replace_attention
    >>> layer = torch.nn.TransformerEncoderLayer(32, 4, batch_first=True)
    >>> model = torch.nn.TransformerEncoder(layer, 2)
    >>> converted = replace_attention(model, map=maps.Positive(), n_projections=64)
    >>> converted is model, type(model.layers[0].self_attn).__name__
    (True, 'RandomFeatureAttention')
    >>> model(torch.randn(2, 10, 32)).shape
    torch.Size([2, 10, 32])
    """
    _check(model, map, projection, n_projections, features, per_head, copy)
    if features is None:
        features = Approximation(Softmax(), map, projection, n_projections)
    if copy:
        model = copying.deepcopy(model)
    found = _find(model, features, select)
    built: dict[int, nn.Module] = {}  # all of it before anything changes
    for name, module in found.items():
        spec = features if isinstance(features, Approximation) else features[name]
        built[id(module)] = _built(module, spec, per_head, generator)
    return _put(model, built)


def attention_modules(model: nn.Module) -> dict[str, nn.Module]:
    """All attention in the tree of modules, by name."""
    kinds = (nn.MultiheadAttention, RandomFeatureAttention)
    return {name: m for name, m in model.named_modules() if isinstance(m, kinds) or family_of(m) is not None}


def no_attention(owner: str, model: nn.Module) -> ValueError:
    """The error that says what was looked for and what is there."""
    kinds = Counter(type(module).__name__ for module in model.modules())
    there = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common(8))
    sought = ", ".join(name.rpartition(".")[2] for name in FAMILIES)
    return ValueError(
        f"{owner}: found no attention in {type(model).__name__}; looked for torch.nn.MultiheadAttention and, of "
        f"transformers, {sought}; there are {there}. An attention of your own can call bochner.nn.linear_attention."
    )


def _find(
    model: nn.Module, features: Approximation | Mapping[str, Approximation], select: Callable[..., bool] | None
) -> dict[str, nn.Module]:
    """What is to be converted, checked."""
    found = attention_modules(model)
    if not found:
        raise no_attention(_OWNER, model)
    if not isinstance(features, Approximation):
        unknown = [name for name in features if name not in found]
        if unknown:
            raise ValueError(f"{_OWNER}: features names {unknown[0]!r}, but attention is at {_listed(found)}.")
        found = {name: module for name, module in found.items() if name in features}
    if select is not None:
        found = {name: module for name, module in found.items() if select(name, module)}
    if not found:
        raise ValueError(
            f"{_OWNER}: nothing is left to convert by features and select; attention is at "
            f"{_listed(attention_modules(model))}."
        )
    for name, module in found.items():
        if isinstance(module, nn.MultiheadAttention):
            check_multihead(name, module)
    return found


def _listed(names: Iterable[str]) -> str:
    return ", ".join(name or "'' (the model itself)" for name in names)


def _built(module: nn.Module, spec: Approximation, per_head: bool, generator: torch.Generator | None) -> nn.Module:
    """What takes the place of an attention, or the features that it is given where it stays."""
    family = family_of(module)
    if family is None:
        assert isinstance(module, nn.MultiheadAttention | RandomFeatureAttention)
        return converted(module, spec, per_head=per_head, generator=generator)
    heads, width = int(getattr(module, family.heads)), int(getattr(module, family.width))
    dtype = torch.float64 if next(module.parameters()).dtype == torch.float64 else torch.float32
    return HeadAttention(spec, heads, width, per_head=per_head, dtype=dtype, generator=generator)


def _put(model: nn.Module, built: dict[int, nn.Module]) -> nn.Module:
    """Put everything in its place."""
    for module in list(model.modules()):
        new = built.get(id(module))
        if isinstance(new, HeadAttention):
            attach(module, new)
        for name, child in list(module._modules.items()):  # named_children leaves out a second name
            new = built.get(id(child))
            if isinstance(new, RandomFeatureAttention):
                setattr(module, name, new)
    make_masks_linear(model)
    leave_fast_path(model, {id(module) for module in built.values()})
    new = built.get(id(model))
    return new if isinstance(new, RandomFeatureAttention) else model


def _check(
    model: Any, map: Any, projection: Any, n_projections: int, features: Any, per_head: bool, copy: bool
) -> None:
    if not isinstance(model, nn.Module):
        raise TypeError(f"{_OWNER}: model must be a torch.nn.Module, got {model!r}.")
    check_flag(_OWNER, "per_head", per_head)
    check_flag(_OWNER, "copy", copy)
    if features is None:
        return
    if map is not None or projection is not None or n_projections != _PROJECTIONS:
        raise ValueError(f"{_OWNER}: give either features, or map, projection and n_projections, but not both.")
    specs = list(features.values()) if isinstance(features, Mapping) else [features]
    for spec in specs:
        if not isinstance(spec, Approximation) or spec.kernel != Softmax():
            raise ValueError(
                f"{_OWNER}: features must be Approximation(kernels.Softmax(), ...) with scale 1, or a mapping from names of "
                f"modules to such, got {spec!r}; the scale is that of the model."
            )
