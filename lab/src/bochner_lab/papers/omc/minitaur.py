"""OMC Section 6.3: a linear policy of 96 parameters for the Minitaur, with directions from Kac's walk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..._estimates import Estimate
from ..._experiment import Results, by_profile, statement
from ..._verdicts import Finding, superior
from ._minitaur import Minitaur
from ._policies import LinearGait, PolicySearch, learn

POLICY = LinearGait(tuple(range(10)), n_actions=8, frequency=2.0)
SEARCH = {"directions": 96, "sigma": 0.1, "learning rate": 0.05}


class MinitaurWalk(PolicySearch):
    """Distances that the Minitaur walks, learned with 96 directions per step."""

    name = "omc-minitaur"
    paper = "omc"
    item = "Section 6.3, Minitaur"
    claim = "Directions from Kac's walk easily learn good walking behaviours of the Minitaur."
    methods = ("KAC",)
    extras = ("minitaur",)
    deviations = (
        "The 96 parameters are those of eight motors and twelve features: two components of the orientation, the angles of "
        "the eight motors, sine and cosine of a clock of 2 Hz. Position control in place of the accurate motor model, and "
        "episodes of 1.5 seconds. The simulator does not restore its contacts exactly, so that returns have a little "
        "noise. The other directions are compared on the Ant, which takes less time."
    )
    profiles = by_profile(
        smoke=SEARCH | {"seeds": (0, 1), "steps": 1, "horizon": 2},
        full=SEARCH | {"seeds": (0, 1, 2), "steps": 10, "horizon": 75},
    )
    seconds = by_profile(smoke=1, full=460)

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """The learning curve of one seed."""
        method, seed = part.split()
        return {"curve": learn(Minitaur(), POLICY, method, int(seed), p, rng)[0]}

    @statement(
        "The final policy walks: at least 0.2 m to the front in 1.5 s, about half a length of the robot, with every seed."
    )
    def walks(self, results: Results) -> Finding:
        """Look at the last points of the curves."""
        final = self.curves(results, "KAC")[:, -1]
        return Finding(bool((final >= 0.2).all()), "Distances " + ", ".join(f"{x:.2f}" for x in final) + " m.")

    @statement("The distance grows from the first to the last step (95 % interval over the seeds).")
    def learns(self, results: Results) -> Finding:
        """Compare the two ends of the curves."""
        curves = self.curves(results, "KAC")
        gain = Estimate.of(curves[:, -1] - curves[:, 0])
        return superior(gain, f"{gain.mean:+.2f} +- {gain.error:.2f} m.")
