"""Benchmarks of the estimators: speed of the transform, accuracy on real data against peers, a million rows."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from .._table import seconds
from ..approximation import Approximation
from ..datasets import load
from ..kernels import Gaussian
from ..learn import KernelClassifier, KernelRidge, RandomFeatures
from ..maps import Landmarks
from ..projections import Orthogonal, Projection
from ..rotations import Hadamard
from . import bench_scale
from .bench import Result, at_least, at_most, best_of_each

TRANSFORMS: tuple[tuple[int, int, int, type, Projection | None, float], ...] = (
    (20000, 64, 1024, np.float32, None, 1.5),
    (20000, 64, 1024, np.float64, None, 5),
    (4000, 3072, 8192, np.float32, Orthogonal(Hadamard()), 10),
)

LANDMARK_WIDTHS = (256, 1024)
PIVOTS = {"uniform": 1.0, "rpcholesky": 1.5}
"""Kinds of landmarks, and how much of the time of Nystroem they may take."""


def run() -> Iterator[Result]:
    """All cases, in order."""
    for case in TRANSFORMS:
        yield _transform(*case)
    for width in LANDMARK_WIDTHS:
        for dtype in (np.float32, np.float64):
            yield from _landmarks(width, dtype)
    yield from accuracy()
    yield from bench_scale.run()


def _transform(n: int, d: int, width: int, dtype: type, projection: Projection | None, goal: float) -> Result:
    """RBFSampler's transform against ours, at equal width."""
    from sklearn.kernel_approximation import RBFSampler

    X: np.ndarray = np.random.default_rng(0).standard_normal((n, d)).astype(dtype)
    ours = RandomFeatures(gamma=1 / d, projection=projection, n_components=width, random_state=0).fit(X)
    theirs = RBFSampler(gamma=1 / d, n_components=width, random_state=0).fit(X)
    fast, slow = best_of_each([lambda: ours.transform(X), lambda: theirs.transform(X)], 3 if d > 1000 else 7)
    rows = "default rows" if projection is None else "Hadamard(3) rows"
    case = f"RBFSampler / RandomFeatures, {n} x {d} -> {width} {np.dtype(dtype)}, {rows}"
    return at_least(case, slow / fast, goal, "x", f"{seconds(fast)}; RBFSampler {seconds(slow)}")


def _landmarks(width: int, dtype: type, n: int = 10_000, d: int = 64) -> Iterator[Result]:
    """Fit and transform with landmarks against Nystroem, which has uniform ones, at equal width."""
    from sklearn.kernel_approximation import Nystroem

    X: np.ndarray = np.random.default_rng(0).standard_normal((n, d)).astype(dtype)
    theirs = Nystroem(gamma=1 / (2 * d), n_components=width, random_state=0)
    specs = [Approximation(Gaussian(float(np.sqrt(d))), Landmarks(one), n_projections=width) for one in PIVOTS]
    ours = [lambda spec=spec: spec.fit(X, rng=0).queries(X) for spec in specs]
    slow, *times = best_of_each([lambda: theirs.fit(X).transform(X), *ours], 5)
    for (pivots, goal), time in zip(PIVOTS.items(), times, strict=True):
        case = f"fit and transform of Landmarks({pivots!r}) / Nystroem, {n} x {d} -> {width} {np.dtype(dtype)}"
        yield at_most(case, time / slow, goal, "x", f"{seconds(time)}; Nystroem {seconds(slow)}")


SEEDS = range(3)


def standardised(X: np.ndarray, n: int) -> np.ndarray:
    """Columns of mean zero and variance one on the first n rows; constant ones of zeros."""
    spread = X[:n].std(axis=0)
    return np.asarray((X - X[:n].mean(axis=0)) / np.where(spread > 0, spread, 1))


def of_logarithms(X: np.ndarray, n: int) -> np.ndarray:
    """For counts with heavy tails."""
    return standardised(np.log1p(X), n)


def pixels(X: np.ndarray, n: int) -> np.ndarray:
    """From zero to one."""
    return X / 255


@dataclass(frozen=True)
class Case:
    """A data set, how its columns are scaled, and parameters that are the same for all methods."""

    name: str
    gamma: float
    alpha: float
    width: int
    projection: str | None = None
    scaling: Callable[[np.ndarray, int], np.ndarray] = standardised
    classes: bool = False
    exact: bool = True


CASES = (
    Case("ccpp", 0.3, 0.03, 1024, "sobol"),
    Case("cpu_act", 0.003, 0.001, 4096, scaling=of_logarithms),
    Case("letter", 0.2, 0.03, 4096, classes=True),
    Case("mnist", 0.02, 0.1, 2048, scaling=pixels, classes=True, exact=False),
)


def accuracy() -> Iterator[Result]:
    """Against exact kernel ridge where that is feasible, and RBFSampler at equal width; every data set that is found."""
    for case in CASES:
        try:
            yield from _results(case, _Split.of(case))
        except OSError as error:
            print(f"left out {case.name}: {error}", file=sys.stderr)


@dataclass(frozen=True)
class _Split:
    """Training and test data, columns scaled."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray

    @classmethod
    def of(cls, case: Case) -> _Split:
        data = load(case.name)
        n = data.n_train or 3 * len(data.X) // 4
        order = np.arange(len(data.X)) if data.n_train else np.random.default_rng(0).permutation(len(data.X))
        X = data.X[order].astype(np.float32 if case.classes else np.float64)
        X = case.scaling(X, n)
        y = data.y[order] if case.classes else data.y[order].astype(np.float64)
        return cls(X[:n], y[:n], X[n:], y[n:])

    def targets(self, classes: bool) -> np.ndarray:
        """Signs of the classes, or the numbers themselves."""
        Y = 2.0 * (self.y[:, None] == np.unique(self.y)) - 1 if classes else self.y[:, None]
        return Y.astype(self.X.dtype)

    def error(self, scores: np.ndarray, classes: bool) -> float:
        """Share of wrong classes, or the root of the mean squared error."""
        if classes:
            return float(np.mean(np.unique(self.y)[scores.argmax(axis=1)] != self.y_test))
        return float(np.sqrt(np.mean((scores.reshape(-1) - self.y_test) ** 2)))


def _results(case: Case, split: _Split) -> Iterator[Result]:
    ours = float(np.mean([_ours(case, split, seed) for seed in SEEDS]))
    theirs = float(np.mean([_sampler(case, split, seed) for seed in SEEDS]))
    word = "error rate" if case.classes else "RMSE"
    shape = f"{case.name}, {len(split.X)} rows, width {case.width}"
    found = f"{ours:.4g}; RBFSampler + Ridge {theirs:.4g} (means of {len(SEEDS)} draws)"
    yield at_most(f"{word} above that of RBFSampler + Ridge, {shape}", 100 * (ours / theirs - 1), 0, "%", found)
    if not case.exact:
        return
    exact = _exact(case, split)
    found = f"{ours:.4g}; exact {exact:.4g}"
    if case.classes:  # one per cent of the rows
        yield at_most(f"accuracy lost to exact kernel ridge, {shape}", 100 * (ours - exact), 1, "%", found)
    else:
        yield at_most(f"RMSE above that of exact kernel ridge, {shape}", 100 * (ours / exact - 1), 1, "%", found)


def _ours(case: Case, split: _Split, seed: int) -> float:
    kind: Any = KernelClassifier if case.classes else KernelRidge
    options = {"gamma": case.gamma, "alpha": case.alpha, "projection": case.projection, "n_components": case.width}
    model = kind(map=None, **options, random_state=seed).fit(split.X, split.y)
    scores = model.decision_function(split.X_test) if case.classes else model.predict(split.X_test)
    return split.error(scores, case.classes)


def _sampler(case: Case, split: _Split, seed: int) -> float:
    from sklearn.kernel_approximation import RBFSampler
    from sklearn.linear_model import Ridge

    sampler = RBFSampler(gamma=case.gamma, n_components=case.width, random_state=seed).fit(split.X)
    model = Ridge(case.alpha, solver="cholesky").fit(sampler.transform(split.X), split.targets(case.classes))
    return split.error(model.predict(sampler.transform(split.X_test)), case.classes)


def _exact(case: Case, split: _Split) -> float:
    kernel, Y = Gaussian(1 / np.sqrt(2 * case.gamma)), split.targets(case.classes)
    mean = Y.mean(axis=0)
    K = kernel(split.X)
    K.flat[:: len(K) + 1] += case.alpha
    coefficients = linalg.solve(K, Y - mean, assume_a="pos", overwrite_a=True, check_finite=False)
    return split.error(kernel(split.X_test, split.X) @ coefficients + mean, case.classes)
