"""Several radii on a direction, directions of a low-discrepancy sequence, and spherical designs, next to SORF."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from bochner import catalogue
from bochner.kernels import Gaussian
from bochner.projections import QMC, Orthogonal
from bochner.rotations import Haar

from ..._estimates import Estimate
from ..._experiment import Experiment, Results, by_profile, dataset, statement
from ..._figures import panels
from ..._verdicts import Finding, superior

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DATA = ("letter", "usps", "mnist")
METHODS = ("sorf", "sorf, 2 radii", "sorf, 4 radii", "radii for free", "sequence", "design", "design, 2 radii")


class Slicing(Experiment):
    """Relative Frobenius errors of the Gaussian Gram matrix of some rows, at the median distance."""

    name = "ours-slicing"
    paper = "ours"
    item = "Several radii on a direction, sequences and designs of directions"
    claim = (
        "Several radii on each direction and directions of a low-discrepancy sequence cannot halve the error of SORF, even "
        "if all radii beyond the first cost no time; a spherical design does, in 16 dimensions."
    )
    data = DATA
    methods = ("sorf",)
    profiles = by_profile(
        smoke={"rows": 60, "directions": (288,), "draws": 4},
        full={"rows": 150, "directions": (288, 576, 1152), "draws": 8},
    )
    seconds = by_profile(smoke=6, full=540)
    deviations = (
        "Radii for free, sequence and design have eight radii on each direction, a Gauss rule that is exact to rounding, "
        "and as many directions as SORF has rows: eight times as many features, counted as if they cost nothing.  Methods "
        "with 2 or 4 radii have as many features as SORF.  The design, nine mutually unbiased bases, is for letter only: in "
        "256 dimensions it would have 129 bases."
    )

    def parts(self, p: Mapping[str, Any]) -> list[str]:
        """One per data set, method and number of directions."""
        return [
            f"{name}; {method}; {m}"
            for name in DATA
            for method in METHODS
            for m in p["directions"]
            if not method.startswith("design") or name == "letter"
        ]

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Errors over draws."""
        name, method, m = part.split("; ")
        X = np.asarray(dataset(name).X, dtype=np.float64)
        X = X[np.random.default_rng(0).choice(len(X), p["rows"], replace=False)]
        distances = np.linalg.norm(X[:, None] - X[None], axis=2)
        kernel = Gaussian(float(np.median(distances[np.triu_indices(len(X), 1)])))
        exact, X = np.asarray(kernel(X)), X / kernel.lengthscale
        errors = [
            np.linalg.norm(_gram(method, X, int(m), rng) - exact) / np.linalg.norm(exact) for _ in range(p["draws"])
        ]
        return Estimate.of(errors).as_numbers()

    @statement(
        "With any number of radii at no cost, orthogonal directions have more than half the error of as many rows of SORF, "
        "on every data set and at every number (95 % intervals)."
    )
    def radii_do_not_halve(self, results: Results) -> Finding:
        """The ratio of errors, less one half."""
        return self._against(results, "radii for free", DATA)

    @statement("So have directions of a Halton sequence (95 % intervals).")
    def sequences_do_not_halve(self, results: Results) -> Finding:
        """Ratios for the Halton sequence."""
        return self._against(results, "sequence", DATA)

    @statement(
        "At equal width, two radii on a direction have a larger error than SORF on every data set (95 % intervals)."
    )
    def two_radii_lose(self, results: Results) -> Finding:
        """Half as many directions."""
        gains = [
            self._ratio(results, "sorf, 2 radii", name, m) for name in DATA for m in results.parameters["directions"]
        ]
        return superior(Estimate.stack([Estimate(r.mean - 1, r.error) for r in gains]), _listed(gains))

    @statement("A spherical design with two radii has less than half the error of SORF on letter, at equal width.")
    def design_halves(self, results: Results) -> Finding:
        """One half, less the ratio of errors."""
        ratios = [self._ratio(results, "design, 2 radii", "letter", m) for m in results.parameters["directions"]]
        return superior(Estimate.stack([Estimate(0.5 - r.mean, r.error) for r in ratios]), _listed(ratios))

    def _against(self, results: Results, method: str, names: tuple[str, ...]) -> Finding:
        ratios = [self._ratio(results, method, name, m) for name in names for m in results.parameters["directions"]]
        return superior(Estimate.stack([Estimate(r.mean - 0.5, r.error) for r in ratios]), _listed(ratios))

    @staticmethod
    def _ratio(results: Results, method: str, name: str, m: int) -> Estimate:
        """Errors of a method over those of SORF."""
        ours, sorf = (Estimate.read(results.parts[f"{name}; {one}; {m}"]) for one in (method, "sorf"))
        ratio = ours.mean / sorf.mean
        return Estimate(ratio, ratio * np.hypot(ours.error / ours.mean, sorf.error / sorf.mean))

    def plot(self, results: Results, figure: Figure) -> None:
        """Error over the number of directions."""
        directions = results.parameters["directions"]
        axes = panels(figure, DATA, "directions", "relative error", columns=3, scale="log")
        for ax, name in zip(axes, DATA, strict=True):
            for method in METHODS:
                if f"{name}; {method}; {directions[0]}" in results.parts:
                    found = [Estimate.read(results.parts[f"{name}; {method}; {m}"]) for m in directions]
                    ax.errorbar(
                        directions,
                        [v.mean for v in found],
                        [2 * v.error for v in found],
                        marker="o",
                        markersize=3,
                        label=method,
                    )
        axes[0].legend(fontsize="xx-small")


def _listed(ratios: list[Estimate]) -> str:
    return "Errors over those of SORF: " + ", ".join(f"{r.mean:.2f}" for r in ratios) + "."


def _gram(method: str, X: np.ndarray, m: int, rng: np.random.Generator) -> np.ndarray:
    """Estimate of the Gram matrix at unit lengthscale."""
    d = X.shape[1]
    if method == "sorf":
        return np.asarray(catalogue.mechanism("sorf", n_projections=m).draw(d, rng).gram(X))
    if method.startswith("sorf, "):
        count = int(method[6])
        return _of_directions(X, _fast_directions(d, m // count, rng), *_stratified(d, count, m // count, rng))
    if method == "radii for free":
        rows = Orthogonal(Haar(), "fixed").sample(d, m, rng).to_dense()
    elif method == "sequence":
        rows = QMC("halton").sample(d, m, rng).to_dense()
    else:
        rows = _design(m if method == "design" else m // 2, rng)
    count = 2 if method == "design, 2 radii" else 8
    return _of_directions(X, rows / np.linalg.norm(rows, axis=1, keepdims=True), *_gauss(d, count))


def _fast_directions(d: int, m: int, rng: np.random.Generator) -> np.ndarray:
    """Unit directions of SORF, in as many dimensions as the data have."""
    rows = Orthogonal(catalogue.rotation("hadamard"), "fixed").sample(d, m, rng).to_dense()
    return np.asarray(rows / np.sqrt(1 << (d - 1).bit_length()))


def _of_directions(X: np.ndarray, U: np.ndarray, radii: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The mean over directions, with radii for all of them, (count,), or for each of them, (count, m)."""
    total, projected = np.zeros((len(X), len(X))), X @ U.T
    for r, w in zip(radii, weights, strict=True):
        C, S = np.cos(r * projected), np.sin(r * projected)
        total += w * (C @ C.T + S @ S.T)
    return total / len(U)


def _stratified(d: int, count: int, m: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """For each direction, one length of the law chi in each of as many parts of equal probability: unbiased."""
    padded = 1 << (d - 1).bit_length()
    places = (np.arange(count)[:, None] + rng.uniform(size=(count, m))) / count
    return np.sqrt(2 * special.gammaincinv(padded / 2, places)), np.full(count, 1 / count)


def _gauss(d: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Radii and weights of the Gauss rule of the law chi."""
    # the Jacobi matrix of generalised Laguerre polynomials: r^2/2 has the law Gamma(d/2)
    k = np.arange(count)
    beside = np.sqrt(k[1:] * (k[1:] + d / 2 - 1))
    values, vectors = np.linalg.eigh(np.diag(2 * k + d / 2) + np.diag(beside, 1) + np.diag(beside, -1))
    return np.sqrt(2 * values), vectors[0] ** 2


def _design(m: int, rng: np.random.Generator) -> np.ndarray:
    """Nine mutually unbiased bases of 16 dimensions, a spherical design of strength 5, each time in a new rotation."""
    bases = np.concatenate([np.eye(16), *(_hadamard() * signs / 4 for signs in _kerdock())])
    copies = [bases @ Haar().sample(16, 1, rng).to_dense()[0] for _ in range(-(-m // len(bases)))]
    return np.concatenate(copies)[:m]


def _hadamard() -> np.ndarray:
    """Walsh functions of 16 points."""
    points = np.array(list(itertools.product((0, 1), repeat=4)))
    return np.asarray((-1.0) ** (points @ points.T))


def _kerdock() -> list[np.ndarray]:
    """Signs of eight quadratic forms of four bits whose differences have full rank."""
    points, pairs = np.array(list(itertools.product((0, 1), repeat=4))), list(itertools.combinations(range(4), 2))
    forms = [np.array(bits) for bits in itertools.product((0, 1), repeat=6)]

    def apart(a: np.ndarray, b: np.ndarray) -> bool:
        """Whether the Pfaffian of the difference is one."""
        x = a ^ b
        return bool((x[0] * x[5] + x[1] * x[4] + x[2] * x[3]) % 2)

    def extended(chosen: list[np.ndarray], start: int) -> list[np.ndarray] | None:
        if len(chosen) == 8:
            return chosen
        for i in range(start, len(forms)):
            if all(apart(forms[i], other) for other in chosen):
                found = extended([*chosen, forms[i]], i + 1)
                if found:
                    return found
        return None

    found = extended([], 0)
    assert found is not None  # a Kerdock set exists in four bits
    return [
        (-1.0) ** sum(c * points[:, i] * points[:, j] for c, (i, j) in zip(form, pairs, strict=True)) for form in found
    ]
