"""How well features approximate the softmax distributions of a language model, and the lengths of its queries and keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bochner import catalogue
from bochner.approximation import Approximation
from bochner.maps import AngularHybrid, GaussianHybrid, Hyperbolic

from ..._estimates import Estimate, share
from ..._experiment import Experiment, PowerCheck, Results, Row, by_profile, printed, statement
from ..._figures import curve, legend, panels
from ..._verdicts import Finding, interval, superior, together
from ._costs import equal_flops

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BASES, HYBRIDS = ("favor+", "favor"), ("hrf-gaussian", "hrf-angular")
WASSERSTEIN, KOLMOGOROV, NEGATIVE = METRICS = ("Wasserstein distance", "Kolmogorov-Smirnov", "negative fraction")
SQUARED = "squared error"
COIN = 0.4
"""Share of negative estimates from which on their signs say next to nothing; the paper prints 0.155 to 0.257."""
EQUAL = "at equal FLOPs"
COUNTS = "counts"
DEVIATIONS = (
    " Classes are about 1000 pieces of words, made from the training text, in the order in which they first appear, "
    "which are also their positions on the line for the Wasserstein distance. Logits are those of a table of counts of "
    "pieces after a piece, plus products of queries and keys: a model of so few steps is then better than the table, "
    "and its vectors are so short that estimates are not noise. Models of words without the table had perplexities of "
    "220 to 250, where a table has 136, and vectors at which every estimate is noise; their results decided nothing. "
    "Features estimate the exponentials of the products, and the table is exact. Models have 128 units; queries are "
    "those of 100 contexts of the validation text. Negative estimates count as zero in the distributions. The paper's "
    "FLOPs are matched by m n = M; by the count of its Section L a hybrid with m n = M takes far fewer, and a statement "
    "of our own compares at equal FLOPs. FAVOR+ is that of Eq. 3."
)


def language_model_profiles(*, scale: float, length_penalty: float) -> Mapping[str, Mapping[str, Any]]:
    """Parameters of both profiles, for models that differ in these."""
    model = {"scale": scale, "length_penalty": length_penalty, "rate": 4e-3}
    return by_profile(
        smoke={
            "n_classes": 200,
            "characters": 100_000,
            "queries": 20,
            "rows": (64, 256),
            "n": 8,
            "draws": 3,
            "models": 2,
            "model": model | {"width": 16, "steps": 20, "batch": 8, "length": 10},
        },
        full={
            "n_classes": 1000,
            "characters": None,
            "queries": 100,
            "rows": (64, 128, 256, 512),
            "n": 8,
            "draws": 40,
            "models": 3,
            "model": model | {"width": 128, "steps": 600, "batch": 32, "length": 32},
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
        """One per trained model, and the losses of counts."""
        return [*(f"model {k + 1}" for k in range(p["models"])), COUNTS]

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Its loss, the lengths of queries and keys, and each metric by method and number of rows."""
        from .._corpora import pieces
        from .._word_counts import losses_of_counts
        from ._language_model import VALIDATION, trained_vectors

        words = pieces(p["n_classes"], p["characters"])
        if part == COUNTS:
            return losses_of_counts(words.train, words.valid[:VALIDATION], words.n_classes)
        model = trained_vectors(words, p["queries"], rng, **p["model"])
        Q, K = model.queries, model.keys
        exact = model.prior * np.exp(Q @ K.T)
        total = exact.sum(1, keepdims=True)
        found: dict[str, Any] = {metric: {} for metric in METRICS} | {SQUARED: {}}
        for method in (*self.methods, *(f"{hybrid} {EQUAL}" for hybrid in HYBRIDS)):
            values, squared = [], []
            for rows in p["rows"]:
                spec = self._specification(method, rows, p["n"], Q.shape[1]).plan(Q, K, rng)
                maps = (spec.draw(Q.shape[1], rng) for _ in range(p["draws"]))
                estimates = (model.prior * (phi.queries(Q) @ phi.keys(K).T) for phi in maps)
                values.append([distances(estimate, exact / total) for estimate in estimates])
                squared.append(float(np.mean(np.sum((model.prior / total) ** 2 * spec.mse(Q, K), axis=1))))
            for metric, of_metric in zip(METRICS, np.moveaxis(np.array(values), (1, 2), (0, 2)).T, strict=True):
                found[metric][method] = Estimate.of(of_metric.T).as_numbers()
            found[SQUARED][method] = squared
        root = np.sqrt(p["model"]["scale"])
        lengths = {name: _histogram(rows / root) for name, rows in (("queries", Q), ("keys", K))}
        return {"loss": model.loss, "lengths": lengths, **found}

    @staticmethod
    def _specification(method: str, rows: int, n: int, d: int) -> Approximation:
        """The paper's configurations: M rows, or m = M / n rows and n projections of the coefficient; or as many FLOPs."""
        name = method.removesuffix(f" {EQUAL}")
        if name == "favor":
            return catalogue.mechanism(name, n_projections=rows)
        if name == "favor+":
            return replace(catalogue.mechanism(name, n_projections=rows), map=Hyperbolic())
        hybrid = AngularHybrid(n) if name == "hrf-angular" else GaussianHybrid(n)
        m = rows // n if name == method else equal_flops(rows, d, n)
        return replace(catalogue.mechanism(name, n_projections=m), map=hybrid)

    @statement(
        "Both hybrids have a smaller Wasserstein distance to the exact distributions than FAVOR+ and trigonometric "
        "features, at every size for all models (95 % intervals)."
    )
    def wasserstein(self, results: Results) -> Finding:
        """Compare all pairs."""
        return self.lowest(results, WASSERSTEIN, BASES)

    @statement(
        "Both hybrids have a smaller Kolmogorov-Smirnov distance than FAVOR+ and trigonometric features, at every size "
        "for all models (95 % intervals)."
    )
    def kolmogorov(self, results: Results) -> Finding:
        """Compare all pairs."""
        return self.lowest(results, KOLMOGOROV, BASES)

    @statement(
        "Both hybrids have a smaller Wasserstein and a smaller Kolmogorov-Smirnov distance than FAVOR+ and trigonometric "
        "features with as many rows as equal FLOPs allow (Section L), at every size for all models (95 % intervals).",
        ours=True,
    )
    def equal_flops(self, results: Results) -> Finding:
        """Compare all pairs."""
        found = [self.lowest(results, metric, BASES, f" {EQUAL}") for metric in (WASSERSTEIN, KOLMOGOROV)]
        return together(found, " ".join(one.evidence for one in found))

    @statement(
        "In closed form, the mean squared error of a distribution before it is normalised is smaller with both hybrids than "
        "with FAVOR+ and trigonometric features, at m n = M, at every size for all models.",
        ours=True,
    )
    def squared_errors(self, results: Results) -> Finding:
        """Compare closed forms; the evidence has them at equal FLOPs as well."""
        ratios = {
            f"{hybrid}{kind}": np.ravel(
                [
                    np.array(part[SQUARED][f"{hybrid}{kind}"]) / np.minimum(*(part[SQUARED][base] for base in BASES))
                    for part in self._models(results)
                ]
            )
            for kind in ("", f" {EQUAL}")
            for hybrid in HYBRIDS
        }
        shown = ", ".join(f"{name} {found.min():.2f} to {found.max():.2f}" for name, found in ratios.items())
        return Finding(
            all(bool((ratios[hybrid] < 1).all()) for hybrid in HYBRIDS),
            f"Over the smaller error of the two: {shown}.",
        )

    def power(self, results: Results) -> PowerCheck:
        """A table of counts next to the models, and the signs of trigonometric estimates at the largest size."""
        counts = results.parts[COUNTS]
        losses = [float(part["loss"]) for part in self._models(results)]
        coins = max(float(self._values(part, NEGATIVE, "favor").mean.ravel()[-1]) for part in self._models(results))
        return PowerCheck(
            max(losses) < counts["bigram"] and coins < COIN,
            f"A bigram table has a loss of {counts['bigram']:.3f} nats, the models {min(losses):.3f} to {max(losses):.3f}; "
            f"of the trigonometric estimates {coins:.2g} are negative, where the exact ones are positive.",
            (
                *((f"{name} table", value) for name, value in counts.items()),
                *((f"model {k + 1}", loss) for k, loss in enumerate(losses)),
            ),
        )

    def lowest(self, results: Results, metric: str, others: tuple[str, ...], kind: str = "") -> Finding:
        """Whether both hybrids are below others at every number of rows for every model, and how often each is."""
        draws = results.parameters["draws"]
        gains = {
            (hybrid, other): Estimate.stack(
                self._values(part, metric, other, draws).over(self._values(part, metric, f"{hybrid}{kind}", draws))
                for part in self._models(results)
            )
            for hybrid in HYBRIDS
            for other in others
        }
        shown = "; ".join(
            f"{hybrid} below {other} at {share(interval(gain)[0] > 0)}, above at {share(interval(gain)[1] < 0)}"
            for (hybrid, other), gain in gains.items()
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
        all_models = [self._values(part, metric, method) for part in self._models(results)]
        errors = np.sqrt(sum(one.error**2 for one in all_models)) / len(all_models)
        return Estimate(np.mean([one.mean for one in all_models], axis=0), errors)

    @staticmethod
    def _models(results: Results) -> list[Mapping[str, Any]]:
        return [part for name, part in results.parts.items() if name != COUNTS]

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
