"""OMC Figure 6: learning curves of the Swimmer, by the directions of the gradient estimates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .._estimates import BEYOND, Estimate
from .._experiment import Finding, Results, by_profile, statement
from .._robots import SWIMMER, Robot
from ._matrices import APPROXIMATE, METHODS
from ._policies import PolicySearch, ToeplitzNetwork, learn

SEARCH = {"directions": 253, "sigma": 0.1, "learning rate": 0.05}
POLICY = ToeplitzNetwork((8, 41, 41, 2))


class Swimmer(PolicySearch):
    """A Toeplitz network of 253 parameters, learned from returns with 253 directions per step."""

    name = "omc-fig6"
    paper = "omc"
    item = "Figure 6"
    claim = (
        "Orthogonal directions learn the Swimmer faster than independent ones, and HMD and KAC perform as well as exact "
        "orthogonal directions, rapidly reaching high reward."
    )
    methods = METHODS
    extras = ("rl",)
    deviations = (
        "The paper prints neither the estimator nor its constants: forward differences, Adam, and a smoothing and a "
        "learning rate chosen from a few that were tried with IID on other seeds. Episodes of 200 steps in place of "
        "1000, simulated with Euler steps from one state per seed; the final policies are also shown on whole episodes "
        "of the original environment. Few steps and seeds. ORF is the GORT of the figure."
    )
    profiles = by_profile(
        smoke=SEARCH | {"seeds": (0, 1), "steps": 1, "horizon": 8, "episode": 50},
        full=SEARCH | {"seeds": (0, 1, 2, 3), "steps": 16, "horizon": 200, "episode": 1000},
    )
    seconds = by_profile(smoke=3, full=250)

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """The learning curve of one method and seed, and the return of a whole episode at its end."""
        method, seed = part.split()
        robot = Robot(SWIMMER)
        curve, theta = learn(robot, POLICY, method, int(seed), p, rng)
        return {"curve": curve, "episode": robot.episode(POLICY, theta, int(seed), p["episode"])}

    @statement(
        "ORF has a higher return than IID, averaged over the training, beyond two standard errors of the differences "
        "by seed."
    )
    def exact(self, results: Results) -> Finding:
        """Compare the two."""
        return self.above(results, ["ORF"], "IID")

    @statement("The same for HMD and for KAC.")
    def approximate(self, results: Results) -> Finding:
        """Compare both with IID."""
        return self.above(results, ["HMD", "KAC"], "IID")

    @statement(
        "Every approximate method has at least 0.9 of the return of ORF, averaged over the training, or is within two "
        "standard errors of it."
    )
    def as_good_as_exact(self, results: Results) -> Finding:
        """Compare all with ORF."""
        return self.not_below(results, APPROXIMATE, "ORF")

    @statement(
        "HMD and KAC end with at least 0.9 of the highest final return of all methods, or within two standard errors of "
        "it."
    )
    def high_reward(self, results: Results) -> Finding:
        """Compare the last points of the curves."""
        final = {method: self.curves(results, method)[:, -1] for method in METHODS}
        best = max(final, key=lambda method: final[method].mean())
        true = []
        for method in ("HMD", "KAC"):
            gap = Estimate.of(final[best] - final[method])
            true.append(final[method].mean() >= 0.9 * final[best].mean() or gap.mean <= BEYOND * gap.error)
        shown = ", ".join(f"{method} {values.mean():.1f}" for method, values in final.items())
        whole = ", ".join(
            f"{method} {np.mean([results.parts[f'{method} {seed}']['episode'] for seed in results.parameters['seeds']]):.0f}"
            for method in METHODS
        )
        return Finding(all(true), f"Final returns: {shown}; of whole episodes: {whole}.")
