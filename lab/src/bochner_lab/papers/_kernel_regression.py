"""Classification by kernel regression with random features, as SimRF Section 5.3 and CRT Section 5.2 do it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bochner.approximation import Approximation

from .._experiment import dataset

DATA = {
    "abalone": "abalone",
    "banknote": "banknote",
    "car": "car",
    "yeast": "yeast",
    "cmc": "cmc",
    "nursery": "nursery",
    "wifi": "wifi",
    "chess": "krkopt",
}
"""Data sets by the names of the papers."""


@dataclass(frozen=True)
class Split:
    """Standardised training, validation and test rows, and one-hot labels of the training rows."""

    train: np.ndarray
    labels: np.ndarray
    valid: np.ndarray
    valid_y: np.ndarray
    test: np.ndarray
    test_y: np.ndarray

    def padded(self) -> Split:
        """A copy of the split with zero columns added up to a power of two."""
        d = self.train.shape[1]
        extra = (1 << (d - 1).bit_length()) - d
        train, valid, test = (np.pad(rows, ((0, 0), (0, extra))) for rows in (self.train, self.valid, self.test))
        return Split(train, self.labels, valid, self.valid_y, test, self.test_y)

    def small(self, train: int, valid: int) -> Split:
        """The first rows, for a coarse search."""
        return Split(
            self.train[:train], self.labels[:train], self.valid[:valid], self.valid_y[:valid], self.test, self.test_y
        )


def load_split(name: str, most_rows: int | None = None, fold: int = 0) -> Split:
    """A tenth for the test, a tenth of the rest for validation (Table 1 of CRT has L of 90%); folds have disjoint tests."""
    loaded = dataset(DATA[name])
    order = np.random.default_rng(0).permutation(len(loaded.X))[:most_rows]
    order = np.roll(order, -fold * (len(order) // 10))
    X, y = np.asarray(loaded.X, dtype=np.float64)[order], np.unique(loaded.y, return_inverse=True)[1][order]
    n = len(X)
    test, valid = slice(0, n // 10), slice(n // 10, n // 10 + 9 * n // 100)
    train = slice(valid.stop, n)
    mean, deviation = X[train].mean(0), X[train].std(0)
    X = (X - mean) / np.where(deviation > 0, deviation, 1.0)
    return Split(X[train], np.eye(y.max() + 1)[y[train]], X[valid], y[valid], X[test], y[test])


def accuracies(
    spec: Approximation, split: Split, sigma: float, draws: int, rng: np.random.Generator, *, on: str = "test"
) -> np.ndarray:
    """Accuracies of independent draws: the class with the largest sum of kernel values of its training rows."""
    return paired_accuracies({"": spec}, split, sigma, draws, rng, on=on)[""]


def paired_accuracies(
    specs: Mapping[str, Approximation],
    split: Split,
    sigma: float,
    draws: int,
    rng: np.random.Generator,
    *,
    on: str = "test",
) -> dict[str, np.ndarray]:
    """Accuracies of several mechanisms, draw by draw from the same seeds, so that differences are paired."""
    rows, truth = (split.test, split.test_y) if on == "test" else (split.valid, split.valid_y)
    keys, queries = sigma * split.train, sigma * rows
    plans = {name: spec.plan(queries, keys, rng) for name, spec in specs.items()}
    found: dict[str, list[float]] = {name: [] for name in specs}
    with np.errstate(
        over="ignore", invalid="ignore"
    ):  # large exponents of poor mechanisms: such rows are counted as wrong
        for _ in range(draws):
            seed = int(rng.integers(2**63))
            for name, plan in plans.items():
                phi = plan.draw(keys.shape[1], seed)
                scores = phi.queries(queries) @ (phi.keys(keys).T @ split.labels)
                known = np.isfinite(scores).all(axis=1)
                right = known & (np.where(known[:, None], scores, 0.0).argmax(axis=1) == truth)
                found[name].append(float(right.mean()))
    return {name: np.array(values) for name, values in found.items()}


def exact_accuracy(spec: Approximation, split: Split, sigma: float) -> float:
    """The accuracy of the exact kernel on the test rows."""
    scores = spec.kernel(sigma * split.test, sigma * split.train) @ split.labels  # type: ignore[misc]
    return float((scores.argmax(axis=1) == split.test_y).mean())


def tune(
    spec: Approximation,
    split: Split,
    sigmas: Sequence[float],
    draws: int,
    rng: np.random.Generator,
    most: Sequence[int] | None = None,
) -> tuple[float, list[float]]:
    """The sigma of the best mean accuracy on the validation rows, and all of them; ``most`` rows to train and validate."""
    chosen = split if most is None else split.small(*most)
    found = [float(accuracies(spec, chosen, sigma, draws, rng, on="valid").mean()) for sigma in sigmas]
    return float(sigmas[int(np.argmax(found))]), found


def sigma_grid(p: Mapping[str, Any]) -> list[float]:
    """The scale factors that are tried."""
    return [float(sigma) for sigma in np.geomspace(*p["sigmas"])]
