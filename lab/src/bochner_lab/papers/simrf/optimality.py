"""SimRF Theorem 3.4: no coupling of the directions that ignores the lengths is better than the simplex."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bochner.extending import log_conformity

from ..._experiment import Experiment, Results, by_profile, statement
from ..._verdicts import Finding

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Optimality(Experiment):
    """Random and numerically optimised directions against the simplex, by the exact conformity of each pair."""

    name = "simrf-theorem3.4"
    paper = "simrf"
    item = "Theorem 3.4"
    claim = "Among couplings of d directions that are independent of the lengths, SimRFs have the lowest error."
    methods = ("simplex", "random directions", "numerical optimisation")
    profiles = by_profile(
        smoke={"cases": ((3, 1.0), (6, 1.0)), "random": 200, "starts": 2},
        full={"cases": ((3, 0.5), (3, 2.0), (4, 1.0), (6, 1.0), (6, 2.0), (8, 1.0)), "random": 5000, "starts": 20},
    )
    seconds = by_profile(smoke=2, full=27)

    def parts(self, p: Mapping[str, Any]) -> list[str]:
        """One per dimension and v."""
        return [f"d={d} v={v}" for d, v in p["cases"]]

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Conformities, and the cosines at the best numerical optimum."""
        from scipy.optimize import minimize

        d, v = (float(piece.partition("=")[2]) for piece in part.split())
        of = self._conformity_of(int(d), v)
        pairs = np.triu_indices(int(d), 1)
        random = [of(_cosines(rng.standard_normal((int(d), int(d))))[pairs]) for _ in range(p["random"])]
        optima = [
            minimize(lambda flat: of(_cosines(flat.reshape(int(d), int(d)))[pairs]), rng.standard_normal(int(d) ** 2))
            for _ in range(p["starts"])
        ]
        best = min(optima, key=lambda found: float(found.fun))
        cosines = _cosines(best.x.reshape(int(d), int(d)))[pairs]
        return {
            "simplex": of(np.array([-1 / (d - 1)])),
            "orthogonal": of(np.zeros(1)),
            "random": random,
            "optimum": best.fun,
            "cosines": cosines,
            "target": -1 / (d - 1),
        }

    @staticmethod
    def _conformity_of(d: int, v: float) -> Any:
        """Mean conformity of pairs at given cosines: a polynomial through the exact values, which is as good as exact."""
        exact = np.polynomial.Chebyshev.interpolate(
            lambda c: np.array([np.exp(float(log_conformity(v**2, d, float(value)))) for value in c]), 24
        )
        return lambda cosines: float(exact(cosines).mean())

    @statement("No random set of directions has a lower conformity than the simplex.")
    def random_sets(self, results: Results) -> Finding:
        """Compare the least of them."""
        margins = [min(part["random"]) - part["simplex"] for part in results.parts.values()]
        return Finding(min(margins) > 0, f"The closest is {min(margins):.2e} above.")

    @statement("Numerical optimisation finds nothing lower than the simplex by more than one part in a million.")
    def optimised(self, results: Results) -> Finding:
        """Compare the best optimum."""
        gains = [1 - part["optimum"] / part["simplex"] for part in results.parts.values()]
        return Finding(max(gains) < 1e-6, f"The largest relative gain is {max(gains):.1e}.")

    @statement("At the best optimum all cosines are -1/(d-1), to 0.02.")
    def is_simplex(self, results: Results) -> Finding:
        """Look at the cosines."""
        off = max(np.abs(np.array(part["cosines"]) - part["target"]).max() for part in results.parts.values())
        return Finding(bool(off < 0.02), f"The largest difference is {off:.1e}.")

    def plot(self, results: Results, figure: Figure) -> None:
        """Histograms of random sets, relative to the simplex."""
        axes = figure.subplots(1, len(results.parts), squeeze=False)[0]
        for ax, (name, part) in zip(axes, results.parts.items(), strict=True):
            ax.hist(np.array(part["random"]) / part["simplex"], bins=40, color="C0", alpha=0.6)
            ax.axvline(part["orthogonal"] / part["simplex"], color="C1", label="orthogonal")
            ax.axvline(part["optimum"] / part["simplex"], color="C3", linestyle=":", label="optimum")
            ax.set_title(name, fontsize="small")
        axes[0].legend(fontsize="x-small")
        figure.supxlabel("conformity relative to the simplex; bars: random directions")


def _cosines(U: np.ndarray) -> np.ndarray:
    U = U / np.linalg.norm(U, axis=1, keepdims=True)
    return np.asarray(U @ U.T)
