"""HRF Figures 2 and 5: pointwise estimates of the softmax kernel at every angle, for three lengths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bochner import catalogue
from bochner.approximation import Approximation
from bochner.maps import AngularHybrid, GaussianHybrid

from ..._estimates import Estimate, share
from ..._experiment import Experiment, Results, by_profile, statement
from ..._figures import curve, legend, panels
from ..._verdicts import Finding, together

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METHODS = ("favor", "favor+", "hrf-angular", "hrf-angular (equal FLOPs)")
HYBRIDS = METHODS[2:]
CLOSED, TRIGONOMETRIC, PLUS_PLUS, GAUSSIAN = "closed forms", "trigonometric", "++", "hrf-gaussian"
SIZES = ((16, 8), (40, 24))
"""The (m, n) of the two hybrids."""


class Pointwise(Experiment):
    """Estimates for inputs of one length, at angles from zero to pi."""

    name = "hrf-fig2"
    paper = "hrf"
    item = "Figures 2 and 5"
    claim = (
        "The angular hybrid approximates the softmax kernel most accurately and has the smallest largest relative "
        "error."
    )
    methods = METHODS
    deviations = (
        "The paper matches FLOPs by m n = M, which its formulas do not support: at d = 64 the hybrid with m = 16 and "
        "n = 8 needs a quarter of the multiplications of 128 projections. A second hybrid, m = 40 and n = 24, has as many "
        "(97%); it was added when the first had been seen to fail, and is shown apart. Largest errors are judged by closed "
        "forms, with independent rows for every "
        "method: a mean of draws is carried by rare ones. FAVOR+ of the paper is the ++ map of its Eq. 3; the one-sided "
        "map, with up to twice its variance, is simulated beside it."
    )
    profiles = by_profile(
        smoke={
            "d": 64,
            "rows": 128,
            "hybrids": SIZES,
            "lengths": (1.0, 1.5),
            "angles": 9,
            "samples": 150,
        },
        full={
            "d": 64,
            "rows": 128,
            "hybrids": SIZES,
            "lengths": (1.0, 1.25, 1.5),
            "angles": 21,
            "samples": 10_000,
        },
    )
    seconds = by_profile(smoke=1, full=440)

    def parts(self, p: Mapping[str, Any]) -> tuple[str, ...]:
        """One per method, and the closed forms."""
        return (*METHODS, CLOSED)

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Squared relative errors and the 5% and 95% quantiles of the estimates, (lengths, angles) each."""
        X, Y, exact = self._inputs(p)
        if part == CLOSED:
            return self._closed_forms(X, Y, exact, p)
        spec = self._specification(part, p)
        draws = []
        for _ in range(p["samples"]):
            phi = spec.draw(p["d"], rng)
            draws.append((phi.queries(X) * phi.keys(Y)).sum(-1))
        shape = (len(p["lengths"]), p["angles"])
        estimates = np.array(draws)
        quantiles = np.quantile(estimates, (0.05, 0.95), axis=0).reshape(2, *shape)
        squares = Estimate.of((estimates / exact - 1) ** 2)
        reshaped = Estimate(squares.mean.reshape(shape), squares.error.reshape(shape))
        return reshaped.as_numbers() | {"quantiles": quantiles, "exact": exact.reshape(shape)}

    @staticmethod
    def _inputs(p: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Pairs with the first point in a random but fixed direction, at every length and angle."""
        theta = np.linspace(0, np.pi, p["angles"])
        frame = np.linalg.qr(np.random.default_rng(0).standard_normal((p["d"], 2)))[0].T
        unit = np.cos(theta)[:, None] * frame[0] + np.sin(theta)[:, None] * frame[1]
        X = np.concatenate([r * np.broadcast_to(frame[0], unit.shape) for r in p["lengths"]])
        Y = np.concatenate([r * unit for r in p["lengths"]])
        return X, Y, np.exp((X * Y).sum(-1))

    @staticmethod
    def _specification(method: str, p: Mapping[str, Any]) -> Approximation:
        if method in HYBRIDS:
            m, n = p["hybrids"][HYBRIDS.index(method)]
            return replace(catalogue.mechanism("hrf-angular", n_projections=m), map=AngularHybrid(n))
        return catalogue.mechanism(method, n_projections=p["rows"])

    @staticmethod
    def _closed_forms(X: np.ndarray, Y: np.ndarray, exact: np.ndarray, p: Mapping[str, Any]) -> dict[str, Any]:
        """Root relative errors (lengths, angles) of every method with independent rows."""
        kernel, rows, iid = catalogue.kernel("softmax"), p["rows"], catalogue.projection("iid")
        specs = {
            TRIGONOMETRIC: Approximation(kernel, catalogue.map("trigonometric"), iid, rows),
            PLUS_PLUS: Approximation(kernel, catalogue.map("hyperbolic"), iid, rows),
        }
        for name, (m, n) in zip(HYBRIDS, p["hybrids"], strict=True):
            specs[name] = Approximation(kernel, AngularHybrid(n), iid, m)
        m, n = p["hybrids"][0]
        specs[GAUSSIAN] = Approximation(kernel, GaussianHybrid(n), iid, m)
        shape = (len(p["lengths"]), p["angles"])
        return {name: np.sqrt(np.diagonal(spec.mse(X, Y)) / exact**2).reshape(shape) for name, spec in specs.items()}

    @statement(
        "The hybrid with the paper's m = 16 and n = 8 has a smaller largest relative error over the angles than "
        "trigonometric and ++ features with 128 rows, at every length, in closed form."
    )
    def largest(self, results: Results) -> Finding:
        """Compare the maxima."""
        return self._smaller(results, HYBRIDS[0])

    @statement(
        "The Gaussian hybrid with the same m and n has similar gains: its largest error, too, is smaller at every length."
    )
    def gaussian(self, results: Results) -> Finding:
        """Compare the maxima."""
        return self._smaller(results, GAUSSIAN)

    @statement(
        "The hybrid with the paper's m and n has the lowest error of the three at more than half of the angles that are not "
        "an end, in closed form."
    )
    def everywhere(self, results: Results) -> Finding:
        """Count the angles."""
        return self._lowest(results, HYBRIDS[0])

    @statement("With m = 40 and n = 24, which need as many FLOPs as 128 rows, both are true.", ours=True)
    def equal_flops(self, results: Results) -> Finding:
        """Compare the second hybrid."""
        found = self._smaller(results, HYBRIDS[1]), self._lowest(results, HYBRIDS[1])
        return together(found, " ".join(one.evidence for one in found))

    def _smaller(self, results: Results, hybrid: str) -> Finding:
        found = {name: np.max(results.parts[CLOSED][name], axis=1) for name in (TRIGONOMETRIC, PLUS_PLUS, hybrid)}
        true = (found[hybrid] < found[TRIGONOMETRIC]) & (found[hybrid] < found[PLUS_PLUS])
        shown = "; ".join(f"{name} {', '.join(f'{v:.3g}' for v in value)}" for name, value in found.items())
        return Finding(bool(true.all()), f"Largest errors by length: {shown}.")

    def _lowest(self, results: Results, hybrid: str) -> Finding:
        errors = {name: np.array(values)[:, 1:-1] for name, values in results.parts[CLOSED].items()}
        true = (errors[hybrid] < errors[TRIGONOMETRIC]) & (errors[hybrid] < errors[PLUS_PLUS])
        return Finding(bool(true.mean() > 0.5), f"It is lowest at {share(true)} points.")

    def plot(self, results: Results, figure: Figure) -> None:
        """Relative errors over the angle."""
        lengths, theta = results.parameters["lengths"], np.linspace(0, np.pi, results.parameters["angles"])
        axes = panels(figure, [f"r = {r}" for r in lengths], "angle", "relative error")
        for k, name in enumerate(METHODS):
            error = Estimate.read(results.parts[name]).root()
            for i, ax in enumerate(axes):
                shown = error.mean[i] > 1e-9  # some are exact at an end
                curve(ax, theta[shown], error[i][shown], name, k)
        legend(figure, axes[0])
