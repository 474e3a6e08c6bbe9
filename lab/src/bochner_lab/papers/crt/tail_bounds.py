"""CRT Theorem 4.2: exponentially small tails of bounded positive features, with independent and with orthogonal rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bochner import catalogue, extending
from bochner.approximation import Approximation
from bochner.kernels import Gaussian
from bochner.maps import GeneralizedExponential

from ..._experiment import REJUDGED, Experiment, Results, by_profile, statement
from ..._figures import legend, panels
from ..._verdicts import Finding

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class TailBounds(Experiment):
    """Exact tails at x = y = 0 with one projection, and frequencies of large errors with orthogonal rows."""

    name = "crt-theorem4.2"
    paper = "crt"
    item = "Theorem 4.2"
    claim = (
        "With A < 0 both tails of the estimate are bounded by 2 exp(-M eps^2/2 e^(N/2A) (1 - 4A)^(-d/2)), and with "
        "orthogonal rows the upper tail by exp(-M L(K + eps)), L > 0 the Legendre transform."
    )
    methods = ("gerf",)
    deviations = (
        "Independent rows: exact probabilities in place of a simulation, at M = 1, x = y = 0 and eps >= 1, where only "
        "the upper tail remains.  Orthogonal rows: frequencies in independent draws, at eps that are quantiles of the "
        "positive errors of as many other draws. " + REJUDGED
    )
    profiles = by_profile(
        smoke={
            "cases": ((1, -1023.75), (20, -0.5)),
            "grid": 200,
            "orthogonal": ((4, 4, -0.2, 0.5),),
            "draws": 200,
        },
        full={
            "cases": ((1, -0.5), (1, -1023.75), (2, -10.0), (8, -0.5), (20, -0.5), (64, -0.1)),
            "grid": 400,
            "orthogonal": ((2, 2, -0.1, 1.0), (4, 4, -0.2, 0.5), (4, 16, -0.5, 1.0), (16, 16, -0.1, 1.0)),
            "draws": 4000,
        },
    )
    seconds = by_profile(smoke=1, full=88)

    def parts(self, p: Mapping[str, Any]) -> list[str]:
        """One per dimension and constant, and one per case with orthogonal rows."""
        return [f"d={d} A={A}" for d, A in p["cases"]] + [
            f"d={d} M={m} A={A} norm={norm}" for d, m, A, norm in p["orthogonal"]
        ]

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Logarithms of tails and bounds, over eps."""
        values = {name: float(value) for name, value in (piece.split("=") for piece in part.split())}
        d, A = values["d"], values["A"]
        if "M" in values:
            return _orthogonal(int(d), int(values["M"]), A, values["norm"], p["draws"], rng)
        return _exact(d, A, p["grid"])

    @statement("With independent rows, the exact tail is at most the printed bound for every d, A and eps.")
    def as_printed(self, results: Results) -> Finding:
        """Find violations."""
        return self._bounded(results, "printed")

    @statement(
        "With independent rows, the exact tail is at most 2 exp(-2 M eps^2 e^(N/2A) (1 - 4A)^(-d)) for every d, A and "
        "eps.",
        ours=True,
    )
    def as_corrected(self, results: Results) -> Finding:
        """Find violations."""
        return self._bounded(results, "corrected")

    @statement(
        "With orthogonal rows, the frequency of errors of at least eps is nowhere above exp(-M L(K + eps)) (not beyond its "
        "95 % interval), and L is positive."
    )
    def orthogonal(self, results: Results) -> Finding:
        """Find violations."""
        true, shown = True, []
        for case, part in results.parts.items():
            if "share" in part:
                share, bound = np.array(part["share"]), np.exp(np.array(part["bound"]))
                error = np.sqrt(bound * (1 - bound) / results.parameters["draws"])
                true &= bool((share <= bound + 1.96 * error).all() and (bound < 1).all())
                shown.append(f"{case}: {float((share / bound).max()):.3f}")
        return Finding(true, f"Largest frequency over the bound, {'; '.join(shown)}.")

    def plot(self, results: Results, figure: Figure) -> None:
        """Tails and bounds."""
        shown = {
            name: part for name, part in results.parts.items() if any(v is not None for v in part.get("exact", [0]))
        }
        axes = panels(figure, list(shown), "eps", "log10 of the probability", scale="linear", columns=3)
        for ax, part in zip(axes, shown.values(), strict=True):
            if "share" in part:
                with np.errstate(divide="ignore"):
                    ax.semilogx(part["eps"], np.log10(part["share"]), "ko", markersize=3)
                ax.semilogx(part["eps"], np.array(part["bound"]) / np.log(10), "C2--")
                continue
            for k, name in enumerate(("exact", "printed", "corrected")):
                values = np.array(part[name], dtype=float) / np.log(10)
                ax.semilogx(
                    part["eps"], np.maximum(values, -20), color=f"C{k}", linestyle=("-", ":", "--")[k], label=name
                )
        legend(figure, axes[0])

    def _bounded(self, results: Results, name: str) -> Finding:
        worst = {}
        for case, part in results.parts.items():
            if name in part:
                exact, bound = (np.array(part[key], dtype=float) for key in ("exact", name))
                worst[case] = float(np.max(np.where(np.isnan(exact), -np.inf, exact) - bound))  # none: it cannot happen
        text = "; ".join(f"{case}: {np.exp(min(value, 50)):.3g}" for case, value in worst.items())
        return Finding(max(worst.values()) <= 0, f"Largest probability over the bound, {text}.")


def _exact(d: float, A: float, grid: int) -> dict[str, Any]:
    """The tail of (1 - 4A)^(d/2) exp(2A |w|^2), the estimate at x = y = 0, and both bounds."""
    from scipy.stats import chi2

    top = d / 2 * np.log(1 - 4 * A)  # the log of the largest value of the estimate
    eps = np.expm1(np.linspace(np.log(2), max(top, np.log(2) + 1e-9) * (1 - 1e-9), grid))
    return {
        "eps": eps,
        "exact": chi2(d).logcdf((top - np.log1p(eps)) / (-2 * A)),
        "printed": np.log(2) - eps**2 / 2 * (1 - 4 * A) ** (-d / 2),
        "corrected": np.log(2) - 2 * eps**2 * (1 - 4 * A) ** -d,
    }


def _orthogonal(d: int, m: int, A: float, norm: float, draws: int, rng: np.random.Generator) -> dict[str, Any]:
    """Frequencies of errors at a fixed pair of points of that norm, and the bound."""
    X, Y = norm * (z := np.random.default_rng(0).standard_normal((2, 1, d))) / np.linalg.norm(z, axis=-1)[..., None]
    kernel = Gaussian()
    plan = Approximation(kernel, GeneralizedExponential(A, 1), catalogue.projection("orthogonal"), m)
    errors = np.array([plan.draw(d, rng).gram(X, Y).item() for _ in range(2 * draws)]) - kernel(X, Y).item()
    above = errors[:draws][errors[:draws] > 0]
    eps = np.quantile(above, [0.1, 0.4, 0.7, 0.9, 0.97, 0.99])
    bound = extending.log_orthogonal_tail_bound(extending.Pairs.of(X[0], Y[0]), eps, m, A, d)
    return {"eps": eps, "share": [(errors[draws:] >= e).mean() for e in eps], "bound": bound}
