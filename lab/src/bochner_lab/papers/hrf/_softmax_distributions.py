"""How well features approximate the softmax distributions of a language model, and the lengths of its queries and keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bochner import catalogue
from bochner.approximation import Approximation
from bochner.maps import AngularHybrid, GaussianHybrid

from ..._estimates import Estimate, share
from ..._experiment import Experiment, PowerCheck, Results, Row, by_profile, printed, statement
from ..._figures import curve, legend, panels
from ..._verdicts import Finding, interval, superior

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BASES, HYBRIDS = ("favor+", "favor"), ("hrf-gaussian", "hrf-angular")
WASSERSTEIN, KOLMOGOROV, NEGATIVE = METRICS = ("Wasserstein distance", "Kolmogorov-Smirnov", "negative fraction")
COIN = 0.4
"""Share of negative estimates from which on their signs say next to nothing; the paper prints 0.155 to 0.257."""
DEVIATIONS = (
    " The classes are the 10000 most frequent words, in the order in which they first appear, which are also their "
    "positions on the line for the Wasserstein distance. Models have 200 units and read 280 000 to 400 000 words once, with "
    "a softmax over the true words and 1000 drawn ones; the ten runs are five draws of the features for each of two models,"
    " on 100 contexts of the validation text. Negative estimates count as zero in the distributions. FLOPs are matched as "
    "in the paper, by m n = M. FAVOR+ is the one-sided map, with up to twice the variance of the paper's Eq. 3. By "
    "Eq. 7, with 512 rows the relative error at right angles is below one if the squared "
    "lengths of a query and a key add up to less than 7"
)


def language_model_profiles(*, steps: int, scale: float, length_penalty: float) -> Mapping[str, Mapping[str, Any]]:
    """Parameters of both profiles, for models that differ in these."""
    model = {"dropout": 0.0, "scale": scale, "length_penalty": length_penalty, "batch": 20, "length": 20, "rate": 4e-3}
    return by_profile(
        smoke={
            "n_classes": 2000,
            "characters": 400_000,
            "queries": 20,
            "rows": (64, 256),
            "n": 8,
            "draws": 3,
            "models": 1,
            "model": model | {"width": 32, "steps": 20, "negatives": 100},
        },
        full={
            "n_classes": 10_000,
            "characters": None,
            "queries": 100,
            "rows": (64, 128, 256, 512),
            "n": 8,
            "draws": 5,
            "models": 2,
            "model": model | {"width": 200, "steps": steps, "negatives": 1000},
        },
    )


class SoftmaxDistributions(Experiment):
    """What the experiments on the two models of Section I share; a subclass declares its model and its statements."""

    paper = "hrf"
    data = ("wikitext-2",)
    methods = (*BASES, *HYBRIDS)
    extras = ("torch",)
    table: ClassVar[str]

    def parts(self, p: Mapping[str, Any]) -> list[str]:
        """One per trained model."""
        return [f"model {k + 1}" for k in range(p["models"])]

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Its perplexity, the lengths of queries and keys, and each metric by method and number of rows."""
        from ._language_model import corpus, trained_vectors

        words = corpus(p["n_classes"], p["characters"])
        Q, K, loss = trained_vectors(words, p["queries"], rng, p["model"])
        logits = Q @ K.T
        exact = np.exp(logits - logits.max(1, keepdims=True))
        exact /= exact.sum(1, keepdims=True)
        scale = np.sqrt(p["model"]["scale"])
        found: dict[str, dict[str, Any]] = {metric: {} for metric in METRICS}
        for method in self.methods:
            specs = [self._specification(method, rows, p["n"]).plan(Q, K, rng) for rows in p["rows"]]
            maps = ([spec.draw(Q.shape[1], rng) for spec in specs] for _ in range(p["draws"]))
            values = [[distances(phi.queries(Q) @ phi.keys(K).T, exact) for phi in drawn] for drawn in maps]
            for metric, of_metric in zip(METRICS, np.moveaxis(np.array(values), -1, 0), strict=True):
                found[metric][method] = Estimate.of(of_metric).as_numbers()
        lengths = {name: _histogram(rows / scale) for name, rows in (("queries", Q), ("keys", K))}
        return {"perplexity": float(np.exp(loss)), "lengths": lengths, **found}

    @staticmethod
    def _specification(method: str, rows: int, n: int) -> Approximation:
        """The paper's configurations: M rows, or m = M / n rows and n projections of the coefficient."""
        if method in BASES:
            return catalogue.mechanism(method, n_projections=rows)
        hybrid = AngularHybrid(n) if method == "hrf-angular" else GaussianHybrid(n)
        return replace(catalogue.mechanism(method, n_projections=rows // n), map=hybrid)

    @statement(
        "Both hybrids have a smaller Wasserstein distance to the exact distributions than FAVOR+ and trigonometric "
        "features, at every size for both models (95 % intervals)."
    )
    def wasserstein(self, results: Results) -> Finding:
        """Compare all pairs."""
        return self.lowest(results, WASSERSTEIN, BASES)

    @statement(
        "Both hybrids have a smaller Kolmogorov-Smirnov distance than FAVOR+ and trigonometric features, at every size "
        "for both models (95 % intervals)."
    )
    def kolmogorov(self, results: Results) -> Finding:
        """Compare all pairs."""
        return self.lowest(results, KOLMOGOROV, BASES)

    def power(self, results: Results) -> PowerCheck:
        """Whether the signs of trigonometric estimates are more than coin flips, at the largest size."""
        found = [float(self._values(part, NEGATIVE, "favor").mean.ravel()[-1]) for part in results.parts.values()]
        share = max(found)
        return PowerCheck(
            share < COIN,
            f"Of the trigonometric estimates {share:.2f} are negative, where the exact ones are positive: in this regime "
            "estimates are noise, and distances of distributions cannot tell methods apart.",
            (("coin flips", 0.5), *((f"trigonometric, model {k}", value) for k, value in enumerate(found))),
        )

    def lowest(self, results: Results, metric: str, others: tuple[str, ...]) -> Finding:
        """Whether both hybrids are below others at every number of rows for every model, and how often each is."""
        draws = results.parameters["draws"]
        gains = {
            (hybrid, other): Estimate.stack(
                self._values(part, metric, other, draws).over(self._values(part, metric, hybrid, draws))
                for part in results.parts.values()
            )
            for hybrid in HYBRIDS
            for other in others
        }
        shown = "; ".join(
            f"{hybrid} below {other} at {share(interval(gain)[0] > 0)}" for (hybrid, other), gain in gains.items()
        )
        return superior(Estimate.stack(gains.values()), f"{shown}.")

    def comparison(self, results: Results) -> list[Row]:
        """Every entry of the table next to the mean of our models."""
        table = printed("hrf", self.table)
        rows = []
        for metric in (name for name in METRICS if name in table):
            for method, cells in table[metric].items():
                ours = self._mean(results, metric, method)
                for width, cell in zip(table["columns"], cells, strict=True):
                    if width in results.parameters["rows"]:
                        i = results.parameters["rows"].index(width)
                        label = f"{metric}, {method}, {width} ({table['where']})"
                        rows.append(Row(label, cell, float(ours.mean[i]), float(ours.error[i])))
        return rows

    def plot(self, results: Results, figure: Figure) -> None:
        """The metrics over the number of rows, and the lengths of the first model."""
        axes = panels(figure, [*METRICS, "lengths"], "", "", scale="linear")
        for ax, metric in zip(axes, METRICS, strict=False):
            for k, method in enumerate(self.methods):
                curve(ax, results.parameters["rows"], self._mean(results, metric, method), method, k)
            ax.set_xscale("log", base=2)
            ax.set_xlabel("M = m n", fontsize="small")
        for name, found in next(iter(results.parts.values()))["lengths"].items():
            axes[-1].stairs(found["density"], found["edges"], label=name, fill=True, alpha=0.5)
        axes[-1].set_xlabel("length", fontsize="small")
        axes[-1].legend(fontsize="x-small")
        legend(figure, axes[0])

    def _mean(self, results: Results, metric: str, method: str) -> Estimate:
        """The mean over models, with the error of the draws."""
        all_models = [self._values(part, metric, method) for part in results.parts.values()]
        errors = np.sqrt(sum(one.error**2 for one in all_models)) / len(all_models)
        return Estimate(np.mean([one.mean for one in all_models], axis=0), errors)

    @staticmethod
    def _values(part: Mapping[str, Any], metric: str, method: str, samples: int | None = None) -> Estimate:
        return Estimate.read(part[metric][method], samples)


def distances(estimate: np.ndarray, exact: np.ndarray) -> tuple[float, float, float]:
    """Means over rows of the Wasserstein and Kolmogorov-Smirnov distances, and the share of negative estimates.

    Parameters
    ----------
    estimate : ndarray (queries, classes)
        Estimated kernel values; negative ones count as zero, and a row without positive ones as uniform.
    exact : ndarray (queries, classes)
        Probabilities.
    """
    positive = np.maximum(estimate, 0)
    total = positive.sum(1, keepdims=True)
    drawn = np.where(total > 0, positive / np.where(total > 0, total, 1.0), 1 / estimate.shape[1])
    gap = np.abs(np.cumsum(drawn - exact, axis=1))
    return float(gap.sum(1).mean()), float(gap.max(1).mean()), float((estimate < 0).mean())


def _histogram(rows: np.ndarray) -> dict[str, Any]:
    lengths = np.linalg.norm(rows, axis=1)
    density, edges = np.histogram(lengths, bins=30, density=True)
    return {"density": density, "edges": edges, "median": float(np.median(lengths))}
