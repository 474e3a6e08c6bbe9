r"""Checkpoints of drawn features: their format, and the checks when they are loaded.

Format 1.  Under the name of the features a ``state_dict`` holds

- ``format_version``: the number 1;
- ``plan``: JSON in bytes (uint8) with the specification (null where each head was given a plan), the dimension, the
  heads, and the plan of each draw with all its constants, made of public names by
  `bochner.approximation.files.plan_to_json`;
- ``seeds`` (int64), ``fitted`` (bool): where the draws started, and whether their constants were chosen from data;
- ``matrix`` (draws, d + 2, D) and, for signed features, ``signs`` (draws, 1, D): maps with quadratic logarithms;
- ``arrays.<draw>.<name>``: the arrays of other maps, under the names of `FeatureMap.to_arrays`.

All of it is tensors, so ``torch.load(weights_only=True)`` and safetensors read it.  Nothing is executed or drawn: a
module takes the numbers only if the specification is its own and they fit the plan.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from ..approximation import Approximation, FeatureMap
from ..approximation.files import plan_from_json, plan_to_json

FORMAT = 1  # version of the buffers in a state_dict; see docs/architecture.md
_LARGEST_PLAN = 1 << 28  # bytes of a plan that are parsed: 256 MB
_DTYPES = {"format_version": torch.int64, "plan": torch.uint8, "seeds": torch.int64, "fitted": torch.bool}


class Header(NamedTuple):
    """What drawn features belong to."""

    spec: Approximation | tuple[Approximation, ...]  # what was asked for: one specification, or a plan for each head
    d: int  # width of a head, number of heads
    heads: int
    per_head: bool  # whether each head has its own rows

    def encode(self, plans: list[Approximation], size: int = 0) -> Tensor:
        """JSON in bytes, with the plan of each draw; filled up with blanks to a size.

        Plans on other data differ by some digits, and buffers of replicas of a model must have the same size.
        """
        text = json.dumps(self.described() | {"plans": [_described(plan) for plan in plans]})
        return torch.frombuffer(bytearray(text.encode().ljust(size)), dtype=torch.uint8)

    def decode(self, stored: Tensor) -> list[Approximation]:
        """The plans of a checkpoint; a ValueError where it does not belong to this."""
        try:
            found = json.loads(bytes(stored.cpu().numpy()) if stored.numel() < _LARGEST_PLAN else "")
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict) or not isinstance(found.get("plans"), list):
            raise ValueError("its plan is not the JSON of one; the file is damaged")
        own = self.described()
        theirs = {name: found.get(name) for name in own} | {"spec": _in_present_words(found.get("spec"))}
        if theirs["spec"] is None and self._takes_plans:  # plans of the same kind, with constants found elsewhere
            theirs["spec"] = own["spec"]
        if theirs != own:
            raise ValueError(f"it holds features of {_in_words(theirs)}, and this module has {_in_words(own)}")
        return [self._plan(i, text) for i, text in enumerate(found["plans"])]

    @property
    def _takes_plans(self) -> bool:
        """Whether constants are not part of the specification."""
        return isinstance(self.spec, tuple) or not self.spec.planned

    def described(self) -> dict[str, Any]:
        """Return the plan as JSON values: a specification as its JSON, and null for plans of heads."""
        spec = None if isinstance(self.spec, tuple) else _described(self.spec)
        return {"spec": spec, "d": self.d, "heads": self.heads, "per_head": self.per_head}

    def _plan(self, i: int, text: Any) -> Approximation:
        """The plan of a draw, which must be the specification with its constants filled in."""
        own = self.spec[i % len(self.spec)] if isinstance(self.spec, tuple) else self.spec
        if text == _described(own) and own.planned:
            return own
        plan = plan_from_json(text if isinstance(text, str) else "")
        fits = type(plan.map) is type(own.map) and plan.planned
        if not fits or (plan.kernel, plan.projection, plan.n_projections) != (
            own.kernel,
            own.projection,
            own.n_projections,
        ):
            raise ValueError(f"its plan {plan!r} is not one of {own!r}")
        return plan


def _in_present_words(text: Any) -> Any:
    """A specification as this version writes it: fields of earlier ones may have had other names."""
    try:
        return plan_to_json(plan_from_json(text)) if isinstance(text, str) else text
    except (ValueError, TypeError):  # of another kind: it is compared as it is
        return text


def _described(spec: Approximation) -> str:
    """The specification as JSON; one with a user-defined function as its ``repr``, which is only compared."""
    try:
        return plan_to_json(spec)
    except TypeError:
        if not spec.planned:
            raise
        return re.sub(r" at 0x[0-9a-f]+", "", repr(spec))  # functions may show where they lie in memory


def _in_words(described: Mapping[str, Any]) -> str:
    try:
        spec = "a plan for each head" if described["spec"] is None else repr(plan_from_json(described["spec"]))
    except (ValueError, TypeError):
        spec = str(described["spec"])[:500]
    return f"{spec} with d={described['d']}, heads={described['heads']}, per_head={described['per_head']}"


def stored_plans(stored: Tensor) -> tuple[Approximation, ...]:
    """The plans of each head in a checkpoint, for a module that knows no other ones."""
    try:
        return tuple(plan_from_json(text) for text in json.loads(bytes(stored.cpu().numpy()))["plans"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ValueError("its plan is not the JSON of one; the file is damaged") from None


_LARGEST = 1e18
"""Numbers of drawn features are some orders of magnitude around one; squares of such ones overflow in float32."""


class Numbers(NamedTuple):
    """Numbers of a checkpoint that fit this module: plans, and either a matrix (with signs) or a map for each draw."""

    plans: list[Approximation]
    matrix: Tensor | None
    signs: Tensor | None
    maps: list[FeatureMap]


def read(own: Mapping[str, Tensor], header: Header, n_draws: int) -> Numbers:
    """Numbers of a checkpoint; a ValueError that says why they cannot be taken.

    Parameters
    ----------
    own : mapping
        Entries of the ``state_dict`` under the name of the features.
    header : Header
        What the module's own features belong to.
    n_draws : int
        Number of draws.
    """
    for name, values in own.items():
        if not isinstance(values, Tensor):
            raise ValueError(f"{name} must be a tensor, got {type(values).__name__}")
    missing = [name for name in _DTYPES if name not in own]
    if missing:
        raise ValueError(f"it has no {missing[0]}, so it is not of a format that this version reads")
    version = own["format_version"]
    if version.numel() != 1 or version.dtype != torch.int64 or int(version) != FORMAT:
        raise ValueError(f"it has format version {version.tolist()}, and this version of bochner reads {FORMAT}")
    for name, dtype in _DTYPES.items():
        if own[name].dtype != dtype:
            raise ValueError(f"{name} must be of {dtype}, got {own[name].dtype}")
    plans = header.decode(own["plan"])
    if len(plans) != n_draws:
        raise ValueError(f"it has {len(plans)} plans for {n_draws} draws")
    if "matrix" in own:
        width, shape = plans[0].n_features_out, (n_draws, header.d + 2, plans[0].n_features_out)
        _check_numbers("matrix", own["matrix"], shape)
        signs = own.get("signs")
        if (signs is None) != plans[0].positive:
            raise ValueError(f"signs must be there for signed features only, and {plans[0]!r} says otherwise")
        if signs is not None:
            _check_numbers("signs", signs, (n_draws, 1, width))
        return Numbers(plans, own["matrix"], signs, [])
    maps = [FeatureMap.from_arrays(plan, header.d, _arrays(own, i)) for i, plan in enumerate(plans)]
    return Numbers(plans, None, None, maps)


def _check_numbers(name: str, values: Tensor, shape: tuple[int, ...]) -> None:
    if tuple(values.shape) != shape or not values.is_floating_point():
        raise ValueError(f"{name} must be floating of shape {shape}, got {values.dtype} of shape {tuple(values.shape)}")
    if not bool(values.isfinite().all()):
        raise ValueError(f"{name} holds numbers that are not finite")
    _check_sizes(name, values)


def _check_sizes(name: str, values: Tensor) -> None:
    """Refuse numbers whose products with data would not be finite."""
    if values.numel() and _LARGEST < float(values.abs().max()) < torch.inf:
        raise ValueError(f"{name} holds a number beyond {_LARGEST:g}, whose products overflow; the file is damaged")


def _arrays(own: Mapping[str, Tensor], draw: int) -> dict[str, np.ndarray]:
    prefix = f"arrays.{draw}."
    for name, values in own.items():
        if name.startswith(prefix) and values.is_floating_point():
            _check_sizes(name, values)
    return {name.removeprefix(prefix): v.cpu().numpy() for name, v in own.items() if name.startswith(prefix)}


class LoadsWhole(nn.Module):
    """A module that a refused ``state_dict`` leaves as it was; torch's modules take the entries before the bad one."""

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Load parameters and draw, as every module does; a ``state_dict`` that is refused changes nothing.

        Parameters
        ----------
        state_dict : mapping
            That of a module of this class; a `RandomFeatureAttention` takes that of a ``nn.MultiheadAttention`` too, and
            keeps its own draw.
        strict, assign : bool
            As in ``nn.Module``.
        """
        nn.Module.load_state_dict(copy.deepcopy(self), state_dict, strict, assign)  # raises before anything changes
        return super().load_state_dict(state_dict, strict, assign)


class FixedPrecision(nn.Module):
    """A module whose buffers go to other devices, but not to other precisions: a draw is not a parameter."""

    def _apply(self, fn: Any, recurse: bool = True) -> FixedPrecision:
        before = dict(self._buffers)
        super()._apply(fn, recurse)
        for name, values in before.items():
            moved = self._buffers[name]
            if values is not None and moved is not None and moved.dtype != values.dtype:
                self._buffers[name] = values.to(moved.device)
        return self


class ArrayTree(FixedPrecision):
    """Arrays as buffers under their own names, in which dots stand for nesting."""

    def __init__(self, arrays: Mapping[str, np.ndarray]) -> None:
        super().__init__()
        for name, values in arrays.items():
            *path, last = name.split(".")
            node: nn.Module = self
            for part in path:
                if part not in node._modules:
                    node.add_module(part, ArrayTree({}))
                node = node.get_submodule(part)
            node.register_buffer(last, torch.tensor(values))

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays, by name."""
        return {name: values.cpu().numpy() for name, values in self.named_buffers()}
