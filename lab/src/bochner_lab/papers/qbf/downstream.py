"""QBF Figure 2: accuracy and R^2 of linear support vector machines on the features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._estimates import Estimate, share
from ..._experiment import Experiment, Results, by_profile, statement
from ..._figures import curve, legend, panels
from ..._verdicts import Finding, interval, mostly_superior, not_worse
from ._mechanisms import KERNELS, METHODS, kernel_of, points, specification

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TASKS = {"Powerplant": "regression", "LETTER": "classification", "USPS": "classification"}


class Downstream(Experiment):
    """Random halves of a part of each data set, one draw of each method per run."""

    name = "qbf-fig2"
    paper = "qbf"
    item = "Figure 2"
    claim = "Quadrature features deliver comparable and often superior accuracy or R^2 on the downstream task."
    data = ("ccpp", "letter", "usps")
    methods = tuple(METHODS)
    deviations = "A random part of each data set in place of the whole; LinearSVC and, for the regression, ridge."
    profiles = by_profile(
        smoke={"data": ("Powerplant", "LETTER"), "rows": 300, "n": (1, 3), "runs": 3},
        full={"data": tuple(TASKS), "rows": 1500, "n": (1, 2, 3), "runs": 6},
    )
    seconds = by_profile(smoke=4, full=400)

    def parts(self, p: Mapping[str, Any]) -> list[str]:
        """One per data set, kernel and method."""
        return [f"{data} {kernel} {method}" for data in p["data"] for kernel in KERNELS for method in METHODS]

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Scores on the second half, over runs, by number of rules."""
        data, kernel, method = part.split()
        X, y = points(data)
        d = X.shape[1]
        splits = np.random.default_rng(0)  # the same rows for every method
        scores = []
        for _ in range(p["runs"]):
            rows = splits.choice(len(X), p["rows"], replace=False)
            score = []
            for n in p["n"]:
                Z = specification(method, kernel_of(kernel, d), d, n).draw(d, rng).queries(X[rows])
                score.append(_score(TASKS[data], Z, y[rows]))
            scores.append(score)
        return Estimate.of(scores).as_numbers()

    @statement("B is nowhere more than 0.01 below the best of the others (95 % intervals).")
    def comparable(self, results: Results) -> Finding:
        """Count the points."""
        gains = []
        for b, others in self._cases(results):
            best = others[int(np.argmax([other.mean.mean() for other in others]))]
            gains.append(b.over(best))
        gain = Estimate.stack(gains)
        return not_worse(gain, 0.01, f"Within 0.01 at {share(interval(gain)[0] > -0.01)} points.")

    @statement("B is better than G at more than half of the points (95 % intervals).")
    def superior(self, results: Results) -> Finding:
        """Count the points."""
        gain = Estimate.stack(b.over(others[0]) for b, others in self._cases(results))
        low, high = interval(gain)
        return mostly_superior(gain, f"Better at {share(low > 0)} points, worse at {share(high < 0)}.")

    def plot(self, results: Results, figure: Figure) -> None:
        """Kernels by data sets."""
        data, n = results.parameters["data"], results.parameters["n"]
        cases = [(kernel, name) for kernel in KERNELS for name in data]
        titles = [f"{kernel}, {name}" for kernel, name in cases]
        axes = panels(figure, titles, "n", "accuracy or R^2", columns=len(data), scale="linear")
        for ax, (kernel, name) in zip(axes, cases, strict=True):
            for k, method in enumerate(METHODS):
                curve(ax, n, Estimate.read(results.parts[f"{name} {kernel} {method}"]), method, k)
        legend(figure, axes[0])

    def _cases(self, results: Results) -> list[tuple[Estimate, list[Estimate]]]:
        """Scores of B, and of the others with G first, by data set and kernel."""
        found = []
        for data in results.parameters["data"]:
            for kernel in KERNELS:
                scores = {m: Estimate.read(results.parts[f"{data} {kernel} {m}"]) for m in METHODS}
                found.append((scores.pop("B"), list(scores.values())))
        return found


def _score(task: str, Z: np.ndarray, y: np.ndarray) -> float:
    """Accuracy or R^2 on the second half of the rows of a model fitted on the first."""
    import warnings

    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import Ridge
    from sklearn.svm import LinearSVC

    half = len(Z) // 2
    model = Ridge(alpha=1e-2) if task == "regression" else LinearSVC(C=1.0, max_iter=300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # as far as so many iterations go, for every method alike
        model.fit(Z[:half], y[:half])
    return float(model.score(Z[half:], y[half:]))
