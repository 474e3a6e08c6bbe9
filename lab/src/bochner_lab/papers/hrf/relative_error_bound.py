"""HRF Theorem 3.5: the bound on the largest relative error of the angular hybrid."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bochner.extending import log_max_angular_error_bound

from ..._experiment import Experiment, Results, by_profile, statement
from ..._figures import legend, panels
from ..._verdicts import Finding
from ._sphere_errors import angular_log_relative_rmse, log_max_relative_rmse, log_small_angle_slope

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class RelativeErrorBound(Experiment):
    """The exact largest error on a sphere against the bound as printed, and as corrected."""

    name = "hrf-theorem3.5"
    paper = "hrf"
    item = "Theorem 3.5"
    claim = "The largest relative error of the angular hybrid on a sphere of radius r >= 1 is bounded by Eq. 27."
    methods = ("angular hybrid",)
    deviations = (
        "The error does not depend on the draw: exact values on a fine grid of angles, refined at the maximum. The limit at "
        "pi, printed with the root of the angle minus pi, is read with that of pi minus the angle; its statement was added "
        "after a run that had the limit at zero only."
    )
    profiles = by_profile(
        smoke={"m": 1, "n": (1, 2, 8), "radii": (1.0, 8.0, 15), "angles": 4001},
        full={"m": 1, "n": (1, 2, 4, 8, 50), "radii": (1.0, 12.0, 111), "angles": 40_001},
    )
    seconds = by_profile(smoke=0.2, full=7.8)

    def parts(self, p: Mapping[str, Any]) -> list[str]:
        """One per number of signs."""
        return [f"n={n}" for n in p["n"]]

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Logarithms of the error and of both bounds, relative to that of a base, W(r)/sqrt(2m)."""
        n, m = int(part.partition("=")[2]), p["m"]
        r, theta = np.linspace(*p["radii"]), np.linspace(0, np.pi, p["angles"])[1:-1]
        base = log_max_relative_rmse(r, m)
        error = np.array([angular_log_relative_rmse(theta, one, m, n).max() for one in r]) - base
        printed = 0.5 * np.log(1 / np.pi - 1 / (n * np.pi) + 1 / (n * np.sqrt(np.pi))) - np.log(r)
        small = 1e-7
        ends = {
            end: angular_log_relative_rmse(at, r, m, n) - 0.5 * np.log(small) - log_small_angle_slope(r, m, n)
            for end, at in (("slope", small), ("slope at pi", np.pi - small))
        }
        corrected = log_max_angular_error_bound(r, m, n) - base
        return {"radii": r, "error": error, "printed": printed, "corrected": corrected, **ends}

    @statement("The error is at most the printed bound at every radius and number of signs.")
    def as_printed(self, results: Results) -> Finding:
        """Find violations."""
        failed = {}
        for name, part in results.parts.items():
            above = np.array(part["error"]) > np.array(part["printed"])
            if above.any():
                failed[name] = np.array(part["radii"])[above].min()
        text = "; ".join(f"{name} from r = {r:.2f}" for name, r in failed.items())
        return Finding(not failed, f"It is violated for {text}." if failed else "No violation.")

    @statement(
        "The error is at most the corrected bound, with r in place of r^2 in Eq. 64, at every radius and number of "
        "signs.",
        ours=True,
    )
    def as_corrected(self, results: Results) -> Finding:
        """Find violations."""
        margin = min(np.min(np.subtract(part["corrected"], part["error"])) for part in results.parts.values())
        return Finding(bool(margin >= 0), f"The least margin is a factor of {np.exp(margin):.4f}.")

    @statement("The error over the root of the angle tends to W(r)/sqrt(2 pi m n) at zero, to 1%.")
    def limit(self, results: Results) -> Finding:
        """Look at the angle 1e-7."""
        return self._near(results, "slope")

    @statement("The error over the root of pi minus the angle has the same limit at pi, to 1%.")
    def limit_at_pi(self, results: Results) -> Finding:
        """Look at the angle pi - 1e-7."""
        return self._near(results, "slope at pi")

    @staticmethod
    def _near(results: Results, end: str) -> Finding:
        off = max(np.abs(np.expm1(part[end])).max() for part in results.parts.values())
        return Finding(bool(off < 0.01), f"The largest relative difference is {off:.1e}.")

    def plot(self, results: Results, figure: Figure) -> None:
        """Errors and bounds relative to a base estimator."""
        axes = panels(figure, list(results.parts), "r", "largest relative error / that of a base")
        for ax, part in zip(axes, results.parts.values(), strict=True):
            for k, name in enumerate(("error", "printed", "corrected")):
                ax.plot(part["radii"], np.exp(part[name]), color=f"C{k}", linestyle=("-", ":", "--")[k], label=name)
        legend(figure, axes[0])
