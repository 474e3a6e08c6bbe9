"""CRT Theorem 4.3: the number of projections for which attention is approximated in a whole ball."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bochner import extending

from ..._estimates import Estimate, power_law, share
from ..._experiment import Experiment, Results, by_profile, statement
from ..._figures import curve, legend, panels
from ..._verdicts import Finding

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FRACTIONS = (1 / 64, 1 / 16, 1 / 4, 1)


class UniformConvergence(Experiment):
    """Largest errors over many queries and keys of a ball, with as many projections as the theorem asks for."""

    name = "crt-theorem4.3"
    paper = "crt"
    item = "Theorem 4.3"
    claim = (
        "GERFs with A < 0 approximate the attention matrix of all queries and keys in a ball to eps if "
        "M = Omega((1 - 4A)^(d/2) Gamma d/eps^2 log(gamma rho/eps))."
    )
    methods = ("gerf",)
    deviations = (
        "The constant of Omega is taken to be one, and half of the draws as the constant probability.  The largest "
        "error is over random queries and keys on the sphere, with each query among the keys, so it is at most the "
        "supremum.  The explicit version is `extending.uniform_projections`, with (1 - 4A)^d."
    )
    profiles = by_profile(
        smoke={"cases": ((2, 1.0, -0.5, 0.5),), "points": 20, "draws": 5},
        full={
            "cases": (
                (1, 1.0, -1.0, 0.5),
                (2, 1.0, -0.5, 0.5),
                (2, 0.5, -0.25, 0.2),
                (3, 1.0, -0.5, 0.5),
                (4, 1.0, -0.25, 1.0),
                (2, 1.0, -4.0, 1.0),
            ),
            "points": 60,
            "draws": 40,
        },
    )
    seconds = by_profile(smoke=1, full=16)

    def parts(self, p: Mapping[str, Any]) -> list[str]:
        """One per case."""
        return [f"d={d} R={R} A={A} eps={eps}" for d, R, A, eps in p["cases"]]

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Largest errors of every draw, by number of projections: the printed one, parts of it, and the explicit one."""
        d, R, A, eps = (float(piece.partition("=")[2]) for piece in part.split())
        printed, explicit = _printed(d, R, A, eps), float(extending.uniform_projections(eps, R, A, int(d)))
        points = np.random.default_rng(0).standard_normal((p["points"], int(d)))
        points *= R * d**-0.25 / np.linalg.norm(points, axis=1, keepdims=True)
        counts = [max(int(fraction * printed), 2) for fraction in FRACTIONS]
        errors = [[_largest_error(points, A, m, rng) for _ in range(p["draws"])] for m in (*counts, int(explicit))]
        return {"counts": counts, "printed": printed, "explicit": explicit, "errors": errors}

    @statement(
        "With M as printed and a constant of one, the largest error is at most eps in at least half of the draws."
    )
    def as_printed(self, results: Results) -> Finding:
        """Count the draws."""
        return self._within(results, len(FRACTIONS) - 1, "printed")

    @statement(
        "With the explicit number of projections, the largest error is at most eps in at least half of the draws.",
        ours=True,
    )
    def explicit(self, results: Results) -> Finding:
        """Count the draws."""
        return self._within(results, len(FRACTIONS), "explicit")

    @statement("The mean of the largest error falls with an exponent of M between -0.6 and -0.4.")
    def rate(self, results: Results) -> Finding:
        """Fit exponents."""
        found = [
            power_law(part["counts"], np.mean(part["errors"][: len(FRACTIONS)], axis=1))
            for part in results.parts.values()
        ]
        exponents = np.array([one.mean for one in found])
        return Finding(bool((np.abs(exponents + 0.5) <= 0.1).all()), f"{exponents.min():.3f} to {exponents.max():.3f}.")

    @statement(
        "The square of the largest product of features is at most (1 - 4A)^(d/2) Gamma, the factor of the printed M."
    )
    def supremum(self, results: Results) -> Finding:
        """Compare them by case."""
        logs = {}
        for case in results.parts:
            d, R, A, _ = (float(piece.partition("=")[2]) for piece in case.split())
            logs[case] = d / 2 * np.log1p(-4 * A) + R**2 / np.sqrt(d) * (2 - 1 / A + 3 / A)
        text = "; ".join(f"{case}: {np.exp(value):.3g}" for case, value in logs.items())
        return Finding(max(logs.values()) <= 0, f"Squares over that factor, {text}.")

    def plot(self, results: Results, figure: Figure) -> None:
        """Largest errors over the number of projections."""
        axes = panels(figure, list(results.parts), "projections", "largest error", columns=3)
        for ax, (case, part) in zip(axes, results.parts.items(), strict=True):
            curve(ax, [*part["counts"], part["explicit"]], Estimate.of(np.array(part["errors"]).T), "largest error", 0)
            ax.axhline(float(case.partition("eps=")[2]), color="black", linewidth=0.8, label="eps")
            ax.axvline(part["printed"], color="C1", linestyle=":", label="printed M")
            ax.axvline(part["explicit"], color="C2", linestyle="--", label="explicit M")
            ax.set_xscale("log")
        legend(figure, axes[0])

    def _within(self, results: Results, k: int, key: str) -> Finding:
        shares, counts = [], []
        for case, part in results.parts.items():
            shares.append(np.array(part["errors"][k]) <= float(case.partition("eps=")[2]))
            counts.append(f"{part[key]:.3g}")
        true = all(one.mean() >= 0.5 for one in shares)
        return Finding(true, f"M = {', '.join(counts)}: in {', '.join(share(one) for one in shares)} draws.")


def _printed(d: float, R: float, A: float, eps: float) -> float:
    """The number of projections of the theorem, with a constant of one."""
    log_gamma_capital = -3 * R**2 / (np.sqrt(d) * A)
    log_gamma = d / 2 * np.log1p(-4 * A) + (np.log(4 * (R**2 / np.sqrt(d) + d**2)) + log_gamma_capital) / 2
    rho = np.sqrt(2) * R * d**-0.25
    factor = np.exp(d / 2 * np.log1p(-4 * A) + log_gamma_capital) * d / eps**2
    return float(factor * (log_gamma + np.log(rho / eps)))


def _largest_error(points: np.ndarray, A: float, m: int, rng: np.random.Generator) -> float:
    """Largest error of the softmax kernel between all points by m independent rows, drawn in blocks to save memory."""
    d, B, total = points.shape[1], np.sqrt(1 - 4 * A), np.zeros((len(points), len(points)))
    for start in range(0, m, 20_000):
        w = rng.standard_normal((min(20_000, m - start), d))
        features = np.exp(
            d / 4 * np.log1p(-4 * A) + A * (w**2).sum(1) + B * points @ w.T - (points**2).sum(1)[:, None] / 2
        )
        total += features @ features.T
    return float(np.abs(total / m - np.exp(points @ points.T)).max())
