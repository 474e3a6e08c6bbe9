"""Frames and constants for every head of a trained model, from what its exact attention attends to."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from .._progress import progress
from .._validation import check_count, check_flag, check_positive, shown
from ..approximation import Approximation
from ..catalogue import as_specification
from ..maps import DenseExponential
from ._attention_checks import check_generator
from ._bounded_calibration import bounded_plans
from ._bounded_module import BoundedPlan
from ._calibration_moments import HeadMoments
from ._coded_calibration import coded_plans, is_causal
from ._coded_plan import CodedPlan
from ._conversion import attention_modules, check_model, warn_of_exact
from ._head_spec import LayerPlan, attention_spec
from ._model_change import Loss, ModelChange
from ._recording import Recorded, record

_OWNER = "calibrate"
_DRAWS = 2  # draws over which the change of the loss is averaged
_LEAST = 0.02
"""Smallest change of the loss that is told from noise, relative to the largest: it has a seventh of the rows."""


def calibrate(
    model: nn.Module,
    batches: Iterable[Any],
    n_projections: int = 64,
    window: int = 0,
    anchors: int | None = None,
    *,
    cost: float | None = None,
    tolerance: float | None = None,
    state: float | None = None,
    bits: int = 64,
    keep: Collection[str] | int = (),
    by_loss: bool = False,
    loss: Loss | None = None,
    spec: Approximation | str = "dense",
    select: Callable[[str, nn.Module], bool] | None = None,
    generator: torch.Generator | None = None,
    verbose: bool = True,
) -> dict[str, LayerPlan] | dict[str, CodedPlan] | dict[str, BoundedPlan]:
    r"""Choose the plan of each head of a trained model, from a few batches.

    With a ``cost`` or a ``tolerance``, plans of `coded_attention`: few exact keys, found by random codes, as many in each
    head as it needs.  These keep the quality of trained language models.  With a ``state``, plans of a memory of fixed size
    for decoders: the last, the first and the most used keys, more of them in heads that need them.  Otherwise plans of
    features of all keys, beside a window: attention in linear time and constant memory.  Pass the result to
    `replace_attention` to convert the model without training.

    Parameters
    ----------
    model : torch.nn.Module
        A model as in `replace_attention`, before or after conversion; it is run with exact attention, and not changed.
    batches : iterable
        A few batches of typical data, each as in `attention_report`: one argument of the model, a tuple of positional
        arguments, or a mapping of keyword arguments.  They should be as long as what the model will read: frames belong
        to positions where these turn queries and keys, as rotary ones do.
    n_projections : int
        Rows of W of each head, if ``spec`` is a name; with ``by_loss`` their mean over all heads.  With a cost or a
        tolerance, the rows of features of the keys left out that are tried in each head.
    window, anchors : int
        Number of keys next to each query, and at the start of the sequence, that the converted model computes exactly.
        Cross-attention has no window.  With a cost, a tolerance or a state the window is chosen, and there is one anchor by
        default; otherwise there is one by default where there is a window and attention is causal.
    cost : float, optional
        Exact keys and rows of features that a query may use, averaged over all heads.
    tolerance : float, optional
        Relative change of the loss on the batches that is allowed; the least cost that keeps to it is chosen, out of
        ten from 24 to 512.
    state : float, optional
        Keys that a head of a decoder may hold, averaged over all heads.
    bits : int
        Length of the codes of keys, with a cost or a tolerance.
    keep : names of attention, or int
        Attention that stays exact: these names, or this number of modules, those whose conversion changes the loss
        most.
    by_loss : bool
        Whether attention whose conversion changes the loss more is given more rows.
    loss : callable, optional
        ``loss(model, batch)`` returns the loss that ``tolerance``, ``by_loss`` and a number ``keep`` go by.  By default it
        is the ``loss`` of the model's output if there is one, and otherwise the squared change of the output.
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
        A `LayerPlan` for each attention, by name, with a cost or a tolerance a `CodedPlan`, with a state a `BoundedPlan`: a
        plan for each head; ``replace_attention(model, plans)`` draws them.  Cross-attention has neither of the last two, and
        stays exact.

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

    For a cost, each head is tried with several numbers of kept keys and windows on some queries.  A change
    :math:`\delta` of its output is weighed by the gradient g of a random function of the model's output, for logits the
    log-likelihood of tokens drawn from them, so that :math:`(g\cdot\delta)^2` predicts the change of the loss to second
    order, for all heads and layers in one unit.  One price per key then decides how many each head keeps.  Features of
    the keys left out compete at the price of as many keys; their gate is the weight of least squared error.

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
    coded = cost is not None or tolerance is not None or state is not None
    near = (
        check_count(_OWNER, "window", window, 0),
        check_count(_OWNER, "anchors", int(coded) if anchors is None else anchors, 0),
    )
    if select is not None and not callable(select):
        raise TypeError(f"{_OWNER}: select must be a function of a name and a module, got {shown(select)}.")
    names = _checked_keep(model, keep)
    if loss is not None and not (by_loss or names is None or tolerance is not None):
        raise ValueError(
            f"{_OWNER}: a tolerance, by_loss and a number for keep go by the loss; without one of them, leave it out."
        )
    if bits != 64 and cost is None and tolerance is None:
        raise ValueError(
            f"{_OWNER}: bits are those of codes, which plans with a cost or a tolerance have; leave them out."
        )
    if coded:
        if spec != "dense":
            raise ValueError(
                f"{_OWNER}: with a cost, a tolerance or a state features of other keys are dense ones; leave out spec."
            )
        given = {"cost": cost, "tolerance": tolerance, "state": state}
        if sum(value is not None for value in given.values()) > 1:
            raise ValueError(
                f"{_OWNER}: give a cost, a tolerance or a state, and only one of them, got "
                f"{' and '.join(f'{name}={shown(value)}' for name, value in given.items() if value is not None)}."
            )
        if by_loss or names is None or near[0]:
            raise ValueError(
                f"{_OWNER}: with a cost, a tolerance or a state the window and the keys of each head are chosen; leave out "
                f"window, by_loss, and a number for keep."
            )
        kept = names

        def wanted(name: str) -> bool:
            return name not in kept and (select is None or select(name, model.get_submodule(name)))

        if state is not None:
            check_positive(_OWNER, "state", state)
            every = list(_checked_batches(batches))
            bounded = bounded_plans(_OWNER, model, every, wanted, state=state, anchors=near[1], verbose=verbose)
            if not bounded:
                raise ValueError(
                    f"{_OWNER}: state={state:g} needs causal attention, of which select and keep left none; use a cost."
                )
            if select is None:
                warn_of_exact(_OWNER, model, {*bounded, *kept})
            return bounded
        plans_of_codes = coded_plans(
            _OWNER,
            model,
            list(_checked_batches(batches)),
            wanted,
            cost=None if cost is None else check_positive(_OWNER, "cost", cost),
            tolerance=None if tolerance is None else check_positive(_OWNER, "tolerance", tolerance),
            anchors=near[1],
            bits=check_count(_OWNER, "bits", bits),
            rows=asked.n_projections,
            loss=loss,
            generator=generator,
            verbose=verbose,
        )
        if not plans_of_codes:
            raise _nothing()
        if select is None:
            warn_of_exact(_OWNER, model, {*plans_of_codes, *kept})
        return plans_of_codes
    data = list(_checked_batches(batches)) if by_loss or names is None else _checked_batches(batches)
    sums: dict[str, HeadMoments] = {}
    exact: dict[str, tuple[int, int]] = {}
    for batch in progress(data, label="batches", shown=verbose):
        for call in record(model, batch, _OWNER):
            if call.name in (names or ()) or (select is not None and not select(call.name, _module(model, call))):
                continue
            own = near[0], near[1] if anchors is not None else int(near[0] > 0 and is_causal(call))
            exact[call.name] = own if call.places is not None else (0, own[1])
            found = HeadMoments.of(call, *own)
            sums[call.name] = sums[call.name] + found if call.name in sums else found
    if not sums:
        raise _nothing()
    plans = {
        name: LayerPlan(_plans(name, moments, asked, *exact[name]), *exact[name]) for name, moments in sums.items()
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


def features_of(name: str, calls: Iterable[Recorded], spec: Approximation, window: int, anchors: int) -> LayerPlan:
    """The plan of features of one attention, from its recorded calls."""
    moments = [HeadMoments.of(call, window, anchors) for call in calls]
    return LayerPlan(_plans(name, sum(moments[1:], start=moments[0]), spec, window, anchors), window, anchors)


def _nothing() -> ValueError:
    return ValueError(
        f"{_OWNER}: there is nothing to calibrate: select and keep left no attention, or batches has no batch."
    )


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


def _plans(name: str, moments: HeadMoments, spec: Approximation, window: int, anchors: int) -> list[Approximation]:
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
            f"{_OWNER}: spec must use maps.DenseExponential, whose constants follow from weighted moments, got "
            f"{asked.map!r}; replace_attention chooses the constants of other maps from the first batch."
        )
    return asked


def _checked_keep(model: nn.Module, keep: Any) -> Collection[str] | None:
    """Names of what stays exact; None where their number was given."""
    if isinstance(keep, int):
        return None if check_count(_OWNER, "keep", keep, 0) else ()
    if isinstance(keep, str) or not isinstance(keep, Collection) or not all(isinstance(name, str) for name in keep):
        raise TypeError(f"{_OWNER}: keep must be a list of names of attention or a number, got {shown(keep)}.")
    known = attention_modules(model)
    for name in keep:
        if name not in known:
            raise ValueError(f"{_OWNER}: keep names {shown(name)}, but attention is at {', '.join(known)}.")
    return tuple(keep)


def _checked_batches(batches: Any) -> Iterable[Any]:
    if isinstance(batches, Tensor | Mapping | str) or not isinstance(batches, Iterable):
        raise TypeError(
            f"{_OWNER}: batches must be a list or an iterator of batches, such as [batch], got {shown(batches)}."
        )
    return batches
