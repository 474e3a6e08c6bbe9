"""The result of `recommend`: a ranking that prints as a table, with reasons."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..approximation import Approximation
from ..reporting import format_table, seconds
from ._applicable import label_of, rows_within
from ._prediction import Prediction, Predictor
from ._sample import Facts

_SHOWN = 12  # lines of the table that is printed


@dataclass(frozen=True)
class Candidate:
    """One mechanism: its specification, and its predicted error and measured time.

    Attributes
    ----------
    spec : Approximation
        The specification.
    plan : Approximation
        The specification with the constants chosen from the sampled rows.
    error : float
        Predicted relative Frobenius error of the Gram matrix, a root mean square over draws.
    worst : float
        Predicted root mean squared error of the worst entry, over the largest entry of the kernel.
    standard_error : float
        Standard error of ``error`` if it was simulated; zero for theory.
    source : {"theory", "simulation"}
        How the error was obtained.
    seconds_per_row : float
        Measured time of the features per row.
    """

    spec: Approximation
    plan: Approximation
    error: float
    worst: float
    standard_error: float
    source: str
    seconds_per_row: float

    @property
    def n_features(self) -> int:
        """Width of the features."""
        return self.plan.n_features_out

    @property
    def positive(self) -> bool:
        """Whether all features are positive."""
        return self.plan.positive

    @property
    def symmetric(self) -> bool:
        """Whether queries and keys have the same features."""
        return self.plan.symmetric

    @property
    def unbiased(self) -> bool:
        """Whether the mean of the estimate is exactly the kernel."""
        return self.plan.unbiased

    @property
    def label(self) -> str:
        """Short label of map and projection."""
        return label_of(self.spec)

    @property
    def bound(self) -> float:
        """The error used for ranking: two standard errors above a simulated error, so that lucky draws do not win."""
        return self.error + 2 * self.standard_error

    def predicted(self, prediction: Prediction) -> Candidate:
        """Return the same candidate with another prediction."""
        return replace(self, **prediction._asdict())

    def as_dict(self) -> dict[str, Any]:
        """Return a dictionary for JSON, with the specification as its ``repr``."""
        shown = ("label", "n_features", "error", "worst", "standard_error", "source", "seconds_per_row", "positive")
        values = {name: getattr(self, name) for name in (*shown, "symmetric", "unbiased")}
        return {"spec": repr(self.spec), "plan": repr(self.plan), **values}


@dataclass(frozen=True)
class Recommendation:
    """Result of `recommend`: mechanisms in the order of recommendation; print it to see a table.

    Attributes
    ----------
    ranking : tuple of Candidate
        The mechanisms, best first.
    reasons : tuple of str
        Sentences that explain the choice.
    warnings : tuple of str
        Problems that no mechanism can solve.
    tolerance : float or None
        The requested tolerance.
    facts : Facts
        Statistics of the data at the kernel's scale.
    """

    ranking: tuple[Candidate, ...]
    reasons: tuple[str, ...]
    warnings: tuple[str, ...]
    tolerance: float | None
    facts: Facts
    predictor: Predictor = field(repr=False)

    @property
    def best(self) -> Approximation:
        """The recommended specification, ready to ``fit``."""
        return self.ranking[0].spec

    def curves(self, n_features: Sequence[int], top: int = 8) -> dict[str, list[tuple[int, float]]]:
        """Predicted error against the number of features for the best mechanisms.

        Parameters
        ----------
        n_features : sequence of int
            Numbers of features.
        top : int
            Number of mechanisms.

        Returns
        -------
        dict of str to list of (int, float)
            Pairs of width and error, by label of the mechanism.
        """
        curves: dict[str, list[tuple[int, float]]] = {}
        for candidate in self.ranking[:top]:
            rows = {rows_within(candidate.plan, width, self.facts.d) for width in n_features}
            plans = [replace(candidate.plan, n_projections=m) for m in sorted(rows) if m]
            curves[candidate.label] = [(plan.n_features_out, self.predictor(plan).error) for plan in plans]
        return curves

    def plot(self, ax: Any = None, *, n_features: Sequence[int] | None = None, top: int = 8) -> Any:
        """Draw predicted error against the number of features, one curve per mechanism; needs matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw into; new ones by default.
        n_features : sequence of int, optional
            Numbers of features; by default powers of two around the recommended one.
        top : int
            Number of mechanisms.

        Returns
        -------
        matplotlib Axes
        """
        width = self.ranking[0].n_features
        widths = n_features or [max(width * 2**k // 16, 2) for k in range(7)]
        return _draw_curves(self.curves(widths, top), self.tolerance, ax)

    def as_dict(self) -> dict[str, Any]:
        """Return a dictionary for JSON."""
        return {
            "best": repr(self.best),
            "ranking": [candidate.as_dict() for candidate in self.ranking],
            "reasons": list(self.reasons),
            "warnings": list(self.warnings),
            "tolerance": self.tolerance,
            "facts": self.facts.as_dict(),
        }

    def table(self, top: int | None = _SHOWN) -> str:
        """Return the ranking as text.

        Parameters
        ----------
        top : int or None
            Number of mechanisms; None means all.

        Returns
        -------
        str
        """
        header = ["mechanism", "features", "error", "worst entry", "time per row", "error by", "positive", "symmetric"]
        return format_table([*header, "unbiased"], [_row(candidate) for candidate in self.ranking[:top]])

    def __str__(self) -> str:
        hidden = len(self.ranking) - _SHOWN
        more = f"... and {hidden} more in .ranking\n" if hidden > 0 else ""
        if self.tolerance is None and any(candidate.standard_error for candidate in self.ranking[:_SHOWN]):
            more += "In the order of the error plus two standard errors.\n"
        reasons = "\n".join(self.reasons)
        warnings = "".join(f"\nWarning: {warning}" for warning in self.warnings)
        return f"{self.table()}\n{more}\nRecommended: {self.best!r}\n{reasons}{warnings}"

    __repr__ = __str__


def _row(c: Candidate) -> list[str]:
    error = f"{c.error:.3g}" + (f" +- {c.standard_error:.0e}" if c.standard_error else "")
    flags = ["yes" if flag else "no" for flag in (c.positive, c.symmetric)]
    unbiased = "yes" if c.unbiased else "approx."
    return [c.label, str(c.n_features), error, f"{c.worst:.3g}", seconds(c.seconds_per_row), c.source, *flags, unbiased]


def _draw_curves(curves: Mapping[str, Sequence[tuple[int, float]]], tolerance: float | None, ax: Any = None) -> Any:
    """One line per mechanism, on logarithmic axes."""
    if ax is None:
        if importlib.util.find_spec("matplotlib") is None:
            raise ImportError("Recommendation.plot: a plot needs matplotlib; pip install matplotlib.")
        from matplotlib.figure import Figure  # opens no window with any backend

        ax = Figure(figsize=(7, 4.5), layout="constrained").add_subplot()
    for name, points in curves.items():
        ax.loglog(*zip(*points, strict=True), marker="o", markersize=3, label=name)
    if tolerance is not None:
        ax.axhline(tolerance, color="black", linestyle=":", label="tolerance")
    ax.set_xlabel("features")
    ax.set_ylabel("predicted relative error")
    ax.legend(fontsize="small")
    return ax
