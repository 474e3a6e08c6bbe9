"""SimRF Figure 5: the law of |w_i + w_j| for each coupling."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bochner import catalogue

from ..._estimates import Estimate
from ..._experiment import REJUDGED, Experiment, Results, by_profile, statement
from ..._verdicts import Finding, superior
from ._couplings import COUPLINGS, LABELS

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class PairDensities(Experiment):
    """Drawn pairs against the densities of Eqs. 18 and 20."""

    name = "simrf-fig5"
    paper = "simrf"
    item = "Figure 5, Lemmas 4.1 and 4.2"
    claim = (
        "The length of the sum of two vectors has the densities of Eqs. 18 and 20, with less mass at large lengths "
        "for ORFs, and less again for SimRFs."
    )
    methods = COUPLINGS
    deviations = REJUDGED
    profiles = by_profile(smoke={"d": 6, "blocks": 3000}, full={"d": 6, "blocks": 200_000})
    seconds = by_profile(smoke=0.5, full=4.3)

    def parts(self, p: Mapping[str, Any]) -> tuple[str, ...]:
        """One per coupling."""
        return COUPLINGS

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """A histogram, the largest distance between the distribution functions, and the mass in the tail."""
        d, n = p["d"], p["blocks"]
        W = catalogue.projection(part).sample(d, n * d, rng).to_dense().reshape(n, d, d)
        lengths = np.sort(np.linalg.norm(W[:, 0] + W[:, 1], axis=1))
        grid = np.linspace(0, 2.2 * np.sqrt(2 * d), 400)
        density = pair_density(grid, d, part)
        distribution = np.interp(lengths, grid, _cumulative(density, grid))
        steps = np.arange(n + 1) / n
        distance = np.maximum(np.abs(distribution - steps[1:]), np.abs(distribution - steps[:-1])).max()
        counts, edges = np.histogram(lengths, bins=60, range=(0, grid[-1]), density=True)
        tail = (lengths > self.tail_start(d)).mean()
        return {
            "grid": grid,
            "density": density,
            "histogram": counts,
            "edges": edges,
            "distance": distance,
            "tail": tail,
            "tail_error": np.sqrt(tail * (1 - tail) / n),
        }

    @staticmethod
    def tail_start(d: int) -> float:
        """The length that independent pairs exceed in one of twenty cases."""
        from scipy.stats import chi

        return float(chi(d).ppf(0.95) * np.sqrt(2))

    @statement(
        "The empirical distribution of every coupling is within the 1% Kolmogorov-Smirnov bound, 1.63/sqrt(n), of the"
        " printed density."
    )
    def densities(self, results: Results) -> Finding:
        """Compare distances with the bound."""
        bound = 1.63 / np.sqrt(results.parameters["blocks"])
        distances = [results.parts[name]["distance"] for name in COUPLINGS]
        shown = ", ".join(f"{value:.4f}" for value in distances)
        return Finding(max(distances) < bound, f"Distances {shown}; bound {bound:.4f}.")

    @statement(
        "Beyond the 95% quantile of IIDRFs, ORFs have less mass than IIDRFs and SimRFs less than ORFs (95 % intervals)."
    )
    def tails(self, results: Results) -> Finding:
        """Compare the masses."""
        parts = [results.parts[name] for name in COUPLINGS]
        mass = [Estimate(np.asarray(part["tail"]), np.asarray(part["tail_error"])) for part in parts]
        gain = Estimate.stack(mass[k].over(mass[k + 1]) for k in range(2))
        return superior(gain, "Masses " + ", ".join(f"{one.mean:.4f}" for one in mass) + ".")

    def plot(self, results: Results, figure: Figure) -> None:
        """Densities over histograms."""
        ax = figure.subplots()
        for k, name in enumerate(COUPLINGS):
            part = results.parts[name]
            ax.stairs(part["histogram"], part["edges"], color=f"C{k}", alpha=0.5)
            ax.plot(part["grid"], part["density"], color=f"C{k}", label=LABELS[name])
        ax.set(xlabel="|w_i + w_j|", ylabel="density")
        ax.legend(title="lines: Eqs. 18 and 20, steps: drawn pairs")


def pair_density(w: np.ndarray, d: int, coupling: str) -> np.ndarray:
    """Eq. 18 for independent vectors, Eq. 20 for vectors at a fixed angle."""
    from scipy.special import gammaln

    with np.errstate(divide="ignore"):
        log_w = np.log(w)
    if coupling == "iid":
        return np.asarray(np.exp((d - 1) * log_w - w**2 / 4 - (d - 1) * np.log(2) - gammaln(d / 2)))
    c = 0.0 if coupling == "orthogonal" else -1 / (d - 1)
    nodes, weights = np.polynomial.legendre.leggauss(200)
    phi = (nodes + 1) * np.pi / 4
    spread = 1 + np.sin(2 * phi) * c
    logs = (d - 1) * np.log(np.sin(phi) * np.cos(phi)) - d * np.log(spread)
    inner = np.exp(logs - w[:, None] ** 2 / (2 * spread)) @ (weights * np.pi / 4)
    return np.asarray(np.exp((2 * d - 1) * log_w - (d - 2) * np.log(2) - 2 * gammaln(d / 2)) * inner)


def _cumulative(density: np.ndarray, grid: np.ndarray) -> np.ndarray:
    steps = (density[1:] + density[:-1]) / 2 * np.diff(grid)
    return np.concatenate([[0.0], np.cumsum(steps)])
