"""A remark of HRF Section F: hybrids whose bases, or whose coefficients, are hybrids themselves."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bochner.approximation import Approximation, FeatureMap
from bochner.extending import Coefficient, CoefficientMoments, Map, angular_coefficient, normalized_gaussian_coefficient
from bochner.kernels import Gaussian, Softmax
from bochner.maps import AngularHybrid, Hybrid, Hyperbolic, Trigonometric
from bochner.maps.coefficients import AngularCoefficient
from bochner.projections import IID

from ..._estimates import Estimate
from ..._experiment import Experiment, Results, by_profile, statement
from ..._figures import legend, panels
from ..._verdicts import Finding
from ..hrf._sphere_errors import hyperbolic_log_relative_rmse, trigonometric_log_relative_rmse

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PLAIN = ("trigonometric", "hyperbolic", "angular hybrid", "Gaussian hybrid")
NESTED = ("hybrid bases", "hybrid coefficient")
SIGNS = (1, 2, 4, 8, 16, 32)


class NestedHybrids(Experiment):
    """Closed-form relative errors at equal width and equal norms, each family with its best parameters."""

    name = "ours-nested-hybrids"
    paper = "ours"
    item = "Nested hybrids"
    claim = (
        "A Gaussian hybrid whose coefficient is estimated by an angular hybrid is exact at both ends, and at equal width "
        "nested hybrids have a smaller largest error over the angle than plain ones."
    )
    methods = (*PLAIN, *NESTED)
    deviations = (
        "The paper only mentions nested constructions.  Hybrids of hybrid bases use angular coefficients at both levels; "
        "all projections are independent.  Numbers of signs, projections and widths of bumps are the best of a grid for "
        "each family, width and length, by the largest error over the angle."
    )
    profiles = by_profile(
        smoke={"widths": (1024,), "lengths": (1.0,), "angles": 41, "draws": 200},
        full={"widths": (256, 1024, 4096), "lengths": (0.75, 1.0, 1.5, 2.0), "angles": 201, "draws": 5000},
    )
    seconds = by_profile(smoke=1, full=62)

    def parts(self, p: Mapping[str, Any]) -> list[str]:
        """One per width and length, and a simulation of each nested construction."""
        return [f"width {width}, r = {r}" for width in p["widths"] for r in p["lengths"]] + list(NESTED)

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Errors of the best of each family over the angle, or simulated and closed-form errors."""
        if part in NESTED:
            return _simulation(part, p["draws"], rng)
        width, r = (float(piece.split()[-1]) for piece in part.split(", "))
        theta = np.linspace(0, np.pi, p["angles"])
        found: dict[str, Any] = {}
        for family in (*PLAIN, *NESTED):
            errors = [np.sqrt(square) for square in _Errors(theta, r).family(family, int(width))]
            found[family] = min(errors, key=lambda e: e.max()) if errors else np.full(len(theta), np.inf)
        return found

    @statement("Simulated errors of both nested hybrids agree with the closed form within four standard errors.")
    def closed_form(self, results: Results) -> Finding:
        """Compare them at all angles."""
        worst = {}
        for name in NESTED:
            part = results.parts[name]
            found, exact = Estimate.read(part), np.array(part["exact"])
            worst[name] = float((np.abs(found.mean - exact) / (found.error + 1e-12)).max())
        return Finding(
            max(worst.values()) <= 4, ", ".join(f"{k}: {v:.1f} standard errors" for k, v in worst.items()) + "."
        )

    @statement("The hybrid with a hybrid coefficient has a drawn error below 1e-9 at angles 0 and pi.")
    def ends(self, results: Results) -> Finding:
        """The largest of all draws."""
        error = max(results.parts["hybrid coefficient"]["ends"])
        return Finding(error < 1e-9, f"The largest relative error at the ends is {error:.1e}.")

    @statement(
        "At every width and length, the best nested hybrid has a smaller largest error than the best plain method."
    )
    def largest(self, results: Results) -> Finding:
        """Compare the largest errors."""
        return self._compare(results, np.max)

    @statement(
        "At every width and length, the best nested hybrid has a smaller root mean square error over the angle than the "
        "best plain method."
    )
    def average(self, results: Results) -> Finding:
        """Compare the averages."""
        return self._compare(results, lambda e: float(np.sqrt(np.mean(np.square(e)))))

    def plot(self, results: Results, figure: Figure) -> None:
        """Relative errors over the angle."""
        parts = {name: part for name, part in results.parts.items() if name not in NESTED}
        axes = panels(figure, list(parts), "angle", "relative error", columns=4)
        for ax, part in zip(axes, parts.values(), strict=True):
            for k, family in enumerate((*PLAIN, *NESTED)):
                error = np.array(part[family], dtype=float)
                theta = np.linspace(0, np.pi, len(error))
                shown = error > 1e-6
                ax.plot(theta[shown], error[shown], color=f"C{k}", label=family, linewidth=1.2)
        legend(figure, axes[0])

    def _compare(self, results: Results, of: Any) -> Finding:
        true, shown = [], []
        for name, part in results.parts.items():
            if name not in NESTED:
                errors = {family: of(np.array(part[family], dtype=float)) for family in (*PLAIN, *NESTED)}
                plain, nested = (min(families, key=lambda f: errors[f]) for families in (PLAIN, NESTED))
                true.append(errors[nested] < errors[plain])
                shown.append(f"{name}: {errors[nested]:.3g} ({nested}) against {errors[plain]:.3g} ({plain})")
        return Finding(all(true), "; ".join(shown) + ".")


@dataclass(frozen=True)
class _Errors:
    """Squared relative errors at angles between points of norm r."""

    theta: np.ndarray
    r: float

    def family(self, name: str, width: int) -> Iterator[np.ndarray]:
        """Errors of every member whose features fit in the width."""
        if name == "trigonometric":
            yield self.trigonometric(width // 2)
        elif name == "hyperbolic":
            yield self.hyperbolic(width // 2)
        elif name == "angular hybrid":
            yield from (self.angular(m, n) for n in SIGNS if (m := width // (4 * (n + 1))))
        elif name == "Gaussian hybrid":
            for n, sigma in itertools.product(SIGNS, self._sigmas()):
                if m := width // (4 * (2 * n + 1)):
                    moments = normalized_gaussian_coefficient(self._minus(), self.r, sigma, n)
                    yield mixture(moments, self.hyperbolic(m), self.trigonometric(m))
        elif name == "hybrid bases":
            for n, inner, far, near in itertools.product(SIGNS, SIGNS, (False, True), (False, True)):
                per_row = (n + 1) * sum(4 * (inner + 1) if hybrid else 2 for hybrid in (far, near))
                if (far or near) and (m := width // per_row):
                    yield self.hybrid_bases(m, n, inner, far=far, near=near)
        else:
            for rows, n, sigma in itertools.product((1, 2, 4, 8), SIGNS, self._sigmas()):
                if m := width // (4 * (4 * rows * (n + 1) + 1)):
                    yield self.hybrid_coefficient(m, rows, n, sigma)

    def trigonometric(self, m: int) -> np.ndarray:
        """With m rows."""
        return np.asarray(np.exp(2 * trigonometric_log_relative_rmse(self.theta, self.r, m)))

    def hyperbolic(self, m: int) -> np.ndarray:
        """With m rows."""
        return np.asarray(np.exp(2 * hyperbolic_log_relative_rmse(self.theta, self.r, m)))

    def angular(self, m: int, n: int) -> np.ndarray:
        """With m rows and n signs."""
        return mixture(angular_coefficient(self.theta, n), self.hyperbolic(m), self.trigonometric(m))

    def hybrid_bases(self, m: int, n: int, inner: int, *, far: bool, near: bool) -> np.ndarray:
        """An angular hybrid of bases that are angular hybrids with ``inner`` signs where ``far`` or ``near`` says so."""
        hybrid = self.angular(m, inner)
        return mixture(
            angular_coefficient(self.theta, n),
            hybrid if far else self.hyperbolic(m),
            hybrid if near else self.trigonometric(m),
        )

    def hybrid_coefficient(self, m: int, rows: int, n: int, sigma: float) -> np.ndarray:
        """A Gaussian hybrid whose bump is estimated by an angular hybrid."""
        rho, bump = -np.expm1(-2 * (sigma * self.r) ** 2), np.exp(-(sigma**2) * self._minus() / 2)
        variance = bump**2 * _Errors(self.theta, sigma * self.r).angular(rows, n) / rho**2
        return mixture(CoefficientMoments.of((1 - bump) / rho, variance), self.hyperbolic(m), self.trigonometric(m))

    def _minus(self) -> np.ndarray:
        return np.asarray(4 * self.r**2 * np.sin(self.theta / 2) ** 2)

    def _sigmas(self) -> np.ndarray:
        return np.geomspace(0.2, 3, 8) / self.r


def mixture(moments: CoefficientMoments, far: np.ndarray, near: np.ndarray) -> np.ndarray:
    """Squared error of independent bases with a coefficient of these moments on the first."""
    return np.asarray(moments.square * far + moments.complement * near)


@dataclass(frozen=True)
class _HybridBump(Coefficient):
    """The normalised Gaussian coefficient, its bump estimated by an angular hybrid."""

    sigma: float
    radius: float
    rows: int
    n: int = 2
    sign: ClassVar[int] = -1

    @property
    def rho(self) -> float:
        return float(-np.expm1(-2 * (self.sigma * self.radius) ** 2))

    @property
    def width(self) -> int:
        return 4 * self.rows * (self.n + 1)

    @property
    def constant(self) -> float:
        return 1 / self.rho

    def draw(self, draws: Any) -> Any:
        spec = Approximation(Gaussian(), AngularHybrid(self.n, shared=False), IID(), self.rows)
        return _DrawnBump(self, spec.draw(draws.d, draws.stream("bump")))


@dataclass(frozen=True)
class _DrawnBump:
    """Features of the bump over the root of rho."""

    of: _HybridBump
    phi: FeatureMap

    @property
    def width(self) -> int:
        return self.of.width

    def features(self, X: Any, *, key: bool) -> Any:
        side = self.phi.keys if key else self.phi.queries
        return side(self.of.sigma * X) / np.sqrt(self.of.rho)


def _simulation(kind: str, draws: int, rng: np.random.Generator) -> dict[str, Any]:
    """Squared errors by the library's own hybrids at a few angles, next to the closed form, and errors at both ends."""
    r, m, n, inner, rows, sigma, d = 0.3, 2, 2, 2, 2, 2.0, 6  # short, so that the squares of errors have light tails
    theta = np.linspace(0, np.pi, 7)
    X = r * np.eye(d)[:1]
    Y = r * (np.cos(theta)[:, None] * np.eye(d)[0] + np.sin(theta)[:, None] * np.eye(d)[1])
    closed, bases, coefficient = _Errors(theta, r), [Hyperbolic(), Trigonometric()], _HybridBump(sigma, r, rows, inner)
    feature_map: Map
    if kind == "hybrid bases":
        feature_map = Hybrid([bases[0], AngularHybrid(inner, shared=False)], [AngularCoefficient(n)], shared=False)  # type: ignore[arg-type]
        exact = closed.hybrid_bases(m, n, inner, far=False, near=True)
    else:
        feature_map = Hybrid(bases, [coefficient], shared=False)  # type: ignore[arg-type]
        exact = closed.hybrid_coefficient(m, rows, inner, sigma)
    spec, kernel = Approximation(Softmax(), feature_map, IID(), m), np.exp(X @ Y.T)[0]
    errors = np.array([spec.draw(d, rng).gram(X, Y)[0] / kernel - 1 for _ in range(draws)])
    ends = np.abs(errors[:, [0, -1]]).max(axis=0)
    return Estimate.of(errors**2).as_numbers() | {"exact": exact, "ends": ends}
