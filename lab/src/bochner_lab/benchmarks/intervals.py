"""Coverage of prediction intervals and prediction sets on ten tables each, and their time against refits by MAPIE.

A table is split twenty times.  At most 300 rows are learned with everything left open, so that rows which are left out
have also chosen the machine, and the other rows, at most 1000, are covered or not.  One table has noise that grows along a
column, and one has every row twice.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bochner.learn import KernelClassifier, KernelRidge

from .. import datasets
from ._bench import Result, at_least, not_measured

ROWS, NEW_ROWS, SPLITS = 300, 1000, 20
LEVEL, REACH, FASTER = 0.9, 0.01, 100.0
"""Share of new targets to contain, by how much a coverage may miss it, and the goal against refits."""
REGRESSION = (
    "abalone", "boston", "ccpp", "cpu_act", "diabetes", "parkinsons", "wine-quality-red", "wine-quality-white"
)  # fmt: skip
CLASSES = ("cmc", "yeast", "wine-quality-red", "car", "breast-cancer")


def run() -> Iterator[Result]:
    """Coverage of intervals and sets, and times."""
    for name, split in [*((n, _split_of(n)) for n in REGRESSION), ("growing noise", _noisy), ("rows twice", _twice)]:
        yield _coverage(f"intervals, {name}", split, _interval)
    for name in CLASSES:
        yield _coverage(f"sets, {name}", _split_of(name, classes=True), _set)
    yield _against_mapie()


Split = Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]


def _split_of(name: str, *, classes: bool = False) -> Split:
    data = datasets.load(name)
    y = data.y.astype(int if classes else float)
    frequent = np.isin(y, np.flatnonzero(np.bincount(y) >= 20)) if classes else np.ones(len(y), dtype=bool)
    X, y = data.X[frequent].astype(float), y[frequent]

    def split(rng: np.random.Generator) -> Any:
        order = rng.permutation(len(X))
        n = min(ROWS, len(X) * 3 // 4)
        train, test = order[:n], order[n : n + NEW_ROWS]
        return X[train], y[train], X[test], y[test]

    return split


def _noisy(rng: np.random.Generator) -> Any:
    """Noise whose deviation grows twentyfold along the first column."""
    X = rng.uniform(-1, 1, (ROWS + NEW_ROWS, 3))
    y = np.sin(3 * X[:, 1]) + X[:, 2] + 0.2 * np.exp(1.5 * X[:, 0]) * rng.standard_normal(len(X))
    return X[:ROWS], y[:ROWS], X[ROWS:], y[ROWS:]


def _twice(rng: np.random.Generator) -> Any:
    """Rows that are all there twice, with the same target."""
    X = rng.uniform(-1, 1, (ROWS // 2 + NEW_ROWS, 3))
    y = np.sin(3 * X[:, 1]) + X[:, 2] + 0.3 * rng.standard_normal(len(X))
    n = ROWS // 2
    return np.repeat(X[:n], 2, axis=0), np.repeat(y[:n], 2), X[n:], y[n:]


def _interval(X: np.ndarray, y: np.ndarray, T: np.ndarray, z: np.ndarray) -> tuple[float, float]:
    """Coverage, and mean width in standard deviations of the targets."""
    _, bounds = KernelRidge(random_state=0).fit(X, y).predict(T, interval=LEVEL)
    inside = (bounds[:, 0] <= z) & (z <= bounds[:, 1])
    return float(inside.mean()), float((bounds[:, 1] - bounds[:, 0]).mean() / z.std())


def _set(X: np.ndarray, y: np.ndarray, T: np.ndarray, z: np.ndarray) -> tuple[float, float]:
    """Coverage, and mean number of classes."""
    model = KernelClassifier(random_state=0).fit(X, y)
    found = model.predict_set(T, coverage=LEVEL)
    place = np.searchsorted(model.classes_, z)
    place = np.where(model.classes_[np.minimum(place, len(model.classes_) - 1)] == z, place, -1)
    inside = np.where(place >= 0, found[np.arange(len(z)), np.maximum(place, 0)], False)
    return float(inside.mean()), float(found.sum(axis=1).mean())


def _coverage(case: str, split: Split, measure: Callable[..., tuple[float, float]]) -> Result:
    found, begun = [], time.process_time()
    for seed in range(SPLITS):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of fits that explain nothing
            found.append(measure(*split(np.random.default_rng(seed))))
    coverage, width = np.array(found).T
    error = float(coverage.std(ddof=1) / np.sqrt(SPLITS))
    sets = case.startswith("sets")  # a classifier that errs less often covers more
    met = LEVEL - REACH <= coverage.mean() and (sets or coverage.mean() <= LEVEL + REACH)
    goal = f">= {LEVEL - REACH:g}" if sets else f"{LEVEL:g} +- {REACH:g}"
    details = (
        f"standard error {error:.4f} of {SPLITS} splits, mean {'size' if sets else 'width'} {width.mean():.3g}, "
        f"{time.process_time() - begun:.0f} s of CPU"
    )
    numbers = {"coverage": coverage.tolist(), "width": width.tolist()}
    return Result(case, float(coverage.mean()), "", goal, bool(met), details, numbers)


def _against_mapie() -> Result:
    """Time of jackknife+ intervals of the same machine with fixed parameters, by refits and without."""
    case = "MAPIE's jackknife+ / ours, diabetes, the same machine"
    try:
        from mapie.regression import CrossConformalRegressor
    except ImportError:
        return not_measured(case, "MAPIE is not installed")
    from sklearn.model_selection import LeaveOneOut

    X, y, T, z = _split_of("diabetes")(np.random.default_rng(0))
    chosen = KernelRidge(random_state=0).fit(X, y)
    machine = KernelRidge(
        chosen.kernel_, gamma=None, map="landmarks", n_components=len(X), alpha=float(chosen.alpha_), metric=None,
        standardize=True, random_state=0,
    )  # fmt: skip
    begun = time.process_time()
    _, ours = machine.fit(X, y).predict(T, interval=LEVEL)
    between = time.process_time()
    other = CrossConformalRegressor(machine, confidence_level=LEVEL, method="plus", cv=LeaveOneOut())
    _, theirs = other.fit_conformalize(X, y).predict_interval(T)
    theirs, ended = theirs[:, :, 0], time.process_time()

    def said(bounds: np.ndarray) -> str:
        inside = (bounds[:, 0] <= z) & (z <= bounds[:, 1])
        return f"coverage {inside.mean():.3f}, width {(bounds[:, 1] - bounds[:, 0]).mean() / z.std():.3f}"

    ratio = (ended - between) / (between - begun)
    details = f"{said(ours)}, {between - begun:.2f} s; MAPIE {said(theirs)}, {ended - between:.1f} s of CPU"
    return at_least(case, ratio, FASTER, "x", details)
