"""Bias and error of every fast rotation, on sparse and on dense directions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bochner import catalogue, extending
from bochner.approximation import Approximation
from bochner.extending import Rotation
from bochner.projections import Orthogonal
from bochner.rotations import Kac

from ..._estimates import Estimate
from ..._experiment import Experiment, Results, by_profile, statement
from ..._figures import panels
from ..._verdicts import Finding, superior

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DIRECTIONS = ("axis", "dense")


def rotations() -> dict[str, Rotation]:
    """Rotations of the catalogue, and those of the mechanisms of the papers."""
    named = {name: catalogue.mechanism(name).projection for name in ("sgp", "bfly")}
    walk = {"kac, C = 2 (OMC)": Kac(2.0)}
    found = {
        name: R for name, R in catalogue.rotations().items() if name != "unpadded-butterfly"
    }  # at d = 16 a butterfly
    return found | walk | {f"{name} (OMC)": P.rotation for name, P in named.items()}  # type: ignore[attr-defined]


class RotationBias(Experiment):
    """Trigonometric features of the Gaussian kernel with m = d rows of exact lengths."""

    name = "ours-rotation-bias"
    paper = "ours"
    item = "Bias and variance of fast rotations"
    claim = (
        "The rotations that the catalogue calls exact are unbiased and at most 15% less accurate than Haar on any "
        "direction; the others are biased on sparse ones."
    )
    methods = ("haar", "hadamard", "multi-hadamard", "kac", "butterfly", "structured-givens")
    profiles = by_profile(
        smoke={"d": 16, "distances": (1.0, 2.0), "draws": 300},
        full={"d": 16, "distances": (0.5, 1.0, 1.5, 2.0), "draws": 10_000},
    )
    seconds = by_profile(smoke=4, full=210)

    def parts(self, p: Mapping[str, Any]) -> list[str]:
        """One per rotation."""
        return list(rotations())

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Biases and mean squared errors, (directions x distances)."""
        d, z = p["d"], np.array(p["distances"])
        dense = np.random.default_rng(0).standard_normal(d)
        D = np.concatenate([np.outer(z, np.eye(d)[0]), np.outer(z, dense / np.linalg.norm(dense))])
        exact, origin = np.exp(-(D**2).sum(1) / 2), np.zeros((1, d))
        rows = Orthogonal(rotations()[part])
        spec = Approximation(catalogue.kernel("gaussian"), catalogue.map("trigonometric"), rows, d)
        errors = np.array([spec.draw(d, rng).gram(D, origin)[:, 0] - exact for _ in range(p["draws"])])
        return {
            "bias": Estimate.of(errors).as_numbers(),
            "mse": Estimate.of(errors**2).as_numbers(),
            "haar": extending.trigonometric_mse((D**2).sum(1), d, d, "orthogonal"),
            "iid": extending.trigonometric_mse((D**2).sum(1), d, d),
            "declared exact": spec.unbiased,
        }

    @statement(
        "Every rotation that declares exactly uniform rows has a bias within four standard errors of zero everywhere."
    )
    def exact_unbiased(self, results: Results) -> Finding:
        """Look at all of them."""
        exact = {name: part for name, part in results.parts.items() if part["declared exact"]}
        off = [name for name, part in exact.items() if not Estimate.read(part["bias"]).agrees(0.0).all()]
        return Finding(not off, f"Biased: {', '.join(off)}." if off else f"None of {', '.join(exact)} is biased.")

    @statement("Every rotation that does not is biased somewhere on the coordinate axis, beyond four standard errors.")
    def others_biased(self, results: Results) -> Finding:
        """Look at all of them."""
        others = {name: part for name, part in results.parts.items() if not part["declared exact"]}
        n = len(results.parameters["distances"])
        fine = [name for name, part in others.items() if Estimate.read(part["bias"]).agrees(0.0)[:n].all()]
        return Finding(not fine, f"No bias is seen for {', '.join(fine)}." if fine else "All of them are.")

    @statement("The exact ones have at most 1.15 times the error of Haar at every point (95 % intervals).")
    def exact_accurate(self, results: Results) -> Finding:
        """The largest ratio."""
        worst, gains = {}, []
        for name, part in results.parts.items():
            if part["declared exact"]:
                found, haar = Estimate.read(part["mse"]), np.array(part["haar"])
                gains.append(Estimate(1.15 - found.mean / haar, found.error / haar))
                worst[name] = float((found.mean / haar).max())
        shown = "Largest ratios " + ", ".join(f"{k} {v:.2f}" for k, v in worst.items()) + "."
        return superior(Estimate.stack(gains), shown)

    def plot(self, results: Results, figure: Figure) -> None:
        """Bias and error by direction at the largest distance."""
        axes = panels(
            figure,
            [f"{kind}, {at}" for kind in ("bias", "mse") for at in DIRECTIONS],
            "",
            "",
            columns=2,
            scale="linear",
        )
        n, names = len(results.parameters["distances"]), list(results.parts)
        for ax, (kind, i) in zip(axes, [(kind, i) for kind in ("bias", "mse") for i in (1, 2)], strict=True):
            found = [Estimate.read(results.parts[name][kind])[i * n - 1] for name in names]
            ax.errorbar(range(len(names)), [v.mean for v in found], [2 * v.error for v in found], fmt="o", markersize=4)
            ax.set_xticks(range(len(names)), names, rotation=60, fontsize="xx-small")
            ax.axhline(
                0 if kind == "bias" else results.parts[names[0]]["haar"][i * n - 1], color="black", linewidth=0.8
            )
