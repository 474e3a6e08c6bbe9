"""On twenty problems of different kinds, is what `bochner.compare` recommends worse than the default machine?

Run ``python tests/comparison/twenty_problems.py [budget]``.  Each problem has training rows, on which the comparison is
made, and new rows, on which the recommended estimator and `KernelRidge()` or `KernelClassifier()` are then judged.  The last
column is the difference of their losses on new rows in standard errors, paired over rows: above 3, the recommended one is
worse by more than noise.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator

import numpy as np
from sklearn import datasets
from sklearn.base import clone

import bochner
from bochner.reporting import format_table

N, NEW = 400, 2000
BUDGET = 30.0
ROWS = {"iris": 90, "wine": 100, "breast cancer": 300, "diabetes": 250, "digits": 500}


def drawn(f: Callable[[np.ndarray], np.ndarray], d: int, noise: float = 0.1, seed: int = 0, n: int = N) -> tuple:
    """Rows uniform on a cube, targets of a function with noise."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n + NEW, d))
    return X, f(X) + noise * rng.standard_normal(n + NEW), n


def problems() -> Iterator[tuple[str, np.ndarray, np.ndarray, int]]:
    """Names, rows, targets, and the number of training rows."""
    made = {
        "linear": drawn(lambda X: X @ np.arange(1.0, 6.0), 5, 1.0),
        "smooth": drawn(lambda X: np.sin(2 * X[:, 0]) * X[:, 1], 3),
        "one column": drawn(lambda X: np.sin(6 * X[:, 0]), 1),
        "high frequency": drawn(lambda X: np.sin(15 * X[:, 0]), 1),
        "steps": drawn(lambda X: np.floor(2 * X[:, 0]) + (X[:, 1] > 0), 4),
        "one of ten columns": drawn(lambda X: np.sin(3 * X[:, 0]), 10),
        "product": drawn(lambda X: X[:, 0] * X[:, 1] * X[:, 2], 5),
        "additive": drawn(lambda X: np.sin(2 * X).sum(axis=1), 6),
        "mostly noise": drawn(lambda X: X[:, 0] ** 2, 4, 5.0),
        "wide": drawn(lambda X: X[:, :5].sum(axis=1), 100, 0.5, n=200),
        "heavy tails": (*_heavy(), N),
        "friedman 1": (*datasets.make_friedman1(N + NEW, noise=1.0, random_state=0), N),
        "diabetes": (*datasets.load_diabetes(return_X_y=True), ROWS["diabetes"]),
        "moons": (*datasets.make_moons(N + NEW, noise=0.25, random_state=0), N),
        "circles": (*datasets.make_circles(N + NEW, noise=0.15, factor=0.5, random_state=0), N),
        "clusters": (*datasets.make_classification(N + NEW, 20, n_informative=6, n_classes=3, random_state=0), N),
        "iris": (*datasets.load_iris(return_X_y=True), ROWS["iris"]),
        "wine": (*datasets.load_wine(return_X_y=True), ROWS["wine"]),
        "breast cancer": (*datasets.load_breast_cancer(return_X_y=True), ROWS["breast cancer"]),
        "digits": (*datasets.load_digits(return_X_y=True), ROWS["digits"]),
    }
    for name, (X, y, n) in made.items():
        order = np.random.default_rng(1).permutation(len(X))
        yield name, X[order], y[order], n


def _heavy() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_t(2, (N + NEW, 4))
    return X, np.tanh(X[:, 0]) + np.tanh(X[:, 1] * X[:, 2]) + 0.1 * rng.standard_normal(N + NEW)


def losses(estimator: object, X: np.ndarray, y: np.ndarray, n: int, classifies: bool) -> np.ndarray:
    """Losses on the rows after the first n, fitted to those."""
    predicted = clone(estimator).fit(X[:n], y[:n]).predict(X[n:])
    return np.asarray(predicted != y[n:], float) if classifies else (predicted - y[n:]) ** 2


def main(budget: float = BUDGET) -> None:
    """Print one line for each problem, and how many recommendations are worse than the default."""
    warnings.simplefilter("ignore")
    lines, worse, longest = [], 0, 0.0
    for name, X, y, n in problems():
        start = time.perf_counter()
        found = bochner.compare(X[:n], y[:n], budget=budget)
        took = time.perf_counter() - start
        classifies = found.task == "classification"
        ours, best = (losses(r.estimator, X, y, n, classifies) for r in (found.default, found.best))
        gap = best - ours
        z = float(gap.mean() / (gap.std(ddof=1) / np.sqrt(len(gap)))) if gap.any() else 0.0
        worse, longest = worse + (z > 3), max(longest, took / budget)
        ratio = f"{best.mean() / ours.mean():.3f}" if ours.mean() > 0 else "-"
        lines.append(
            [name, found.best.name, str(len(found.results)), str(found.n_used), f"{took:.1f} s", ratio, f"{z:+.1f}"]
        )
        print(" ".join(lines[-1]), file=sys.stderr, flush=True)
    print(format_table(["problem", "recommended", "judged", "rows", "took", "loss / default", "z"], lines))
    print(
        f"worse than the default by more than noise (z > 3): {worse} of {len(lines)}; longest {longest:.2f} times the budget"
    )


if __name__ == "__main__":
    main(*map(float, sys.argv[1:2]))
