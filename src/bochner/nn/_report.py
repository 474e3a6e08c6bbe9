"""The report of a model's attention: errors of each head, changes of the loss by layer, and what to convert."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from .._progress import progress
from .._validation import check_count, check_flag, check_positive, shown
from ..approximation import Approximation
from ..catalogue import mechanism
from ..reporting import format_table
from ._attention_checks import check_generator
from ._calibration import calibrate
from ._head_spec import attention_spec
from ._layer_plan import LayerPlan
from ._model_change import Loss, ModelChange
from ._recording import Recorded, record
from ._report_heads import HeadRow, head_row, head_samples
from ._report_layers import Choice, LayerRow, cheapest, layer_table, measured, with_rows

_OWNER = "attention_report"
MECHANISMS = ("favor+", "favor++")
CALIBRATED = "calibrated"
"""Name of the features of `calibrate` in the report."""


@dataclass(frozen=True)
class AttentionReport:
    """Result of `attention_report`; print it to see two tables.

    Attributes
    ----------
    heads : list of HeadRow
        Errors of each head of each layer.
    layers : list of LayerRow
        Changes of the loss when a layer is converted, by window and rows.
    tolerance : float
        Relative change of the loss that the recommendation keeps to.
    change : float
        Relative change of the loss on held-out data when the recommendation is applied.
    recommended : dict
        A `LayerPlan` for each attention that is worth converting, by name, for ``replace_attention(model, recommended)``;
        empty if none is.
    """

    heads: list[HeadRow]
    layers: list[LayerRow]
    tolerance: float
    change: float
    recommended: dict[str, LayerPlan]

    def __str__(self) -> str:
        names = list(self.heads[0].mechanisms)
        header = ["layer", "head", "|q||k|", *names]
        cells = [[r.layer, str(r.head), f"{r.norms:.3g}", *(str(r.mechanisms[n]) for n in names)] for r in self.heads]
        parts = [
            "relative errors of attention matrices on held-out data: median over draws (predicted root mean square)",
            format_table(header, cells),
        ]
        if any(row.rare for head in self.heads for row in head.mechanisms.values()):
            parts.append("* the prediction is dominated by draws too rare to be seen")
        parts += [
            "change of the loss when one layer is converted",
            format_table(*layer_table(self.layers, self.recommended)),
        ]
        count, of = len(self.recommended), len(self.layers)
        parts.append(
            f"recommended: convert {count} of {of} layers; the loss then changes by {100 * self.change:+.2g} %, tolerance "
            f"{100 * self.tolerance:.2g} %"
        )
        return "\n\n".join(parts)


def attention_report(
    model: nn.Module,
    batches: Iterable[Any],
    held_out: Iterable[Any] | None = None,
    *,
    loss: Loss | None = None,
    rows: Sequence[int] = (32, 64, 128),
    windows: Sequence[int] = (0, 16, 64),
    anchors: int = 1,
    tolerance: float = 0.01,
    mechanisms: Mapping[str, Approximation | str] | None = None,
    n_draws: int = 3,
    max_sequences: int = 4,
    max_queries: int = 32,
    max_keys: int = 256,
    generator: torch.Generator | None = None,
    verbose: bool = False,
) -> AttentionReport:
    r"""Measure what converting a model's attention costs in accuracy, head by head and layer by layer.

    Constants of features are chosen on ``batches`` by `calibrate`, and everything is measured on ``held_out``: the error
    of the attention matrix of each head, and the change of the model's loss when a layer is converted, for each window
    and number of rows.  The report recommends the cheapest conversion that keeps the loss within a tolerance.

    Parameters
    ----------
    model : torch.nn.Module
        A model as in `replace_attention`, before or after conversion; it is run with exact attention, and not changed.
    batches : iterable
        A few batches of typical data: each is one argument of the model, a tuple of positional arguments, or a mapping of
        keyword arguments.
    held_out : iterable, optional
        Other batches, to measure on; by default the last one of ``batches``, of which there must be two.
    loss : callable, optional
        ``loss(model, batch)`` returns the loss.  By default it is the ``loss`` of the model's output if there is one; where
        there is none, the relative change of the output takes the place of that of the loss.
    rows, windows : sequences of int
        Numbers of rows of W, and windows of exact keys, to compare.  Windows as long as the sequences are left out.
    anchors : int
        Number of exact keys at the start of the sequence, in conversions with a window.
    tolerance : float
        Relative change of the loss that the recommendation keeps to.
    mechanisms : mapping from names to Approximation or names of mechanisms, optional
        What to compare on each head beside calibrated features, with the median of ``rows``; by default FAVOR+ and FAVOR++.
    n_draws : int
        Number of draws over which errors and changes are measured.
    max_sequences, max_queries, max_keys : int
        Largest numbers of sequences, queries and keys of an attention matrix; they are equally spaced if there are more.
    generator : torch.Generator, optional
        Source of the draws; by default torch's global generator.
    verbose : bool
        Whether to show a progress bar, if it takes more than a few seconds.

    Returns
    -------
    AttentionReport
        The report, which prints as two tables; pass ``.recommended`` to ``replace_attention(model, spec=...)``.

    See Also
    --------
    calibrate : The plans without the measurements.

    Notes
    -----
    The error of a head is :math:`|\hat A - A|_F/|A|_F`, the median over draws.  Beside it stands the root of the mean square
    that theory predicts for independent rows; where this is more than twice the median it is dominated by draws too rare
    to be seen, and marked.

    The recommendation takes for each layer the window and rows, or exact attention, that make the total cost least, where
    the cost of a layer is its number of rows and exact keys, or that of all keys, and the changes of single layers add up
    to at most 0.7 times the tolerance.  It is then measured as a whole; if two standard errors above the mean of the draws
    exceed the tolerance, a more expensive one is tried.  The time is that of running the model once per layer, window,
    number of rows and draw.

    Examples
    --------
    >>> import torch
    >>> from bochner.nn import attention_report, replace_attention
    >>> _ = torch.manual_seed(0)
    >>> layer = torch.nn.TransformerEncoderLayer(16, 2, 16, dropout=0.0, batch_first=True)
    >>> model = torch.nn.TransformerEncoder(layer, 2)
    >>> batches = [torch.randn(2, 80, 16) for _ in range(2)]
    >>> report = attention_report(model, batches, rows=[32], windows=[0, 8], tolerance=0.2)
    >>> [(row.layer, row.head) for row in report.heads][:3]
    [('layers.0.self_attn', 0), ('layers.0.self_attn', 1), ('layers.1.self_attn', 0)]
    >>> converted = replace_attention(model, spec=report.recommended)
    """
    check_positive(_OWNER, "tolerance", tolerance)
    check_flag(_OWNER, "verbose", verbose)
    limits = {"max_sequences": max_sequences, "max_queries": max_queries, "max_keys": max_keys}
    for name, value in {"n_draws": n_draws, **limits}.items():
        check_count(_OWNER, name, value)
    check_generator(_OWNER, generator)
    widths, near = _counts("rows", rows, 1), _counts("windows", windows, 0)
    check_count(_OWNER, "anchors", anchors, 0)
    specs = _checked(mechanisms, widths[len(widths) // 2])
    data, held = _divided(batches, held_out)
    tested = record(model, held[0], _OWNER)
    length = min(call.k.shape[-2] for call in tested)
    plans = {
        window: cast("dict[str, LayerPlan]", calibrate(model, data, widths[-1], window, anchors if window else 0))
        for window in near
        if window + anchors < length
    }
    if not plans:
        raise ValueError(f"{_OWNER}: windows must hold one below the length of the sequences, {length}, got {near}.")
    heads = _heads(
        record(model, data[0], _OWNER), tested, specs, next(iter(plans.values())), limits, n_draws, generator
    )
    change = ModelChange(_OWNER, model, held, loss)
    layers = []
    for call in progress(tested, label="layers", shown=verbose):
        asked = [with_rows(of[call.name], m) for of in plans.values() for m in widths]
        options = tuple(measured(change, call.name, plan, n_draws, generator) for plan in asked)
        layers.append(LayerRow(call.name, call.k.shape[-2], options))
    choice: Choice = cheapest(layers, change, tolerance, n_draws, generator)
    return AttentionReport(heads, layers, tolerance, choice.change, choice.plans)


def _heads(
    fitted: Sequence[Recorded],
    tested: Sequence[Recorded],
    specs: Mapping[str, Approximation],
    plans: Mapping[str, LayerPlan],
    limits: Mapping[str, int],
    n_draws: int,
    generator: torch.Generator | None,
) -> list[HeadRow]:
    device = "cpu" if generator is None else generator.device
    source = np.random.default_rng(int(torch.randint(2**63 - 1, (), generator=generator, device=device)))
    m = next(iter(specs.values())).n_projections if specs else None
    rows = []
    for one, other in zip(fitted, tested, strict=True):
        samples = zip(head_samples(one, *limits.values()), head_samples(other, *limits.values()), strict=True)
        for h, (sample, held_out) in enumerate(samples):
            plan = with_rows(plans[one.name], m or plans[one.name].n_projections)[h]
            rows.append(head_row(one.name, h, sample, held_out, {**specs, CALIBRATED: plan}, n_draws, source))
    return rows


def _counts(name: str, values: Any, least: int) -> list[int]:
    if isinstance(values, str) or not isinstance(values, Sequence) or not len(values):
        raise TypeError(f"{_OWNER}: {name} must be a sequence of integers such as (32, 64), got {shown(values)}.")
    return sorted({check_count(_OWNER, f"{name}[{i}]", value, least) for i, value in enumerate(values)})


def _divided(batches: Any, held_out: Any) -> tuple[list[Any], list[Any]]:
    """Batches to calibrate on, and to measure on."""
    given = {"batches": batches} | ({} if held_out is None else {"held_out": held_out})
    for name, value in given.items():
        if isinstance(value, Tensor | Mapping | str) or not isinstance(value, Iterable):
            raise TypeError(
                f"{_OWNER}: {name} must be a list or an iterator of batches, such as [one, another], got {shown(value)}."
            )
    data = list(batches)
    held = data[1:][-1:] if held_out is None else list(held_out)
    data = data[:-1] if held_out is None else data
    if not data or not held:
        raise ValueError(
            f"{_OWNER}: batches must hold two batches or more, the last one to measure on, or held_out must be given too."
        )
    return data, held


def _checked(mechanisms: Mapping[str, Approximation | str] | None, n_projections: int) -> dict[str, Approximation]:
    if mechanisms is None:
        return {name: mechanism(name, n_projections=n_projections) for name in MECHANISMS}
    if not isinstance(mechanisms, Mapping):
        raise TypeError(f"{_OWNER}: mechanisms must be a mapping from names, got {shown(mechanisms)}.")
    return {
        name: attention_spec(f"{_OWNER}: mechanisms[{shown(name)}]", spec, softmax_only=True)
        for name, spec in mechanisms.items()
    }
