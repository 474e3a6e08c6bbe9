"""SimRF Figure 9 in the small: a vision transformer whose attention has orthogonal or simplex rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._estimates import Estimate
from ..._experiment import Experiment, PowerCheck, Results, by_profile, statement
from ..._figures import curve, legend, panels
from ..._verdicts import Finding, not_worse, superior_somewhere
from .._image_power import power_of_images

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METHODS = {"orthogonal": "favor+", "simplex": "simrf-performer"}


class VisionRows(Experiment):
    """Accuracies along training from scratch, both rows from the same initial weights."""

    name = "simrf-fig9-vit"
    paper = "simrf"
    item = "Figure 9, in the small"
    claim = "A vision transformer with simplex rows is often more accurate than with orthogonal ones, and never worse."
    data = ("mnist", "fashion-mnist-test")
    methods = tuple(METHODS)
    extras = ("torch",)
    deviations = (
        "A transformer of two layers on MNIST and on the 10000 test images of Fashion-MNIST (2000 images held out), in "
        "place of twelve layers on ImageNet, Fashion-MNIST, I-Naturalist and Places. 32 rows for heads of width 16, as "
        "130 rows for heads of width 64 in the paper: two blocks. The smoke profile has the digits of scikit-learn. "
        "The power check came after the run of the models. With their spread on MNIST, half a percent would need about 150 "
        "seeds, of models that are more accurate than a linear classifier of pixels: with 16 patches in place of 49, and "
        "1200 steps of 64 images, they are, on MNIST."
    )
    profiles = by_profile(
        smoke={
            "data": ("digits",), "seeds": 2, "width": 16, "layers": 1, "heads": 1, "rows": 32, "test": 200, "batch": 32,
            "steps": 8, "evaluations": 2,
        },
        full={
            "data": ("mnist", "fashion-mnist-test"), "seeds": 5, "width": 32, "layers": 2, "heads": 2, "rows": 32,
            "test": 2000, "batch": 32, "steps": 400, "evaluations": 4,
        },
    )  # fmt: skip
    seconds = by_profile(smoke=2, full=470)

    def parts(self, p: Mapping[str, Any]) -> list[str]:
        """One per data set and seed, and the trivial rivals of each data set."""
        return [f"{data}, {k}" for data in p["data"] for k in (*(f"seed {k}" for k in range(p["seeds"])), "rivals")]

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Accuracies along training, by rows."""
        from .._transformers import (
            Images,
            Shape,
            VisionTransformer,
            accuracies_of_rivals,
            learning_curve,
            with_attention,
        )  # fmt: skip

        seed = int(rng.integers(2**31))
        images = Images(part.split(",")[0], p["test"], p["batch"], seed)
        if part.endswith("rivals"):
            return accuracies_of_rivals(images, p["steps"])
        start = VisionTransformer(images.side, Shape(p["width"], p["layers"], p["heads"]), seed)
        return {
            rows: learning_curve(with_attention(start, name, p["rows"], seed), images, p["steps"], p["evaluations"])
            for rows, name in METHODS.items()
        }

    @statement(
        "On no data set is the accuracy of simplex rows at the end of training below that of orthogonal rows by more than "
        "0.5 %, the gain that the paper reports (95 % intervals, paired by seed)."
    )
    def never_worse(self, results: Results) -> Finding:
        """Compare the ends."""
        gains = self._gains(results)
        return not_worse(Estimate.stack(gains.values()), 0.005, _text(gains))

    @statement(
        "On at least one data set the accuracy of simplex rows at the end of training is above that of orthogonal rows "
        "(95 % intervals, paired by seed)."
    )
    def often_better(self, results: Results) -> Finding:
        """Compare the ends."""
        gains = self._gains(results)
        return superior_somewhere(Estimate.stack(gains.values()), _text(gains))

    def power(self, results: Results) -> PowerCheck:
        """A linear classifier next to the models, on every data set."""
        checks = [
            power_of_images(
                {f"{name} ({data})": value for name, value in results.parts[f"{data}, rivals"].items()},
                {f"{rows} ({data})": float(self._curves(results, data, rows)[:, -1].mean()) for rows in METHODS},
            )
            for data in results.parameters["data"]
        ]
        return PowerCheck(
            all(check.passed for check in checks),
            " ".join(check.sentence for check in checks),
            tuple(row for check in checks for row in check.rows),
        )

    def plot(self, results: Results, figure: Figure) -> None:
        """Accuracy over steps."""
        p = results.parameters
        axes = panels(figure, p["data"], "steps", "accuracy", scale="linear")
        steps = np.arange(1, p["evaluations"] + 1) * p["steps"] / p["evaluations"]
        for ax, data in zip(axes, p["data"], strict=True):
            for k, rows in enumerate(METHODS):
                curve(ax, steps, Estimate.of(self._curves(results, data, rows)), rows, k)
        legend(figure, axes[0])

    def _curves(self, results: Results, data: str, rows: str) -> np.ndarray:
        return np.array([part[rows] for name, part in results.parts.items() if name.startswith(f"{data}, seed")])

    def _gains(self, results: Results) -> dict[str, Estimate]:
        """How much more accurate simplex rows are at the end, by data set."""
        found = {}
        for data in results.parameters["data"]:
            orthogonal, simplex = (self._curves(results, data, rows)[:, -1] for rows in METHODS)
            found[data] = Estimate.of(simplex - orthogonal)
        return found


def _text(gains: Mapping[str, Estimate]) -> str:
    return "; ".join(f"{data} {100 * g.mean:+.2f} +- {100 * g.error:.2f} %" for data, g in gains.items()) + "."
