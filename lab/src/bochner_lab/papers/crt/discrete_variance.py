"""CRT Theorems 3.4 and 3.5: variances of Poisson and geometric features, and their best constants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bochner import catalogue, extending
from bochner.approximation import Approximation
from bochner.maps import Geometric, Poisson

from ..._estimates import Estimate
from ..._experiment import Experiment, Results, by_profile, statement
from ..._figures import panels
from ..._verdicts import Finding, agreement

if TYPE_CHECKING:
    from matplotlib.figure import Figure

X = np.array([[0.7, -0.5, 0.3, 0.9]])
Y = np.array([[-0.4, -0.8, 0.6, 0.5]])
GRIDS = {"PoisRF": np.geomspace(0.02, 3.0, 300), "GeomRF": np.linspace(0.05, 0.98, 300)}


class DiscreteVariance(Experiment):
    """Squared errors of single projections against Eqs. 11 and 13, over the constant."""

    name = "crt-theorem3.4"
    paper = "crt"
    item = "Theorems 3.4 and 3.5"
    claim = "The variances of PoisRF and GeomRF are those of Eqs. 11 and 13, and Eq. 12 minimises the first."
    methods = ("poisrf", "geomrf")
    deviations = (
        "The constant of GeomRF is that of the smallest variance of the pair, a root; the paper's Eq. 14 is a "
        "heuristic for sets."
    )
    profiles = by_profile(
        smoke={"rates": (0.2, 0.4, 1.0), "successes": (0.5, 0.75), "draws": 20_000},
        full={"rates": (0.1, 0.2, 0.4, 1.0, 2.0), "successes": (0.3, 0.5, 0.75, 0.9), "draws": 4_000_000},
    )
    seconds = by_profile(smoke=0.5, full=9.6)

    def parts(self, p: Mapping[str, Any]) -> list[str]:
        """One per constant, and the curves."""
        return [*(f"PoisRF {rate}" for rate in p["rates"]), *(f"GeomRF {s}" for s in p["successes"]), "closed form"]

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """A simulated and an exact variance, or the exact ones over a grid with the best constants."""
        if part == "closed form":
            best = float(extending.optimal_poisson_rate(X[0] ** 2, Y[0] ** 2)), extending.optimal_geometric_p(X, Y)
            curves = {name: [_variance(name, value) for value in grid] for name, grid in GRIDS.items()}
            optima = {name: [c, _variance(name, c)] for name, c in zip(GRIDS, best, strict=True)}
            return {"curves": curves, "optima": optima}
        name, constant = part.split()
        chosen = Poisson(rate=float(constant)) if name == "PoisRF" else Geometric(success=float(constant))
        spec = Approximation(catalogue.kernel("gaussian"), chosen, catalogue.projection("iid"), p["draws"])
        phi = spec.draw(X.shape[1], rng)
        samples = phi.queries(X)[0] * phi.keys(Y)[0] * p["draws"]
        exact = float(spec.kernel(X, Y)[0, 0])  # type: ignore[misc]
        return Estimate.of((samples - exact) ** 2).as_numbers() | {"exact": _variance(name, float(constant))}

    @statement(
        "Simulated variances agree with Eqs. 11 and 13 within four standard errors for every constant, and to a tenth for "
        "more than half of them."
    )
    def variances(self, results: Results) -> Finding:
        """Compare them."""
        parts = [part for name, part in results.parts.items() if name != "closed form"]
        simulated = Estimate.stack(Estimate.read(part) for part in parts)
        return agreement(simulated, [part["exact"] for part in parts])

    @statement("No rate of a fine grid has a lower variance than that of Eq. 12, to one part in 1e12.")
    def poisson_optimum(self, results: Results) -> Finding:
        """Compare with the grid."""
        return self._optimal(results, "PoisRF")

    @statement(
        "No success probability of a fine grid has a lower variance than the root of the derivative of Eq. 13, to one"
        " part in 1e12."
    )
    def geometric_optimum(self, results: Results) -> Finding:
        """Compare with the grid."""
        return self._optimal(results, "GeomRF")

    def plot(self, results: Results, figure: Figure) -> None:
        """Variances over the constant."""
        axes = panels(figure, list(GRIDS), "rate, or success probability", "variance of one projection")
        closed = results.parts["closed form"]
        for ax, (name, grid) in zip(axes, GRIDS.items(), strict=True):
            ax.plot(grid, closed["curves"][name], color="C0")
            ax.plot(*closed["optima"][name], "*", color="C3")
            for key, part in results.parts.items():
                if key.startswith(name):
                    ax.errorbar(
                        float(key.split()[1]), part["mean"], 2 * part["error"], fmt="o", color="C1", markersize=4
                    )

    def _optimal(self, results: Results, name: str) -> Finding:
        closed = results.parts["closed form"]
        (constant, least), curve = closed["optima"][name], np.array(closed["curves"][name])
        return Finding(
            bool(least <= curve.min() * (1 + 1e-12)), f"{least:.6f} at {constant:.4f}; grid {curve.min():.6f}."
        )


def _variance(name: str, constant: float) -> float:
    """Eq. 11 or 13 for the Gaussian kernel."""
    of = extending.poisson_log_relative_mse if name == "PoisRF" else extending.geometric_log_relative_mse
    return float(np.exp(of(X, Y, constant)[0] - ((X - Y) ** 2).sum()))
