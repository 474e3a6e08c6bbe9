"""What frames, dense constants and calibration are worth: a trained vision transformer converted without training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bochner import kernels, maps, projections
from bochner.approximation import Approximation

from ..._estimates import Estimate
from ..._experiment import REJUDGED, Experiment, Results, Row, by_profile, dataset, statement
from ..._figures import curve
from ..._verdicts import Finding, interval, superior

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAPS: dict[str, Any] = {
    "FAVOR+": maps.Positive(),
    "FAVOR++": maps.OptimalPositive(),
    "FAVOR++ in a frame": maps.Framed(maps.OptimalPositive()),
    "dense": maps.DenseExponential(),
    "dense, calibrated": maps.DenseExponential(),
}
TABLE = "cpu_act"


class AttentionConversion(Experiment):
    """Attention matrices and accuracy of converted models, and a table with outliers, on data that no constant has seen."""

    name = "ours-attention-conversion"
    paper = "ours"
    item = "Frames, dense features and calibration"
    claim = (
        "With as many rows as FAVOR++, dense features halve the error of attention matrices, and a trained model keeps "
        "its accuracy without further training; on cpu_act the error of the Gaussian kernel is 20 times lower."
    )
    data = ("mnist", TABLE)
    methods = tuple(MAPS)
    extras = ("torch",)
    deviations = (
        "Constants come from training images, or from the rows of the table that are not judged. Rows of W are "
        "orthogonal for attention, and independent on cpu_act, where the mean square error has a closed form. cpu_act has "
        "outliers of thirty standard deviations: the mean square error over draws and pairs is dominated by the rarest "
        "draws and the farthest pairs, and says little about a single draw, so both are judged. The smoke profile has the "
        "digits of scikit-learn. " + REJUDGED
    )
    profiles = by_profile(
        smoke={
            "data": "digits", "models": 2, "width": 16, "layers": 1, "heads": 1, "rows": 32, "test": 100, "batch": 32,
            "steps": 10, "batches": 1, "images": 8, "draws": 2, "splits": 3, "points": 50, "features": 64,
        },
        full={
            "data": "mnist", "models": 3, "width": 64, "layers": 3, "heads": 4, "rows": 64, "test": 1000, "batch": 64,
            "steps": 400, "batches": 4, "images": 32, "draws": 3, "splits": 40, "points": 500, "features": 256,
        },
    )  # fmt: skip
    seconds = by_profile(smoke=3, full=820)

    def parts(self, p: Mapping[str, Any]) -> list[str]:
        """One per trained model, and one for the table."""
        return [*(f"model {k}" for k in range(p["models"])), TABLE]

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Errors and accuracies by method."""
        return kernel_errors(p, rng) if part == TABLE else converted_model(p, rng)

    @statement(
        "The mean relative error of the attention matrices of dense features, calibrated, is at most 0.36 (95 % "
        "interval over models)."
    )
    def error_calibrated(self, results: Results) -> Finding:
        """Compare with the goal."""
        return self._error(results, "dense, calibrated")

    @statement("The same for dense features with constants from queries and keys, not weighted by attention.")
    def error_dense(self, results: Results) -> Finding:
        """Compare with the goal."""
        return self._error(results, "dense")

    @statement(
        "The accuracy after conversion without training is at least 0.86 with dense features, calibrated (95 % "
        "interval over models)."
    )
    def accuracy_calibrated(self, results: Results) -> Finding:
        """Compare with the goal."""
        return self._accuracy(results, "dense, calibrated")

    @statement("The same for dense features that are not calibrated.")
    def accuracy_dense(self, results: Results) -> Finding:
        """Compare with the goal."""
        return self._accuracy(results, "dense")

    @statement(
        "On cpu_act, the root of the mean square error over draws and over pairs of different rows is at least 20 times "
        "lower with dense features than with FAVOR++ (95 % interval of the geometric mean over splits)."
    )
    def table_mean_square(self, results: Results) -> Finding:
        """Compare closed forms."""
        return self._ratio(results, "closed form")

    @statement(
        "On cpu_act, the error of the kernel matrix of a draw is at least 20 times lower with dense features than with "
        "FAVOR++ (95 % interval of the geometric mean over splits)."
    )
    def table_draws(self, results: Results) -> Finding:
        """Compare simulations."""
        return self._ratio(results, "draw")

    def _error(self, results: Results, name: str) -> Finding:
        found = self._over_models(results, name, "error")
        below = Estimate(0.36 - found.mean, found.error, found.samples)
        return superior(below, self._beside(results, found, "error"))

    def _accuracy(self, results: Results, name: str) -> Finding:
        found = self._over_models(results, name, "accuracy")
        exact = np.mean([part["softmax"] for part in self._models(results)])
        text = f"{self._beside(results, found, 'accuracy')} Softmax {exact:.3f}."
        return superior(found, text, least=0.86)

    def _beside(self, results: Results, found: Estimate, kind: str) -> str:
        other = self._over_models(results, "FAVOR++", kind)
        return f"{found.mean:.3f} +- {found.error:.3f}; FAVOR++ {other.mean:.3f} +- {other.error:.3f}."

    def _ratio(self, results: Results, kind: str) -> Finding:
        errors = results.parts[TABLE]
        logs = Estimate.of(np.log(errors["FAVOR++"][kind]) - np.log(errors["dense"][kind]))
        low, mean, high = np.exp([*interval(logs), logs.mean])[[0, 2, 1]]
        medians = " and ".join(f"{np.median(errors[name][kind]):.3g} ({name})" for name in ("FAVOR++", "dense"))
        text = f"{mean:.3g} times lower, {low:.3g} to {high:.3g}; medians over splits {medians}."
        return superior(logs, text, least=float(np.log(20)))

    def comparison(self, results: Results) -> list[Row]:
        """Every method, without printed numbers."""
        rows = []
        for kind in ("error", "accuracy"):
            for name in MAPS:
                found = self._over_models(results, name, kind)
                rows.append(Row(f"{kind}, {name}", "", float(found.mean), float(found.error)))
        return rows

    def plot(self, results: Results, figure: Figure) -> None:
        """Errors of attention matrices, accuracies, and errors on the table."""
        axes = figure.subplots(1, 3)
        for ax, kind in zip(axes, ("error", "accuracy"), strict=False):
            for k, name in enumerate(MAPS):
                found = self._over_models(results, name, kind)
                curve(ax, [k], Estimate(found.mean[None], found.error[None]), name, k)
            ax.set_xticks(range(len(MAPS)), list(MAPS), rotation=60, fontsize="x-small")
        axes[0].set_title("relative error of attention matrices", fontsize="small")
        axes[1].set_title("accuracy after conversion; line: softmax", fontsize="small")
        axes[1].axhline(float(np.mean([part["softmax"] for part in self._models(results)])), color="grey", linewidth=1)
        errors = results.parts[TABLE]
        axes[2].scatter(errors["FAVOR++"]["closed form"], errors["dense"]["closed form"], s=8, label="mean square")
        axes[2].scatter(errors["FAVOR++"]["draw"], errors["dense"]["draw"], s=8, label="one draw")
        ends = np.array([min(errors["dense"]["draw"]), max(errors["FAVOR++"]["closed form"])])
        axes[2].plot(ends, ends, color="grey", linewidth=0.7)
        axes[2].set(xscale="log", yscale="log", xlabel="FAVOR++", ylabel="dense")
        axes[2].set_title("cpu_act: relative error, splits", fontsize="small")
        axes[2].legend(fontsize="x-small")

    def _models(self, results: Results) -> list[Mapping[str, Any]]:
        return [part for name, part in results.parts.items() if name != TABLE]

    def _over_models(self, results: Results, name: str, kind: str) -> Estimate:
        return Estimate.of([np.mean(part[kind][name]) for part in self._models(results)])


def converted_model(p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Train with softmax, convert with each method and draw: errors of attention on test images, and accuracies."""
    import torch

    from bochner.nn import calibrate, replace_attention

    from .._recorded_attention import record
    from .._transformers import Images, Shape, VisionTransformer, train

    seed = int(rng.integers(2**31))
    images = Images(p["data"], p["test"], p["batch"], seed)
    model = VisionTransformer(images.side, Shape(p["width"], p["layers"], p["heads"]), seed)
    for _ in train(model, images, p["steps"]):
        pass
    batches = [images.training_batch(p["steps"] + k)[0] for k in range(p["batches"])]
    calls = record(model, batches[0])
    seen = [[_points(call, h) for h in range(call.q.shape[1])] for call in calls]
    tested = record(model, images.take(np.arange(p["images"]))[0])
    found: dict[str, Any] = {"softmax": images.evaluate(model), "error": {}, "accuracy": {}}
    plans: Mapping[str, Any]
    for name, feature_map in MAPS.items():
        spec = Approximation(kernels.Softmax(), feature_map, projections.Orthogonal(), p["rows"])
        if name == "dense, calibrated":
            plans = calibrate(model, batches, spec=spec)
        else:
            plans = {c.name: [spec.plan(X, Y, rng) for X, Y in heads] for c, heads in zip(calls, seen, strict=True)}
        found["error"][name] = [
            call.error_of(h, plan.draw(call.q.shape[-1], rng))
            for layer, call in zip(plans.values(), tested, strict=True)
            for h, plan in enumerate(layer)
            for _ in range(p["draws"])
        ]
        generator = torch.Generator().manual_seed(seed)
        found["accuracy"][name] = [
            images.evaluate(replace_attention(model, plans, copy=True, generator=generator)) for _ in range(p["draws"])
        ]
    return found


def _points(call: Any, head: int) -> tuple[np.ndarray, np.ndarray]:
    """All queries and all keys of a head, times the root of the scale."""
    X, Y = ((x[:, head].double().flatten(0, 1) * call.scale**0.5).numpy() for x in (call.q, call.k))
    return X, Y


def kernel_errors(p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Relative errors of the Gaussian kernel on rows that the constants do not come from, one for each split."""
    table = np.asarray(dataset(TABLE).X, dtype=np.float64)
    found: dict[str, Any] = {name: {"closed form": [], "draw": []} for name in ("FAVOR++", "dense")}
    for _ in range(p["splits"]):
        order = rng.permutation(len(table))
        rest, points = table[order[p["points"] :]], table[order[: p["points"]]]
        mean, deviation = rest.mean(0), rest.std(0)
        rest, points = (rest - mean) / deviation, (points - mean) / deviation
        kernel = kernels.Gaussian(median_distance(rest[:1000]))
        exact = kernel(points)
        for name, errors in found.items():
            spec = Approximation(kernel, MAPS[name], projections.IID(), p["features"]).with_width(p["features"])
            plan = spec.plan(rest, rng=rng)
            square = plan.mse(points)
            np.fill_diagonal(square, 0.0)
            errors["closed form"].append(np.sqrt(square.sum()) / np.linalg.norm(exact))
            drawn = plan.draw(points.shape[1], rng).gram(points)
            errors["draw"].append(np.linalg.norm(drawn - exact) / np.linalg.norm(exact))
    return found


def median_distance(X: np.ndarray) -> float:
    """The median distance of different rows."""
    squares = (X**2).sum(1)
    distances = np.sqrt(np.maximum(squares[:, None] + squares - 2 * X @ X.T, 0.0))
    return float(np.median(distances[np.triu_indices(len(X), 1)]))
