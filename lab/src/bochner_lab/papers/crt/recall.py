"""CRT Table 2 where features matter: associative recall with 8 and with 16 features per head."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from bochner import mechanism

from ..._estimates import Estimate
from ..._experiment import Experiment, PowerCheck, Results, Row, by_profile, statement
from ..._verdicts import Finding, superior, together
from ._uptraining import seeds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROWS = (8, 16)
FEATURES = {"FAVOR+": "favor+", "FAVOR++": "favor++", "dense": "dense"}
SOFTMAX, UNIFORM = "softmax", "uniform attention"
RULE = "(95 % interval, paired by seed)"


class RecallTraining(Experiment):
    """Accuracies of one layer of attention, paired by seed."""

    name = "crt-table2-recall"
    paper = "crt"
    item = "Table 2, as a look-up task"
    claim = (
        "FAVOR++ is better than FAVOR+, than ELU and than ReLU attention, and better still if it starts from a model "
        "trained with softmax."
    )
    methods = (SOFTMAX, *FEATURES, "ELU", "ReLU")
    extras = ("torch",)
    deviations = (
        "Associative recall in place of GLUE: eight pairs of a key and a value, 16 symbols each, and the value of one key "
        "is asked for; one layer of attention of width 32 with two heads. No language, and no pretrained BERT: the task is "
        "one in which attention is necessary, and its error depends on the features. ELU and ReLU have 16 features, the "
        "width of a head. Constants of FAVOR++ are chosen anew every 50 steps, and rows of W are drawn once. The model "
        "trained with softmax has converged; converted, it takes as many steps as a model from scratch."
    )
    profiles = by_profile(
        smoke={
            "seeds": 2, "symbols": 4, "pairs": 2, "width": 8, "heads": 1, "batch": 4, "test": 20, "steps": 4, "refit": 2,
            "rate": 1e-2,
        },
        full={
            "seeds": 10, "symbols": 16, "pairs": 8, "width": 32, "heads": 2, "batch": 32, "test": 2000, "steps": 200,
            "refit": 50, "rate": 1e-2,
        },
    )  # fmt: skip
    seconds = by_profile(smoke=0.5, full=810)

    def parts(self, p: Mapping[str, Any]) -> list[str]:
        """One per seed."""
        return seeds(p)

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Accuracies in percent, after training from scratch and after conversion from softmax."""
        from .._conformer import fit_again, with_kind
        from .._recall import Recall, RecallModel
        from .._transformers import train

        seed = int(rng.integers(2**31))
        task = Recall(p["symbols"], p["pairs"], p["batch"], p["test"], seed)

        def measured(model: Any) -> float:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # large errors of few features are what is measured
                for done in train(model, task, p["steps"], p["rate"]):
                    if done % p["refit"] == 0:
                        fit_again(model)
                task.loss(model, p["steps"])  # constants are chosen from training data
                return 100 * task.evaluate(model)

        softmax = RecallModel(p["symbols"], p["width"], p["heads"], SOFTMAX, seed)
        start = with_kind(softmax, SOFTMAX)
        found = {SOFTMAX: measured(softmax), UNIFORM: measured(with_kind(start, UNIFORM))}
        found |= {name: measured(with_kind(start, name.lower())) for name in ("ELU", "ReLU")}
        for m in ROWS:
            for name, key in FEATURES.items():
                found[f"{name} {m}"] = measured(with_kind(start, mechanism(key, n_projections=m)))
            found[f"uptrained FAVOR++ {m}"] = measured(with_kind(softmax, mechanism("favor++", n_projections=m)))
        return found

    def statements(self) -> dict[str, Callable[[Results], Finding]]:
        """Those of each number of features, and those of the methods without random rows."""
        found: dict[str, Callable[[Results], Finding]] = {}
        for m in ROWS:
            found[f"With M = {m}, FAVOR++ is more accurate than FAVOR+ {RULE}."] = partial(
                _better, new=f"FAVOR++ {m}", old=f"FAVOR+ {m}"
            )
            found[f"With M = {m}, FAVOR++ is more accurate if it starts from the softmax model {RULE}."] = partial(
                _better, new=f"uptrained FAVOR++ {m}", old=f"FAVOR++ {m}"
            )
        return found | super().statements()

    @statement(f"With M = 16, FAVOR++ is more accurate than ELU and than ReLU attention of as many features {RULE}.")
    def elementwise(self, results: Results) -> Finding:
        """Compare with both."""
        found = [_better(results, "FAVOR++ 16", name) for name in ("ELU", "ReLU")]
        return together(found, " ".join(one.evidence for one in found))

    @statement(f"Dense features are more accurate than FAVOR++ with as many features, 8 and 16 {RULE}.", ours=True)
    def dense(self, results: Results) -> Finding:
        """Compare at both widths."""
        found = [_better(results, f"dense {m}", f"FAVOR++ {m}") for m in ROWS]
        return together(found, " ".join(one.evidence for one in found))

    def power(self, results: Results) -> PowerCheck:
        """Guessing, attention that cannot choose, and exact attention."""
        names = list(next(iter(results.parts.values())))
        rows = tuple((name, float(_accuracies(results, name).mean())) for name in names)
        guess, means = 100 / results.parameters["symbols"], dict(rows)
        passed = _better(results, SOFTMAX, UNIFORM).holds is True and all(
            superior(Estimate.of(_accuracies(results, name)), "", least=guess).holds is True
            for name in names
            if name != UNIFORM
        )
        return PowerCheck(
            passed,
            f"Guessing has an accuracy of {guess:.1f} %, uniform attention {means[UNIFORM]:.1f} % and softmax "
            f"{means[SOFTMAX]:.1f} %.",
            (("one value for all", guess), *rows),
        )

    def comparison(self, results: Results) -> list[Row]:
        """Accuracies in percent."""
        rows = []
        for name in next(iter(results.parts.values())):
            found = Estimate.of(_accuracies(results, name))
            rows.append(Row(f"{name}: accuracy in %", "", float(found.mean), float(found.error)))
        return rows

    def plot(self, results: Results, figure: Figure) -> None:
        """Accuracies by mechanism."""
        ax = figure.subplots()
        names = list(next(iter(results.parts.values())))
        values = [Estimate.of(_accuracies(results, name)) for name in names]
        ax.barh(names, [float(v.mean) for v in values], xerr=[2 * float(v.error) for v in values], alpha=0.7)
        ax.invert_yaxis()
        ax.set(xlabel="accuracy (%)")


def _accuracies(results: Results, name: str) -> np.ndarray:
    return np.array([part[name] for part in results.parts.values()])


def _better(results: Results, new: str, old: str) -> Finding:
    a, b = _accuracies(results, new), _accuracies(results, old)
    gain = Estimate.of(a - b)
    return superior(
        gain, f"{new} {a.mean():.1f} %, {old} {b.mean():.1f} %: {gain.mean:+.2f} +- {gain.error:.2f} higher."
    )
