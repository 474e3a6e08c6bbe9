"""Error against wall-clock time: random features and landmarks, next to scikit-learn's RBFSampler and Nystroem."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bochner import catalogue
from bochner.approximation import Approximation
from bochner.kernels import Gaussian

from ..._estimates import Estimate
from ..._experiment import REJUDGED, Experiment, Results, by_profile, dataset, statement
from ..._verdicts import Finding, superior, together

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MECHANISMS = ("rff", "orf", "sorf", "qbf-b")
LANDMARKS = ("landmarks", "landmarks-rpcholesky")
PEERS = ("RBFSampler", "Nystroem")


class ErrorAndTime(Experiment):
    """Fit and transform of all rows, and the relative Frobenius error on some of them, by width."""

    name = "ours-time"
    paper = "ours"
    item = "Error against time"
    claim = (
        "At equal width, orthogonal features with a fast rotation are more accurate than RBFSampler and take less "
        "time than RBFSampler and Nystroem, and our landmarks take no more time than Nystroem."
    )
    data = ("mnist",)
    methods = (*MECHANISMS, *LANDMARKS, *PEERS)
    timed = True
    deviations = REJUDGED
    profiles = by_profile(
        smoke={"rows": 500, "evaluated": 100, "widths": (128, 512), "draws": 3},
        full={"rows": 8000, "evaluated": 500, "widths": (256, 512, 1024), "draws": 5},
    )
    seconds = by_profile(smoke=3, full=19)

    def parts(self, p: Mapping[str, Any]) -> list[str]:
        """One per method and width."""
        return [f"{method} {width}" for method in (*MECHANISMS, *LANDMARKS, *PEERS) for width in p["widths"]]

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Errors over draws, and the shortest time of fit and transform."""
        method, width = part.split()
        X = np.asarray(dataset("mnist").X[: p["rows"]], dtype=np.float32) / 255
        some = np.random.default_rng(0).choice(len(X), p["evaluated"], replace=False)
        lengthscale = float(np.median(np.linalg.norm(X[some] - X[some[::-1]], axis=1)))
        exact, errors, times = Gaussian(lengthscale)(X[some].astype(np.float64)), [], []
        for _ in range(p["draws"]):
            start = time.perf_counter()
            Z = self._features(method, int(width), lengthscale, X, rng)
            times.append(time.perf_counter() - start)
            errors.append(np.linalg.norm(Z[some].astype(np.float64) @ Z[some].T - exact) / np.linalg.norm(exact))
        return Estimate.of(errors).as_numbers() | {"seconds": min(times)}

    @staticmethod
    def _features(method: str, width: int, lengthscale: float, X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        if method in MECHANISMS:
            spec = catalogue.mechanism(method, Gaussian(lengthscale)).with_width(width)
            return np.asarray(spec.fit(X, rng=rng).queries(X))
        if method in LANDMARKS:
            chosen = Approximation(Gaussian(lengthscale), catalogue.map(method), n_projections=min(width, len(X)))
            return np.asarray(chosen.fit(X, rng=rng).queries(X))
        from sklearn.kernel_approximation import Nystroem, RBFSampler

        gamma, seed = 1 / (2 * lengthscale**2), int(rng.integers(2**31))
        if method == "RBFSampler":
            return np.asarray(RBFSampler(gamma=gamma, n_components=width, random_state=seed).fit_transform(X))
        return np.asarray(Nystroem(gamma=gamma, n_components=min(width, len(X)), random_state=seed).fit_transform(X))

    @statement("SORF has a lower error than RBFSampler at every width (95 % intervals).")
    def more_accurate(self, results: Results) -> Finding:
        """Compare them."""
        widths = results.parameters["widths"]
        pairs = [[Estimate.read(results.parts[f"{name} {w}"]) for name in ("sorf", "RBFSampler")] for w in widths]
        text = ", ".join(f"{a.mean:.4f} against {b.mean:.4f}" for a, b in pairs)
        return superior(Estimate.stack(b.over(a) for a, b in pairs), text + ".")

    @statement("SORF takes less time than RBFSampler at the largest width.")
    def faster_than_sampler(self, results: Results) -> Finding:
        """Compare the times."""
        return self._faster(results, "RBFSampler")

    @statement("SORF takes less time than Nystroem at the largest width.")
    def faster_than_nystroem(self, results: Results) -> Finding:
        """Compare the times."""
        return self._faster(results, "Nystroem")

    @statement("Uniform landmarks take at most the time of Nystroem at the largest width.")
    def landmarks(self, results: Results) -> Finding:
        """Compare the times."""
        return self._faster(results, "Nystroem", "landmarks")

    @statement(
        "Pivoted landmarks take at most 1.5 times the time of Nystroem at the largest width, and have a lower error "
        "(95 % interval)."
    )
    def pivoted(self, results: Results) -> Finding:
        """Compare times and errors."""
        width = results.parameters["widths"][-1]
        ours, theirs = (results.parts[f"{name} {width}"] for name in ("landmarks-rpcholesky", "Nystroem"))
        ratio, gain = ours["seconds"] / theirs["seconds"], Estimate.read(theirs).over(Estimate.read(ours))
        text = f"{ratio:.2f} times; errors {ours['mean']:.4f} against {theirs['mean']:.4f}."
        return together([Finding(ratio <= 1.5, ""), superior(gain, "")], text)

    def plot(self, results: Results, figure: Figure) -> None:
        """Error over time."""
        ax = figure.subplots()
        for k, method in enumerate((*MECHANISMS, *LANDMARKS, *PEERS)):
            parts = [results.parts[f"{method} {width}"] for width in results.parameters["widths"]]
            x, y = [part["seconds"] for part in parts], [part["mean"] for part in parts]
            ax.errorbar(
                x, y, [2 * part["error"] for part in parts], marker="o", markersize=4, color=f"C{k}", label=method
            )
        ax.set(xlabel="seconds to fit and transform", ylabel="relative error", xscale="log", yscale="log")
        ax.legend(fontsize="small")

    def _faster(self, results: Results, other: str, one: str = "sorf") -> Finding:
        width = results.parameters["widths"][-1]
        ours, theirs = (results.parts[f"{name} {width}"]["seconds"] for name in (one, other))
        return Finding(ours <= theirs, f"{1000 * ours:.1f} ms against {1000 * theirs:.1f} ms.")
