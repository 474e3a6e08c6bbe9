"""Specifications of the features of attention heads: one for all of them, or a plan for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._validation import shown
from ..approximation import Approximation
from ..catalogue import mechanism
from ..kernels import Kernel, Softmax

HeadSpec = Approximation | tuple[Approximation, ...]
"""What heads draw: one specification for all of them, or a plan for each."""


def as_spec(owner: str, spec: Approximation | str | None, kernel: Kernel) -> Approximation:
    """Return the given specification, that of a named mechanism, or the default for the kernel."""
    if spec is None:
        return Approximation(kernel)
    if isinstance(spec, str):
        return mechanism(spec)
    if not isinstance(spec, Approximation):
        raise TypeError(
            f"{owner}: spec must be an Approximation such as Approximation({kernel!r}), or the name of a mechanism such as "
            f"'favor++', which is drawn here, got {shown(spec)}."
        )
    return spec


def attention_spec(owner: str, spec: Approximation | str | None, *, softmax_only: bool = False) -> Approximation:
    """A specification for attention: the scale of softmax is given elsewhere."""
    spec = as_spec(owner, spec, Softmax())
    if isinstance(spec.kernel, Softmax) and spec.kernel.scale != 1:
        raise ValueError(
            f"{owner}: spec must be of kernels.Softmax() with scale 1, since the scale is that of the attention, got "
            f"scale {spec.kernel.scale:g}."
        )
    if softmax_only and spec.kernel != Softmax():
        raise ValueError(f"{owner}: spec must be of kernels.Softmax(), which the model was trained with, got {spec!r}.")
    return spec


def head_spec(owner: str, spec: Any, *, softmax_only: bool = False) -> HeadSpec:
    """Return the specification for attention of several heads, which may be given a plan each."""
    if isinstance(spec, Sequence) and not isinstance(spec, str | bytes):
        return tuple(attention_spec(owner, member, softmax_only=softmax_only) for member in spec)
    return attention_spec(owner, spec, softmax_only=softmax_only)


def check_heads(owner: str, spec: HeadSpec, heads: int) -> None:
    """Refuse a sequence that is not one of plans for each head."""
    if isinstance(spec, Approximation):
        return
    if len(spec) != heads:
        raise ValueError(f"{owner}: spec must have one plan for each of the {heads} heads, got {len(spec)}.")
    for h, member in enumerate(spec):
        if not member.planned:
            raise ValueError(
                f"{owner}: spec[{h}] must be planned, since a sequence holds the plans of the heads, got {member!r}; "
                f"use spec.plan(X, Y), or nn.calibrate for all heads of a model."
            )
