"""The report of a model's attention."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import nn

from .._progress import progress
from .._table import format_table
from .._validation import check_count, check_flag, check_positive, shown
from ..approximation import Approximation
from ..catalogue import mechanism
from ..kernels import Softmax
from ._attention_checks import check_generator
from ._drawn import attention_spec
from ._recording import record
from ._report_heads import HeadRow, cheapest, cost, head_row, head_samples

_OWNER = "attention_report"
MECHANISMS = ("favor+", "simrf-performer", "favor++")
DEFAULT = "simplex favor++"
"""Name of the default of `replace_attention` in the report."""


@dataclass(frozen=True)
class AttentionReport:
    """Result of `attention_report`; print it to see a table.

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
        """Mechanism and number of rows for the worst head of each layer that reaches the tolerance, by layer name."""
        found = {}
        for layer in dict.fromkeys(row.layer for row in self.rows):
            heads = [row.mechanisms for row in self.rows if row.layer == layer]
            worst = {name: max((head[name] for head in heads), key=cost) for name in self.specs}
            best = cheapest(worst)
            if worst[best].needed <= self.max_projections:
                found[layer] = replace(self.specs[best], n_projections=int(worst[best].needed))
        return found

    def __str__(self) -> str:
        header = ["layer", "head", "|q||k|", *self.specs, "recommended", "rows", "features"]
        table = format_table(header, [self._cells(row) for row in self.rows])
        return f"relative errors of attention matrices, predicted / measured\n\n{table}"

    def _cells(self, row: HeadRow) -> list[str]:
        cells = [row.layer, str(row.head), f"{row.norms:.3g}"]
        for name in self.specs:
            found = row.mechanisms[name]
            predicted = "-" if found.predicted is None else f"{found.predicted:.3g}"
            cells.append(f"{predicted} / {found.measured:.3g}")
        best = row.mechanisms[row.best]
        if best.needed > self.max_projections:
            return [*cells, "softmax", "-", "-"]
        return [*cells, row.best, str(int(best.needed)), str(int(best.features))]


def attention_report(
    model: nn.Module,
    batch: Any,
    *,
    mechanisms: Mapping[str, Approximation | str] | None = None,
    n_projections: int = 256,
    tolerance: float = 0.1,
    max_projections: int = 4096,
    max_sequences: int = 4,
    max_queries: int = 32,
    max_keys: int = 256,
    n_draws: int = 4,
    generator: torch.Generator | None = None,
    verbose: bool = False,
) -> AttentionReport:
    r"""Report the error of random-feature attention for each head of a model, predicted and measured.

    Runs the model once on ``batch`` with exact attention, converted or not, and records the queries and keys of all
    attention.  For each head and mechanism it reports the relative Frobenius error of the attention matrix,
    :math:`|\hat A - A|_F/|A|_F`: predicted to first order for independent rows (coupled rows have a lower error), and
    measured on draws.  A prediction far above the measured error is a warning that rare draws have large errors.  For
    each head the report recommends the mechanism that reaches the tolerance with the fewest features, or softmax if
    none does within ``max_projections`` rows of W.

    Parameters
    ----------
    model : torch.nn.Module
        A model as in `replace_attention`, before or after conversion; it is not changed.
    batch : Tensor, tuple or mapping
        Arguments of the model: one argument, positional arguments, or keyword arguments.
    mechanisms : mapping from names to Approximation or names of mechanisms, optional
        What to compare, for the softmax kernel; by default FAVOR+, SimRF-Performer, FAVOR++ and FAVOR++ on simplex
        rows, the default of `replace_attention`, with ``n_projections`` rows.
    n_projections : int
        Rows of W of the default mechanisms.
    tolerance : float
        Relative error that the recommended mechanism must reach.
    max_projections : int
        Largest number of rows that is recommended.
    max_sequences, max_queries, max_keys : int
        Largest numbers of sequences, queries and keys that are used; they are equally spaced if there are more.
    n_draws : int
        Number of draws over which errors are measured.
    generator : torch.Generator, optional
        Source of the draws; by default torch's global generator.
    verbose : bool
        Whether to show a progress bar, if it takes more than a few seconds.

    Returns
    -------
    AttentionReport
        The report, which prints as a table; pass ``.recommended`` to ``replace_attention(model, spec=...)``.

    Notes
    -----
    The number of rows follows from the error e at m rows as :math:`m (e/\text{tolerance})^2`, and is at least one block
    of d rows if rows are coupled, since couplings gain less in an incomplete block.  Here e is the measured error plus
    one standard error, corrected for the share of the error that so few draws miss; that share is the ratio of
    predicted to measured error of independent rows with the same map.

    `bochner.recommend` ranks mechanisms by the error of the kernel matrix.  Attention divides by the sum over the keys
    that a query sees, so errors that all its keys share cancel, and all queries have equal weight.  The report
    therefore measures attention itself.  To evaluate a mechanism that `recommend` proposes, pass it in ``mechanisms``.

    Examples
    --------
    >>> import torch
    >>> from bochner.nn import attention_report, replace_attention
    >>> _ = torch.manual_seed(0)
    >>> model = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(16, 2, batch_first=True), 2)
    >>> report = attention_report(model, torch.randn(2, 12, 16))
    >>> [(row.layer, row.head) for row in report.rows][:3]
    [('layers.0.self_attn', 0), ('layers.0.self_attn', 1), ('layers.1.self_attn', 0)]
    >>> converted = replace_attention(model, spec=report.recommended)
    """
    specs = _checked(mechanisms, check_count(_OWNER, "n_projections", n_projections))
    check_positive(_OWNER, "tolerance", tolerance)
    check_flag(_OWNER, "verbose", verbose)
    limits = (max_sequences, max_queries, max_keys)
    for name, value in zip(("max_sequences", "max_queries", "max_keys"), limits, strict=True):
        check_count(_OWNER, name, value)
    check_count(_OWNER, "n_draws", n_draws)
    check_count(_OWNER, "max_projections", max_projections)
    check_generator(_OWNER, generator)
    device = "cpu" if generator is None else generator.device
    source = np.random.default_rng(int(torch.randint(2**63 - 1, (), generator=generator, device=device)))
    heads = [
        (call.name, h, sample) for call in record(model, batch) for h, sample in enumerate(head_samples(call, *limits))
    ]
    rows = [
        head_row(layer, h, sample, specs, tolerance, n_draws, source)
        for layer, h, sample in progress(heads, label="heads", shown=verbose)
    ]
    return AttentionReport(rows, specs, tolerance, max_projections)


def _checked(mechanisms: Mapping[str, Approximation | str] | None, n_projections: int) -> dict[str, Approximation]:
    if mechanisms is None:
        named = {name: mechanism(name, n_projections=n_projections) for name in MECHANISMS}
        return named | {DEFAULT: Approximation(Softmax(), n_projections=n_projections)}
    if not isinstance(mechanisms, Mapping) or not mechanisms:
        raise ValueError(f"{_OWNER}: mechanisms must be a mapping that names at least one, got {shown(mechanisms)}.")
    return {
        name: attention_spec(f"{_OWNER}: mechanisms[{shown(name)}]", spec, softmax_only=True)
        for name, spec in mechanisms.items()
    }
