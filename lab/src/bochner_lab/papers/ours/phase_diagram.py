"""Which estimator of the softmax kernel is best where: lengths, angles and FLOPs, in closed form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bochner import catalogue
from bochner.approximation import Approximation
from bochner.maps import AngularHybrid, GaussianHybrid

from ..._estimates import share
from ..._experiment import Experiment, Results, by_profile, statement
from ..._verdicts import Finding
from ..hrf._costs import equal_flops

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PLAIN = {"trigonometric": "trigonometric", "FAVOR+ (Eq. 3)": "hyperbolic", "positive": "positive"}
HYBRIDS = {"angular hybrid": AngularHybrid, "Gaussian hybrid": GaussianHybrid}
ESTIMATORS = (*PLAIN, *HYBRIDS)
LANGUAGE = "language model"


class PhaseDiagram(Experiment):
    """Two vectors of one length at every angle, and the lengths of a language model of words, at equal FLOPs."""

    name = "ours-phase-diagram"
    paper = "ours"
    item = "Where hybrids win"
    claim = (
        "At equal FLOPs the angular hybrid has the smallest largest error for vectors of length one; for long vectors every "
        "estimator is noise."
    )
    methods = ESTIMATORS
    deviations = (
        "Independent rows for every estimator, d = 64. Hybrids have n = 8 coefficients, as HRF has, and the most rows whose "
        "features take no more FLOPs than M trigonometric rows (HRF Section L, counted). The lengths of the language model, "
        "4.47 and 1.40, are medians measured in a model of words, which hrf-fig3 had before."
    )
    profiles = by_profile(
        smoke={"d": 64, "n": 8, "rows": (64, 512), "lengths": (0.5, 3.0, 4), "angles": 7, "model": (4.47, 1.40)},
        full={
            "d": 64,
            "n": 8,
            "rows": (32, 64, 128, 256, 512, 1024, 2048),
            "lengths": (0.25, 4.0, 17),
            "angles": 25,
            "model": (4.47, 1.40),
        },
    )
    seconds = by_profile(smoke=0.2, full=1)

    def parts(self, p: Mapping[str, Any]) -> list[str]:
        """One per number of rows."""
        return [f"M={rows}" for rows in p["rows"]]

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Root relative errors, lengths by angles, of every estimator; and by angle at the lengths of the model."""
        rows, kernel, iid = int(part[2:]), catalogue.kernel("softmax"), catalogue.projection("iid")
        m = equal_flops(rows, p["d"], p["n"])
        specs = {name: Approximation(kernel, catalogue.map(one), iid, rows) for name, one in PLAIN.items()}
        specs |= {name: Approximation(kernel, one(p["n"]), iid, m) for name, one in HYBRIDS.items()}
        lengths, (query, key) = self._lengths(p), p["model"]
        found: dict[str, Any] = {"rows of hybrids": m}
        for name, spec in specs.items():
            grid = np.array([_relative(spec, r, r, p["d"], p["angles"]) for r in lengths])
            found[name] = {"grid": grid, LANGUAGE: _relative(spec, query, key, p["d"], p["angles"])}
        return found

    @staticmethod
    def _lengths(p: Mapping[str, Any]) -> np.ndarray:
        return np.geomspace(*p["lengths"])

    @statement(
        "At lengths up to one the angular hybrid has the smallest largest error over the angles of the three estimators of "
        "HRF, for every number of FLOPs."
    )
    def hybrid_at_unit_lengths(self, results: Results) -> Finding:
        """Compare the largest errors."""
        lengths = self._lengths(results.parameters)
        true, ratios = [], []
        for part in results.parts.values():
            worst = {name: np.max(part[name]["grid"], axis=1) for name in ESTIMATORS}
            for k in np.flatnonzero(lengths <= 1.0 + 1e-9):
                rival = min(worst["trigonometric"][k], worst["FAVOR+ (Eq. 3)"][k])
                true.append(worst["angular hybrid"][k] < rival)
                ratios.append(worst["angular hybrid"][k] / rival)
        return Finding(all(true), f"True at {share(true)} points; ratios from {min(ratios):.2f} to {max(ratios):.2f}.")

    @statement(
        "The angular hybrid is the best of the three at every angle between 45 and 135 degrees, at lengths up to one."
    )
    def hybrid_between(self, results: Results) -> Finding:
        """Compare at the middle angles."""
        lengths, angles = self._lengths(results.parameters), np.linspace(0, 1, results.parameters["angles"])
        middle = (angles >= 0.25) & (angles <= 0.75)
        true = []
        for part in results.parts.values():
            grid = {name: np.array(part[name]["grid"])[lengths <= 1.0 + 1e-9][:, middle] for name in ESTIMATORS}
            true.append(grid["angular hybrid"] < np.minimum(grid["trigonometric"], grid["FAVOR+ (Eq. 3)"]))
        return Finding(bool(np.all(true)), f"True at {share(np.array(true))} points.")

    @statement(
        "At the lengths of the language model every estimator has a relative error above one at a right angle, for all "
        "FLOPs."
    )
    def noise(self, results: Results) -> Finding:
        """The smallest error at a right angle."""
        middle = results.parameters["angles"] // 2
        errors = {
            f"{name}, {key}": part[name][LANGUAGE][middle] for key, part in results.parts.items() for name in ESTIMATORS
        }
        least = min(errors, key=lambda key: errors[key])
        return Finding(errors[least] > 1, f"The smallest is {errors[least]:.3g} ({least}).")

    @statement(
        "With 512 rows there is a length beyond which no estimator has a largest error over the angles below one."
    )
    def boundary(self, results: Results) -> Finding:
        """Where the largest errors cross one."""
        lengths, part = self._lengths(results.parameters), results.parts["M=512"]
        reach = {}
        for name in ESTIMATORS:
            useful = lengths[np.max(part[name]["grid"], axis=1) < 1]
            reach[name] = float(useful.max()) if useful.size else 0.0
        shown = ", ".join(f"{name} {value:.2f}" for name, value in reach.items())
        return Finding(max(reach.values()) < lengths[-1], f"Largest lengths with a largest error below one: {shown}.")

    def plot(self, results: Results, figure: Figure) -> None:
        """The best estimator by length and angle, in grey where its error is above one."""
        parts = {key: results.parts[key] for key in list(results.parts)[:: max(1, len(results.parts) // 3)]}
        lengths, angles = self._lengths(results.parameters), np.linspace(0, np.pi, results.parameters["angles"])
        axes = figure.subplots(1, len(parts), squeeze=False)[0]
        for ax, (key, part) in zip(axes, parts.items(), strict=True):
            grid = np.array([part[name]["grid"] for name in ESTIMATORS])
            best = np.where(grid.min(axis=0) < 1, grid.argmin(axis=0), np.nan)
            ax.pcolormesh(angles, lengths, best, cmap="tab10", vmin=-0.5, vmax=9.5, shading="nearest")
            ax.set(title=key, xlabel="angle", ylabel="length", yscale="log", facecolor="lightgrey")
        for k, name in enumerate(ESTIMATORS):
            axes[0].plot([], [], "s", color=f"C{k}", label=name)
        figure.legend(loc="outside lower center", ncols=3, title="best estimator; grey: every error above one")


def _relative(spec: Approximation, x: float, y: float, d: int, angles: int) -> np.ndarray:
    """Root relative errors of two vectors of given lengths, by angle."""
    theta = np.linspace(0, np.pi, angles)
    X, Y = np.zeros((1, d)), np.zeros((angles, d))
    X[0, 0], Y[:, 0], Y[:, 1] = x, y * np.cos(theta), y * np.sin(theta)
    return np.asarray(np.sqrt(spec.mse(X, Y)[0]) / np.exp(x * y * np.cos(theta)))
