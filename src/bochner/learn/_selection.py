"""What the automatic mode of the kernel machines has chosen, from which candidates, and why."""

from __future__ import annotations

import logging
import warnings
from dataclasses import dataclass, field
from typing import Any

from .._table import format_table

_LOG = logging.getLogger("bochner")


@dataclass(frozen=True)
class Selection:
    """The choice of the automatic mode: a value to print, with the table of all candidates.

    Attributes
    ----------
    map : str
        "random features", "landmarks" (uniform ones) or "pivoted landmarks", or "given".
    standardize : bool
        Whether columns are standardised.
    bandwidth : float or None
        Lengthscale of the kernel (for softmax, the root of one over its scale); None if it has none.
    alpha : float or array
        Regularisation strength.
    error, standard_error : float
        Leave-one-out error of the choice, in units of the variance of the targets, and its standard error.  For
        classes, the share of wrong ones plus a tenth of that.
    reason : str
        Why, in words.
    edges : tuple of str
        Choices at the edge of what was tried, where the error still fell.
    candidates : dict of str to list
        A table, one row for each candidate: what it was, and its error on how many rows, at which width.
    seconds : float
        How long the search took.
    metric_errors : list of float
        Held-out errors of the iterates of a learned metric, without a metric first.
    """

    map: str
    standardize: bool
    bandwidth: float | None
    alpha: Any
    error: float
    standard_error: float
    reason: str
    edges: tuple[str, ...] = ()
    candidates: dict[str, list[Any]] = field(default_factory=dict, repr=False)
    seconds: float = 0.0
    metric_errors: list[float] = field(default_factory=list, repr=False)

    def __repr__(self) -> str:
        columns = "standardised" if self.standardize else "as they are"
        head = (
            f"Selection(map={self.map!r}, columns {columns}, bandwidth={_number(self.bandwidth)}, "
            f"alpha={_number(self.alpha)}, leave-one-out error={self.error:.3g} +- {self.standard_error:.1g})"
        )
        return "\n".join([head, self.reason, *self.edges, *([self.table()] if self.candidates else [])])

    def table(self) -> str:
        """Return the candidates as text, in the order in which they were tried."""
        rows = zip(*self.candidates.values(), strict=True)
        return format_table(list(self.candidates), [[_number(value) for value in row] for row in rows])

    def announce(self, owner: str) -> None:
        """Log the choice, and warn of edges."""
        _LOG.info("%s: %s", owner, self.reason)
        for edge in self.edges:
            warnings.warn(f"{owner}: {edge}", UserWarning, stacklevel=2)


def _number(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
