"""An open question of CRT: whether a complex A has a smaller variance than the best real one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bochner import extending

from ..._experiment import Experiment, Results, by_profile, statement
from ..._figures import panels
from ..._verdicts import Finding

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROUNDING = 1e-6


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
        smoke={"dimensions": (4, 64), "V": (0.5, 8.0), "grid": 25, "starts": 2},
        full={
            "dimensions": (1, 2, 4, 16, 64, 256),
            "V": (0.05, 0.5, 2.0, 8.0, 32.0, 128.0),
            "grid": 101,
            "starts": 12,
        },
    )
    deviations = (
        "The range of A grows with V / d, so that the best real A is inside it; searches from random starts replace "
        "those of `optimal_gerf`, which start near the best real A, and have the tolerance of the grid."
    )
    seconds = by_profile(smoke=1, full=93)

    def parts(self, p: Mapping[str, Any]) -> list[str]:
        """One per dimension and sign."""
        return [f"d={d} s={s}" for d in p["dimensions"] for s in (1, -1)]

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Log second moments of the best complex A off the real line, and of the best real A, by V."""
        d, s = (int(piece.partition("=")[2]) for piece in part.split())
        V = np.array(p["V"])
        real_parts = np.exp(np.linspace(np.log(0.05), _largest(float(V.max()), d), 2 * p["grid"]))
        grid = [complex((1 - u) / 8, b) for u in real_parts for b in np.geomspace(1e-3, 5, p["grid"])]
        return {
            "V": V,
            "real": [_best_real(float(v), s, d) for v in V],
            "complex": np.min([_log_moment(A, s, V, d) for A in grid], axis=0),
            "searched": [_search(float(v), s, d, p["starts"], rng) for v in V],
        }

    @statement("On a grid, no complex A has a log second moment below that of the best real A by more than 1e-6.")
    def grid(self, results: Results) -> Finding:
        """The largest gain."""
        return self._gain(results, "complex")

    @statement(
        "Searches over complex A from random starts find no log second moment below that of the best real A by more "
        "than 1e-6."
    )
    def search(self, results: Results) -> Finding:
        """The largest gain."""
        return self._gain(results, "searched")

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

    def _gain(self, results: Results, key: str) -> Finding:
        gain = max(float(np.max(np.subtract(part["real"], part[key]))) for part in results.parts.values())
        return Finding(gain <= ROUNDING, f"The largest gain is {gain:.1e}.")


def _log_moment(A: complex, s: int, V: Any, d: int) -> np.ndarray:
    """Logarithm of the second moment of the estimate over the squared kernel."""
    return np.asarray(np.logaddexp(0, extending.gerf_log_relative_mse(complex(A), s, np.asarray(V), 1, d)))


def _largest(V: float, d: int) -> float:
    """The largest log Re(1 - 8A) that is tried: far beyond the best real A of either sign, which is at most 1 + 4V/d."""
    return float(np.log(40 * (1 + 4 * V / d)))


def _best_real(V: float, s: int, d: int) -> float:
    """The least log second moment over real A: the best of a grid, refined by a bounded search around it."""
    from scipy.optimize import minimize_scalar

    def at(t: float) -> float:
        return float(_log_moment((1 - np.exp(t)) / 8, s, V, d))

    grid = np.linspace(-6, _largest(V, d), 80)
    k = int(np.argmin([at(t) for t in grid]))
    bounds = (grid[max(k - 1, 0)], grid[min(k + 1, len(grid) - 1)])
    found = minimize_scalar(at, bounds=bounds, method="bounded", options={"xatol": 1e-10})
    return min(float(found.fun), at(0.0))


def _search(V: float, s: int, d: int, starts: int, rng: np.random.Generator) -> float:
    """The least log second moment that simplex searches over complex A reach from random starts."""
    from scipy.optimize import minimize

    def at(point: Any) -> float:
        t = min(float(point[0]), 50.0)  # beyond, exp overflows
        return float(_log_moment(complex((1 - np.exp(t)) / 8, float(point[1])), s, V, d))

    points = np.column_stack([rng.uniform(-3, _largest(V, d), starts), np.exp(rng.uniform(-5, 1.5, starts))])
    options = {"xatol": 1e-9, "fatol": 1e-12, "maxiter": 400}
    return min(float(minimize(at, point, method="Nelder-Mead", options=options).fun) for point in points)
