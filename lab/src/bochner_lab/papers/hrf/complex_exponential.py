"""HRF Lemma 2.4 and Eqs. 15-20: complex exponential estimators, alone and in Gaussian hybrids with matrices M."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bochner import catalogue
from bochner.approximation import Approximation
from bochner.extending import Map
from bochner.maps import ComplexExponential, GaussianHybrid, Hyperbolic, Trigonometric

from ..._estimates import Estimate
from ..._experiment import Experiment, Results, by_profile, statement
from ..._verdicts import Finding, agreement

if TYPE_CHECKING:
    from matplotlib.figure import Figure

D = 4
_FIXED = np.random.default_rng(0).standard_normal((2, D, D)) / 4
ALONE: dict[str, Any] = {
    "A = I": 1.0,
    "A = iI": 1j,
    "A real diagonal": (0.7, 1.2, 0.9, 1.4),
    "A real and imaginary": (0.8, 1.1j, 1.2, 0.9j),
    "A complex diagonal": (1.1 + 0.3j, 0.2 + 0.9j, 0.8 - 0.4j, -0.3 + 1.1j),
    "A full": np.eye(D) + _FIXED[0] + 1j * _FIXED[1],
}
WITH_MATRICES: dict[str, Any] = {
    "M = I": (1.0,),
    "M = -I": (-1.0,),
    "M diagonal": ((0.8, -1.2, 1.1, -0.9),),
    "M = I and -I": (1.0, -1.0),
}
MAPS: dict[str, Map] = {
    **{name: ComplexExponential(A) for name, A in ALONE.items()},
    **{name: GaussianHybrid(8, matrices=M, width=1.0) for name, M in WITH_MATRICES.items()},
    "trigonometric": Trigonometric(),
    "++": Hyperbolic(),
}


class ComplexExponentials(Experiment):
    """Means and errors of estimates over draws, at random pairs and where they should have no variance."""

    name = "hrf-lemma2.4"
    paper = "hrf"
    item = "Lemma 2.4, Equations 15-20"
    claim = (
        "Complex exponential estimators are unbiased for every invertible A, become the trigonometric estimator for "
        "A = iI and the ++ estimator for A = I, and have no variance where Eq. 17 holds; so have Gaussian hybrids with "
        "matrices M where x = -My."
    )
    methods = tuple(MAPS)
    deviations = (
        "Points where the variance vanishes exist only where Eq. 17 gives real x: A real, or with real and imaginary "
        "entries. Gaussian hybrids use trigonometric features for their coefficients, and the base with A^T A = M^-1."
    )
    profiles = by_profile(smoke={"m": 4, "draws": 150}, full={"m": 4, "draws": 12_000})
    seconds = by_profile(smoke=2, full=120)

    def parts(self, p: Mapping[str, Any]) -> tuple[str, ...]:
        """One per estimator."""
        return tuple(MAPS)

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Estimates over the kernel: means and mean squared errors at random pairs, the largest error where exact."""
        fixed = np.random.default_rng(1)
        X, Y = 0.5 * fixed.standard_normal((2, 5, D))
        spec = Approximation(catalogue.kernel("softmax"), MAPS[part], catalogue.projection("iid"), p["m"])
        pole = self._opposite(part, Y)
        values, ends = [], []
        for _ in range(p["draws"]):
            phi = spec.draw(D, rng)
            values.append((phi.queries(X) * phi.keys(Y)).sum(-1) / np.exp((X * Y).sum(-1)))
            if pole is not None:
                ends.append((phi.queries(pole) * phi.keys(Y)).sum(-1) / np.exp((pole * Y).sum(-1)) - 1)
        ratios = np.array(values)
        return {
            "mean": Estimate.of(ratios).as_numbers(),
            "squared error": Estimate.of((ratios - 1) ** 2).as_numbers(),
            "where exact": None if pole is None else float(np.abs(ends).max()),
        }

    @staticmethod
    def _opposite(part: str, Y: np.ndarray) -> np.ndarray | None:
        """The x of Eq. 17, or x = -My, for each y; None where it is not real, or where there is more than one M."""
        if part in WITH_MATRICES:
            M = WITH_MATRICES[part]
            return None if len(M) > 1 else -np.asarray(M[0]) * Y
        A = np.asarray(ALONE.get(part, 1j if part == "trigonometric" else 1.0), dtype=np.complex128)
        if A.ndim == 2 or np.abs((A**2).imag).max() > 1e-12:
            return None
        return np.asarray(-Y / (A**2).real)

    @statement(
        "Eq. 15: mean estimates agree with the kernel within four standard errors for every A and pair, and to a tenth at "
        "more than half of them."
    )
    def unbiased(self, results: Results) -> Finding:
        """Compare means."""
        return self._unbiased(results, tuple(ALONE))

    @statement("Eq. 20: the same holds for Gaussian hybrids, for every choice of matrices M.")
    def hybrids_unbiased(self, results: Results) -> Finding:
        """Compare means."""
        return self._unbiased(results, tuple(WITH_MATRICES))

    @statement(
        "Section 2.3: errors for A = iI agree with those of the trigonometric estimator within four standard errors, and to "
        "a tenth at more than half of the pairs."
    )
    def is_trigonometric(self, results: Results) -> Finding:
        """Compare squared errors."""
        return self._same(results, "A = iI", "trigonometric")

    @statement(
        "Section 2.3: errors for A = I agree with those of the ++ estimator within four standard errors, and to a tenth at "
        "more than half of the pairs."
    )
    def is_hyperbolic(self, results: Results) -> Finding:
        """Compare squared errors."""
        return self._same(results, "A = I", "++")

    @statement(
        "Eq. 17: where it holds, estimates are exact to rounding in every draw, for every A that has such points."
    )
    def exact(self, results: Results) -> Finding:
        """Look at the largest error."""
        return self._exact(results, tuple(ALONE))

    @statement("Eq. 20: Gaussian hybrids with one matrix M are exact to rounding where x = -My, in every draw.")
    def hybrids_exact(self, results: Results) -> Finding:
        """Look at the largest error."""
        return self._exact(results, tuple(WITH_MATRICES))

    def plot(self, results: Results, figure: Figure) -> None:
        """Mean estimates over the kernel, pair by pair."""
        ax = figure.subplots()
        for k, (name, part) in enumerate(results.parts.items()):
            mean = Estimate.read(part["mean"])
            at = np.arange(len(mean.mean)) + 0.06 * k
            ax.errorbar(at, mean.mean, 2 * mean.error, fmt="os"[k // 10], markersize=4, color=f"C{k % 10}", label=name)
        ax.axhline(1, color="black", linewidth=0.8)
        ax.set(xlabel="pair", ylabel="mean estimate / kernel")
        handles, labels = ax.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside right upper", fontsize="x-small")

    @staticmethod
    def _unbiased(results: Results, names: tuple[str, ...]) -> Finding:
        return agreement(Estimate.stack(Estimate.read(results.parts[name]["mean"]) for name in names), 1.0)

    @staticmethod
    def _same(results: Results, one: str, other: str) -> Finding:
        a, b = (Estimate.read(results.parts[name]["squared error"]) for name in (one, other))
        found = agreement(Estimate(a.mean, np.hypot(a.error, b.error)), b.mean)
        pairs = ", ".join(f"{u:.3f} and {v:.3f}" for u, v in zip(a.mean, b.mean, strict=True))
        return replace(found, evidence=f"{found.evidence} Mean squared relative errors {pairs}.")

    @staticmethod
    def _exact(results: Results, names: tuple[str, ...]) -> Finding:
        found = {name: error for name in names if (error := results.parts[name]["where exact"]) is not None}
        shown = ", ".join(f"{name} {error:.1e}" for name, error in found.items())
        return Finding(all(error < 1e-9 for error in found.values()), f"Largest relative errors: {shown}.")
