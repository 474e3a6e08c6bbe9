"""OMC Section 6.3: a linear policy of 96 parameters for a robot with four legs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..._estimates import Estimate
from ..._experiment import Results, by_profile, statement
from ..._verdicts import Finding, superior
from .._robots import ANT, Robot
from ._matrices import APPROXIMATE, METHODS
from ._policies import LinearGait, PolicySearch, learn

POLICY = LinearGait((2, 3, *range(5, 13)), n_actions=8, frequency=2.0)
"""A policy of the roll and pitch of the torso, the eight angles of the joints, and a clock."""
SEARCH = {"directions": 96, "sigma": 0.1, "learning rate": 0.05}


class Quadruped(PolicySearch):
    """A linear policy for the Ant, learned from returns with 96 directions per step."""

    name = "omc-quadruped"
    paper = "omc"
    item = "Section 6.3, quadruped"
    claim = (
        "Directions from Kac's walk easily learn to walk, and approximate orthogonal directions learn as well as exact "
        "ones."
    )
    methods = METHODS
    extras = ("rl",)
    deviations = (
        "The Ant of MuJoCo in place of the Minitaur. Its 96 parameters are those of eight motors and twelve features: two "
        "components of the orientation, eight joint angles, sine and cosine of a clock of 2 Hz. Episodes of 4 seconds with "
        "Euler steps from one state per seed, rewarded by forward velocity minus 0.05 times the squared controls, "
        "until the robot falls. Constants were chosen from a few that were tried with IID on other seeds. The power "
        "check came after the run. With the spread of these seeds, a tenth of the return would need about 350 seeds."
    )
    profiles = by_profile(
        smoke=SEARCH | {"seeds": (0, 1), "steps": 1, "horizon": 4},
        full=SEARCH | {"seeds": (0, 1, 2), "steps": 20, "horizon": 80},
    )
    seconds = by_profile(smoke=1, full=710)

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """The learning curve of one method and seed."""
        method, seed = part.split()
        return {"curve": learn(Robot(ANT), POLICY, method, int(seed), p, rng)[0]}

    @statement("With KAC the final return is above that of standing still, zero (95 % interval over seeds).")
    def walks(self, results: Results) -> Finding:
        """Compare the last point of the curve with zero."""
        final = {method: Estimate.of(self.curves(results, method)[:, -1]) for method in METHODS}
        shown = ", ".join(f"{method} {value.mean:.0f} +- {value.error:.0f}" for method, value in final.items())
        return superior(final["KAC"], f"Final returns: {shown}.")

    @statement(
        "The return of KAC, averaged over the training, is not below that of ORF by more than a tenth (95 % interval of the "
        "differences by seed)."
    )
    def kac(self, results: Results) -> Finding:
        """Compare the two."""
        return self.not_below(results, ["KAC"], "ORF")

    @statement("The same for the other approximate methods.")
    def approximate(self, results: Results) -> Finding:
        """Compare all with ORF."""
        return self.not_below(results, [method for method in APPROXIMATE if method != "KAC"], "ORF")
