"""CRT Figure 3 in the small: a Conformer that reads spoken digits, with 8 and with 16 features per head."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._estimates import Estimate
from ..._experiment import Experiment, PowerCheck, Results, Row, by_profile, printed
from ..._verdicts import Finding
from .._speech import (
    DEVIATIONS,
    FULL,
    NONE,
    SMOKE,
    SOFTMAX,
    bars,
    error_rates,
    lower,
    named,
    power_of_speech,
    rates,
    seeds,
)  # fmt: skip

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROWS = (8, 16)


class FewFeaturesSpeech(Experiment):
    """Word error rates of models that are trained with each mechanism, paired by seed."""

    name = "crt-fig3-digits"
    paper = "crt"
    item = "Figure 3, in the small"
    claim = "With only 8 or 16 random features, a Conformer with FAVOR++ has a lower word error rate than with FAVOR+."
    data = ("spoken-digits",)
    methods = (SOFTMAX, "FAVOR+", "FAVOR++")
    extras = ("torch",)
    deviations = DEVIATIONS + (
        " Heads have width 16 in place of 128. Constants of FAVOR++ are chosen anew every 50 steps, and rows of W are drawn "
        "once. With the spread of these six seeds, one word in a hundred would need about 60 seeds with M = 8, and 80 with "
        "M = 16."
    )
    profiles = by_profile(smoke=SMOKE, full=FULL)
    seconds = by_profile(smoke=1, full=970)

    def parts(self, p: Mapping[str, Any]) -> list[str]:
        """One per seed."""
        return seeds(p)

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Word error rates by mechanism and number of features."""
        features = {f"{name} {m}": named(name.lower(), m) for m in ROWS for name in ("FAVOR+", "FAVOR++")}
        kinds = {SOFTMAX: SOFTMAX, **features, NONE: NONE}
        return error_rates(kinds, p, int(rng.integers(2**31)))

    def statements(self) -> dict[str, Callable[[Results], Finding]]:
        """One for each number of features."""
        return {
            f"With M = {m}, FAVOR++ has a lower word error rate than FAVOR+ (95 % interval, paired by seed).": partial(
                lower, new=f"FAVOR++ {m}", old=f"FAVOR+ {m}"
            )
            for m in ROWS
        }

    def power(self, results: Results) -> PowerCheck:
        """Models whose attention cannot choose, next to the others."""
        return power_of_speech(results)

    def comparison(self, results: Results) -> list[Row]:
        """Improvements in percent of the word error rate."""
        entry, rows = printed("crt", "figure3"), []
        for m, percent in entry["rows"].items():
            old, new = (rates(results, f"{name} {m}") for name in ("FAVOR+", "FAVOR++"))
            change = Estimate.of(100 * (old - new) / old.mean())
            label = f"M = {m}: improvement of the word error rate in % ({entry['where']})"
            rows.append(Row(label, percent, float(change.mean), float(change.error)))
        return rows

    def plot(self, results: Results, figure: Figure) -> None:
        """Word error rates by mechanism."""
        bars(results, figure.subplots())
