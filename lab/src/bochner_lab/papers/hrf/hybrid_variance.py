"""HRF Theorems 3.1, D.1, F.1 and F.2: the errors of angular and Gaussian hybrids, shared and independent projections."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bochner import catalogue
from bochner.approximation import Approximation
from bochner.extending import Map
from bochner.maps import AngularHybrid, GaussianHybrid

from ..._estimates import Estimate
from ..._experiment import Experiment, Results, by_profile, statement
from ..._verdicts import Finding, agreement

if TYPE_CHECKING:
    from matplotlib.figure import Figure

M, N = 3, 4
MAPS: dict[str, Map] = {
    "angular, independent": AngularHybrid(N, shared=False),
    "angular, shared": AngularHybrid(N, shared=True),
    "gaussian, independent": GaussianHybrid(sigma=0.8, radius=1.0, n_coefficients=N, shared=False),
    "gaussian, shared": GaussianHybrid(sigma=0.8, radius=1.0, n_coefficients=N, shared=True),
}


class HybridVariance(Experiment):
    """Squared errors of drawn hybrids against the closed forms, at pairs of equal and of different lengths."""

    name = "hrf-theorem3.1"
    paper = "hrf"
    item = "Theorems 3.1, D.1, F.1 and F.2"
    claim = (
        "The errors of hybrids are those of Theorems 3.1, D.1, F.1 and F.2; sharing projections between the two base "
        "estimators lowers the error of bipolar hybrids, and leaves it the same where both inputs have one length."
    )
    deviations = (
        "Sharing is compared in simulated errors. A previous rule compared closed forms only, for the angular hybrid "
        "only, where Eq. 46 cannot fail by construction; Theorem 3.1 says it of every bipolar hybrid."
    )
    methods = tuple(MAPS)
    profiles = by_profile(smoke={"d": 4, "draws": 500}, full={"d": 4, "draws": 30_000})
    seconds = by_profile(smoke=3, full=110)

    def parts(self, p: Mapping[str, Any]) -> tuple[str, ...]:
        """One per hybrid."""
        return tuple(MAPS)

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Means of squared errors by pair, and the closed form."""
        X, Y = self._pairs(p["d"])
        spec = Approximation(catalogue.kernel("softmax"), MAPS[part], catalogue.projection("iid"), M)
        exact = np.exp((X * Y).sum(-1))
        errors = []
        for _ in range(p["draws"]):
            phi = spec.draw(p["d"], rng)
            errors.append(((phi.queries(X) * phi.keys(Y)).sum(-1) - exact) ** 2)
        closed = [spec.mse(x[None], y[None])[0, 0] for x, y in zip(X, Y, strict=True)]
        return Estimate.of(errors).as_numbers() | {"closed form": closed, "Eq. 47 as printed": self._printed(X, Y)}

    @staticmethod
    def _pairs(d: int) -> tuple[np.ndarray, np.ndarray]:
        """Unit vectors at three angles, and a pair of different lengths."""
        theta = np.array([1.6, 2.0, 2.6, 2.0])
        X, Y = np.zeros((2, len(theta), d))
        X[:, 0], Y[:, 0], Y[:, 1] = 1.0, np.cos(theta), np.sin(theta)
        X[-1] *= 1.3
        Y[-1] *= 0.6
        return X, Y

    @staticmethod
    def _printed(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """Eq. 47 of Theorem D.1 for unit vectors, with its second coefficient as printed."""
        half = np.arccos(np.clip((X * Y).sum(-1), -1, 1)) / 2
        p = 2 * half / np.pi
        plus = np.exp(8 * np.cos(half) ** 2 - 2) * np.expm1(-4 * np.cos(half) ** 2) ** 2
        trig = np.exp(2.0) * np.expm1(-4 * np.sin(half) ** 2) ** 2
        return np.asarray((p * (p - p / N + 1 / N) * plus + p * (1 - 1 / N - p + p / N) * trig) / (2 * M))

    @statement(
        "Theorems 3.1 and F.1 with the covariance of shared projections: simulated errors agree within four standard "
        "errors for all hybrids and pairs, and to a tenth at more than half of them."
    )
    def closed_forms(self, results: Results) -> Finding:
        """Compare them."""
        parts = results.parts.values()
        simulated = Estimate.stack(Estimate.read(part) for part in parts)
        return agreement(simulated, np.concatenate([part["closed form"] for part in parts]))

    @statement(
        "Eq. 47 of Theorem D.1 as printed agrees within four standard errors for pairs of unit length, and to a tenth at "
        "more than half of them."
    )
    def as_printed(self, results: Results) -> Finding:
        """Compare the first three pairs."""
        part = results.parts["angular, independent"]
        found = agreement(Estimate.read(part)[:3], part["Eq. 47 as printed"][:3])
        numbers = ", ".join(
            f"{a:.4f} against {b:.4f}" for a, b in zip(part["Eq. 47 as printed"][:3], part["mean"], strict=False)
        )
        return replace(found, evidence=f"{found.evidence} Printed and simulated: {numbers}.")

    @statement(
        "Theorem D.1: where lengths differ, the error of the angular hybrid is lower with shared than with independent "
        "projections (closed form)."
    )
    def sharing_angular(self, results: Results) -> Finding:
        """Compare the last pair."""
        return self._sharing(results, "angular")

    @statement(
        "Theorem 3.1: where lengths differ, the error of the Gaussian hybrid, too, is lower with shared than with "
        "independent projections (closed form)."
    )
    def sharing_gaussian(self, results: Results) -> Finding:
        """Compare the last pair."""
        return self._sharing(results, "gaussian")

    @statement(
        "Theorems D.1 and F.2: for pairs of unit length, simulated errors with shared and with independent projections "
        "differ by at most four standard errors of the difference for both hybrids, and by a tenth at more than half of "
        "them."
    )
    def sharing_same_lengths(self, results: Results) -> Finding:
        """Compare the first three pairs."""
        pairs = [tuple(one[:3] for one in self._both(results, name)) for name in ("angular", "gaussian")]
        own = Estimate.stack(Estimate(own.mean, np.hypot(own.error, shared.error)) for own, shared in pairs)
        return agreement(own, np.concatenate([shared.mean for _, shared in pairs]))

    def plot(self, results: Results, figure: Figure) -> None:
        """Simulated over closed-form errors."""
        ax = figure.subplots()
        for k, (name, part) in enumerate(results.parts.items()):
            closed = np.array(part["closed form"])
            at = np.arange(len(closed)) + 0.12 * k
            ax.errorbar(
                at,
                np.divide(part["mean"], closed),
                2 * np.divide(part["error"], closed),
                fmt="o",
                color=f"C{k}",
                label=name,
            )
        printed = np.divide(results.parts["angular, independent"]["Eq. 47 as printed"], closed)[:3]
        ax.plot(np.arange(3), printed, "x", color="black", label="Eq. 47 as printed")
        ax.axhline(1, color="black", linewidth=0.8)
        ax.set_xticks(range(4), ["1.6", "2.0", "2.6", "2.0, lengths 1.3 and 0.6"])
        ax.set(xlabel="angle", ylabel="simulated / closed-form error")
        ax.legend(fontsize="x-small")

    @staticmethod
    def _both(results: Results, name: str) -> tuple[Estimate, Estimate]:
        """Errors with independent and with shared projections."""
        own, shared = (Estimate.read(results.parts[f"{name}, {kind}"]) for kind in ("independent", "shared"))
        return own, shared

    def _sharing(self, results: Results, name: str) -> Finding:
        own, shared = self._both(results, name)
        exact = [results.parts[f"{name}, {kind}"]["closed form"][-1] for kind in ("shared", "independent")]
        numbers = f"{shared.mean[-1]:.4f} ({shared.error[-1]:.4f}) against {own.mean[-1]:.4f} ({own.error[-1]:.4f})"
        return Finding(exact[0] < exact[1], f"{exact[0]:.4f} against {exact[1]:.4f}; simulated {numbers}.")
