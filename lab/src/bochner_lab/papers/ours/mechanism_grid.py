"""Every map with every coupling at equal width: what is best where, and whether dense features may be a default."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bochner import catalogue
from bochner.approximation import Approximation
from bochner.extending import Kernel, Map
from bochner.kernels import Gaussian, Softmax
from bochner.maps import Framed

from ..._estimates import Estimate
from ..._experiment import REJUDGED, Experiment, Results, by_profile, dataset, statement
from ..._figures import panels
from ..._verdicts import Finding, interval, not_worse

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DATA = {
    "boston": "boston",
    "wine": "wine-quality-red",
    "parkinsons": "parkinsons",
    "abalone": "abalone",
    "banknote": "banknote",
    "yeast": "yeast",
    "wifi": "wifi",
    "ccpp": "ccpp",
    "cpu_act": "cpu_act",
    "mnist": "mnist",
}
PROJECTIONS = ("iid", "orthogonal", "orthogonal-coupled", "simplex", "fast-simplex", "quadrature", "halton")
FRAMED = (
    "trigonometric",
    "positive",
    "hyperbolic",
    "generalized-exponential",
    "poisson",
    "geometric",
    "angular-hybrid",
)
FRAMED_ROWS = ("iid", "orthogonal", "simplex")
TENTH = float(np.log(1.1))
LANDMARKS = ("landmarks", "landmarks-rpcholesky", "landmarks-kmeans")
DENSE, PLAIN = "dense", "optimal-positive"
MEASURES = ("median", "root mean square")


class MechanismGrid(Experiment):
    """Errors of the whole catalogue between rows of the data that no constant was fitted to."""

    name = "ours-grid"
    paper = "ours"
    item = "The full grid of maps and couplings"
    claim = (
        "Coupled rows are never worse than independent ones, simplex rows are best for positive maps, no positive map "
        "beats the best signed one for the Gaussian kernel, and dense exponential features are never worse than "
        "optimal positive ones."
    )
    data = tuple(DATA.values())
    methods = PROJECTIONS
    deviations = (
        "Columns are standardised, MNIST's pixels divided by 255.  Constants, frames and landmarks are fitted to up to "
        "2000 rows; errors are measured between other rows.  Lengthscales are multiples of the median distance, scales "
        "of softmax give the products of two rows that standard deviation.  Maps with the same rows share their draws, and "
        "differences are of pairs of draws. " + REJUDGED
    )
    profiles = by_profile(
        smoke={
            "data": ("boston",),
            "lengthscales": (1.0,),
            "deviations": (1.0,),
            "fitted": 200,
            "points": 30,
            "width": 48,
            "draws": 2,
            "rival_draws": 4,
        },
        full={
            "data": tuple(DATA),
            "lengthscales": (0.5, 1.0, 2.0),
            "deviations": (0.5, 1.0, 2.0),
            "fitted": 2000,
            "points": 60,
            "width": 256,
            "draws": 20,
            "rival_draws": 100,
        },
    )
    seconds = by_profile(smoke=3, full=1400)

    def parts(self, p: Mapping[str, Any]) -> list[str]:
        """One per data set, kernel and regime."""
        return [
            f"{data}, {kernel} {value}"
            for data in p["data"]
            for kernel, values in (("gaussian", p["lengthscales"]), ("softmax", p["deviations"]))
            for value in values
        ]

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Relative Frobenius errors by map and projection; for the two rivals also errors of single entries."""
        data, regime = part.split(", ")
        fitted, X, Y = points(DATA[data], p)
        kernel = kernel_of_regime(regime, fitted)
        exact, first = kernel(X, Y), int(rng.integers(2**31))
        size, seed = np.linalg.norm(exact), int(rng.integers(2**31))
        errors: dict[str, dict[str, Estimate]] = {}
        positive, entries = [], {}
        for name, coupling, plan in self._plans(kernel, fitted, p["width"], seed):
            with np.errstate(over="ignore", invalid="ignore"):
                grams = np.array([plan.draw(X.shape[1], first + k).gram(X, Y) for k in range(p["draws"])])
                errors.setdefault(name, {})[coupling] = Estimate.of(np.linalg.norm(grams - exact, axis=(1, 2)) / size)
                if name in (DENSE, PLAIN) and coupling == "simplex":
                    more = (plan.draw(X.shape[1], first + k).gram(X, Y) for k in range(p["rival_draws"]))
                    entries[name] = np.array([_of_entries(np.abs(gram / exact - 1)) for gram in more]).T
            if plan.positive and name not in positive:
                positive.append(name)
        return {
            "errors": {name: _in_order(found) for name, found in errors.items()},
            "positive": positive,
            "entries": {
                measure: {name: float(entries[name][k].mean()) for name in (DENSE, PLAIN)}
                | {"difference": Estimate.of(entries[DENSE][k] - entries[PLAIN][k]).as_numbers()}
                for k, measure in enumerate(MEASURES)
            },
        }

    @staticmethod
    def _plans(kernel: Kernel, fitted: np.ndarray, width: int, seed: int) -> Iterator[tuple[str, str, Approximation]]:
        """Map, coupling and plan of all that fit in the width; those with the same rows follow each other."""
        maps: dict[str, Map] = catalogue.maps()
        frames: dict[str, Map] = {f"framed-{name}": Framed(maps[name]) for name in FRAMED}
        for coupling in PROJECTIONS:
            projection = catalogue.projection(coupling)
            for name, feature_map in (maps | frames).items():
                tried = coupling in FRAMED_ROWS if name in frames else feature_map.worth_trying(projection)
                tried = coupling == "iid" if name in LANDMARKS else tried
                d = fitted.shape[1]
                if not tried or not feature_map.serves(kernel) or d > (feature_map.largest_dimension or d):
                    continue
                try:
                    spec = Approximation(kernel, feature_map, projection, width)
                except ValueError:
                    continue  # incompatible
                plan = spec.plan(fitted, rng=seed)
                rows = rows_within(plan, width, fitted.shape[1])
                if rows:
                    yield name, coupling, replace(plan, n_projections=rows)

    @statement(
        "For every map, orthogonal rows are not worse than independent ones by more than a tenth of the error in any regime "
        "(95 % intervals of logarithms)."
    )
    def orthogonal(self, results: Results) -> Finding:
        """Compare them by map."""
        worse, gains = [], []
        for regime, part in results.parts.items():
            for name in part["errors"]:
                independent, orthogonal = (self._error(part, name, rows) for rows in ("iid", "orthogonal"))
                if not np.isfinite(orthogonal.mean) or not np.isfinite(independent.mean):
                    continue
                gains.append(independent.log().over(orthogonal.log()))
                if interval(gains[-1])[1] < 0:
                    worse.append(f"{name} on {regime} ({orthogonal.mean:.3g} against {independent.mean:.3g})")
        shown = f"Worse in {len(worse)} of {len(gains)}: {'; '.join(worse)}." if worse else "Nowhere worse."
        return not_worse(Estimate.stack(gains), TENTH, shown)

    @statement(
        "For the positive map, simplex rows have an error that is not above that of orthogonal rows by more than a tenth "
        "(95 % intervals of logarithms)."
    )
    def simplex(self, results: Results) -> Finding:
        """Compare the two."""
        pairs = {
            regime: [self._error(part, "positive", rows) for rows in ("simplex", "orthogonal")]
            for regime, part in results.parts.items()
        }
        gains = {regime: b.log().over(a.log()) for regime, (a, b) in pairs.items()}
        worse = [
            f"{regime} ({a.mean:.3g} against {b.mean:.3g})"
            for regime, (a, b) in pairs.items()
            if interval(gains[regime])[1] < 0
        ]
        ratio = np.median([a.mean / b.mean for a, b in pairs.values()])
        text = f"Median ratio {ratio:.3f}; worse: {'; '.join(worse) or 'nowhere'}."
        return not_worse(Estimate.stack(gains.values()), TENTH, text)

    @statement(
        "For the Gaussian kernel, in every regime the lowest error of all random features is that of features that may "
        "be negative."
    )
    def signed(self, results: Results) -> Finding:
        """The best of each regime."""
        best = {regime: self._best(part) for regime, part in results.parts.items() if "gaussian" in regime}
        lost = [regime for regime, (name, _) in best.items() if name in results.parts[regime]["positive"]]
        text = "; ".join(f"{regime}: {' | '.join(found)}" for regime, found in best.items())
        return Finding(not lost, text + ".")

    @statement(
        "Dense exponential features have a median relative error of an entry that is not above that of optimal "
        "positive features by more than a tenth, both with simplex rows, on every data set and in every regime "
        "(95 % intervals of paired differences)."
    )
    def dense_by_median(self, results: Results) -> Finding:
        """Compare them."""
        return self._dense(results, "median")

    @statement(
        "Dense exponential features have a root mean square relative error of the entries that is not above that of "
        "optimal positive features by more than a tenth, both with simplex rows, on every data set and in every regime "
        "(95 % intervals of paired differences)."
    )
    def dense_by_mean_square(self, results: Results) -> Finding:
        """Compare them."""
        return self._dense(results, "root mean square")

    def plot(self, results: Results, figure: Figure) -> None:
        """Geometric means over the data sets as matrices of maps and couplings."""
        regimes = list(dict.fromkeys(name.split(", ")[1] for name in results.parts))
        axes = panels(figure, regimes, "", "", columns=3, scale="linear")
        figure.set_size_inches(13, 5 * -(-len(regimes) // 3) + 1)
        names = sorted({name for part in results.parts.values() for name in part["errors"]})
        for k, (ax, regime) in enumerate(zip(axes, regimes, strict=True)):
            parts = [part for name, part in results.parts.items() if name.endswith(regime)]
            values = np.array([[self._overall(parts, name, rows) for rows in PROJECTIONS] for name in names])
            image = ax.imshow(values, aspect="auto", vmin=-2, vmax=1)
            ax.set_xticks(range(len(PROJECTIONS)), PROJECTIONS, rotation=60, fontsize="xx-small")
            ax.set_yticks(range(len(names)), names if k % 3 == 0 else [], fontsize="xx-small")
        figure.colorbar(image, ax=axes, label="log10 of the relative error, mean over the data sets")

    def _dense(self, results: Results, measure: str) -> Finding:
        worse, ratios, gains = [], [], []
        for regime, part in results.parts.items():
            found = part["entries"][measure]
            difference = Estimate.read(found["difference"])
            ratios.append(found[DENSE] / found[PLAIN])
            gains.append(Estimate(-difference.mean / found[PLAIN], difference.error / found[PLAIN]))
            if interval(gains[-1])[1] < 0:
                worse.append(f"{regime} ({found[DENSE]:.3g} against {found[PLAIN]:.3g})")
        text = f"Ratios from {min(ratios):.2g} to {max(ratios):.3f}, median {np.median(ratios):.2g}"
        shown = f"{text}; worse in {len(worse)} of {len(ratios)}: {'; '.join(worse) or 'nowhere'}."
        return not_worse(Estimate.stack(gains), 0.1, shown)

    def _error(self, part: Mapping[str, Any], name: str, rows: str) -> Estimate:
        found, k = Estimate.read(part["errors"][name]), PROJECTIONS.index(rows)
        return found[k] if k < len(found.mean) else Estimate(np.array(np.nan), np.array(np.nan))

    def _best(self, part: Mapping[str, Any]) -> tuple[str, str]:
        """The random features of least error."""
        means = {
            (name, rows): float(self._error(part, name, rows).mean)
            for name in part["errors"]
            if name not in LANDMARKS
            for rows in PROJECTIONS
        }
        return min((key for key in means if np.isfinite(means[key])), key=lambda key: means[key])

    def _overall(self, parts: list[Mapping[str, Any]], name: str, rows: str) -> float:
        found = [float(self._error(part, name, rows).mean) for part in parts if name in part["errors"]]
        found = [value for value in found if np.isfinite(value)]
        return float(np.mean(np.log10(found))) if found else np.nan


def rows_within(plan: Approximation, width: int, d: int) -> int:
    """Largest number of projections that fit in a width, whole rules of a quadrature if possible; zero if none fits."""
    m, rule = plan.layout.rows_within(width), plan.projection.rows_per_rule(d)
    m = m if plan.map.most_rows is None else min(m, plan.map.most_rows)
    return m - m % rule if m >= rule else m


def points(data: str, p: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of a data set to fit, and queries and keys to measure, all different; columns standardised, pixels scaled."""
    X, n = dataset(data).X, p["points"]
    chosen = np.random.default_rng(0).permutation(len(X))[: p["fitted"] + 2 * n]
    X = np.asarray(X[chosen], dtype=np.float64)
    if data == "mnist":
        X = X / 255
    else:
        deviation = X[2 * n :].std(0)
        X = (X - X[2 * n :].mean(0)) / np.where(deviation > 0, deviation, 1.0)
    return X[2 * n :], X[:n], X[n : 2 * n]


def kernel_of_regime(regime: str, X: np.ndarray) -> Kernel:
    """The kernel of a regime, from pairs of different rows."""
    name, value = regime.split()
    one, other = X[: len(X) // 2], X[len(X) // 2 : 2 * (len(X) // 2)]
    if name == "gaussian":
        return Gaussian(float(value) * float(np.median(np.linalg.norm(one - other, axis=1))))
    return Softmax(float(value) / float((one * other).sum(1).std()))


def _of_entries(relative: np.ndarray) -> tuple[float, float]:
    """Median and root mean square, in the order of `MEASURES`."""
    return float(np.median(relative)), float(np.sqrt((relative**2).mean()))


def _in_order(found: Mapping[str, Estimate]) -> dict[str, list[float]]:
    """Numbers by projection up to the last that exists, to four digits; none where a pair does not exist."""
    nothing, last = Estimate(np.array(np.nan), np.array(np.nan)), max(PROJECTIONS.index(rows) for rows in found)
    every = [found.get(rows, nothing) for rows in PROJECTIONS[: last + 1]]
    return {key: [float(f"{getattr(one, key):.4g}") for one in every] for key in ("mean", "error")}
