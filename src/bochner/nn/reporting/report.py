"""The report of a model's attention."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from torch import nn

from ..._progress import progress
from ..._random import RNG, as_generator
from ..._table import format_table
from ..._validation import check_count, check_positive
from ...approximation import Approximation
from ...kernels import Softmax
from ...names import mechanism
from .errors import measured_error, predicted_row_error
from .heads import HeadSample, head_samples
from .recording import record

_OWNER = "attention_report"
MECHANISMS = ("favor+", "simrf-performer", "favor++")


@dataclass(frozen=True)
class MechanismRow:
    """One mechanism on one head: relative errors of the attention matrix, and the rows of W that reach the tolerance.

    ``predicted`` is None where there is no closed form; ``needed`` follows from the larger of both errors.
    """

    predicted: float | None
    measured: float
    needed: float


@dataclass(frozen=True)
class HeadRow:
    """One head: where it is, how large its logits can be, and how each mechanism does on it."""

    layer: str
    head: int
    norms: float
    mechanisms: dict[str, MechanismRow]

    @property
    def best(self) -> str:
        """The mechanism that needs the fewest rows of W."""
        return min(self.mechanisms, key=lambda name: self.mechanisms[name].needed)


@dataclass(frozen=True)
class AttentionReport:
    """What `attention_report` found; prints as a table.

    Attributes
    ----------
    rows : list of HeadRow
        One for each head of each layer.
    specs : dict
        The mechanisms by name.
    tolerance : float
        Relative error that recommendations reach.
    max_projections : int
        Rows of W beyond which exact attention is recommended.
    """

    rows: list[HeadRow]
    specs: dict[str, Approximation]
    tolerance: float
    max_projections: int

    @property
    def recommended(self) -> dict[str, Approximation]:
        """For each layer within reach, the mechanism and number of rows for its worst head: for `replace_attention`."""
        found = {}
        for layer in dict.fromkeys(row.layer for row in self.rows):
            heads = [row.mechanisms for row in self.rows if row.layer == layer]
            needed = {name: max(head[name].needed for head in heads) for name in self.specs}
            best = min(needed, key=lambda name: needed[name])
            if needed[best] <= self.max_projections:
                found[layer] = replace(self.specs[best], n_projections=int(needed[best]))
        return found

    def __str__(self) -> str:
        header = ["layer", "head", "|q||k|", *self.specs, "recommended", "rows"]
        table = format_table(header, [self._cells(row) for row in self.rows])
        return f"relative errors of attention matrices, predicted / measured\n\n{table}"

    def _cells(self, row: HeadRow) -> list[str]:
        cells = [row.layer, str(row.head), f"{row.norms:.3g}"]
        for name in self.specs:
            found = row.mechanisms[name]
            predicted = "-" if found.predicted is None else f"{found.predicted:.3g}"
            cells.append(f"{predicted} / {found.measured:.3g}")
        needed = row.mechanisms[row.best].needed
        within = needed <= self.max_projections
        return [*cells, row.best if within else "softmax", str(int(needed)) if within else "-"]


def attention_report(
    model: nn.Module,
    batch: Any,
    *,
    mechanisms: Mapping[str, Approximation] | None = None,
    n_projections: int = 256,
    tolerance: float = 0.1,
    max_projections: int = 4096,
    max_sequences: int = 4,
    max_queries: int = 32,
    max_keys: int = 256,
    n_draws: int = 4,
    rng: RNG = 0,
    verbose: bool = False,
) -> AttentionReport:
    r"""How far each head of a model is from exact attention with random features, predicted and measured.

    Runs the model once on ``batch`` with exact attention, converted or not, and catches queries and keys of all its
    attention.  For each head and mechanism it gives the relative Frobenius error of the attention matrix,
    :math:`|\hat A - A|_F/|A|_F`: predicted in first order for independent rows (rows that are coupled do better), and
    measured on draws.  A prediction far above what a few draws show warns of rare draws that are far off.  The report
    recommends, for each head, the mechanism that reaches the tolerance with the fewest rows of W, or softmax where none
    does within ``max_projections``.

    Parameters
    ----------
    model : torch.nn.Module
        As in `replace_attention`, before or after conversion; left as it is.
    batch : Tensor, tuple or mapping
        What the model is called with: one argument, arguments, or named arguments.
    mechanisms : mapping from names to Approximation, optional
        What to compare, for the softmax kernel; FAVOR+, SimRF-Performer and FAVOR++ with ``n_projections`` rows without it.
    n_projections : int
        Rows of W of the default mechanisms.
    tolerance : float
        Relative error to be reached by what is recommended.
    max_projections : int
        The most rows that are recommended.
    max_sequences, max_queries, max_keys : int
        How much of the batch is looked at; equally spaced where there is more.
    n_draws : int
        Draws over which errors are measured.
    rng : int, numpy.random.Generator or None
        Source of the draws.
    verbose : bool
        Whether to show a progress bar, if it takes more than a few seconds.

    Returns
    -------
    AttentionReport
        Prints as a table; ``.recommended`` is ready for ``replace_attention(model, features=...)``.

    Examples
    --------
    >>> import torch
    >>> from bochner.nn import attention_report, replace_attention
    >>> _ = torch.manual_seed(0)
    >>> model = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(16, 2, batch_first=True), 2)
    >>> report = attention_report(model, torch.randn(2, 12, 16))
    >>> [(row.layer, row.head) for row in report.rows][:3]
    [('layers.0.self_attn', 0), ('layers.0.self_attn', 1), ('layers.1.self_attn', 0)]
    >>> converted = replace_attention(model, features=report.recommended)
    """
    specs = _checked(mechanisms, check_count(_OWNER, "n_projections", n_projections))
    check_positive(_OWNER, "tolerance", tolerance)
    limits = (max_sequences, max_queries, max_keys)
    for name, value in zip(("max_sequences", "max_queries", "max_keys"), limits, strict=True):
        check_count(_OWNER, name, value)
    check_count(_OWNER, "n_draws", n_draws)
    check_count(_OWNER, "max_projections", max_projections)
    source = as_generator(rng)
    heads = [
        (call.name, h, sample) for call in record(model, batch) for h, sample in enumerate(head_samples(call, *limits))
    ]
    rows = [
        HeadRow(
            layer,
            h,
            sample.norms,
            {name: _row(spec, sample, tolerance, n_draws, source) for name, spec in specs.items()},
        )
        for layer, h, sample in progress(heads, label="heads", shown=verbose)
    ]
    return AttentionReport(rows, specs, tolerance, max_projections)


def _row(spec: Approximation, sample: HeadSample, tolerance: float, n_draws: int, rng: Any) -> MechanismRow:
    measured, of_one_row = measured_error(spec, sample, n_draws, rng), predicted_row_error(spec, sample)
    predicted = None if of_one_row is None else of_one_row / math.sqrt(spec.n_projections)
    # rare draws that were not met leave what is measured too small; weights of zero or one, what is predicted
    error = measured if predicted is None else max(predicted, measured)
    needed = spec.n_projections * (error / tolerance) ** 2
    return MechanismRow(predicted, measured, math.ceil(needed) if math.isfinite(needed) else math.inf)


def _checked(mechanisms: Mapping[str, Approximation] | None, n_projections: int) -> dict[str, Approximation]:
    if mechanisms is None:
        return {name: mechanism(name, n_projections=n_projections) for name in MECHANISMS}
    for name, spec in mechanisms.items():
        if not isinstance(spec, Approximation) or spec.kernel != Softmax():
            raise ValueError(
                f"{_OWNER}: mechanisms[{name!r}] must be Approximation(kernels.Softmax(), ...) with scale 1, got {spec!r}."
            )
    if not mechanisms:
        raise ValueError(f"{_OWNER}: mechanisms must name at least one.")
    return dict(mechanisms)
