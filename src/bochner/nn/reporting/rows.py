"""Rows of the report: how each mechanism does on one head, and what it needs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from ...approximation import Approximation
from ...maps import Map
from ...projections import IID
from .errors import measured_error, predicted_row_error, squared_errors
from .heads import HeadSample


@dataclass(frozen=True)
class MechanismRow:
    """One mechanism on one head.

    Attributes
    ----------
    predicted : float or None
        Relative error of the attention matrix with independent rows; None where there is no closed form.
    measured : float
        The same, measured with the rows of the mechanism.
    expected : float
        What is measured and one standard error more, raised by what so few draws miss.
    needed, features : float
        Rows of W that reach the tolerance, and the width of the features with them; infinite where no number does.
    """

    predicted: float | None
    measured: float
    expected: float
    needed: float
    features: float


@dataclass(frozen=True)
class HeadRow:
    """One head: where it is, how large its logits can be, and how each mechanism does on it."""

    layer: str
    head: int
    norms: float
    mechanisms: dict[str, MechanismRow]

    @property
    def best(self) -> str:
        """The mechanism that needs the fewest features."""
        return cheapest(self.mechanisms)


def cost(row: MechanismRow) -> tuple[float, float]:
    """Features, and where these are equal the error."""
    return row.features, row.expected


def cheapest(rows: Mapping[str, MechanismRow]) -> str:
    """The name of the mechanism with the least cost."""
    return min(rows, key=lambda name: cost(rows[name]))


def head_row(
    layer: str,
    head: int,
    sample: HeadSample,
    specs: Mapping[str, Approximation],
    tolerance: float,
    n_draws: int,
    rng: np.random.Generator,
) -> HeadRow:
    """All mechanisms on one head."""
    missed: dict[tuple[Map | None, int], float] = {}  # one for all mechanisms with the same map
    rows = {}
    for name, spec in specs.items():
        of_one_row, squares = predicted_row_error(spec, sample), squared_errors(spec, sample, n_draws, rng)
        predicted = None if of_one_row is None else of_one_row / math.sqrt(spec.n_projections)
        key = (spec.map, spec.n_projections)
        if key not in missed:
            missed[key] = 1.0 if predicted is None else _missed(spec, sample, predicted, n_draws, rng)
        rows[name] = _row(spec, sample.X.shape[-1], predicted, squares, missed[key], tolerance)
    return HeadRow(layer, head, sample.norms, rows)


def _missed(spec: Approximation, sample: HeadSample, predicted: float, n_draws: int, rng: np.random.Generator) -> float:
    """How much too small so few draws are, since rare ones carry the error: seen at independent rows."""
    seen = measured_error(replace(spec, projection=IID()), sample, n_draws, rng)
    return max(predicted / seen, 1.0) if seen > 0 else 1.0


def _standard_error(squares: np.ndarray) -> float:
    return float(squares.std(ddof=1) / math.sqrt(len(squares))) if len(squares) > 1 else 0.0


def _row(
    spec: Approximation, d: int, predicted: float | None, squares: np.ndarray, missed: float, tolerance: float
) -> MechanismRow:
    measured, upper = math.sqrt(float(squares.mean())), math.sqrt(float(squares.mean() + _standard_error(squares)))
    expected = upper * missed if upper > 0 else 0.0
    needed = spec.n_projections * (expected / tolerance) ** 2
    if not math.isfinite(needed):
        return MechanismRow(predicted, measured, expected, math.inf, math.inf)
    # couplings do less in a part of a block, so errors are not carried over to fewer rows than that
    least = 1 if isinstance(spec.projection, IID) else min(d, spec.n_projections)
    rows = max(math.ceil(needed), least)
    return MechanismRow(predicted, measured, expected, rows, replace(spec, n_projections=rows).n_features_out)
