"""HRF Lemmas 2.2 and 3.4: errors of the trigonometric and the ++ estimator, and the symmetry between them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bochner import catalogue
from bochner.approximation import Approximation
from bochner.extending import Map
from bochner.maps import Hyperbolic, Trigonometric

from ..._estimates import Estimate, share
from ..._experiment import Experiment, Results, by_profile, statement
from ..._figures import legend, panels
from ..._verdicts import Finding, agreement

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAPS: dict[str, Map] = {"trigonometric": Trigonometric(), "++": Hyperbolic()}


class RelativeErrors(Experiment):
    """Simulated errors of short vectors, and errors integrated numerically for longer ones."""

    name = "hrf-lemma3.4"
    paper = "hrf"
    item = "Lemmas 2.2 and 3.4"
    claim = (
        "The errors of the trigonometric and the ++ estimator are those of Eqs. 7 and 25, mirror images of each other, "
        "and largest at the ends, Eq. 26."
    )
    methods = tuple(MAPS)
    deviations = (
        "Squares of ++ estimates have heavy tails, so vectors are at most 0.6 long where errors are simulated; up to "
        "length 2, the error of one projection is an integral over one Gaussian number, computed by a Gauss-Hermite rule."
    )
    profiles = by_profile(
        smoke={"d": 6, "m": 4, "draws": 400, "angles": 7, "lengths": (0.5, 1.0, 2.0), "nodes": 200},
        full={"d": 6, "m": 4, "draws": 20_000, "angles": 25, "lengths": (0.5, 1.0, 1.5, 2.0), "nodes": 200},
    )
    seconds = by_profile(smoke=0.5, full=15)

    def parts(self, p: Mapping[str, Any]) -> tuple[str, ...]:
        """One per estimator."""
        return tuple(MAPS)

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Simulated errors at random pairs of different lengths, and integrated relative errors by length and angle."""
        fixed = np.random.default_rng(0)
        X, Y = fixed.standard_normal((2, 8, p["d"]))
        X, Y = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (X, Y))
        X, Y = X * fixed.uniform(0.2, 0.6, (8, 1)), Y * fixed.uniform(0.2, 0.6, (8, 1))
        spec = Approximation(catalogue.kernel("softmax"), MAPS[part], catalogue.projection("iid"), p["m"])
        exact, errors = np.exp((X * Y).sum(-1)), []
        for _ in range(p["draws"]):
            phi = spec.draw(p["d"], rng)
            errors.append(((phi.queries(X) * phi.keys(Y)).sum(-1) - exact) ** 2)
        theta = np.linspace(0, np.pi, p["angles"])
        integrated = [_integrated(part, r, theta, p["nodes"]) / np.sqrt(p["m"]) for r in p["lengths"]]
        return {
            "simulated": Estimate.of(errors).as_numbers(),
            "Eq. 7": _lemma_2_2(part, X, Y, p["m"]),
            "theta": theta,
            "integrated": integrated,
            "Eq. 25": [_lemma_3_4(part, r, theta, p["m"]) for r in p["lengths"]],
        }

    @statement(
        "Eq. 7: simulated errors agree within four standard errors for both estimators at all pairs, and to a tenth at more "
        "than half of them."
    )
    def simulated(self, results: Results) -> Finding:
        """Compare them."""
        parts = results.parts.values()
        simulated = Estimate.stack(Estimate.read(part["simulated"]) for part in parts)
        return agreement(simulated, np.concatenate([part["Eq. 7"] for part in parts]))

    @statement("Eq. 25: integrated relative errors agree to one in a million at all lengths and angles.")
    def integrated(self, results: Results) -> Finding:
        """Compare them, relative to the largest of their length."""
        off = max(
            np.max(
                np.abs(np.subtract(part["integrated"], part["Eq. 25"])) / np.max(part["Eq. 25"], axis=1, keepdims=True)
            )
            for part in results.parts.values()
        )
        return Finding(bool(off <= 1e-6), f"The largest difference is {off:.1e} of the largest error.")

    @statement(
        "Eq. 26: the integrated error is largest at angle pi for the trigonometric and at zero for the ++ estimator, and "
        "is W(r)/sqrt(2m) there, to one in a million."
    )
    def largest(self, results: Results) -> Finding:
        """Look at the ends."""
        r, m = np.array(results.parameters["lengths"]), results.parameters["m"]
        bound = np.exp(2 * r**2) * -np.expm1(-4 * r**2) / np.sqrt(2 * m)
        true, off = [], []
        for name, end in (("trigonometric", -1), ("++", 0)):
            errors = np.array(results.parts[name]["integrated"])
            true.append(errors.argmax(axis=1) == np.arange(errors.shape[1])[end])
            off.append(np.abs(errors[:, end] / bound - 1).max())
        shown = f"Largest at the end: {share(true)}; relative differences to W of at most {max(off):.1e}."
        return Finding(bool(np.all(true) and max(off) <= 1e-6), shown)

    def plot(self, results: Results, figure: Figure) -> None:
        """Integrated relative errors over the angle."""
        lengths = results.parameters["lengths"]
        axes = panels(figure, [f"r = {r}" for r in lengths], "angle", "relative error")
        for k, (name, part) in enumerate(results.parts.items()):
            for i, ax in enumerate(axes):
                theta, errors = np.array(part["theta"]), np.array(part["integrated"][i])
                shown = np.array(part["Eq. 25"][i]) > 0
                ax.plot(theta[shown], errors[shown], "o", markersize=3, color=f"C{k}", label=f"{name}, integrated")
                exact = np.array(part["Eq. 25"][i])[shown]
                ax.plot(theta[shown], exact, color=f"C{k}", linewidth=0.8, label=f"{name}, Eq. 25")
        legend(figure, axes[0])


def _lemma_2_2(name: str, X: np.ndarray, Y: np.ndarray, m: int) -> np.ndarray:
    """Eq. 7 as printed."""
    z, delta, kernel = ((X + Y) ** 2).sum(-1), ((X - Y) ** 2).sum(-1), np.exp((X * Y).sum(-1))
    if name == "trigonometric":
        return np.asarray(np.exp(z) / kernel**2 * np.expm1(-delta) ** 2 / (2 * m))
    return np.asarray(np.exp(z) * kernel**2 * np.expm1(-z) ** 2 / (2 * m))


def _lemma_3_4(name: str, r: float, theta: np.ndarray, m: int) -> np.ndarray:
    """Eq. 25 as printed; the ++ estimator at the angle pi - theta."""
    s = np.sin((theta if name == "trigonometric" else np.pi - theta) / 2) ** 2
    return np.asarray(np.exp(2 * r**2 * s) * -np.expm1(-4 * r**2 * s) / np.sqrt(2 * m))


def _integrated(name: str, r: float, theta: np.ndarray, nodes: int) -> np.ndarray:
    """Relative errors with one projection w, of cos(w d) or cosh(w z) over their means; w d and w z are normal numbers."""
    at, weights = np.polynomial.hermite_e.hermegauss(nodes)
    weights = weights / np.sqrt(2 * np.pi)
    if name == "trigonometric":
        length = 2 * r * np.sin(theta / 2)[:, None]
        ratio = np.exp(length**2 / 2) * np.cos(length * at)
    else:
        length = 2 * r * np.cos(theta / 2)[:, None]
        ratio = np.exp(-(length**2) / 2) * np.cosh(length * at)
    return np.asarray(np.sqrt(((ratio - 1) ** 2) @ weights))
