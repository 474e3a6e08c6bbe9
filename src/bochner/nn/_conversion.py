"""Conversion of models with softmax attention to random features, module by module."""

from __future__ import annotations

import copy as copying
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from .._validation import check_count, check_flag, shown
from ..approximation import Approximation
from ..catalogue import as_specification
from ._attention_checks import check_generator
from ._attention_parts import levels_to_the_caller
from ._bounded_module import BoundedAttention, BoundedPlan
from ._coded_module import CodedAttention
from ._coded_plan import CodedPlan
from ._families import FAMILIES, family_of, is_cross, looks_like_attention, refusal, slides
from ._head_spec import HeadSpec, head_spec, near
from ._hugging_face import ATTRIBUTE, HeadAttention, attach, make_masks_linear, reads_models
from ._multihead import RandomFeatureAttention

_OWNER = "replace_attention"
Spec = Approximation | str | Sequence[Approximation] | CodedPlan | BoundedPlan
"""A specification, the name of a mechanism, a plan for each head, or one of coded or bounded attention."""


def replace_attention(
    model: nn.Module,
    spec: Spec | Mapping[str, Spec] | None = None,
    n_projections: int = 256,
    select: Callable[[str, nn.Module], bool] | None = None,
    copy: bool = False,
    generator: torch.Generator | None = None,
    *,
    per_head: bool = False,
    batches: Iterable[Any] | None = None,
) -> nn.Module:
    r"""Replace the softmax attention of a model by attention with random features, keeping its trained projections.

    Convert a trained model, measure it with `attention_report` and fine-tune it, or convert a model and train it from
    scratch.

    Parameters
    ----------
    model : torch.nn.Module
        The model, which is changed in place unless ``copy``.  Invalid arguments leave it unchanged.
    spec : Approximation, str, sequence of Approximation, plan, or mapping from names of modules to these, optional
        What to draw, for `kernels.Softmax` with scale 1, or the name of a mechanism, such as "dense", the most
        accurate one.  A sequence has a plan for each head.  A mapping, such as that of `calibrate` or the
        ``recommended`` of `attention_report`, converts the modules that it names.  Without it, ``batches`` must be given.
    n_projections : int
        Rows of W of a mechanism that is given by name; a specification has its own number.
    select : callable, optional
        ``select(name, module)`` says whether to convert an attention; by default all are converted.
    copy : bool
        Whether to convert a copy and leave ``model`` unchanged.
    generator : torch.Generator, optional
        Source of the draws.
    per_head : bool
        Whether each head draws its own rows.
    batches : iterable, optional
        A few batches of typical data, from which plans are chosen if there is no ``spec``: models of ``transformers`` get
        those of ``calibrate(model, batches, cost=128)``, which decode long contexts by few keys and leave whole sequences
        exact, so that an encoder computes what it did; others get features beside a window of 16.

    Returns
    -------
    torch.nn.Module
        ``model`` itself or its copy; if it is a ``nn.MultiheadAttention``, its replacement.

    Notes
    -----
    The following modules are converted, anywhere in the tree of modules:

    - ``torch.nn.MultiheadAttention``, also inside ``nn.TransformerEncoder``, ``nn.TransformerDecoder`` and
      ``nn.Transformer``: replaced by a `RandomFeatureAttention` under the same name with the same parameter objects, so
      that an existing optimizer keeps working.  The fast path of ``nn.TransformerEncoder``, which computes exact
      attention in evaluation mode, is switched off.
    - Attention of ``transformers`` 5, of the families that the page "Models of transformers" lists, from GPT-2 and
      Llama to BERT, Whisper and CLIP: the module is kept and gets a submodule ``random_features`` and its own configuration,
      which names the attention function ``"bochner"`` in the registry of ``transformers``.  Attention that is not
      converted is not changed at all, including its dropout.  Padding and causal masks work, and so does generation
      with a cache.  If all attention of a model is converted, its configuration names ``"bochner"`` too, so that it
      makes masks of linear size.  Layers with a sliding window stay exact.
    - Modules that were converted before are converted again.

    Dropout of attention weights has no counterpart and is not applied, as a warning says once in training; all other
    dropout is kept.  Maps with constants chosen from data choose them from the first batch.

    A converted model saves and loads its ``state_dict`` with the draw; to load one, convert a model of the same
    configuration first.  Models of ``transformers`` come back converted from ``save_pretrained`` and
    ``from_pretrained``.

    Examples
    --------
    >>> import torch
    >>> from bochner.nn import replace_attention
    >>> layer = torch.nn.TransformerEncoderLayer(32, 4, dropout=0.0, batch_first=True)
    >>> model = torch.nn.TransformerEncoder(layer, 2)
    >>> converted = replace_attention(model, "favor++")
    >>> converted is model, type(model.layers[0].self_attn).__name__
    (True, 'RandomFeatureAttention')
    >>> model(torch.randn(2, 10, 32)).shape
    torch.Size([2, 10, 32])
    """
    check_model(_OWNER, model)
    if select is not None and not callable(select):
        raise TypeError(f"{_OWNER}: select must be a function of a name and a module, got {shown(select)}.")
    check_flag(_OWNER, "per_head", per_head)
    check_flag(_OWNER, "copy", copy)
    check_generator(_OWNER, generator)
    count = check_count(_OWNER, "n_projections", n_projections)
    given = isinstance(spec, Mapping)
    if spec is None:
        spec = _calibrated(model, batches, count, select, generator)
    elif batches is not None:
        raise ValueError(f"{_OWNER}: batches choose the plans if there is no spec; pass one of the two, not both.")
    if copy:
        model = copying.deepcopy(model)
    found = _find(model, spec, select)
    specs = _specs(spec, count, found)
    built = {  # all of it before anything changes
        id(module): _built(module, specs[name], near(_of(spec, name)), per_head, generator)
        for name, module in found.items()
    }
    converted = _put(model, built)
    if select is None and not given:
        warn_of_exact(_OWNER, converted, found)
    return converted


_COST, _WINDOW = 128, 16  # keys per query of plans that are made here, and the window where features are used


def _calibrated(
    model: nn.Module,
    batches: Any,
    n_projections: int,
    select: Callable[..., bool] | None,
    generator: torch.Generator | None,
) -> Mapping[str, Any]:
    """Plans from batches, which have to be given: constants that do not fit the data turn a trained model into noise."""
    if batches is None:
        raise ValueError(
            f"{_OWNER}: pass batches=[...] of typical data, from which plans are chosen, or spec=, such as the result of "
            f"nn.calibrate; spec='dense' converts without data, for models that are still to be trained."
        )
    from ._calibration import calibrate  # which converts models to measure them

    options: dict[str, Any] = {"select": select, "generator": generator}
    if any(family_of(module) is not None for module in model.modules()):
        return calibrate(model, batches, cost=_COST, **options)
    return calibrate(model, batches, n_projections, _WINDOW, **options)


def warn_of_exact(owner: str, model: nn.Module, done: Collection[str]) -> None:
    """Name what seems to be attention and was not converted; a plan that was asked for leaves out what it does."""
    left: dict[str, str] = {}
    sliding: dict[str, str] = {}
    for name, module in model.named_modules():
        known = family_of(module) is not None or isinstance(module, nn.MultiheadAttention | RandomFeatureAttention)
        inside = any(name.startswith(f"{other}.") for other in left)
        unknown = not known and looks_like_attention(module) and not inside and not _has_converted(module)
        if unknown or (known and name not in done and not slides(module)):
            left[name] = type(module).__name__
        elif known and name not in done:
            sliding[name] = type(module).__name__
    if left:
        warnings.warn(
            f"{owner}: {len(left)} modules that look like attention stay exact: {_with_classes(left)}; unknown classes "
            f"could call bochner.nn.linear_attention. Pass select= or a mapping if only a part should be converted.",
            UserWarning,
            stacklevel=levels_to_the_caller(),
        )
    if sliding:
        warnings.warn(
            f"{owner}: {len(sliding)} modules with a sliding window stay exact, since they take linear time already: "
            f"{_with_classes(sliding)}.",
            UserWarning,
            stacklevel=levels_to_the_caller(),
        )


def _with_classes(modules: Mapping[str, str]) -> str:
    """Names and classes of modules, the first of many."""
    names = ", ".join(f"{name} ({kind})" for name, kind in list(modules.items())[:8])
    return f"{names} and {len(modules) - 8} more" if len(modules) > 8 else names


def _has_converted(module: nn.Module) -> bool:
    return any(hasattr(part, ATTRIBUTE) or isinstance(part, RandomFeatureAttention) for part in module.modules())


def _of(spec: Any, name: str) -> Any:
    return spec[name] if isinstance(spec, Mapping) else spec


def _specs(spec: Any, n_projections: int, names: Iterable[str]) -> dict[str, HeadSpec | CodedPlan | BoundedPlan]:
    """What to draw for each module."""
    if isinstance(spec, Mapping):
        return {name: _spec(f"{_OWNER}: {name}", spec[name], n_projections) for name in names}
    return dict.fromkeys(names, _spec(_OWNER, spec, n_projections))


def _spec(owner: str, spec: Any, n_projections: int) -> HeadSpec | CodedPlan | BoundedPlan:
    if isinstance(spec, CodedPlan | BoundedPlan):
        return spec
    named = as_specification(owner, spec, None, n_projections) if isinstance(spec, str) else spec
    return head_spec(owner, named, softmax_only=True)


def check_model(owner: str, model: Any) -> None:
    """Refuse anything but a module."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"{owner}: model must be a torch.nn.Module, got {shown(model)}.")


def attention_modules(model: nn.Module) -> dict[str, nn.Module]:
    """Attention modules that can be converted, by name."""
    return {name: m for name, m in _known_modules(model).items() if not slides(m) and refusal(m) is None}


def _known_modules(model: nn.Module) -> dict[str, nn.Module]:
    """Attention modules of known classes, also those that stay exact."""
    kinds = (nn.MultiheadAttention, RandomFeatureAttention)
    return {name: m for name, m in model.named_modules() if isinstance(m, kinds) or family_of(m) is not None}


def no_attention(owner: str, model: nn.Module) -> ValueError:
    """Return the error for a model without attention that can be converted, which lists its modules."""
    known = _known_modules(model)
    if known:
        name, module = next(iter(known.items()))
        reason = refusal(module) or "sees a sliding window only, and stays exact"
        return ValueError(f"{owner}: no attention can be converted; {name or 'the model'} {reason}.")
    kinds = Counter(type(module).__name__ for module in model.modules())
    there = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common(8))
    sought = ", ".join(dict.fromkeys(family.model for family in FAMILIES.values()))
    return ValueError(
        f"{owner}: found no attention in {type(model).__name__}; looked for torch.nn.MultiheadAttention and for that of "
        f"{sought} of transformers; there are {there}. An attention of your own can call bochner.nn.linear_attention."
    )


def _find(model: nn.Module, spec: Any, select: Callable[..., bool] | None) -> dict[str, nn.Module]:
    """What is to be converted, checked."""
    known, named = _known_modules(model), spec if isinstance(spec, Mapping) else None
    if not known:
        raise no_attention(_OWNER, model)
    found = known
    if named is not None:
        _check_names(named, known)
        found = {name: module for name, module in found.items() if name in named}
    if select is not None:
        found = {name: module for name, module in found.items() if select(name, module)}
    if all(map(slides, known.values())):  # plans for such a model name nothing
        found = known
    sliding = [name for name, module in found.items() if slides(module)]
    found = {name: module for name, module in found.items() if name not in sliding}
    if not found and sliding:
        raise ValueError(
            f"{_OWNER}: nothing is left to convert; {_listed(sliding)} stay exact, since they see a sliding window only, in "
            f"linear time; to convert them, build the model from a configuration without sliding windows."
        )
    if not found:
        raise ValueError(f"{_OWNER}: nothing is left to convert by spec and select; attention is at {_listed(known)}.")
    if reads_models():
        from ._pretrained import check_recordable

        check_recordable(_OWNER, model)
    for name, module in found.items():
        reason = refusal(module, coded=isinstance(_of(spec, name), CodedPlan))
        if (
            getattr(module, "is_decoder", False) is True
            and not getattr(module, "is_causal", True)
            and not is_cross(name)
        ):
            reason = "is causal by its mask alone, and does not say so in is_causal; keep it exact"
        if reason is not None:
            raise ValueError(f"{_OWNER}: {name or 'the model'} ({type(module).__name__}) {reason}.")
    return found


def _check_names(named: Iterable[str], known: Mapping[str, nn.Module]) -> None:
    """Raise a ValueError for names of what is no attention, or of attention that stays exact."""
    for name in named:
        if name not in known:
            raise ValueError(f"{_OWNER}: spec names {shown(name)}, but attention is at {_listed(known)}.")
        if slides(known[name]):
            raise ValueError(
                f"{_OWNER}: spec names {name}, which sees a sliding window only; it is linear already, and stays exact."
            )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(name or "'' (the model itself)" for name in names)


def built(module: nn.Module, plan: Any, exact: tuple[int, int], generator: torch.Generator | None) -> nn.Module:
    """Return what computes an attention by a plan, without a change of the module."""
    return _built(module, _spec(_OWNER, plan, 1), exact, False, generator)


def _built(
    module: nn.Module,
    spec: HeadSpec | CodedPlan | BoundedPlan,
    exact: tuple[int, int],
    per_head: bool,
    generator: torch.Generator | None,
) -> nn.Module:
    """Return the module that replaces an attention, or that computes it if the attention is kept."""
    if isinstance(spec, CodedPlan):
        return CodedAttention(spec, module, generator=generator)
    if isinstance(spec, BoundedPlan):
        return BoundedAttention(spec, module)
    if isinstance(module, nn.MultiheadAttention | RandomFeatureAttention):
        return _converted(module, spec, exact, per_head, generator)
    return HeadAttention(spec, module, near=exact, per_head=per_head, generator=generator)


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
    if reads_models():
        from ._pretrained import record

        record(model)
    new = built.get(id(model))
    return new if isinstance(new, RandomFeatureAttention) else model


def _converted(
    module: nn.MultiheadAttention | RandomFeatureAttention,
    spec: HeadSpec,
    exact: tuple[int, int],
    per_head: bool,
    generator: torch.Generator | None,
) -> RandomFeatureAttention:
    """Return a random-feature attention with the same parameter objects, so that optimizers keep working."""
    weight = module.out_proj.weight
    new = RandomFeatureAttention(
        module.embed_dim,
        module.num_heads,
        module.dropout,
        bias=module.in_proj_bias is not None,
        add_bias_kv=module.bias_k is not None,
        add_zero_attn=module.add_zero_attn,
        kdim=module.kdim,
        vdim=module.vdim,
        batch_first=module.batch_first,
        device=weight.device,
        dtype=weight.dtype,
        spec=spec,
        window=exact[0],
        anchors=exact[1],
        per_head=per_head,
        generator=generator,
        **_own_options(module),
    )
    for name, _ in list(new.named_parameters(recurse=False)):
        setattr(new, name, getattr(module, name))
    new.out_proj.weight, new.out_proj.bias = module.out_proj.weight, module.out_proj.bias
    new.train(module.training)
    return new


def _own_options(module: nn.Module) -> dict[str, Any]:
    """What an attention of random features has beyond torch's."""
    if not isinstance(module, RandomFeatureAttention):
        return {}
    return {"scale": module.scale, "learned_scale": module.log_scale is not None, "rotary": module.rotary}


def leave_fast_path(model: nn.Module, replaced: set[int]) -> None:
    """Keep encoders with replaced attention from packing padded batches, for which their layers use a separate path."""
    for module in model.modules():
        if isinstance(module, nn.TransformerEncoder) and any(id(part) in replaced for part in module.modules()):
            module.use_nested_tensor = False
