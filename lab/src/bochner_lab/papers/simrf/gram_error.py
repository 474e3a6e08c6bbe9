"""SimRF Figure 7: squared Frobenius error of the Gram matrix against the number of features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._estimates import Estimate, share
from ..._experiment import Experiment, Results, by_profile, statement
from ..._figures import curve
from ..._verdicts import Finding, interval, superior
from ._couplings import COUPLINGS, LABELS, positive_features

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class GramError(Experiment):
    """Normal data with sigma = 0.1 in 64 dimensions."""

    name = "simrf-fig7"
    paper = "simrf"
    item = "Figure 7"
    claim = "The Gram matrix is approximated better with more features, and better by SimRFs than by ORFs and IIDRFs."
    methods = COUPLINGS
    profiles = by_profile(
        smoke={"d": 64, "n": 64, "sigma": 0.1, "features": (16, 64), "draws": 30},
        full={"d": 64, "n": 64, "sigma": 0.1, "features": (8, 16, 32, 64, 128, 192, 256), "draws": 400},
    )
    seconds = by_profile(smoke=0.6, full=40)

    def parts(self, p: Mapping[str, Any]) -> list[str]:
        """One per coupling and number of features."""
        return [f"{name} {m}" for name in COUPLINGS for m in p["features"]]

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Mean over draws, each with data of its own, and the mean of the closed form on the same data."""
        name, m = part.split()
        spec = positive_features(name, int(m))
        errors: list[float] = []
        expected: list[float] = []
        for _ in range(p["draws"]):
            X = p["sigma"] * rng.standard_normal((p["n"], p["d"]))
            errors.append(((spec.draw(p["d"], rng).gram(X) - spec.kernel(X)) ** 2).sum())  # type: ignore[misc]
            if len(expected) < 5:
                expected.append(spec.mse(X).sum())
        return Estimate.of(errors).as_numbers() | {"closed form": np.mean(expected)}

    @statement("SimRFs have a lower error than ORFs and than IIDRFs at every number of features (95 % intervals).")
    def simplex_best(self, results: Results) -> Finding:
        """Compare the curves."""
        iid, orthogonal, simplex = (self._curve(results, name) for name in COUPLINGS)
        gain = Estimate.stack((orthogonal.over(simplex), iid.over(simplex)))
        return superior(gain, f"True in {share(interval(gain)[0] > 0)} comparisons.")

    @statement("More features give a lower error for every coupling (95 % intervals).")
    def falls(self, results: Results) -> Finding:
        """Compare neighbouring points."""
        gain = Estimate.stack((c := self._curve(results, name))[:-1].over(c[1:]) for name in COUPLINGS)
        return superior(gain, f"True for {share(interval(gain)[0] > 0)} steps.")

    def plot(self, results: Results, figure: Figure) -> None:
        """Curves with bars; dotted lines are closed forms."""
        ax, m = figure.subplots(), results.parameters["features"]
        for k, name in enumerate(COUPLINGS):
            curve(ax, m, self._curve(results, name), LABELS[name], k)
            ax.plot(m, [results.parts[f"{name} {at}"]["closed form"] for at in m], ":", color=f"C{k}")
        ax.set(xlabel="random features", ylabel="squared Frobenius error", yscale="log", xscale="log")
        ax.legend(title="dotted: closed form")

    def _curve(self, results: Results, name: str) -> Estimate:
        points = [Estimate.read(results.parts[f"{name} {m}"]) for m in results.parameters["features"]]
        return Estimate(np.array([x.mean for x in points]), np.array([x.error for x in points]))
