"""QBF Figure 1: relative Frobenius errors of three kernels on five data sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._estimates import Estimate, share
from ..._experiment import Experiment, Results, by_profile, statement
from ..._figures import curve, legend, panels
from ..._verdicts import Finding, equal, interval, mostly_superior, superior
from ._mechanisms import DATA, KERNELS, METHODS, kernel_of, methods_for, points, specification

if TYPE_CHECKING:
    from matplotlib.figure import Figure

D = {"Powerplant": 4, "LETTER": 16, "USPS": 256, "MNIST": 784, "LEUKEMIA": 7129}


class GramRelativeError(Experiment):
    """Random subsets of the data, one draw of each method per run."""

    name = "qbf-fig1"
    paper = "qbf"
    item = "Figure 1"
    claim = (
        "Quadrature features approximate arc-cosine kernels best on most data sets, and almost coincide with ROM and "
        "Gort for the Gaussian."
    )
    data = tuple(DATA.values())
    methods = tuple(METHODS)
    deviations = (
        "Columns are standardised, which the paper does not say. CIFAR100 is not here. The paper leaves out QMC and "
        "GQ on LEUKEMIA; here Gort too, whose exact rotation of 7129 dimensions takes minutes. Fewer runs on large "
        "data, and n = 1 on LEUKEMIA, where W of G has gigabytes."
    )
    profiles = by_profile(
        smoke={"data": {"Powerplant": (100, 8, 3), "LETTER": (100, 8, 3)}, "n": (1, 3)},
        full={
            "data": {
                "Powerplant": (550, 60, 5),
                "LETTER": (550, 60, 5),
                "USPS": (550, 15, 5),
                "MNIST": (550, 5, 5),
                "LEUKEMIA": (10, 5, 1),
            },
            "n": (1, 2, 3, 4, 5),
        },
    )
    seconds = by_profile(smoke=3, full=300)

    def parts(self, p: Mapping[str, Any]) -> list[str]:
        """One per data set, kernel and method."""
        return [f"{data} {kernel} {m}" for data in p["data"] for kernel in KERNELS for m in methods_for(D[data])]

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Means over runs, by number of rules n."""
        data, kernel_name, method = part.split()
        samples, runs, most = p["data"][data]
        X = points(data)[0]
        d = X.shape[1]
        kernel = kernel_of(kernel_name, d)
        specs = [specification(method, kernel, d, n) for n in p["n"] if n <= most]
        found = []
        for _ in range(runs):
            rows = X[rng.choice(len(X), samples, replace=False)]
            exact = kernel(rows)
            errors = [np.linalg.norm(spec.draw(d, rng).gram(rows) - exact) for spec in specs]
            found.append(np.array(errors) / np.linalg.norm(exact))
        return Estimate.of(found).as_numbers()

    @statement(
        "For the two arc-cosine kernels, without arc-cosine 0 on Powerplant, B has the lowest error at more than half"
        " of the points (95 % intervals)."
    )
    def arc_cosine(self, results: Results) -> Finding:
        """Count the points."""
        gains = []
        for data in results.parameters["data"]:
            for kernel in KERNELS[1:]:
                if (data, kernel) != ("Powerplant", "arc-cosine-0"):
                    b, others = self._split(results, data, kernel)
                    for k in range(b.mean.size):
                        gains.append(min((one[k].over(b[k]) for one in others.values()), key=_lower_end))
        gain = Estimate.stack(gains)
        return mostly_superior(gain, f"It has at {share(interval(gain)[0] > 0)} points.")

    @statement(
        "For the Gaussian kernel the error of B is within a factor of 1.25 of that of the better of ROM and Gort at every "
        "point (95 % intervals)."
    )
    def gaussian(self, results: Results) -> Finding:
        """The range of the ratios."""
        ratios = []
        for data in results.parameters["data"]:
            b, others = self._split(results, data, "gaussian")
            near = [others[name] for name in ("ROM", "Gort") if name in others]
            best = min(near, key=lambda found: float(found.mean.mean()))
            ratios.append(b.log().over(best.log()))
        ratio = Estimate.stack(ratios)
        shown = f"from {np.exp(ratio.mean.min()):.2f} to {np.exp(ratio.mean.max()):.2f}"
        return equal(ratio, float(np.log(1.25)), f"Ratios {shown} at {ratio.mean.size} points.")

    @statement("B has a lower error than G for every kernel, data set and n (95 % intervals).")
    def below_independent(self, results: Results) -> Finding:
        """Count the points."""
        splits = [self._split(results, data, kernel) for data in results.parameters["data"] for kernel in KERNELS]
        gain = Estimate.stack(others["G"].over(b) for b, others in splits)
        low, high = interval(gain)
        return superior(gain, f"Lower at {share(low > 0)} points, higher at {share(high < 0)}.")

    def plot(self, results: Results, figure: Figure) -> None:
        """Kernels by data sets."""
        data = list(results.parameters["data"])
        axes = panels(figure, [f"{k}, {x}" for k in KERNELS for x in data], "n", "relative error", columns=len(data))
        for i, (kernel, name) in enumerate((kernel, name) for kernel in KERNELS for name in data):
            for k, method in enumerate(METHODS):
                if f"{name} {kernel} {method}" in results.parts:
                    found = Estimate.read(results.parts[f"{name} {kernel} {method}"])
                    curve(axes[i], results.parameters["n"][: found.mean.size], found, method, k)
        legend(figure, axes[0])

    def _split(self, results: Results, data: str, kernel: str) -> tuple[Estimate, dict[str, Estimate]]:
        """Errors of B, and of the others."""
        found = {m: Estimate.read(results.parts[f"{data} {kernel} {m}"]) for m in methods_for(D[data])}
        return found.pop("B"), found


def _lower_end(gain: Estimate) -> float:
    return float(interval(gain)[0])
