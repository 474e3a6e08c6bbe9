"""SimRF Figure 6: mean squared errors of orthogonal and simplex rows relative to independent ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bochner.extending import positive_log_relative_mse

from ..._estimates import Estimate
from ..._experiment import Experiment, Results, Row, by_profile, printed, statement
from ..._verdicts import Finding, agreement
from ._couplings import COUPLINGS, LABELS, positive_features

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class MSERatios(Experiment):
    """Closed forms over v = |x + y|, with simulated points on top."""

    name = "simrf-fig6"
    paper = "simrf"
    item = "Figure 6"
    claim = "SimRFs always have the smallest error, then ORFs, then IIDRFs, and the gain is larger at smaller v."
    methods = ("iid", "orthogonal", "simplex")
    profiles = by_profile(
        smoke={"d": 64, "v": (0.02, 3.0, 30), "simulated": (0.5, 1.0), "draws": 60},
        full={"d": 64, "v": (0.02, 5.0, 200), "simulated": (0.25, 0.5, 1.0, 1.5), "draws": 25_000},
    )
    seconds = by_profile(smoke=0.3, full=45)

    def parts(self, p: Mapping[str, Any]) -> list[str]:
        """The closed forms, and a simulation of each coupling."""
        return ["closed form", *COUPLINGS]

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Relative errors, or means of simulated squared relative errors."""
        d = p["d"]
        if part == "closed form":
            v = np.geomspace(*p["v"])
            grids = {name: {"curve": v, "points": p["simulated"], "small": [1e-4]} for name in COUPLINGS}
            errors = {
                name: {key: np.exp(positive_log_relative_mse(np.square(at), d, d, name)) for key, at in grid.items()}
                for name, grid in grids.items()
            }
            iid, orthogonal, simplex = (errors[name]["curve"] for name in COUPLINGS)
            gains = {"orthogonal": (iid - orthogonal) / iid, "simplex": (orthogonal - simplex) / iid}
            return {"v": v, "gains": gains, **errors}  # at large v, gains are far below the digits that errors keep
        X = np.zeros((len(p["simulated"]), d))
        X[:, 0] = np.array(p["simulated"]) / 2
        spec = positive_features(part, d)
        draws = [np.diag(spec.draw(d, rng).gram(X)) - 1 for _ in range(p["draws"])]  # the kernel of x and x is one
        return Estimate.of(np.square(draws)).as_numbers()

    @statement("MSE(SimRF) < MSE(ORF) < MSE(IIDRF) in closed form at every v of the grid.")
    def ordered(self, results: Results) -> Finding:
        """Compare the curves."""
        orthogonal, simplex = self._gains(results)
        true = (orthogonal > 0) & (simplex > 0)
        return Finding(bool(true.all()), f"True at {true.sum()} of {true.size} values.")

    @statement("MSE(SimRF)/MSE(IIDRF) grows with v over the whole grid.")
    def grows(self, results: Results) -> Finding:
        """Look at the differences of what is missing to one."""
        orthogonal, simplex = self._gains(results)
        gain = orthogonal + simplex
        return Finding(bool((np.diff(gain) < 0).all()), f"From {1 - gain[0]:.4f} to 1 - {gain[-1]:.1e}.")

    @statement("The prefactor of v^2 of SimRFs at d = 64 rounds to the printed 0.0078.")
    def prefactor(self, results: Results) -> Finding:
        """The ratio at v = 0.0001."""
        value = self._prefactor(results)
        return Finding(f"{value:.4f}" == printed("simrf", "section5.1")["simplex_prefactor_d64"], f"It is {value:.6f}.")

    @statement(
        "Simulated errors agree with the closed forms within four standard errors, and to a tenth at more than half of the "
        "points."
    )
    def simulation(self, results: Results) -> Finding:
        """Compare the points."""
        closed = results.parts["closed form"]
        simulated = Estimate.stack(Estimate.read(results.parts[name]) for name in COUPLINGS)
        return agreement(simulated, np.concatenate([closed[name]["points"] for name in COUPLINGS]))

    def comparison(self, results: Results) -> list[Row]:
        """The prefactor, the one number that the section prints."""
        entry = printed("simrf", "section5.1")
        label = f"prefactor of v^2 at d = 64 ({entry['where']})"
        return [Row(label, entry["simplex_prefactor_d64"], self._prefactor(results))]

    def plot(self, results: Results, figure: Figure) -> None:
        """Ratios over v."""
        ax = figure.subplots()
        closed, v = results.parts["closed form"], np.array(results.parts["closed form"]["v"])
        points = np.array(results.parameters["simulated"])
        for k, name in enumerate(COUPLINGS):
            ax.plot(v, np.array(closed[name]["curve"]) / closed["iid"]["curve"], color=f"C{k}", label=LABELS[name])
            found, iid = Estimate.read(results.parts[name]), np.array(closed["iid"]["points"])
            ax.errorbar(
                points, found.mean / iid, 2 * found.error / iid, fmt="o", color=f"C{k}", markersize=3, capsize=2
            )
        ax.set(xlabel="v = |x + y|", ylabel="MSE / MSE of IIDRFs", ylim=(0, 1.1))
        ax.legend(title="lines: closed form, dots: simulation")

    def _gains(self, results: Results) -> list[np.ndarray]:
        """Errors saved by orthogonal rows, and by simplex rows on top, relative to those of independent rows."""
        return [np.array(results.parts["closed form"]["gains"][name]) for name in ("orthogonal", "simplex")]

    def _prefactor(self, results: Results) -> float:
        """MSE(SimRF)/MSE(IIDRF) as v goes to zero."""
        closed = results.parts["closed form"]
        return float(closed["simplex"]["small"][0] / closed["iid"]["small"][0])
