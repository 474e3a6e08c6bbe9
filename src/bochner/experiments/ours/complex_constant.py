"""An open question of CRT: whether a complex A has a smaller variance than the best real one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import theory
from .._experiment import Experiment, Finding, Results, by_profile, statement
from .._figures import panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class ComplexConstant(Experiment):
    """A grid of complex A, and searches from many starts, against the best real A."""

    name = "ours-complex-constant"
    paper = "ours"
    item = "The optimal A of generalised exponential features"
    claim = (
        "No complex A of generalised exponential features has a smaller variance than the best real one, for either "
        "sign."
    )
    methods = ("gerf",)
    profiles = by_profile(
        smoke={"dimensions": (4, 64), "V": (0.5, 8.0), "grid": 25},
        full={"dimensions": (1, 2, 4, 16, 64, 256), "V": (0.05, 0.5, 2.0, 8.0, 32.0, 128.0), "grid": 161},
    )
    seconds = by_profile(smoke=1, full=60)

    def parts(self, p: Mapping[str, Any]) -> list[str]:
        """One per dimension and sign."""
        return [f"d={d} s={s}" for d in p["dimensions"] for s in (1, -1)]

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Log second moments of the best complex A off the real line, and of the best real A, by V."""
        d, s = (int(piece.partition("=")[2]) for piece in part.split())
        V = np.array(p["V"])
        real = np.array([_best_real(float(v), s, d) for v in V])
        imaginary = np.geomspace(1e-3, 5, p["grid"])
        best = np.min(
            [
                _log_moment(complex((1 - u) / 8, b), s, V, d)
                for u in np.geomspace(0.05, 200, 2 * p["grid"])
                for b in imaginary
            ],
            axis=0,
        )
        searched = np.array([theory.optimal_gerf(float(v), s, d)[0] for v in V])
        return {"V": V, "real": real, "complex": best, "searched": searched}

    @statement("On the grid, no complex A has a log second moment below that of the best real A by more than 1e-6.")
    def grid(self, results: Results) -> Finding:
        """The largest gain."""
        return self._gain(results, "complex", 1e-6)

    @statement("Searches over complex A find no log second moment below that of the best real A by more than 1e-4.")
    def search(self, results: Results) -> Finding:
        """The largest gain."""
        return self._gain(results, "searched", 1e-4)

    def plot(self, results: Results, figure: Figure) -> None:
        """Excess of the best complex A."""
        axes = panels(
            figure, ("s = 1", "s = -1"), "V = |x + s y|^2", "log second moment: complex minus real", scale="linear"
        )
        for name, part in results.parts.items():
            ax = axes[0] if name.endswith("s=1") else axes[1]
            ax.semilogx(part["V"], np.subtract(part["complex"], part["real"]), marker="o", label=name.split()[0])
        for ax in axes:
            ax.axhline(0, color="black", linewidth=0.8)
            ax.legend(fontsize="x-small")

    def _gain(self, results: Results, key: str, allowed: float) -> Finding:
        gain = max(float(np.max(np.subtract(part["real"], part[key]))) for part in results.parts.values())
        return Finding(gain <= allowed, f"The largest gain is {gain:.1e}.")


def _log_moment(A: complex, s: int, V: np.ndarray, d: int) -> np.ndarray:
    """Of the estimate over the squared kernel."""
    return np.asarray(np.logaddexp(0, theory.gerf_log_relative_mse(complex(A), s, V, 1, d)))


def _best_real(V: float, s: int, d: int) -> float:
    """The least log second moment over real A: the best of a grid, refined by a bounded search around it."""
    from scipy.optimize import minimize_scalar

    def at(t: float) -> float:
        return float(_log_moment((1 - np.exp(t)) / 8, s, np.array(V), d))

    grid = np.linspace(np.log(0.05), np.log(200), 60)
    k = int(np.argmin([at(t) for t in grid]))
    bounds = (grid[max(k - 1, 0)], grid[min(k + 1, len(grid) - 1)])
    found = minimize_scalar(at, bounds=bounds, method="bounded", options={"xatol": 1e-10})
    return min(float(found.fun), at(0.0))
