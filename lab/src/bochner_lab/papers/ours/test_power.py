"""Size and power of the kernel tests in linear time, next to the tests with the exact kernel matrix."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bochner import Approximation
from bochner.kernels import Gaussian
from bochner.statistics import IndependenceTest, hsic_test, mmd_test

from ..._estimates import Estimate
from ..._experiment import Experiment, Results, by_profile, statement
from ..._verdicts import Finding, equal, superior

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Sample = tuple[np.ndarray, np.ndarray]
LEVEL = 0.05
_COMPARED = 400
"""Simulations in which random features are tried in place of landmarks."""


def _moved(rng: np.random.Generator) -> Sample:
    X, Y = rng.standard_normal((2, 150, 5))
    Y[:, 0] += 0.4
    return X, Y


def _wider(rng: np.random.Generator) -> Sample:
    X, Y = rng.standard_normal((2, 200, 4))
    Y[:, 0] *= 1.5
    return X, Y


def _same(rng: np.random.Generator) -> Sample:
    X, Y = rng.standard_normal((2, 100, 3))
    return X, Y


def _sine(rng: np.random.Generator) -> Sample:
    x = rng.standard_normal((100, 1))
    return x, 0.55 * np.sin(2 * x) + rng.standard_normal((100, 1))


def _circle(rng: np.random.Generator) -> Sample:
    angle = rng.uniform(0, 2 * np.pi, (120, 1))
    noise = 0.3 * rng.standard_normal((2, 120, 1))
    return np.cos(angle) + noise[0], np.sin(angle) + noise[1]


def _among_columns(rng: np.random.Generator) -> Sample:
    X, Y = rng.standard_normal((2, 150, 4))
    Y[:, 0] = 0.6 * X[:, 0] ** 2 + 0.8 * Y[:, 0]
    return X, Y


def _shared_factor(rng: np.random.Generator) -> Sample:
    X, Y, factor = rng.standard_normal((3, 150, 10))
    return X + 0.35 * factor[:, :1], Y + 0.35 * factor[:, :1]


def _independent(rng: np.random.Generator) -> Sample:
    return rng.standard_normal((100, 3)), rng.standard_exponential((100, 2))


ALTERNATIVES: dict[str, Callable[[np.random.Generator], Sample]] = {
    "mmd, no difference": _same,
    "mmd, mean of one of 5 columns + 0.4": _moved,
    "mmd, spread of one of 4 columns x 1.5": _wider,
    "hsic, independent": _independent,
    "hsic, sine": _sine,
    "hsic, circle": _circle,
    "hsic, square of one of 4 columns": _among_columns,
    "hsic, a factor shared by 10 columns": _shared_factor,
}
NULL = ("mmd, no difference", "hsic, independent")


class TestPower(Experiment):
    """Both tests on the same data, with as many permutations; the exact one has the same rule for its lengthscale."""

    name = "ours-test-power"
    paper = "ours"
    item = "Size and power of kernel tests in linear time"
    claim = "The tests in linear time have the size they are asked for, and 95 % of the power of the quadratic tests."
    methods = ("mmd_test", "hsic_test")
    profiles = by_profile(
        smoke={"simulations": 20, "permutations": 19},
        full={"simulations": 2000, "permutations": 199},
    )
    seconds = by_profile(smoke=2, full=4000)

    def parts(self, p: Mapping[str, Any]) -> list[str]:
        """One per alternative."""
        return list(ALTERNATIVES)

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """How often each test rejects at level 0.05, and how much of the exact one's power is lost, in pairs."""
        two_samples, found = part.startswith("mmd"), []
        for i in range(p["simulations"]):
            X, Y = ALTERNATIVES[part](rng)
            ours = (mmd_test if two_samples else hsic_test)(X, Y, n_permutations=p["permutations"], rng=rng)
            exact = (_quadratic_mmd if two_samples else _quadratic_hsic)(X, Y, p["permutations"], rng)
            other = np.nan if two_samples or i >= _COMPARED else _random_features(X, Y, p["permutations"], rng)
            found.append([ours.p_value <= LEVEL, exact <= LEVEL, other <= LEVEL])
        rejected = np.array(found, dtype=np.float64)
        return {
            "features": Estimate.of(rejected[:, 0]).as_numbers(),
            "random features": None if two_samples else Estimate.of(rejected[:_COMPARED, 2]).as_numbers(),
            "quadratic": Estimate.of(rejected[:, 1]).as_numbers(),
            "surplus": Estimate.of(rejected[:, 0] - 0.95 * rejected[:, 1]).as_numbers(),
        }

    @statement("Without a difference both tests reject in 5 % of the simulations, within 1.5 % (95 % intervals).")
    def size(self, results: Results) -> Finding:
        """Shares of rejections by both tests."""
        found = [Estimate.read(results.parts[name]["features"]) for name in NULL]
        text = ", ".join(f"{name.split(',')[0]} {100 * one.mean:.2f} %" for name, one in zip(NULL, found, strict=True))
        stacked = Estimate.stack(found)
        return equal(Estimate(stacked.mean - LEVEL, stacked.error), 0.015, f"Rejected: {text}.")

    @statement("Under every alternative the test has more than 95 % of the quadratic test's power (95 % intervals).")
    def power_kept(self, results: Results) -> Finding:
        """The paired difference of rejections."""
        names = [name for name in results.parts if name not in NULL]
        text = "; ".join(
            f"{name}: {100 * results.parts[name]['features']['mean']:.1f} against "
            f"{100 * results.parts[name]['quadratic']['mean']:.1f} %"
            for name in names
        )
        return superior(Estimate.stack([Estimate.read(results.parts[name]["surplus"]) for name in names]), f"{text}.")

    def plot(self, results: Results, figure: Figure) -> None:
        """Rejections of both tests."""
        ax, names = figure.subplots(), list(results.parts)
        for shift, kind in ((-0.1, "features"), (0.1, "quadratic")):
            found = [Estimate.read(results.parts[name][kind]) for name in names]
            places = np.arange(len(names)) + shift
            ax.errorbar([v.mean for v in found], places, xerr=[2 * v.error for v in found], fmt="o", label=kind)
        ax.axvline(LEVEL, color="black", linewidth=0.8)
        ax.set_yticks(range(len(names)), names, fontsize="small")
        ax.set(xlabel="share of simulations that reject at level 0.05")
        ax.legend(fontsize="small")


def _median_kernel(Z: np.ndarray) -> Gaussian:
    """The kernel at the median distance between rows."""
    q = np.maximum(((Z[:, None] - Z[None]) ** 2).sum(axis=2), 0)
    return Gaussian(float(np.sqrt(np.median(q[np.triu_indices(len(Z), 1)]))))


def _p_value(values: np.ndarray) -> float:
    return float(1 + np.count_nonzero(values[1:] >= values[0] * (1 - 1e-12))) / len(values)


def _quadratic_mmd(X: np.ndarray, Y: np.ndarray, permutations: int, rng: np.random.Generator) -> float:
    """p-value of the permutation test with all pairs of rows."""
    Z = np.concatenate([X, Y])
    labels = np.full((permutations + 1, len(Z)), -1 / len(Y))
    labels[:, : len(X)] = 1 / len(X)
    labels[1:] = rng.permuted(labels[1:], axis=1)
    return _p_value(np.vecdot(labels @ _median_kernel(Z)(Z), labels))


def _quadratic_hsic(X: np.ndarray, Y: np.ndarray, permutations: int, rng: np.random.Generator) -> float:
    """p-value of the permutation test with all pairs of pairs."""
    K, L = _median_kernel(X)(X), _median_kernel(Y)(Y)
    K = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    orders = [np.arange(len(X)), *(rng.permutation(len(X)) for _ in range(permutations))]
    return _p_value(np.array([np.vdot(K, L[np.ix_(order, order)]) for order in orders]))


def _random_features(X: np.ndarray, Y: np.ndarray, permutations: int, rng: np.random.Generator) -> float:
    """p-value with 128 random features of each variable in place of landmarks."""
    drawn = [Approximation(_median_kernel(Z), n_projections=64).draw(Z.shape[1], rng) for Z in (X, Y)]
    return IndependenceTest(*drawn, n_permutations=permutations, rng=rng).update(X, Y).result().p_value
