"""Where dense exponential features are worse than optimal positive ones, and why: constants of the mean for single pairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bochner import catalogue
from bochner.approximation import Approximation
from bochner.maps import DenseExponential

from ..._estimates import Estimate
from ..._experiment import REJUDGED, Experiment, Results, by_profile, statement
from ..._figures import legend, panels
from ..._verdicts import Finding, interval, not_worse, together
from .mechanism_grid import DENSE, MEASURES, PLAIN, kernel_of_regime, points

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KNOWN = {"boston": "boston", "cpu_act": "cpu_act", "parkinsons": "parkinsons"}
OTHERS = {
    "breast-cancer": "breast-cancer",
    "car": "car",
    "cmc": "cmc",
    "diabetes": "diabetes",
    "letter": "letter",
    "nursery": "nursery",
    "usps": "usps",
    "wine-white": "wine-quality-white",
}
CLOSED_FORM = "closed form"
SMALLER = "dense, 3/4 of the constants"
METHODS = (DENSE, SMALLER, PLAIN)
QUARTERS = 4


class DenseConstants(Experiment):
    """Errors by the length of x + y, with the best constants for the mean logarithm and with smaller ones."""

    name = "ours-dense-constants"
    paper = "ours"
    item = "Constants of dense exponential features"
    claim = (
        "Dense features lose to optimal positive ones on pairs near the centre and win on pairs far from it; with three "
        "quarters of their constants they are never worse, neither in the median nor in the root mean square."
    )
    data = (*(KNOWN | OTHERS).values(), "mnist")
    methods = METHODS
    deviations = (
        "The factor 3/4 was found on boston, cpu_act and parkinsons, where `ours-grid` has dense features worse in the "
        "median; the statements on it are about eight other data sets.  Rows, kernels and draws are as in `ours-grid`. "
        + REJUDGED
    )
    profiles = by_profile(
        smoke={
            "known": ("boston",),
            "others": ("diabetes",),
            "regimes": ("gaussian 2.0",),
            "fitted": 200,
            "points": 30,
            "width": 48,
            "draws": 10,
        },
        full={
            "known": tuple(KNOWN),
            "others": tuple(OTHERS),
            "regimes": ("gaussian 0.5", "gaussian 1.0", "gaussian 2.0", "softmax 0.5", "softmax 1.0", "softmax 2.0"),
            "fitted": 2000,
            "points": 60,
            "width": 256,
            "draws": 100,
        },
    )
    seconds = by_profile(smoke=1, full=83)

    def parts(self, p: Mapping[str, Any]) -> list[str]:
        """The widest regime of data sets where dense features are worse, all regimes of the others, and a closed form."""
        known = [f"{data}, gaussian 2.0" for data in p["known"]]
        return [*known, *(f"{data}, {regime}" for data in p["others"] for regime in p["regimes"]), CLOSED_FORM]

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Errors in the order of `MEASURES`, then by quarter of |x + y|, means over the draws."""
        if part == CLOSED_FORM:
            return _closed_form()
        data, regime = part.split(", ")
        fitted, X, Y = points((KNOWN | OTHERS)[data], p)
        kernel = kernel_of_regime(regime, fitted)
        exact, first, simplex = kernel(X, Y), int(rng.integers(2**31)), catalogue.projection("simplex")
        plans = {
            name: Approximation(kernel, catalogue.map(name), simplex, p["width"]).plan(fitted)
            for name in (DENSE, PLAIN)
        }
        dense = plans[DENSE].map
        assert isinstance(dense, DenseExponential) and dense.A is not None
        plans[SMALLER] = replace(plans[DENSE], map=replace(dense, A=tuple(0.75 * A for A in dense.A)))
        lengths = ((X[:, None] + Y - 2 * fitted.mean(0)) ** 2).sum(-1)
        quarter = np.digitize(lengths, np.quantile(lengths, [0.25, 0.5, 0.75]))
        by_draw: dict[str, np.ndarray] = {}
        for name in METHODS:
            squares = [(plans[name].draw(X.shape[1], first + k).gram(X, Y) / exact - 1) ** 2 for k in range(p["draws"])]
            by_draw[name] = np.sqrt(
                [[np.median(e), e.mean(), *(e[quarter == q].mean() for q in range(QUARTERS))] for e in squares]
            )
        return {
            name: {
                "errors": values.mean(axis=0),
                "difference": Estimate.of(values[:, :2] - by_draw[PLAIN][:, :2]).as_numbers(),
            }
            for name, values in by_draw.items()
        }

    @statement(
        "On boston, cpu_act and parkinsons, dense features have a higher error than optimal positive ones on the quarter "
        "of pairs with the smallest |x + y|, and a lower one on the quarter with the largest, in the mean over the three."
    )
    def where(self, results: Results) -> Finding:
        """Compare the quarters."""
        ratios = {
            name: np.divide(part[DENSE]["errors"], part[PLAIN]["errors"])[2:]
            for name, part in results.parts.items()
            if name.split(", ")[0] in results.parameters["known"] and name != CLOSED_FORM
        }
        mean = np.exp(np.mean([np.log(ratio) for ratio in ratios.values()], axis=0))
        shown = "; ".join(f"{name}: {', '.join(f'{r:.2f}' for r in ratio)}" for name, ratio in ratios.items())
        return Finding(bool(mean[0] > 1 > mean[-1]), f"Ratios by quarter, {shown}.")

    @statement(
        "On the other data sets, dense features with 3/4 of their constants have a median relative error that is nowhere "
        "above that of optimal positive features by more than a tenth (95 % intervals of paired differences)."
    )
    def smaller_by_median(self, results: Results) -> Finding:
        """Compare them."""
        return self._compare(results, SMALLER, "median")

    @statement(
        "On the other data sets, dense features with 3/4 of their constants have a root mean square relative error that is "
        "nowhere above that of optimal positive features by more than a tenth (95 % intervals of paired differences)."
    )
    def smaller_by_mean_square(self, results: Results) -> Finding:
        """Compare them."""
        return self._compare(results, SMALLER, "root mean square")

    @statement(
        "On the other data sets, dense features with all of their constants, too, are nowhere worse by more than a tenth, "
        "in both measures."
    )
    def as_they_are(self, results: Results) -> Finding:
        """Compare them."""
        found = [self._compare(results, DENSE, measure) for measure in MEASURES]
        return together(found, " ".join(one.evidence for one in found))

    @statement(
        "For the Gaussian kernel on cpu_act, at the median lengthscale, dense features with independent rows have at most "
        "a twentieth of the relative Frobenius error of optimal positive ones, by closed form."
    )
    def outliers(self, results: Results) -> Finding:
        """Compare the two."""
        dense, plain = (results.parts[CLOSED_FORM]["cpu_act"][name] for name in (DENSE, PLAIN))
        return Finding(20 * dense <= plain, f"{dense:.3g} against {plain:.3g}, most of both from a few rows far out.")

    @statement(
        "For the softmax kernel on MNIST with exponents of deviation 2, where optimal positive features collapse to zero "
        "and a simulation misses their rare large values, dense features with independent rows have a lower root mean "
        "square relative error by closed form."
    )
    def rare_values(self, results: Results) -> Finding:
        """Compare the two."""
        dense, plain = (results.parts[CLOSED_FORM]["mnist"][name] for name in (DENSE, PLAIN))
        return Finding(dense < plain, f"{dense:.3g} against {plain:.3g}.")

    def plot(self, results: Results, figure: Figure) -> None:
        """Ratios of the errors to those of optimal positive features, by regime and quarter; a line per data set."""
        parts = {name: part for name, part in results.parts.items() if name != CLOSED_FORM}
        regimes = results.parameters["regimes"]
        axes = panels(figure, regimes, "quarter of |x + y|", "error over that of optimal positive", columns=3)
        for ax, regime in zip(axes, regimes, strict=True):
            for k, method in enumerate((DENSE, SMALLER)):
                lines = [part for name, part in parts.items() if name.endswith(regime)]
                for i, part in enumerate(lines):
                    ratio = np.divide(part[method]["errors"], part[PLAIN]["errors"])[2:]
                    label = None if i else method
                    ax.plot(range(1, QUARTERS + 1), ratio, color=f"C{k}", linestyle=("-", "--")[k], label=label, lw=1)
            ax.axhline(1, color="black", linewidth=0.8)
            ax.set_xticks(range(1, QUARTERS + 1))
        legend(figure, axes[0])

    def _compare(self, results: Results, one: str, measure: str) -> Finding:
        worse, ratios, gains, k = [], [], [], MEASURES.index(measure)
        for name, part in results.parts.items():
            if name.split(", ")[0] in results.parameters["others"]:
                ours, plain = (part[method]["errors"][k] for method in (one, PLAIN))
                gap = Estimate.read(part[one]["difference"])[k]
                ratios.append(ours / plain)
                gains.append(Estimate(-gap.mean / plain, gap.error / plain))
                if interval(gains[-1])[1] < 0:
                    worse.append(f"{name} ({ours:.3g} against {plain:.3g})")
        text = f"{measure.capitalize()}: ratios from {min(ratios):.2g} to {max(ratios):.3f}"
        shown = f"{text}; worse in {len(worse)} of {len(ratios)}: {'; '.join(worse) or 'nowhere'}."
        return not_worse(Estimate.stack(gains), 0.1, shown)


def _closed_form() -> dict[str, dict[str, float]]:
    """Errors with 256 independent rows: Frobenius on cpu_act (600 queries and keys), of the entries on MNIST (60)."""
    found: dict[str, dict[str, float]] = {}
    for data, regime, n in (("cpu_act", "gaussian 1.0", 600), ("mnist", "softmax 2.0", 60)):
        fitted, X, Y = points(data, {"points": n, "fitted": 2000})
        kernel = kernel_of_regime(regime, fitted)
        weights = np.square(np.linalg.norm(kernel(X, Y)) if data == "cpu_act" else n * kernel(X, Y))
        found[data] = {}
        for name in (DENSE, PLAIN):
            spec = Approximation(kernel, catalogue.map(name), catalogue.projection("iid"), 256)
            found[data][name] = float(np.sqrt((spec.plan(fitted).mse(X, Y) / weights).sum()))
    return found
