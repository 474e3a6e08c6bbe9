"""Every map with every coupling at equal width: which combination is best in which regime."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import catalogue
from ...kernels import Gaussian
from .._estimates import Estimate
from .._experiment import Experiment, Finding, Results, by_profile, dataset, statement
from .._figures import panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DATA = {"boston": "boston", "wine": "wine-quality-red", "parkinsons": "parkinsons", "mnist": "mnist"}
PROJECTIONS = ("iid", "orthogonal", "hadamard", "simplex", "fast-simplex", "quadrature", "halton")


class MechanismGrid(Experiment):
    """Relative Frobenius errors for the Gaussian kernel at lengthscales below, at and above the median distance."""

    name = "ours-grid"
    paper = "ours"
    item = "The full grid of maps and couplings"
    claim = (
        "Coupled rows are never worse than independent ones, simplex rows are best for positive maps, and no positive"
        " map beats the best signed one."
    )
    data = tuple(DATA.values())
    methods = PROJECTIONS
    profiles = by_profile(
        smoke={"data": ("boston",), "scales": (1.0,), "points": 60, "width": 64, "draws": 6},
        full={"data": tuple(DATA), "scales": (0.5, 1.0, 2.0), "points": 300, "width": 512, "draws": 20},
    )
    seconds = by_profile(smoke=2, full=300)

    def parts(self, p: Mapping[str, Any]) -> list[str]:
        """One per data set and lengthscale."""
        return [f"{data}, lengthscale {scale} x median" for data in p["data"] for scale in p["scales"]]

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Errors by map and projection, of all that fit together at the width."""
        data, scale = part.split(", lengthscale ")
        X = self._points(data, p["points"])
        distances = np.sqrt(((X[:, None] - X) ** 2).sum(-1))[np.triu_indices(len(X), 1)]
        kernel = Gaussian(float(scale.split()[0]) * float(np.median(distances)))
        exact = kernel(X)
        named = {name: catalogue.projection(name) for name in PROJECTIONS}
        found: dict[str, Any] = {}
        for spec in catalogue.candidates(kernel, X.shape[1]):
            rows = next((name for name, value in named.items() if value == spec.projection), None)
            if rows is None or not spec.map.uses_rows:
                continue
            try:
                plan = spec.plan(X, rng=rng).with_width(p["width"])
            except ValueError:
                continue  # one row is already wider
            with np.errstate(over="ignore", invalid="ignore"):
                draws = [np.linalg.norm(plan.draw(X.shape[1], rng).gram(X) - exact) for _ in range(p["draws"])]
            error = Estimate.of(np.array(draws) / np.linalg.norm(exact))
            found[f"{spec.map.name or type(spec.map).__name__} | {rows}"] = error.as_numbers() | {
                "positive": plan.positive
            }
        return found

    @staticmethod
    def _points(data: str, n: int) -> np.ndarray:
        X = np.asarray(dataset(DATA[data]).X, dtype=np.float64)
        X = X[np.random.default_rng(0).choice(len(X), n, replace=False)]
        X = X[:, X.std(0) > 0]
        return np.asarray((X - X.mean(0)) / X.std(0))

    @statement(
        "For every map, orthogonal rows are not worse than independent ones by more than two standard errors in any "
        "regime."
    )
    def orthogonal(self, results: Results) -> Finding:
        """Compare them by map."""
        worse = [
            f"{name} on {regime}"
            for regime, part in results.parts.items()
            for name in self._maps(part)
            if f"{name} | iid" in part and f"{name} | orthogonal" in part
            and bool(Estimate.read(part[f"{name} | iid"]).below(Estimate.read(part[f"{name} | orthogonal"])))
        ]  # fmt: skip
        return Finding(not worse, f"Worse: {'; '.join(worse)}." if worse else "Nowhere worse.")

    @statement(
        "For the positive map, simplex rows have an error that is not above that of orthogonal rows by more than two "
        "standard errors."
    )
    def simplex(self, results: Results) -> Finding:
        """Compare the two."""
        pairs = {
            regime: [Estimate.read(part[f"positive | {rows}"]) for rows in ("simplex", "orthogonal")]
            for regime, part in results.parts.items()
            if "positive | simplex" in part
        }
        text = "; ".join(f"{a.mean:.3g} against {b.mean:.3g} on {regime}" for regime, (a, b) in pairs.items())
        return Finding(not any(bool(b.below(a)) for a, b in pairs.values()), text + ".")

    @statement("In every regime the lowest error is that of features that may be negative.")
    def signed(self, results: Results) -> Finding:
        """The best of each regime."""
        best = {regime: min(part, key=lambda name: self._mean(part[name])) for regime, part in results.parts.items()}
        text = "; ".join(f"{regime}: {name}" for regime, name in best.items())
        return Finding(not any(results.parts[regime][name]["positive"] for regime, name in best.items()), text + ".")

    def plot(self, results: Results, figure: Figure) -> None:
        """Errors as a matrix of maps and couplings."""
        axes = panels(figure, list(results.parts), "", "", columns=3, scale="linear")
        for ax, part in zip(axes, results.parts.values(), strict=True):
            maps = self._maps(part)
            values = np.array([[self._mean(part.get(f"{m} | {rows}")) for rows in PROJECTIONS] for m in maps])
            values[~np.isfinite(values)] = np.nan
            image = ax.imshow(np.log10(values), aspect="auto", vmin=-2, vmax=1)
            ax.set_xticks(range(len(PROJECTIONS)), PROJECTIONS, rotation=60, fontsize="xx-small")
            ax.set_yticks(range(len(maps)), maps, fontsize="xx-small")
        figure.colorbar(image, ax=axes, label="log10 of the relative error")

    def _maps(self, part: Mapping[str, Any]) -> list[str]:
        return list(dict.fromkeys(name.split(" | ")[0] for name in part))

    def _mean(self, numbers: Mapping[str, Any] | None) -> float:
        return float("inf") if numbers is None or numbers["mean"] is None else float(numbers["mean"])
