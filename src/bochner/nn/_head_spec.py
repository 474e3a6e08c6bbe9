"""Specifications of the features of attention heads, and the plan of one attention with its exact keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, overload

from .._validation import check_count, shown
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
            f"{owner}: spec must use kernels.Softmax() with scale 1, since the scale is that of the attention, got "
            f"scale {spec.kernel.scale:g}."
        )
    if softmax_only and spec.kernel != Softmax():
        raise ValueError(f"{owner}: spec must use kernels.Softmax(), which the model was trained with, got {spec!r}.")
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


_OWNER = "LayerPlan"


class LayerPlan(Sequence[Approximation]):
    r"""The plans of the heads of one attention, with the keys that are computed exactly.

    `calibrate` finds it from data, and `replace_attention` converts a model by it.  It is a sequence of the plans of the
    heads.

    Parameters
    ----------
    heads : sequence of planned Approximation
        The features of each head.
    window : int
        Number of keys next to each query whose weights are computed exactly.
    anchors : int
        Number of keys at the start of the sequence whose weights are computed exactly for all queries.

    Examples
    --------
    >>> from bochner import Approximation, kernels, maps
    >>> from bochner.nn import LayerPlan
    >>> plan = LayerPlan([Approximation(kernels.Softmax(), maps.Positive(), n_projections=64)] * 4, window=16, anchors=1)
    >>> len(plan), plan.window, plan.n_projections
    (4, 16, 64)
    """

    def __init__(self, heads: Iterable[Approximation], window: int = 0, anchors: int = 0) -> None:
        if isinstance(heads, str | bytes | Approximation) or not isinstance(heads, Iterable):
            raise TypeError(f"{_OWNER}: heads must be a sequence with a plan for each head, got {shown(heads)}.")
        self.heads = tuple(heads)
        for h, member in enumerate(self.heads):
            if not isinstance(member, Approximation) or not member.planned:
                raise TypeError(f"{_OWNER}: heads[{h}] must be a planned Approximation, got {shown(member)}.")
        if not self.heads:
            raise ValueError(f"{_OWNER}: heads must hold at least one plan, got none.")
        self.window = check_count(_OWNER, "window", window, 0)
        self.anchors = check_count(_OWNER, "anchors", anchors, 0)

    @property
    def n_projections(self) -> int:
        """The largest number of rows of W of a head."""
        return max(head.n_projections for head in self.heads)

    def __len__(self) -> int:
        return len(self.heads)

    def __iter__(self) -> Iterator[Approximation]:
        return iter(self.heads)

    @overload
    def __getitem__(self, index: int) -> Approximation: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Approximation]: ...

    def __getitem__(self, index: int | slice) -> Approximation | Sequence[Approximation]:
        return self.heads[index]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LayerPlan):
            return NotImplemented
        return (self.heads, self.window, self.anchors) == (other.heads, other.window, other.anchors)

    def __hash__(self) -> int:
        return hash((self.heads, self.window, self.anchors))

    def __repr__(self) -> str:
        return f"LayerPlan({list(self.heads)!r}, window={self.window}, anchors={self.anchors})"


def near(spec: Any) -> tuple[int, int]:
    """Window and anchors of a plan; none for specifications of any other kind."""
    return (spec.window, spec.anchors) if isinstance(spec, LayerPlan) else (0, 0)
