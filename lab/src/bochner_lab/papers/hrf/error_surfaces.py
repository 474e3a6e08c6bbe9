"""HRF Figure 1: mean squared errors of three estimators over the angle and the length of the inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._experiment import Experiment, Results, by_profile, statement
from ..._verdicts import Finding
from ._sphere_errors import angular_log_relative_rmse, hyperbolic_log_relative_rmse, trigonometric_log_relative_rmse

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ESTIMATORS = ("trigonometric", "hyperbolic", "angular hybrid")
ENDS = ("at angle 0", "at angle pi")


class ErrorSurfaces(Experiment):
    """Closed forms for inputs of equal lengths."""

    name = "hrf-fig1"
    paper = "hrf"
    item = "Figure 1"
    claim = "Only the error of the angular hybrid vanishes for both angles, zero and pi."
    methods = ESTIMATORS
    profiles = by_profile(
        smoke={"m": 10, "n": 1, "lengths": (0.25, 5.0, 12), "angles": 41},
        full={"m": 10, "n": 1, "lengths": (0.1, 5.0, 50), "angles": 101},
    )
    seconds = by_profile(smoke=0.1, full=1)

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Logarithms of the errors on the grid, and near the two ends of the angle."""
        r, theta = np.linspace(*p["lengths"])[:, None], np.linspace(0, np.pi, p["angles"] + 2)[1:-1]
        near = np.array([1e-6, np.pi - 1e-6])
        found: dict[str, Any] = {"lengths": r[:, 0], "angles": theta}
        for name in ESTIMATORS:
            found[name] = self._log_mse(name, theta, r, p)
            found[f"{name} ends"] = self._log_mse(name, near, r, p) - found[name].max(axis=1, keepdims=True)
        return found

    @staticmethod
    def _log_mse(name: str, theta: np.ndarray, r: np.ndarray, p: Mapping[str, Any]) -> np.ndarray:
        """The relative error of HRF Lemma 3.4 and Theorem 3.1, times the squared kernel."""
        if name == "angular hybrid":
            error = angular_log_relative_rmse(theta, r, p["m"], p["n"])
        else:
            of = trigonometric_log_relative_rmse if name == "trigonometric" else hyperbolic_log_relative_rmse
            error = of(theta, r, p["m"])
        return np.asarray(2 * error + 2 * r**2 * np.cos(theta))

    @statement("At every length the angular hybrid's error within 1e-6 of both ends is below 1e-4 of its largest.")
    def hybrid_vanishes(self, results: Results) -> Finding:
        """Look at both ends."""
        ends = np.array(results.parts["all"]["angular hybrid ends"])
        return Finding(bool((ends < np.log(1e-4)).all()), f"The largest is {np.exp(ends.max()):.1e} of the maximum.")

    @statement("The trigonometric error vanishes at zero only, and that of ++ at pi only, by the same measure.")
    def others_do_not(self, results: Results) -> Finding:
        """Look at both ends of both."""
        low = {name: np.array(results.parts["all"][f"{name} ends"]) < np.log(1e-4) for name in ESTIMATORS[:2]}
        true = [
            low["trigonometric"][:, 0],
            ~low["trigonometric"][:, 1],
            ~low["hyperbolic"][:, 0],
            low["hyperbolic"][:, 1],
        ]
        return Finding(bool(np.all(true)), f"True at {np.all(true, axis=0).sum()} of {len(true[0])} lengths.")

    def plot(self, results: Results, figure: Figure) -> None:
        """Surfaces, as in the paper with r continued to negative values."""
        found = results.parts["all"]
        theta, r = np.array(found["angles"]), np.array(found["lengths"])
        figure.set_size_inches(11, 4.2)
        for k, name in enumerate(ESTIMATORS):
            ax = figure.add_subplot(1, 3, k + 1)
            values = np.array(found[name]) / np.log(10)
            image = ax.pcolormesh(
                theta, np.concatenate([-r[::-1], r]), np.concatenate([values[::-1], values]), shading="nearest"
            )
            ax.set(title=name, xlabel="angle", ylabel="length r")
            figure.colorbar(image, ax=ax, label="log10 of MSE")
