"""Measures every mechanism for a kernel on rows of a table, all at the same width of the features."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from .._progress import progress
from ..approximation import Approximation, NoClosedForm
from ..kernels import Kernel
from ..maps import Landmarks
from ..reporting import figure, format_table, seconds, with_error
from ..selection._applicable import label_of, planned
from ..selection._prediction import DrawnRows, seconds_per_row
from ..selection._sample import Sample

_AGAIN, _CLOSE = 4, 1.15  # mechanisms within this factor of the lowest error are drawn so many times as often
_THEORY_ROWS = 64  # rows of each side for closed forms, which can cost as much for a pair as many draws of it
_RARE = 2.0  # factor between closed form and measurement above which draws too rare to be seen carry the error


@dataclass(frozen=True)
class MeasuredMechanism:
    """Measurements of one mechanism."""

    label: str  # short name of map and projection
    spec: str  # the ``repr`` of its specification, which rebuilds it
    # uniform landmarks are the features of scikit-learn's Nystroem, independent cosines those of its RBFSampler
    kind: str
    n_features: int  # width of the features
    error: float  # relative Frobenius error of the Gram matrix, root mean square over draws, and its standard error
    standard_error: float
    predicted: float | None  # the closed form of the same error; None if there is none
    n_draws: int  # number of draws
    seconds_per_row: float  # time of the features
    positive: bool
    unbiased: bool

    @property
    def rare(self) -> bool:
        """Whether draws too rare to be sampled carry the error, so that its closed form is far above the measured one."""
        return self.predicted is not None and self.predicted > _RARE * (self.error + 2 * self.standard_error)

    @property
    def ranked(self) -> float:
        """The error by which mechanisms are ordered: the closed form if a few draws miss what carries it."""
        return self.predicted if self.predicted is not None and self.rare else self.error

    def as_dict(self) -> dict[str, Any]:
        """Return what is written as JSON."""
        return asdict(self)


@dataclass(frozen=True)
class MeasuredMechanisms:
    """All mechanisms that were measured, lowest error first."""

    kernel: Kernel
    n_features: int
    n_rows: int
    found: tuple[MeasuredMechanism, ...]
    n_left: int

    @property
    def sentences(self) -> list[str]:
        """The result in words, against what scikit-learn has."""
        best, n = self.found[0], self.n_features
        said = [f"With {n} features, {best.label} has the lowest error of the kernel, {figure(best.error)}."]
        for kind, name in (
            ("independent", "Independent rows (RBFSampler)"),
            ("landmarks", "Uniform landmarks (Nystroem)"),
        ):
            other = next((m for m in self.found if m.kind == kind), None)
            if other is not None and other is not best and 0 < best.error < other.error:
                more = (other.error / best.error) ** 2
                need = (
                    f": they need about {figure(more)} times as many features for the same error"
                    if kind == "independent"
                    else ""
                )
                said.append(f"{name} have {figure(other.error)}{need}.")
        if self.n_left:
            said.append(f"{self.n_left} more were not measured: the time was over.")
        return said

    def table(self, top: int | None = None) -> str:
        """Return the measurements as text."""
        header = ["mechanism", "features", "error", "by theory", "time per row", "positive", "unbiased"]
        return format_table(header, [row(m) for m in self.found[:top]])

    def as_dict(self) -> dict[str, Any]:
        """Return what is written as JSON."""
        facts = {"kernel": repr(self.kernel), "n_features": self.n_features, "n_rows": self.n_rows}
        return facts | {"n_left": self.n_left, "mechanisms": [m.as_dict() for m in self.found]}


def row(m: MeasuredMechanism) -> list[str]:
    """Return the cells of one mechanism: its error by theory only where it says something of the draws."""
    predicted = "" if m.predicted is None else f"{m.predicted:.3g}" if not m.rare else "rare draws"
    flags = ["yes" if m.positive else "no", "yes" if m.unbiased else "approx."]
    error = with_error(m.error, m.standard_error) if m.standard_error else f"{m.error:.4g}"
    return [m.label, str(m.n_features), error, predicted, seconds(m.seconds_per_row), *flags]


def measure(
    X: np.ndarray,
    Y: np.ndarray | None,
    kernel: Kernel,
    n_features: int,
    *,
    rows: int,
    n_draws: int,
    seed: int,
    limit: float,
    shown: bool = True,
) -> MeasuredMechanisms:
    """Measure the mechanisms that apply, plain ones first, for at most ``limit`` seconds; equal ones once."""
    end = time.perf_counter() + limit
    sample = Sample.of(X, Y, kernel, np.random.default_rng(seed), rows)
    plans = list(
        planned(kernel, sample.X, None if Y is None else sample.Y, n_features, seed, sample.others, plain_first=True)
    )
    if not plans:
        raise ValueError(f"--features {n_features} is too few for any mechanism of {kernel!r}.")
    ground = _Ground(sample, kernel, X.dtype, seed)
    found: dict[tuple[Any, ...], tuple[Approximation, MeasuredMechanism]] = {}
    n_left = 0
    for spec, plan in progress(plans, label="mechanisms", shown=shown, delay=0.0):
        if found and time.perf_counter() > end:
            n_left += 1
            continue
        measured = ground.measured(spec, plan, n_draws)
        # draws have the same seeds, so that two names of one mechanism have the same errors; the shorter name stays
        key = (measured.n_features, f"{measured.error:.10g}")
        if key not in found or len(measured.label) < len(found[key][1].label):
            found[key] = plan, measured
    lowest = min(m.ranked for _, m in found.values())
    final = [
        ground.again(m, plan, _AGAIN * n_draws) if m.ranked <= _CLOSE * lowest and time.perf_counter() < end else m
        for plan, m in found.values()
    ]
    ranked = sorted(final, key=lambda m: m.ranked)
    return MeasuredMechanisms(kernel, n_features, len(sample.X), tuple(ranked), n_left)


class _Ground:
    """The rows on which errors are measured, with their exact Gram matrix."""

    def __init__(self, sample: Sample, kernel: Kernel, dtype: Any, seed: int) -> None:
        self.X, self.Y, self.exact = sample.X.astype(dtype), sample.Y.astype(dtype), sample.exact
        self.draws = DrawnRows(sample.X.shape[1], seed)
        other = None if sample.Y is sample.X else sample.Y
        self.few = Sample.of(sample.X, other, kernel, np.random.default_rng(seed), _THEORY_ROWS)

    def measured(self, spec: Approximation, plan: Approximation, n_draws: int) -> MeasuredMechanism:
        error, spread = self._error(plan, n_draws)
        independent = spec.map == Approximation(spec.kernel).map and spec.projection.coupling == "iid"
        kind = "landmarks" if spec.map == Landmarks() else "independent" if independent else "other"
        time_ = seconds_per_row(self.draws.draw(plan, 0), self.X)
        facts = (self._theory(plan), n_draws, time_, plan.positive, plan.unbiased)
        return MeasuredMechanism(label_of(spec), repr(spec), kind, plan.n_features_out, error, spread, *facts)

    def again(self, known: MeasuredMechanism, plan: Approximation, n_draws: int) -> MeasuredMechanism:
        error, spread = self._error(plan, n_draws)
        return replace(known, error=error, standard_error=spread, n_draws=n_draws)

    def _error(self, plan: Approximation, n_draws: int) -> tuple[float, float]:
        """Root mean squared relative error over draws, and its standard error."""
        with np.errstate(over="ignore", invalid="ignore"):
            grams = (self.draws.draw(plan, k).gram(self.X, self.Y) for k in range(n_draws))
            norm = np.linalg.norm(self.exact)
            squares = np.array([float(np.linalg.norm(gram - self.exact) / norm) ** 2 for gram in grams])
        squares = np.nan_to_num(squares, nan=np.inf)
        error = float(np.sqrt(squares.mean()))
        if not 0 < error < np.inf:
            return error, 0.0
        return error, float(squares.std(ddof=1) / np.sqrt(n_draws)) / (2 * error)

    def _theory(self, plan: Approximation) -> float | None:
        """The closed form on some of the rows, whose diagonal has the weight that it has among all of them."""
        try:
            squares = plan.mse(self.few.X, self.few.Y)
        except NoClosedForm:
            return None
        with np.errstate(over="ignore", invalid="ignore"):
            mean = float((self.few.weights * squares).sum())
            error = float(np.sqrt(mean * self.exact.size) / np.linalg.norm(self.exact))
        return error if np.isfinite(error) else None
