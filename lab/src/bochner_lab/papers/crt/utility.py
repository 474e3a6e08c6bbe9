"""CRT Figure 1, right: how much smaller the variance of OPRF is than that of PosRF."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bochner.extending import optimal_positive_log_relative_mse, positive_log_relative_mse

from ..._experiment import Experiment, Results, Row, by_profile, printed, statement
from ..._verdicts import Finding

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Utility(Experiment):
    """The logarithm of the ratio of the variances, in closed form."""

    name = "crt-fig1"
    paper = "crt"
    item = "Figure 1, right"
    claim = "OPRFs have more than e^60 times smaller variance than PosRFs when d = 64 and |x + y|^2 = 100."
    methods = ("oprf", "positive")
    profiles = by_profile(
        smoke={"d": (2, 64), "V": (0.01, 100.0, 40)},
        full={"d": (2, 4, 8, 16, 32, 64, 128, 256), "V": (0.01, 100.0, 400)},
    )
    seconds = by_profile(smoke=0.1, full=1)

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Utilities over V = |x + y|^2, one curve per dimension."""
        V = np.linspace(*p["V"])
        curves = {
            str(d): optimal_positive_log_relative_mse(V, 1, d) - positive_log_relative_mse(V, 1, d) for d in p["d"]
        }
        return {"V": V, "curves": curves}

    @statement("At d = 64 and |x + y|^2 = 100 the logarithm of the ratio is below -60.")
    def sixty(self, results: Results) -> Finding:
        """The last point of the curve."""
        value = results.parts["all"]["curves"]["64"][-1]
        return Finding(value < -60, f"It is {value:.2f}.")

    @statement("The ratio is below one at every V > 0 and falls with V, for every dimension.")
    def always_better(self, results: Results) -> Finding:
        """Look at all curves."""
        curves = np.array(list(results.parts["all"]["curves"].values()))
        return Finding(bool((curves < 0).all() and (np.diff(curves) < 0).all()), f"The largest is {curves.max():.1e}.")

    def comparison(self, results: Results) -> list[Row]:
        """The one number of the caption."""
        entry = printed("crt", "figure1")
        value = -results.parts["all"]["curves"]["64"][-1]
        return [Row(f"exponent at d = 64, |x+y|^2 = 100 ({entry['where']})", f"> {entry['d64_V100_exponent']}", value)]

    def plot(self, results: Results, figure: Figure) -> None:
        """One curve per dimension."""
        ax, found = figure.subplots(), results.parts["all"]
        for d, values in found["curves"].items():
            ax.plot(found["V"], values, label=f"d = {d}")
        ax.axhline(-60, color="black", linewidth=0.8, linestyle=":")
        ax.set(xlabel="|x + y|^2", ylabel="log of variance of OPRF / variance of PosRF")
        ax.legend(fontsize="small")
