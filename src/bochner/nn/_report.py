"""The report of a model's attention: what each way to convert it loses and gains, and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from .._progress import progress
from .._validation import check_count, check_flag, check_positive, shown
from ..approximation import Approximation
from ..catalogue import mechanism
from ..reporting import format_table
from ._attention_checks import check_generator
from ._calibration import features_of
from ._head_spec import attention_spec
from ._model_change import Loss, ModelChange
from ._multihead import RandomFeatureAttention
from ._recording import Recorded, record
from ._report_candidates import CODES, ModelPlans, candidates, converted, sensitivity
from ._report_times import FASTER, Clock, HeadRow, head_row, head_samples

_OWNER = "attention_report"
CALIBRATED = "calibrated"  # name of the features of `calibrate` among the mechanisms that are compared on each head
_SAMPLE = (4, 32, 256)  # largest numbers of sequences, queries and keys of an attention matrix of a head
_MARGIN = 0.7
"""Part of the tolerance that the predicted change of the layers to convert may reach: layers add up only roughly."""
_TRIES = 3  # choices of layers that are measured for one way to convert them; each leaves more of them exact


@dataclass(frozen=True)
class ReportRow:
    """One way to convert the attention of a model.

    Attributes
    ----------
    kind : str
        "window" (the last keys and the first), "kept keys" (these and the most used others, in a state of fixed size),
        "codes" (keys that random codes find) or "features" (calibrated features and a short window).
    cost : int
        Exact keys and rows of features per query that were aimed at.
    change : float
        Relative change of the loss on held-out data when all attention that can be is converted, mean over draws.
    seconds, step : float
        Time of one layer for a whole sequence, and for one token with a cache; the latter NaN where there is none.
    faster_from, step_faster_from : int or None
        Least power of two from 128 to 16384, a number of tokens, from which this is faster than exact attention.
    layers : dict
        Share of each attention in the change, predicted from gradients.
    """

    kind: str
    cost: int
    change: float
    seconds: float
    step: float
    faster_from: int | None
    step_faster_from: int | None
    layers: dict[str, float] = field(repr=False)


@dataclass(frozen=True)
class AttentionReport:
    """Result of `attention_report`; print it to read it.

    Attributes
    ----------
    model : str
        Name of the model's class, and what its attention is made of.
    length : int
        Number of tokens of the sequences that were measured.
    seconds, step : float
        Time of exact attention for one layer: a whole sequence, and one token with a cache.
    rows : list of ReportRow
        Ways to convert the model.
    tolerance : float
        Largest relative change of the loss that the recommendation may cause.
    recommended : dict
        A plan for each attention that is worth converting, by name, for ``replace_attention(model, recommended)``; empty
        if nothing within the tolerance is faster than exact attention at this length.
    change : float
        Relative change of the loss on held-out data when the recommendation is applied.
    chosen : ReportRow or None
        The recommended conversion.
    kept : list of str
        Names of attention that it leaves exact.
    heads : list of HeadRow
        Errors of each head, if ``mechanisms`` were given.
    measure : str
        Quantity whose change is reported: "loss", or "output" where the model has no loss.
    """

    model: str
    length: int
    seconds: float
    step: float
    rows: list[ReportRow]
    tolerance: float
    recommended: dict[str, Any]
    change: float
    chosen: ReportRow | None
    kept: list[str]
    heads: list[HeadRow]
    measure: str = "loss"

    def __str__(self) -> str:
        parts = [f"{self.model}, sequences of {self.length} tokens"]
        if self.heads:
            parts += _head_table(self.heads)
        parts += [_table(self), *self.advice()]
        return "\n\n".join(parts)

    def advice(self) -> list[str]:
        """The recommendation in sentences, from which length on it pays, and which layers lose most."""
        within = [row for row in self.rows if row.change <= self.tolerance]
        found = [_recommendation(self)]
        found.append(_crossover("whole sequences", self, within, "faster_from"))
        if not np.isnan(self.step):
            found.append(_crossover("decoding", self, within, "step_faster_from"))
        best = self.chosen or min(self.rows, key=lambda row: row.change)
        shares = sorted(best.layers.items(), key=lambda pair: -pair[1])[:3]
        worst = ", ".join(f"{name} ({share:.0%})" for name, share in shares)
        found.append(f"layers with the largest part of the change with {_label(best)}: {worst}")
        return found


def _label(row: ReportRow) -> str:
    return f"{row.kind} at a cost of {row.cost}"


def _table(report: AttentionReport) -> str:
    decodes = not np.isnan(report.step)
    header = ["attention", "cost", report.measure, "ms per layer", "faster from"]
    header += ["ms per token", "faster from"] if decodes else []

    def times(row: Any) -> list[str]:
        found = [f"{1e3 * row.seconds:.3g}", _tokens(getattr(row, "faster_from", ""))]
        return found + ([f"{1e3 * row.step:.2g}", _tokens(getattr(row, "step_faster_from", ""))] if decodes else [])

    cells = [["exact", str(report.length), "", *times(report)]]
    cells += [[row.kind, str(row.cost), f"{100 * row.change:+.3g} %", *times(row)] for row in report.rows]
    return format_table(header, cells)


def _tokens(count: Any) -> str:
    return "never" if count is None else f"{count} tokens" if count else ""


def _recommendation(report: AttentionReport) -> str:
    row = report.chosen
    if row is None:
        fastest = [r for r in report.rows if r.seconds < FASTER * report.seconds]
        why = (
            "nothing is faster"
            if not fastest
            else f"nothing faster keeps the {report.measure} within {100 * report.tolerance:.2g} %"
        )
        return f"recommended: keep softmax at {report.length} tokens; {why}"
    count = len(report.recommended)
    words = (
        f"recommended: {_label(row)} in {count} of {count + len(report.kept)} layers; the {report.measure} changes by "
    )
    words += f"{100 * report.change:+.2g} %, tolerance {100 * report.tolerance:.2g} %"
    if count < len(report.kept):
        return f"{words}; the others stay exact, convert only {', '.join(report.recommended)}"
    return words + (f"; keep exact: {', '.join(report.kept)}" if report.kept else "")


def _crossover(what: str, report: AttentionReport, rows: Sequence[ReportRow], name: str) -> str:
    """Number of tokens from which on a candidate within the tolerance is faster."""
    if not rows:
        bound = f"{report.measure} within {100 * report.tolerance:.2g} %"
        return f"{what}: keep softmax; nothing keeps the {bound} in all layers"
    faster = [row for row in rows if getattr(row, name) is not None]
    if not faster:
        return f"{what}: keep softmax; nothing within the tolerance is faster at any length that was tried"
    best = min(faster, key=lambda row: (getattr(row, name), row.change))
    return f"{what}: keep softmax below {getattr(best, name)} tokens; from there {_label(best)} is faster"


def _head_table(rows: Sequence[HeadRow]) -> list[str]:
    names = list(rows[0].mechanisms)
    header = ["layer", "head", "|q||k|", *names]
    cells = [[r.layer, str(r.head), f"{r.norms:.3g}", *(str(r.mechanisms[n]) for n in names)] for r in rows]
    found = [
        "relative errors of attention matrices on held-out data: median over draws (predicted root mean square)",
        format_table(header, cells),
    ]
    if any(row.rare for head in rows for row in head.mechanisms.values()):
        found.append("* the prediction is dominated by draws too rare to be seen")
    return found


def attention_report(
    model: nn.Module,
    batches: Iterable[Any],
    held_out: Iterable[Any] | None = None,
    *,
    loss: Loss | None = None,
    costs: Sequence[int] | None = None,
    anchors: int = 1,
    tolerance: float = 0.01,
    mechanisms: Mapping[str, Approximation | str] | None = None,
    n_draws: int = 1,
    generator: torch.Generator | None = None,
    verbose: bool = True,
) -> AttentionReport:
    r"""Measure what converting a model's attention loses in accuracy and gains in time, and recommend a conversion.

    It compares, at equal cost, a window alone, kept keys in a state of fixed size, keys found by random codes, and
    calibrated features beside a short window.  Constants are chosen on ``batches``, and losses measured on
    ``held_out``.  The report recommends nothing that is slower than exact attention at the length of the sequences
    given, as a whole or in decoding, and states from which length a conversion pays off.

    Parameters
    ----------
    model : torch.nn.Module
        A model as in `replace_attention`, before or after conversion; it is run with exact attention, and not changed.
    batches : iterable
        A few batches of typical data, of the length that matters: each is one argument of the model, a tuple of positional
        arguments, or a mapping of keyword arguments.
    held_out : iterable, optional
        Other batches, to measure on; by default the last one of ``batches``, of which there must be two.
    loss : callable, optional
        ``loss(model, batch)`` returns the loss.  By default it is the ``loss`` of the model's output if there is one; where
        there is none, the relative change of the output takes the place of that of the loss.
    costs : sequence of int, optional
        Exact keys and rows of features per query, averaged over heads, at which conversions are compared; costs that
        are not smaller than the length are left out.  By default 64 and 128, or half of a length that is not larger.
    anchors : int
        Number of exact keys at the start of the sequence.
    tolerance : float
        Largest relative change of the loss that the recommendation may cause.
    mechanisms : mapping from names to Approximation or names of mechanisms, optional
        Features whose errors are measured on each head beside those of calibrated ones, such as ``{"favor+": "favor+"}``.
    n_draws : int
        Number of draws over which losses and errors are averaged.
    generator : torch.Generator, optional
        Source of the draws; by default torch's global generator.
    verbose : bool
        Whether to show a progress bar, if it takes more than a few seconds.

    Returns
    -------
    AttentionReport
        The report; pass ``.recommended`` to ``replace_attention(model, ...)``.

    See Also
    --------
    calibrate : The plans without the measurements.

    Notes
    -----
    The model runs once per batch with exact attention and gradients, which gives the queries, keys and values from which
    all constants are chosen, and once per conversion, cost and draw to measure the loss.  Where that exceeds the
    tolerance, layers are left exact, those first whose conversion changes the model's output most to first order, and
    the loss is measured again.  Attention of ``torch.nn.MultiheadAttention`` is converted to features only.

    Times are of one layer with the shapes of the data, the shortest of three or more, on the device of the model and with
    the present number of threads; other lengths have random numbers.  Faster is what takes less than 0.9 of the time of
    exact attention, which is timed beside it, since clocks are noisy.  Codes serve decoding only: by default whole sequences
    are computed exactly (`CodedPlan`).

    The error of a head is :math:`|\hat A - A|_F/|A|_F`, the median over draws.  Beside it stands the root of the mean square
    that theory predicts for independent rows; where this is more than twice the median it is dominated by draws too rare
    to be seen, and marked.

    Examples
    --------
    >>> import torch
    >>> from bochner.nn import attention_report, replace_attention
    >>> _ = torch.manual_seed(0)
    >>> layer = torch.nn.TransformerEncoderLayer(16, 2, 16, dropout=0.0, batch_first=True)
    >>> model = torch.nn.TransformerEncoder(layer, 2)
    >>> report = attention_report(model, [torch.randn(2, 80, 16) for _ in range(2)], costs=[16, 32])
    >>> report.length, [(row.kind, row.cost) for row in report.rows]
    (80, [('features', 16), ('features', 32)])
    >>> converted = replace_attention(model, report.recommended) if report.recommended else model
    """
    check_positive(_OWNER, "tolerance", tolerance)
    check_flag(_OWNER, "verbose", verbose)
    check_count(_OWNER, "n_draws", n_draws)
    check_count(_OWNER, "anchors", anchors, 0)
    check_generator(_OWNER, generator)
    asked = _checked_costs((64, 128) if costs is None else costs, anchors)
    specs = _checked(mechanisms, asked[-1])
    data, held = _divided(batches, held_out)
    fitted, tested = (_calls(model, of, label, verbose) for of, label in ((data, "batches"), (held, "held out")))
    longest = max(tested.values(), key=lambda of: of[0].q.shape[-2])[0]
    length = longest.k.shape[-2]
    asked = [cost for cost in asked if cost < length] or ([max(length // 2, 9)] if costs is None and length > 9 else [])
    if not asked:
        raise ValueError(f"{_OWNER}: costs must hold one below the length of the sequences, {length}, got {costs}.")
    heads = _heads(fitted, tested, specs, n_draws, generator) if specs else []
    change, clock = ModelChange(_OWNER, model, held, loss), Clock(longest)
    found, rows = candidates(model, fitted, asked, anchors, generator, verbose), []
    for candidate in progress(found, label="loss and time", shown=verbose):
        rows.append(_measured(candidate, model, change, tested, clock, n_draws, generator))
    exact = clock.whole(clock.exact), clock.step(clock.exact) if clock.steps else float("nan")
    rows = [replace(row, seconds=exact[0]) if row.kind == CODES else row for row in rows]  # which are computed exactly
    chosen, plans, size = _choice(rows, found, exact, change, tolerance, n_draws, generator)
    kept = [name for name in tested if name not in plans] if plans else []
    measure = "output" if change.power == 2 else "loss"
    heads_of = f"{longest.q.shape[1]} heads of width {longest.q.shape[-1]}"
    name = f"{type(model).__name__}: {len(tested)} layers of {heads_of}, {longest.q.device.type}, "
    name += f"{torch.get_num_threads()} threads" if torch.get_num_threads() > 1 else "1 thread"
    return AttentionReport(name, length, *exact, rows, tolerance, plans, size, chosen, kept, heads, measure)


def _calls(model: nn.Module, batches: Sequence[Any], label: str, verbose: bool) -> dict[str, list[Recorded]]:
    """Recorded calls with gradients, by the name of the attention."""
    found: dict[str, list[Recorded]] = {}
    for batch in progress(batches, label=label, shown=verbose):
        for call in record(model, batch, _OWNER, pulls=True):
            found.setdefault(call.name, []).append(call)
    return found


def _measured(
    candidate: ModelPlans,
    model: nn.Module,
    change: ModelChange,
    tested: Mapping[str, Sequence[Recorded]],
    clock: Clock,
    n_draws: int,
    generator: torch.Generator | None,
) -> ReportRow:
    """Loss of the model with all layers converted, shares of the layers, and times of one of them."""
    measured = candidate.measured
    changes = [change.of(measured, generator) for _ in range(n_draws)]
    squares = {
        name: sensitivity(converted(model, name, plan, generator), tested[name]) for name, plan in measured.items()
    }
    total = sum(squares.values()) or 1.0
    timed = clock.call.name if clock.call.name in candidate.plans else next(iter(candidate.plans))
    computed_by = converted(model, timed, candidate.plans[timed], generator)
    step, first = float("nan"), None
    if clock.steps and not isinstance(computed_by, RandomFeatureAttention):  # which torch modules call without a cache
        step, first = clock.step(computed_by), clock.faster_from(clock.step, computed_by)
    codes = candidate.kind == CODES
    return ReportRow(
        candidate.kind,
        candidate.cost,
        float(np.mean(changes)),
        clock.whole(clock.exact if codes else computed_by),
        step,
        None if codes else clock.faster_from(clock.whole, computed_by),
        first,
        {name: square / total for name, square in squares.items()},
    )


def _choice(
    rows: Sequence[ReportRow],
    found: Sequence[ModelPlans],
    exact: tuple[float, float],
    change: ModelChange,
    tolerance: float,
    n_draws: int,
    generator: torch.Generator | None,
) -> tuple[ReportRow | None, dict[str, Any], float]:
    """The way that saves most time within the tolerance, its plans, and the change of the loss; none if none saves any."""
    best: tuple[float, ReportRow, dict[str, Any], float] | None = None
    for row, candidate in zip(rows, found, strict=True):
        gains = (0.0 if row.kind == CODES else exact[0] - row.seconds), exact[1] - row.step  # of codes, only a step
        parts = gains[0] / exact[0], gains[1] / exact[1]
        if min(parts) < 0 or not max(parts) > 1 - FASTER:  # a step that there is not is NaN, and comes last
            continue
        saved = gains[0] or 1e-9 * gains[1]  # a faster step counts where no way is faster as a whole
        for names, size in _within(row, candidate, change, tolerance, n_draws, generator):
            if names and (best is None or saved * len(names) > best[0]):
                best = saved * len(names), row, {name: candidate.plans[name] for name in names}, size
    return (None, {}, 0.0) if best is None else best[1:]


def _within(
    row: ReportRow,
    candidate: ModelPlans,
    change: ModelChange,
    tolerance: float,
    n_draws: int,
    generator: torch.Generator | None,
) -> Iterable[tuple[list[str], float]]:
    """Largest set of layers whose conversion keeps to the tolerance, and the change; empty where a few tries find none."""
    names = sorted(row.layers, key=row.layers.__getitem__)  # those that lose least first
    if row.change <= tolerance:
        return [(names, row.change)]
    room = _MARGIN * tolerance
    for _ in range(_TRIES):
        shares = np.cumsum([row.layers[name] for name in names])
        count = int((row.change * shares ** (1 / change.power) <= room).sum())
        if not count:
            return []
        plans = {name: candidate.measured[name] for name in names[:count]}
        size = float(np.mean([change.of(plans, generator) for _ in range(n_draws)]))
        if size <= tolerance:
            return [(names[:count], size)]
        room /= 4  # layers added up to more than predicted
    return []


def _heads(
    fitted: Mapping[str, Sequence[Recorded]],
    tested: Mapping[str, Sequence[Recorded]],
    specs: Mapping[str, Approximation],
    n_draws: int,
    generator: torch.Generator | None,
) -> list[HeadRow]:
    device = "cpu" if generator is None else generator.device
    source = np.random.default_rng(int(torch.randint(2**63 - 1, (), generator=generator, device=device)))
    like, rows = mechanism("dense", n_projections=next(iter(specs.values())).n_projections), []
    for name, calls in fitted.items():
        plan = features_of(name, calls, like, 0, 0)
        samples = zip(head_samples(calls[0], *_SAMPLE), head_samples(tested[name][0], *_SAMPLE), strict=True)
        for h, (sample, other) in enumerate(samples):
            rows.append(head_row(name, h, sample, other, {**specs, CALIBRATED: plan[h]}, n_draws, source))
    return rows


def _checked_costs(costs: Any, anchors: int) -> list[int]:
    if isinstance(costs, str) or not isinstance(costs, Sequence) or not len(costs):
        raise TypeError(f"{_OWNER}: costs must be a sequence of integers such as (64, 128), got {shown(costs)}.")
    return sorted({check_count(_OWNER, f"costs[{i}]", value, 8 + anchors) for i, value in enumerate(costs)})


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
        return {}
    if not isinstance(mechanisms, Mapping):
        raise TypeError(f"{_OWNER}: mechanisms must be a mapping from names, got {shown(mechanisms)}.")
    named = {n: mechanism(s, n_projections=n_projections) if isinstance(s, str) else s for n, s in mechanisms.items()}
    return {
        name: attention_spec(f"{_OWNER}: mechanisms[{shown(name)}]", spec, softmax_only=True)
        for name, spec in named.items()
    }
