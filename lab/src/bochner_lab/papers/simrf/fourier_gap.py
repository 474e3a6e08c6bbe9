"""SimRF Theorem 4.5 and Corollary 4.6: how far apart points may be for orthogonal cosines to win."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal, localcontext
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from bochner import catalogue
from bochner.approximation import Approximation
from bochner.extending import trigonometric_mse

from ..._estimates import Estimate, share
from ..._experiment import Experiment, Results, by_profile, statement
from ..._verdicts import Finding, agreement

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CLOSED, SIMULATED = "closed form", "simulation"


class FourierGap(Experiment):
    """Eq. 26 in exact arithmetic over distances and dimensions, the library's closed form, and a simulation."""

    name = "simrf-theorem4.5"
    paper = "simrf"
    item = "Theorem 4.5, Corollary 4.6"
    claim = (
        "The error of orthogonal cosines is smaller than that of independent ones up to a distance z_crit(d), which "
        "diverges with d, and their ratio is that of Eq. 27 up to O(1/d^2)."
    )
    methods = ("iid", "orthogonal")
    profiles = by_profile(
        smoke={"d": (2, 8, 16, 32), "z": (6.0, 40), "ratios": (16, 32), "points": (1.0, 2.0), "draws": 500},
        full={
            "d": (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256),
            "z": (14.0, 280),
            "ratios": (16, 32, 64, 128, 256, 512),
            "points": (0.5, 1.0, 2.0, 3.5),
            "draws": 40_000,
        },
    )
    seconds = by_profile(smoke=1, full=30)

    def parts(self, p: Mapping[str, Any]) -> tuple[str, str]:
        """The closed forms, and a simulation in eight dimensions."""
        return CLOSED, SIMULATED

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Signs and zeros of the gap, remainders of Eq. 27, and the two closed forms; or simulated gaps at m = d = 8."""
        points = np.array(p["points"])
        if part == SIMULATED:
            return self._simulated(points, p["draws"], rng)
        end, count = p["z"]
        z = np.linspace(0, float(end), int(count) + 1)[1:]
        zeros = {str(d): _zeros(d, z) for d in p["d"]}
        eq_26 = [float(gap(float(at), 8)) for at in points]
        errors = [trigonometric_mse(points**2, 8, 8, coupling) for coupling in ("iid", "orthogonal")]
        remainders = {
            str(at): [d**2 * (_ratio(at, d) - _eq_27(at, d)) for d in p["ratios"]] for at in (1.0, 2.0)
        }  # with m = 2: the pair of rows that all others are like
        library = (errors[0] - errors[1]) * 8 / 7
        apart = float(np.abs(library - eq_26).max())
        return {"zeros": zeros, "eq 26": eq_26, "apart": apart, "remainders": remainders, "largest z": z[-1]}

    @staticmethod
    def _simulated(points: np.ndarray, draws: int, rng: np.random.Generator) -> dict[str, Any]:
        """Covariances of the cosines of two orthogonal rows, with the sign of the gap."""
        spec = Approximation(
            catalogue.kernel("gaussian"), catalogue.map("trigonometric"), catalogue.projection("orthogonal"), 8
        )
        Z, origin = np.zeros((len(points), 8)), np.zeros((1, 8))
        Z[:, 0] = points
        errors = []
        for _ in range(draws):
            phi = spec.draw(8, rng)
            errors.append(((phi.queries(Z) @ phi.keys(origin).T)[:, 0] - np.exp(-(points**2) / 2)) ** 2)
        mse = Estimate.of(errors)
        independent = (1 - np.exp(-(points**2))) ** 2 / 16  # Eq. 74 with m = 8 independent rows
        return Estimate((independent - mse.mean) * 8 / 7, mse.error * 8 / 7).as_numbers()

    @statement(
        "Eq. 26 is the gap: it equals the library's closed form to 1e-12, and simulated gaps within four standard errors, "
        "and to a tenth at more than half of the points."
    )
    def formula(self, results: Results) -> Finding:
        """Compare the three."""
        closed = results.parts[CLOSED]
        apart = closed["apart"]
        found = agreement(Estimate.read(results.parts[SIMULATED]), closed["eq 26"])
        return replace(
            found,
            holds=found.holds if apart < 1e-12 else False,
            evidence=f"At most {apart:.1e} apart; of the simulated points {found.evidence}",
        )

    @statement(
        "In every dimension the gap is positive from z = 0 up to its first zero z_crit(d), or on the whole grid."
    )
    def threshold(self, results: Results) -> Finding:
        """The sign at the first point of the grid."""
        zeros = results.parts[CLOSED]["zeros"]
        true = [found["positive at first"] for found in zeros.values()]
        shown = ", ".join(f"{found['zeros'][0]:.2f} (d = {d})" for d, found in zeros.items() if found["zeros"])
        return Finding(all(true), f"z_crit {shown}; none up to {results.parts[CLOSED]['largest z']:g} for the others.")

    @statement("z_crit(d) grows with d from d = 8 on, over all dimensions of the grid in which it was found.")
    def diverges(self, results: Results) -> Finding:
        """Compare neighbours."""
        first = self._first(results)
        grows = [a < b for (d, a), (_, b) in pairwise(first) if d >= 8]
        return Finding(all(grows) and len(grows) > 1, f"It grows in {share(grows)} steps.")

    @statement(
        "The remainder of Eq. 27 is O(1/d^2): times d^2 it changes by less than a half between the two largest dimensions, "
        "at z = 1 and 2."
    )
    def remainder(self, results: Results) -> Finding:
        """Compare the last two."""
        found = results.parts[CLOSED]["remainders"]
        true = [abs(values[-1] / values[-2] - 1) < 0.5 for values in found.values()]
        shown = "; ".join(f"z = {z}: " + ", ".join(f"{v:.2f}" for v in values) for z, values in found.items())
        return Finding(all(true), f"Times d^2, {shown}.")

    @statement("Beyond z_crit(d) the gap changes its sign again in some dimension.", ours=True)
    def again(self, results: Results) -> Finding:
        """Count zeros."""
        zeros = {d: len(found["zeros"]) for d, found in results.parts[CLOSED]["zeros"].items()}
        shown = ", ".join(f"{count} (d = {d})" for d, count in zeros.items())
        return Finding(max(zeros.values()) > 1, f"Numbers of zeros: {shown}.")

    def plot(self, results: Results, figure: Figure) -> None:
        """The threshold over dimensions."""
        ax = figure.subplots()
        d, z = zip(*self._first(results), strict=True)
        ax.plot(d, z, "o-")
        ax.set(xlabel="d", ylabel="z_crit(d)", xscale="log")

    @staticmethod
    def _first(results: Results) -> list[tuple[int, float]]:
        zeros = results.parts[CLOSED]["zeros"]
        return [(int(d), found["zeros"][0]) for d, found in zeros.items() if found["zeros"]]


def gap(z: float, d: int) -> Decimal:
    """Eq. 26 without its factor (m - 1)/m, in so many digits that cancellation leaves thirty."""
    with localcontext() as context:
        context.prec = 60 + int(1.5 * z**2)
        V = Decimal(z) ** 2
        term, total, k = Decimal(1), Decimal(0), 0
        while abs(term) > Decimal(10) ** -(40 + int(z**2)) or k < V:
            total += term
            term *= -V * (k + d) / (2 * (k + 1) * (k + Decimal(d) / 2))
            k += 1
        return +((-V).exp() - total)


def _zeros(d: int, z: np.ndarray) -> dict[str, Any]:
    """Where the gap changes its sign, by bisection between points of a grid, and whether it is positive at first."""
    signs = [gap(float(at), d) > 0 for at in z]
    zeros = []
    for k in range(len(z) - 1):
        if signs[k] != signs[k + 1]:
            low, high = float(z[k]), float(z[k + 1])
            for _ in range(30):
                middle = (low + high) / 2
                low, high = (middle, high) if (gap(middle, d) > 0) == signs[k] else (low, middle)
            zeros.append(low)
    return {"zeros": zeros, "positive at first": signs[0]}


def _ratio(z: float, d: int) -> float:
    """Error of two orthogonal rows over that of two independent ones."""
    return float(1 - float(gap(z, d)) / (1 - np.exp(-(z**2))) ** 2 * 2)


def _eq_27(z: float, d: int) -> float:
    """Eq. 27 with m = 2."""
    return float(1 - np.exp(-(z**2)) * z**4 / (d * (1 - np.exp(-(z**2))) ** 2))
