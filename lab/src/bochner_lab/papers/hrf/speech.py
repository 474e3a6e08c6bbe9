"""HRF Table 2 in the small: hybrids in the attention of a Conformer that reads spoken digits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._estimates import Estimate
from ..._experiment import Experiment, PowerCheck, Results, Row, by_profile, printed, statement
from ..._verdicts import Finding, equal, together
from .._speech import (
    DEVIATIONS,
    FULL,
    NONE,
    SMOKE,
    SOFTMAX,
    angular,
    bars,
    clustered,
    error_rates,
    lower,
    named,
    power_of_speech,
    rates,
    seeds,
)  # fmt: skip

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RULE = "(95 % interval, paired by seed)"
CLUSTER, ANGULAR, POSITIVE, TRIGONOMETRIC = "HRF-C(3,3)", "HRF-A", "FAVOR+", "trigonometric"
MARGIN = 1.0
"""Percent of the words within which error rates are equal."""


class SpeechHybrids(Experiment):
    """Word error rates of models that are trained with each mechanism, paired by seed."""

    name = "hrf-table2-digits"
    paper = "hrf"
    item = "Table 2, in the small"
    claim = (
        "In a Conformer, hybrid features give lower word error rates than FAVOR+ and trigonometric ones, and hybrids of "
        "clusters the lowest."
    )
    data = ("spoken-digits",)
    methods = (SOFTMAX, CLUSTER, ANGULAR, POSITIVE, TRIGONOMETRIC)
    extras = ("torch",)
    deviations = DEVIATIONS + (
        " Heads have width 16 in place of 64, and numbers of rows are a quarter of the paper's: 16 for HRF-C (64), (4, "
        "8) for HRF-A (16, 8), 108 for the others (432). Clusters and other constants are found anew every 50 steps; "
        "the paper finds clusters once, after 1000 steps. HRF-C has the library's diagonals, which are finite for "
        "centres at zero, and not Eq. 88. FAVOR+ is the one-sided map, with up to twice the variance of that of Eq. 3. "
        "HRF-C(2,3), (3,2) and (2,2), HRF-A(8,8) and fewer rows of the others are not run. Queries and keys have "
        "length one, as in the paper's robotics (Section K), and logits are their cosines. "
        "In previous results they had any length: a query's and a key's squared lengths add up to 3 when training "
        "starts, and to 37 at most after 200 steps of softmax; a fifth of the denominators of HRF-A are then negative, "
        "and neither hybrids nor trigonometric features trained (88 to 97 % of the words wrong). With logits of twice "
        "the cosines HRF-A did not train either. This was found with softmax and HRF-A on another seed. A mechanism "
        "must do better than no attention to be compared; this condition came after the previous run. HRF-C and "
        "trigonometric features now train on five of six seeds; HRF-A with four rows, whose relative error at a right "
        "angle is near one, on one. To decide it takes its 16 rows, and as many more of the others."
    )  # fmt: skip
    profiles = by_profile(
        smoke=SMOKE | {"unit": 1.0, "hybrid": (2, 2), "cluster": 2, "rows": 4},
        full=FULL | {"seeds": 6, "unit": 1.0, "hybrid": (4, 8), "cluster": 16, "rows": 108},
    )
    seconds = by_profile(smoke=1, full=610)

    def parts(self, p: Mapping[str, Any]) -> list[str]:
        """One per seed."""
        return seeds(p)

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Word error rates by mechanism."""
        m, rows = p["cluster"], p["rows"]
        kinds = {
            SOFTMAX: SOFTMAX,
            CLUSTER: clustered(m, 3, 3),
            ANGULAR: angular(*p["hybrid"]),
            POSITIVE: named("favor+", rows),
            TRIGONOMETRIC: named("favor", rows),
            NONE: NONE,
        }
        return error_rates(kinds, p, int(rng.integers(2**31)))

    @statement(f"HRF-C(3,3) has a lower word error rate than FAVOR+ {RULE}.")
    def cluster_below_positive(self, results: Results) -> Finding:
        """Compare the ends."""
        return lower(results, CLUSTER, POSITIVE)

    @statement(f"HRF-A has a lower word error rate than FAVOR+ {RULE}.")
    def angular_below_positive(self, results: Results) -> Finding:
        """Compare the ends."""
        return lower(results, ANGULAR, POSITIVE)

    @statement(f"HRF-C(3,3) and HRF-A have lower word error rates than trigonometric features {RULE}.")
    def below_trigonometric(self, results: Results) -> Finding:
        """Compare the ends."""
        found = [lower(results, name, TRIGONOMETRIC) for name in (CLUSTER, ANGULAR)]
        return together(found, " ".join(one.evidence for one in found))

    @statement(f"HRF-C(3,3) has a lower word error rate than HRF-A {RULE}.")
    def cluster_below_angular(self, results: Results) -> Finding:
        """Compare the ends."""
        return lower(results, CLUSTER, ANGULAR)

    @statement(f"FAVOR+ has a lower word error rate than trigonometric features {RULE}.")
    def positive_below_trigonometric(self, results: Results) -> Finding:
        """Compare the ends."""
        return lower(results, POSITIVE, TRIGONOMETRIC)

    @statement(
        f"The word error rate of HRF-C(3,3) is within {MARGIN:g} % of the words of that of softmax {RULE}.", ours=True
    )
    def as_good_as_softmax(self, results: Results) -> Finding:
        """Compare the ends."""
        difference = Estimate.of(rates(results, CLUSTER) - rates(results, SOFTMAX))
        return equal(difference, MARGIN, f"{difference.mean:+.2f} +- {difference.error:.2f} % of the words.")

    def power(self, results: Results) -> PowerCheck:
        """Models whose attention cannot choose, next to the others; every mechanism must train to be compared."""
        found = power_of_speech(results)
        mechanisms = (CLUSTER, ANGULAR, POSITIVE, TRIGONOMETRIC)
        untrained = [name for name in mechanisms if lower(results, name, NONE).holds is not True]
        if not untrained:
            return found
        sentence = f"{found.sentence} Worse than no attention, so not trained: {', '.join(untrained)}."
        return PowerCheck(False, sentence, found.rows)

    def comparison(self, results: Results) -> list[Row]:
        """Word error rates in percent."""
        entry = printed("hrf", "table2")
        rows = []
        for name in next(iter(results.parts.values())):
            found = Estimate.of(rates(results, name))
            label = f"{name}: word error rate in % ({entry['where']})"
            rows.append(Row(label, entry["rows"].get(name, ""), float(found.mean), float(found.error)))
        return rows

    def plot(self, results: Results, figure: Figure) -> None:
        """Word error rates by mechanism."""
        bars(results, figure.subplots())
