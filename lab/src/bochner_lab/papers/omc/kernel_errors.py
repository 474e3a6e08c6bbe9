"""OMC Figures 3, 4 and 5: errors of the Gaussian and the dot-product kernel, and the FLOPs to reach them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bochner import catalogue
from bochner.approximation import Approximation
from bochner.kernels import Gaussian

from ..._estimates import Estimate, share
from ..._experiment import Experiment, Finding, Results, by_profile, dataset, statement
from ..._figures import curve, legend, panels
from ._matrices import APPROXIMATE, METHODS, flops, rows_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DATA = {"boston": "boston", "cpu": "cpu_act", "wine": "wine-quality-red", "parkinsons": "parkinsons"}
MEASURES = ("gaussian", "dot product", "frobenius")


class KernelErrors(Experiment):
    """Seven estimators on four data sets, at numbers of rows that are multiples of the padded dimension."""

    name = "omc-fig3"
    paper = "omc"
    item = "Figures 3, 4 and 5"
    claim = (
        "All orthogonal methods have lower errors than independent rows, approximate ones are as accurate as exact "
        "ones, and they need fewer FLOPs."
    )
    data = tuple(DATA.values())
    methods = METHODS
    deviations = (
        "Columns are standardised, the lengthscale is the median distance, and the four data sets are those of the "
        "main text; the settings of the appendix are not available. FLOPs count additions and multiplications of the "
        "projection."
    )
    profiles = by_profile(
        smoke={"data": ("boston", "wine"), "points": 40, "blocks": (1, 2), "draws": 30},
        full={"data": tuple(DATA), "points": 100, "blocks": (1, 2, 3, 4, 6, 8), "draws": 200},
    )
    seconds = by_profile(smoke=2, full=150)

    def parts(self, p: Mapping[str, Any]) -> list[str]:
        """One per data set and method."""
        return [f"{data} {method}" for data in p["data"] for method in METHODS]

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Mean squared errors over pairs of points, and relative Frobenius errors, by number of blocks."""
        data, method = part.split()
        X, lengthscale = self._points(data, p["points"])
        d = X.shape[1]
        padded = 1 << (d - 1).bit_length()
        pairs = np.triu_indices(len(X), 1)
        kernels = {"gaussian": Gaussian(lengthscale), "dot product": catalogue.kernel("linear")}
        exact = {name: kernel(X) for name, kernel in kernels.items()}
        found: dict[str, list[Estimate]] = {name: [] for name in MEASURES}
        for blocks in p["blocks"]:
            for name, kernel in kernels.items():
                radii = "kernel" if name == "gaussian" else "fixed"
                spec = Approximation(kernel, projection=rows_of(method, radii), n_projections=blocks * padded)
                errors = np.array([spec.draw(d, rng).gram(X) - exact[name] for _ in range(p["draws"])])
                found[name].append(Estimate.of((errors[:, *pairs] ** 2).mean(axis=1)))
                if name == "gaussian":
                    relative = np.linalg.norm(errors, axis=(1, 2)) / np.linalg.norm(exact[name])
                    found["frobenius"].append(Estimate.of(relative))
        numbers = {name: {"mean": [e.mean for e in es], "error": [e.error for e in es]} for name, es in found.items()}
        return numbers | {"flops": [blocks * flops(method, padded) for blocks in p["blocks"]]}

    @staticmethod
    def _points(data: str, n: int) -> tuple[np.ndarray, float]:
        X = np.asarray(dataset(DATA[data]).X, dtype=np.float64)
        X = X[:, X.std(0) > 0]
        X = (X - X.mean(0)) / X.std(0)
        X = X[np.random.default_rng(0).choice(len(X), n, replace=False)]
        distances = np.sqrt(((X[:, None] - X) ** 2).sum(-1))[np.triu_indices(n, 1)]
        return X, float(np.median(distances))

    @statement(
        "Figure 3: every orthogonal method has a lower Gaussian error than IID at every point, beyond two standard "
        "errors."
    )
    def below_independent(self, results: Results) -> Finding:
        """Count the points."""
        return self._against_independent(results, "gaussian")

    @statement("Figure 5: the same for the relative Frobenius error.")
    def frobenius(self, results: Results) -> Finding:
        """Count the points."""
        return self._against_independent(results, "frobenius")

    @statement(
        "Every approximate method has a Gaussian error at most 10% above that of ORF, or within two standard errors, "
        "at every point."
    )
    def as_good_as_exact(self, results: Results) -> Finding:
        """Count the points."""
        true, worst = [], {}
        for method in APPROXIMATE:
            ratios = []
            for data in results.parameters["data"]:
                one, orf = (
                    self._errors(results, data, method, "gaussian"),
                    self._errors(results, data, "ORF", "gaussian"),
                )
                true.append((one.mean <= 1.1 * orf.mean) | ~orf.below(one))
                ratios.append(one.mean / orf.mean)
            worst[method] = np.max(ratios)
        shown = ", ".join(f"{name} {value:.2f}" for name, value in worst.items())
        return Finding(bool(np.all(true)), f"True at {share(true)} points; largest ratios {shown}.")

    @statement(
        "Figure 4: every approximate method reaches the error that ORF has at the most rows with fewer FLOPs than "
        "ORF, on every data set."
    )
    def fewer_flops(self, results: Results) -> Finding:
        """Rows grow as one over the error."""
        true, shown = [], []
        for data in results.parameters["data"]:
            target = self._errors(results, data, "ORF", "gaussian").mean[-1]
            cost = results.parts[f"{data} ORF"]["flops"][-1]
            ratios = {m: self._flops_to(results, data, m, target) / cost for m in APPROXIMATE}
            true += [ratio < 1 for ratio in ratios.values()]
            shown.append(f"{data}: " + ", ".join(f"{m} {ratio:.2f}" for m, ratio in ratios.items()))
        return Finding(all(true), "FLOPs over those of ORF, " + "; ".join(shown) + ".")

    @statement(
        "Every orthogonal method has a lower dot-product error than IID at every point, beyond two standard errors."
    )
    def dot_products(self, results: Results) -> Finding:
        """Count the points."""
        return self._against_independent(results, "dot product")

    def plot(self, results: Results, figure: Figure) -> None:
        """Three rows: Gaussian error by rows, by FLOPs, and Frobenius error."""
        data, blocks = results.parameters["data"], results.parameters["blocks"]
        titles = [
            f"{name}: {kind}" for kind in ("MSE by blocks", "MSE by FLOPs", "Frobenius by blocks") for name in data
        ]
        axes = panels(figure, titles, "blocks of d rows, or FLOPs", "error", columns=len(data))
        for k, method in enumerate(METHODS):
            for i, name in enumerate(data):
                gaussian, norm = (self._errors(results, name, method, kind) for kind in ("gaussian", "frobenius"))
                curve(axes[i], blocks, gaussian, method, k)
                curve(axes[len(data) + i], results.parts[f"{name} {method}"]["flops"], gaussian, method, k)
                curve(axes[2 * len(data) + i], blocks, norm, method, k)
                axes[len(data) + i].set_xscale("log")
        legend(figure, axes[0])

    def _errors(self, results: Results, data: str, method: str, measure: str) -> Estimate:
        return Estimate.read(results.parts[f"{data} {method}"][measure])

    def _against_independent(self, results: Results, measure: str) -> Finding:
        counts = {}
        for method in METHODS[1:]:
            below = [
                self._errors(results, data, method, measure).below(self._errors(results, data, "IID", measure))
                for data in results.parameters["data"]
            ]
            counts[method] = np.array(below)
        text = ", ".join(f"{name} {share(below)}" for name, below in counts.items())
        return Finding(all(below.all() for below in counts.values()), text + ".")

    def _flops_to(self, results: Results, data: str, method: str, target: float) -> float:
        """FLOPs to reach an error, which falls as one over the number of blocks beyond the last one measured."""
        error, cost = self._errors(results, data, method, "gaussian").mean, results.parts[f"{data} {method}"]["flops"]
        return float(cost[-1] * error[-1] / target)
