"""HRF Lemma 3.2 and the moments of Section F: the random coefficients of hybrids."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bochner import catalogue
from bochner.approximation import Approximation
from bochner.extending import Coefficient, Draws
from bochner.maps import AngularHybrid, GaussianHybrid
from bochner.maps.coefficients import (
    AngularCoefficient,
    GaussianCoefficient,
    NormalizedGaussianCoefficient,
)

from ..._estimates import Estimate, share
from ..._experiment import Experiment, Results, by_profile, statement
from ..._figures import curve, legend, panels
from ..._verdicts import Finding, agreement

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIGMA = 0.8
"""Inverse width of the Gaussian coefficient, for unit vectors."""
RHO = -np.expm1(-2 * SIGMA**2)


class CoefficientMoments(Experiment):
    """First and second moments of drawn coefficients for unit vectors, by angle and number of projections."""

    name = "hrf-lemma3.2"
    paper = "hrf"
    item = "Lemma 3.2, Section F"
    claim = (
        "The moments of the angular coefficient are those of Eq. 24 and those of the Gaussian one those of Eqs. 72 and "
        "73; only the angular one has no variance at both ends, and its hybrid has the lower error."
    )
    methods = ("angular coefficient", "Gaussian coefficient")
    deviations = (
        "Eq. 70 lacks the sigma of Eq. 69; the coefficient of Eq. 69 is the one that is tested, and the mean of the other"
        " one is compared with Eq. 67 too. The paper names no sigma for its comparison of the hybrids: 0.5, 1 and 2."
    )
    profiles = by_profile(
        smoke={"d": 8, "n": (1, 8), "angles": 5, "draws": 300, "m": 8},
        full={"d": 8, "n": (1, 4, 8, 32), "angles": 9, "draws": 10_000, "m": 8},
    )
    seconds = by_profile(smoke=0.5, full=35)

    def parts(self, p: Mapping[str, Any]) -> list[str]:
        """One per number of projections."""
        return [f"n={n}" for n in p["n"]]

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Moments of each coefficient by angle, and exact errors of the hybrids."""
        n, theta = int(part.partition("=")[2]), _angles(p)
        X, Y = np.zeros((2, len(theta), p["d"]))
        X[:, 0], Y[:, 0], Y[:, 1] = 1.0, np.cos(theta), np.sin(theta)
        X, Y = (rows @ np.linalg.qr(np.random.default_rng(0).standard_normal((p["d"], p["d"])))[0] for rows in (X, Y))
        found = {
            "angular": self._moments(AngularCoefficient(n), X, Y, p["draws"], rng),
            "gaussian": self._moments(NormalizedGaussianCoefficient(SIGMA, 1.0, n), X, Y, p["draws"], rng),
            "Eq. 70": self._moments(GaussianCoefficient(1.0, 1.0, n), X, Y, p["draws"], rng),
        }
        angular = Approximation(catalogue.kernel("softmax"), AngularHybrid(n), catalogue.projection("iid"), p["m"])
        errors = {"angular": self._errors(angular, X, Y)} | {
            f"gaussian, sigma = {sigma}": self._errors(replace(angular, map=GaussianHybrid(n, sigma, 1.0)), X, Y)
            for sigma in (0.5, 1.0, 2.0)
        }
        return {"moments": found, "errors": errors}

    @staticmethod
    def _moments(c: Coefficient, X: np.ndarray, Y: np.ndarray, draws: int, rng: np.random.Generator) -> dict[str, Any]:
        """Mean of the coefficient, of its square and of that of one minus it; and its range over the draws."""
        iid, values = catalogue.projection("iid"), []
        for seed in rng.integers(2**31, size=draws):
            one = c.draw(Draws(iid, X.shape[1], 1, None, int(seed)))
            values.append(one.a + one.s * (one.features(X, key=False) * one.features(Y, key=True)).sum(-1))
        drawn = np.array(values)
        moments = {"first": drawn, "second": drawn**2, "second of one minus it": (1 - drawn) ** 2}
        spread = np.ptp(drawn, axis=0)
        return {name: Estimate.of(samples).as_numbers() for name, samples in moments.items()} | {"range": spread}

    @staticmethod
    def _errors(spec: Approximation, X: np.ndarray, Y: np.ndarray) -> list[float]:
        return [float(spec.mse(x[None], y[None])[0, 0]) for x, y in zip(X, Y, strict=True)]

    @statement(
        "Eq. 24: both moments of the angular coefficient agree within four standard errors for all angles and n, and to a "
        "tenth at more than half of them."
    )
    def angular(self, results: Results) -> Finding:
        """Compare them."""
        return self._agree(results, "angular", {"first": self._angle, "second": self._angular_second})

    @statement(
        "Eqs. 67, 72 and 73: the moments of the Gaussian coefficient agree within four standard errors for all angles "
        "and n, and to a tenth at more than half of them."
    )
    def gaussian(self, results: Results) -> Finding:
        """Compare them."""
        exact = {
            "first": self._gaussian_mean,
            "second": self._gaussian_second,
            "second of one minus it": self._gaussian_second_of_rest,
        }
        return self._agree(results, "gaussian", exact)

    @statement(
        "Eq. 70 as printed has the mean of Eq. 67, within four standard errors for all angles and n, and to a tenth at more "
        "than half of them."
    )
    def as_printed(self, results: Results) -> Finding:
        """Compare the mean of what Eq. 70 says."""
        found, theta = [Estimate.read(part["moments"]["Eq. 70"]["first"]) for part in results.parts.values()], []
        for name in results.parts:
            theta.append(self._gaussian_mean(_angles(results.parameters), int(name[2:])))
        printed = Estimate.stack(Estimate((1 - one.mean) / RHO, one.error / RHO) for one in found)
        return agreement(printed, np.concatenate(theta))

    @statement(
        "The angular coefficient has no variance at angles zero and pi; the Gaussian one has none at zero, but some at pi."
    )
    def ends(self, results: Results) -> Finding:
        """Look at the ranges over the draws."""
        ranges = {
            kind: np.array([part["moments"][kind]["range"] for part in results.parts.values()])[:, [0, -1]]
            for kind in ("angular", "gaussian")
        }
        none = ranges["angular"].max() < 1e-12 and ranges["gaussian"][:, 0].max() < 1e-12
        shown = f"Ranges at pi: {ranges['angular'][:, 1].max():.1e} and {ranges['gaussian'][:, 1].min():.2f} or more."
        return Finding(bool(none and ranges["gaussian"][:, 1].min() > 0.01), shown)

    @statement(
        "Section 2.4: for unit vectors and the same m and n, the closed-form error of the Gaussian hybrid is above that "
        "of the angular one at every angle between the ends, for all three sigma and all n."
    )
    def larger(self, results: Results) -> Finding:
        """Compare closed forms."""
        above = {
            name: [np.greater(part["errors"][name], part["errors"]["angular"])[1:-1] for part in results.parts.values()]
            for name in next(iter(results.parts.values()))["errors"]
            if name != "angular"
        }
        shown = "; ".join(f"{name}: {share(true)}" for name, true in above.items())
        return Finding(bool(np.all(list(above.values()))), f"Above at {shown}.")

    def plot(self, results: Results, figure: Figure) -> None:
        """Second moments over the angle, and the errors of the hybrids for the largest n."""
        axes = panels(figure, ["angular coefficient", "Gaussian coefficient", "hybrids, largest n"], "angle", "")
        formulas = {"angular": self._angular_second, "gaussian": self._gaussian_second}
        for ax, (kind, exact) in zip(axes, formulas.items(), strict=False):
            ax.set(yscale="linear", ylabel="second moment")
            for k, (name, part) in enumerate(results.parts.items()):
                fine = np.linspace(0, np.pi, 101)
                ax.plot(fine, exact(fine, int(name[2:])), color=f"C{k}", linewidth=0.8)
                curve(
                    ax,
                    _angles(results.parameters),
                    Estimate.read(part["moments"][kind]["second"]),
                    name,
                    k,
                    joined=False,
                )
        last = list(results.parts.values())[-1]
        for k, (name, errors) in enumerate(last["errors"].items()):
            shown = np.array(errors) > 1e-12  # some are exact at an end
            axes[-1].plot(_angles(results.parameters)[shown], np.array(errors)[shown], color=f"C{k + 5}", label=name)
        axes[-1].set_ylabel("mean squared error")
        axes[-1].legend(fontsize="x-small")
        legend(figure, axes[0])

    def _agree(self, results: Results, kind: str, exact: Mapping[str, Any]) -> Finding:
        theta, pairs = _angles(results.parameters), []
        for name, part in results.parts.items():
            for moment, formula in exact.items():
                pairs.append((Estimate.read(part["moments"][kind][moment]), formula(theta, int(name[2:]))))
        return agreement(Estimate.stack(one for one, _ in pairs), np.concatenate([value for _, value in pairs]))

    @staticmethod
    def _angle(theta: np.ndarray, n: int) -> np.ndarray:
        return theta / np.pi

    @staticmethod
    def _angular_second(theta: np.ndarray, n: int) -> np.ndarray:
        """Eq. 24."""
        p = theta / np.pi
        return p * (p - p / n + 1 / n)

    @staticmethod
    def _gaussian_mean(theta: np.ndarray, n: int) -> np.ndarray:
        """Eq. 76 for unit vectors."""
        return np.asarray(-np.expm1(-2 * (SIGMA * np.sin(theta / 2)) ** 2) / RHO)

    @classmethod
    def _gaussian_second(cls, theta: np.ndarray, n: int) -> np.ndarray:
        """Eq. 72."""
        return np.asarray(cls._gaussian_mean(theta, n) ** 2 + cls._gaussian_variance(theta, n))

    @classmethod
    def _gaussian_second_of_rest(cls, theta: np.ndarray, n: int) -> np.ndarray:
        """Eq. 73."""
        return np.asarray((1 - cls._gaussian_mean(theta, n)) ** 2 + cls._gaussian_variance(theta, n))

    @staticmethod
    def _gaussian_variance(theta: np.ndarray, n: int) -> np.ndarray:
        """The second terms of Eqs. 72 and 73."""
        return np.asarray(np.expm1(-4 * (SIGMA * np.sin(theta / 2)) ** 2) ** 2 / (2 * n * RHO**2))


def _angles(p: Mapping[str, Any]) -> np.ndarray:
    return np.linspace(0, np.pi, p["angles"])
