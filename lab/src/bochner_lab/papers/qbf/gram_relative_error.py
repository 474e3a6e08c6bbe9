"""QBF Figure 1: relative Frobenius errors of three kernels on five data sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._estimates import Estimate, share
from ..._experiment import Experiment, Finding, Results, by_profile, statement
from ..._figures import curve, legend, panels
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
        " of the points, beyond two standard errors."
    )
    def arc_cosine(self, results: Results) -> Finding:
        """Count the points."""
        true = []
        for data in results.parameters["data"]:
            for kernel in KERNELS[1:]:
                if (data, kernel) != ("Powerplant", "arc-cosine-0"):
                    b, others = self._split(results, data, kernel)
                    true.append(np.all([b.below(other) for other in others.values()], axis=0))
        return Finding(bool(np.concatenate(true).mean() > 0.5), f"It is at {share(np.concatenate(true))} points.")

    @statement(
        "For the Gaussian kernel B is within 25% of the better of ROM and Gort at every point, or within two standard"
        " errors."
    )
    def gaussian(self, results: Results) -> Finding:
        """The range of the ratios."""
        true, ratios = [], []
        for data in results.parameters["data"]:
            b, others = self._split(results, data, "gaussian")
            near = [others[name] for name in ("ROM", "Gort") if name in others]
            best = min(near, key=lambda found: float(found.mean.mean()))
            ratio = b.mean / best.mean
            true.append(((ratio > 0.8) & (ratio < 1.25)) | ~(b.below(best) | best.below(b)))
            ratios.append(ratio)
        points, all_ratios = np.concatenate(true), np.concatenate(ratios)
        shown = f"from {all_ratios.min():.2f} to {all_ratios.max():.2f}"
        return Finding(bool(points.all()), f"True at {share(points)} points; ratios {shown}.")

    @statement("B has a lower error than G for every kernel, data set and n, beyond two standard errors.")
    def below_independent(self, results: Results) -> Finding:
        """Count the points."""
        true = []
        for data in results.parameters["data"]:
            for kernel in KERNELS:
                b, others = self._split(results, data, kernel)
                true.append(b.below(others["G"]))
        points = np.concatenate(true)
        return Finding(bool(points.all()), f"It has at {share(points)} points.")

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
