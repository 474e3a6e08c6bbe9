"""Frames and constants for every head of a trained model, from what its exact attention attends to."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from .._progress import progress
from .._validation import check_count, check_flag, shown
from ..approximation import Approximation
from ..catalogue import as_specification
from ..maps import DenseExponential
from ._attention_checks import check_generator
from ._conversion import attention_modules, check_model
from ._head_spec import attention_spec
from ._layer_plan import LayerPlan
from ._model_change import Loss, ModelChange
from ._recording import Recorded, record

_OWNER = "calibrate"
_DRAWS = 2
"""Draws over which the change of the loss is averaged."""
_LEAST = 0.02
"""Smallest change of the loss that is told from noise, relative to the largest: it has a seventh of the rows."""


def calibrate(
    model: nn.Module,
    batches: Iterable[Any],
    n_projections: int = 64,
    window: int = 0,
    anchors: int = 0,
    *,
    keep: Collection[str] | int = (),
    by_loss: bool = False,
    loss: Loss | None = None,
    spec: Approximation | str = "dense",
    select: Callable[[str, nn.Module], bool] | None = None,
    generator: torch.Generator | None = None,
    verbose: bool = False,
) -> dict[str, LayerPlan]:
    r"""Find the most accurate positive features for each head of a trained model, from a few batches.

    Pass the result to `replace_attention` to convert the model without training.  Use it wherever data are at hand: a
    conversion by name chooses constants from queries and keys of the first batch, and this also knows which pairs of
    them attention gives weight to.

    Parameters
    ----------
    model : torch.nn.Module
        A model as in `replace_attention`, before or after conversion; it is run with exact attention, and not changed.
    batches : iterable
        A few batches of typical data, each as in `attention_report`: one argument of the model, a tuple of positional
        arguments, or a mapping of keyword arguments.
    n_projections : int
        Rows of W of each head, if ``spec`` is a name; with ``by_loss`` their mean over all heads.
    window, anchors : int
        Number of keys next to each query, and at the start of the sequence, that the converted model computes exactly.
        Cross-attention has no window.
    keep : names of attention, or int
        What stays exact: the attention of these names, or as many as this number, those whose conversion changes the
        loss most.
    by_loss : bool
        Whether attention whose conversion changes the loss more is given more rows.
    loss : callable, optional
        ``loss(model, batch)`` returns the loss that ``by_loss`` and a number ``keep`` go by.  By default it is the
        ``loss`` of the model's output if there is one, and otherwise the squared change of the output.
    spec : Approximation or str
        A specification of `maps.DenseExponential` and `kernels.Softmax` with scale 1, or the name of one.
    select : callable, optional
        ``select(name, module)`` says whether to calibrate an attention; by default all are.
    generator : torch.Generator, optional
        Source of the draws with which losses are measured; by default torch's global generator.
    verbose : bool
        Whether to show a progress bar, if it takes more than a few seconds.

    Returns
    -------
    dict
        A `LayerPlan` for each attention, by name: a plan for each head; ``replace_attention(model, plans)`` draws them.

    See Also
    --------
    replace_attention : Convert the model.
    attention_report : Measure the error of each head.

    Notes
    -----
    The error of a pair of query and key matters in proportion to its attention weight.  With the exact weights
    :math:`p_{ij}` of all queries and the keys they see, without padding, the frame and the constants of
    `maps.DenseExponential` are those of the weighted moments

    .. math:: a = \frac{\sum p_{ij}x_i}{\sum p_{ij}}, \quad b = \frac{\sum p_{ij}y_j}{\sum p_{ij}}, \quad
              C = \frac{\sum p_{ij}(x_i-a)(y_j-b)^T}{\sum p_{ij}}

    and the covariances of x and y, where :math:`x = \sqrt s\,q` and :math:`y = \sqrt s\,k`.  Only constants are chosen:
    estimates of the kernel stay unbiased.  The time is that of exact attention, and the moments are summed batch by
    batch.  With a window or anchors only the other pairs count, which are those that features compute.

    The change of the loss when one attention is converted is proportional to 1/m for m rows.  So ``by_loss`` measures the
    changes :math:`c_l` of all attention at equal rows, each by itself, and gives :math:`h_l` heads rows in proportion to
    :math:`\sqrt{c_l/h_l}`, which makes the sum of the changes least.

    Examples
    --------
    >>> import torch
    >>> from bochner.nn import calibrate, replace_attention
    >>> _ = torch.manual_seed(0)
    >>> model = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(16, 2, batch_first=True), 2).eval()
    >>> plans = calibrate(model, [torch.randn(4, 12, 16) for _ in range(2)], n_projections=32)
    >>> {name: len(heads) for name, heads in plans.items()}
    {'layers.0.self_attn': 2, 'layers.1.self_attn': 2}
    >>> converted = replace_attention(model, plans, copy=True)
    """
    check_model(_OWNER, model)
    check_generator(_OWNER, generator)
    check_flag(_OWNER, "by_loss", by_loss)
    check_flag(_OWNER, "verbose", verbose)
    asked = _checked_spec(spec, check_count(_OWNER, "n_projections", n_projections))
    near = check_count(_OWNER, "window", window, 0), check_count(_OWNER, "anchors", anchors, 0)
    if select is not None and not callable(select):
        raise TypeError(f"{_OWNER}: select must be a function of a name and a module, got {shown(select)}.")
    names = _checked_keep(model, keep)
    data = list(_checked_batches(batches)) if by_loss or names is None else _checked_batches(batches)
    sums: dict[str, Moments] = {}
    windows: dict[str, int] = {}
    for batch in progress(data, label="batches", shown=verbose):
        for call in record(model, batch, _OWNER):
            if call.name in (names or ()) or (select is not None and not select(call.name, _module(model, call))):
                continue
            windows[call.name] = near[0] if call.places is not None else 0
            found = Moments.of(call, *near)
            sums[call.name] = sums[call.name] + found if call.name in sums else found
    if not sums:
        raise ValueError(
            f"{_OWNER}: there is nothing to calibrate: select and keep left no attention, or batches has no batch."
        )
    plans = {
        name: LayerPlan(_plans(name, moments, asked, *near), windows[name], near[1]) for name, moments in sums.items()
    }
    if not by_loss and names is not None:
        return plans
    change = ModelChange(_OWNER, model, data, loss)
    changes = {
        name: max(float(np.mean([change.of({name: plan}, generator) for _ in range(_DRAWS)])), 0.0) ** change.power
        for name, plan in progress(plans.items(), label="losses", shown=verbose, total=len(plans))
    }
    if names is None:
        assert isinstance(keep, int)
        for name in sorted(changes, key=changes.__getitem__, reverse=True)[:keep]:
            del plans[name], changes[name]
    return _by_loss(plans, changes, asked.n_projections) if by_loss else plans


def _module(model: nn.Module, call: Recorded) -> nn.Module:
    return model.get_submodule(call.name)


def _by_loss(plans: Mapping[str, LayerPlan], changes: Mapping[str, float], mean: int) -> dict[str, LayerPlan]:
    """Plans with rows where conversion changes the loss most, as many as before in all."""
    largest = max(changes.values(), default=0.0)
    if largest <= 0:
        return dict(plans)
    heads = {name: len(plan) for name, plan in plans.items()}
    shares = {name: math.sqrt(max(changes[name], _LEAST * largest) / heads[name]) for name in plans}
    unit = mean * sum(heads.values()) / sum(shares[name] * heads[name] for name in plans)
    rows = {name: max(round(unit * share), 1) for name, share in shares.items()}
    return {
        name: LayerPlan((replace(head, n_projections=rows[name]) for head in plan), plan.window, plan.anchors)
        for name, plan in plans.items()
    }


class Moments(NamedTuple):
    """Sums over pairs of queries and keys, weighted by exact attention: float64, the heads first.

    Attributes
    ----------
    weight : Tensor (heads,)
        Sum of the weights.
    x, y : Tensor (heads, d)
        Sums of queries and of keys, times the root of the scale.
    xx, yy, xy : Tensor (heads, d, d)
        Sums of their products.
    """

    weight: Tensor
    x: Tensor
    y: Tensor
    xx: Tensor
    yy: Tensor
    xy: Tensor

    @classmethod
    def of(cls, call: Recorded, window: int = 0, anchors: int = 0) -> Moments:
        """The sums of one call, without padding and without the pairs that are computed exactly."""
        root = torch.as_tensor(call.scale, device=call.q.device).double().sqrt()
        weights, q, k = call.weights(), call.q.double() * root, call.k.double() * root
        if call.key_mask is not None:  # numbers in the padding, even NaN, must not meet a zero
            there = call.key_mask.expand(k.shape[0], k.shape[2])[:, None, :, None]
            k = torch.where(there, k, 0.0)
            if q.shape == k.shape:  # queries in as many places are padded as keys are
                q, weights = torch.where(there, q, 0.0), torch.where(there, weights, 0.0)
        near = call.near(window, anchors)
        if near is not None:
            weights = weights.masked_fill(near, 0.0)
        rows, columns = (weights.sum(dim, dtype=torch.float64)[..., None] for dim in (-1, -2))
        attended = (weights @ k.to(weights)).double()
        x, y = rows * q, columns * k
        products = (x.mT @ q, y.mT @ k, q.mT @ attended)
        return cls(rows.sum((0, 2, 3)), x.sum((0, 2)), y.sum((0, 2)), *(product.sum(0) for product in products))

    def __add__(self, other: Moments) -> Moments:  # type: ignore[override]
        """The sums over both."""
        return Moments(*(one + another for one, another in zip(self, other, strict=True)))

    def heads(self) -> list[tuple[np.ndarray, ...]]:
        """Means a and b, covariances of x and of y, and those of x with y, of each head."""
        weight, *sums = self
        a, b, xx, yy, xy = (part / weight.view(-1, *[1] * (part.ndim - 1)) for part in sums)
        covariances = [xx - _outer(a, a), yy - _outer(b, b), xy - _outer(a, b)]
        return list(zip(*(part.cpu().numpy() for part in (a, b, *covariances)), strict=True))


def _outer(a: Tensor, b: Tensor) -> Tensor:
    return a[:, :, None] * b[:, None, :]


def _plans(name: str, moments: Moments, spec: Approximation, window: int, anchors: int) -> list[Approximation]:
    """The plan of each head."""
    where = name or "the model"
    if not all(bool(part.isfinite().all()) for part in moments):
        raise ValueError(
            f"{_OWNER}: {where} has no finite attention weights on these batches; check that queries and keys are finite."
        )
    if not bool((moments.weight > 0).all()):
        beyond = f" beyond the window of {window} and {anchors} anchors" if window or anchors else ""
        raise ValueError(
            f"{_OWNER}: {where} attends to no key{beyond} in these batches; pass longer sequences, some of whose tokens "
            f"are not padding."
        )
    feature_map = spec.map
    assert isinstance(feature_map, DenseExponential)
    return [replace(spec, map=feature_map.plan_moments(*head)) for head in moments.heads()]


def _checked_spec(spec: Any, n_projections: int) -> Approximation:
    asked = attention_spec(_OWNER, as_specification(_OWNER, spec, None, n_projections), softmax_only=True)
    if not isinstance(asked.map, DenseExponential):
        raise ValueError(
            f"{_OWNER}: spec must be of maps.DenseExponential, whose constants follow from weighted moments, got "
            f"{asked.map!r}; replace_attention chooses the constants of other maps from the first batch."
        )
    return asked


def _checked_keep(model: nn.Module, keep: Any) -> Collection[str] | None:
    """Names of what stays exact; None where their number was given."""
    if isinstance(keep, int):
        return None if check_count(_OWNER, "keep", keep, 0) else ()
    if isinstance(keep, str) or not isinstance(keep, Collection) or not all(isinstance(name, str) for name in keep):
        raise TypeError(f"{_OWNER}: keep must be names of attention, such as [name], or a number, got {shown(keep)}.")
    known = attention_modules(model)
    for name in keep:
        if name not in known:
            raise ValueError(f"{_OWNER}: keep names {shown(name)}, but attention is at {', '.join(known)}.")
    return keep


def _checked_batches(batches: Any) -> Iterable[Any]:
    if isinstance(batches, Tensor | Mapping | str) or not isinstance(batches, Iterable):
        raise TypeError(
            f"{_OWNER}: batches must be a list or an iterator of batches, such as [batch], got {shown(batches)}."
        )
    return batches
