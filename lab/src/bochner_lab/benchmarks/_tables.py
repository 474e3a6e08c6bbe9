"""The tables of `bochner-lab bench tables`, split once and for all into a half to design with and a half to judge by.

The halves were written down before the search was tuned on any of them: a table never moves from one to the other.  Tables
that were added later, to understand a loss without looking at the tables that judge, are in the design half.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..datasets import load
from ._contenders import Split

DESIGN, JUDGING = "design", "judging"
_MOST_ROWS = 6000
"""Rows that are generated for each table, training and test rows together."""
_NEW = 10
"""Times as many test rows where they are drawn anew: a few wrong rows of 2,000 tell no errors apart that differ by 10 %."""


@dataclass(frozen=True)
class Table:
    """A table by name, its half, and where its rows come from.

    Attributes
    ----------
    name, half : str
    classes : bool
        Whether the target is a class.
    smooth : bool
        Whether the target is known to be a smooth function of the columns: generated so, or a simulation of physics.
    make : callable or None
        From a generator to X (n, d) and y (n,); None for a data set of this name.
    """

    name: str
    half: str
    classes: bool = False
    smooth: bool = False
    make: Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray]] | None = None

    def rows(self) -> tuple[np.ndarray, np.ndarray]:
        """All rows; generated ones are the same every time."""
        if self.make is not None:
            return self.make(np.random.default_rng(len(self.name)))
        data = load(self.name)
        return np.asarray(data.X, dtype=np.float64), np.asarray(data.y)

    @property
    def draws_tests(self) -> bool:
        """Whether test rows are drawn anew for each split: of smooth classes, which must be told apart to 10 %."""
        return self.make is not None and self.smooth and self.classes

    def split(self, seed: int, n_train: int, n_test: int) -> Split:
        """Training and test rows at random, at most three quarters for training; columns are as they come."""
        X, y = self.rows()
        order = np.random.default_rng([seed, len(X)]).permutation(len(X))
        n = min(n_train, 3 * len(X) // 4)
        train, test = order[:n], order[n : n + n_test]
        y = np.unique(y, return_inverse=True)[1] if self.classes else y.astype(np.float64)
        if self.draws_tests:
            X_test, y_test = self._drawn(seed, _NEW * n_test)
            return Split(self.name, X[train], y[train], X_test, y_test, self.classes, False)
        return Split(self.name, X[train], y[train], X[test], y[test], self.classes, False)

    def _drawn(self, seed: int, n: int) -> tuple[np.ndarray, np.ndarray]:
        assert self.make is not None
        rng = np.random.default_rng([len(self.name), 1 + seed])
        parts = [self.make(rng) for _ in range(-(-n // _MOST_ROWS))]
        return np.concatenate([X for X, _ in parts])[:n], np.concatenate([y for _, y in parts])[:n]


def _friedman(rng: np.random.Generator, d: int) -> tuple[np.ndarray, np.ndarray]:
    X = rng.uniform(size=(_MOST_ROWS, d))
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    return X, y + rng.standard_normal(len(X))


def _friedman50(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    return _friedman(rng, 50)


def _friedman5(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    return _friedman(rng, 5)


def _puma(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Four of 32 columns in a product without a linear signal, as in pumadyn32nm."""
    X = rng.standard_normal((_MOST_ROWS, 32))
    return X, np.sin(X[:, 3]) * np.abs(X[:, 11]) + 0.3 * X[:, 20] * X[:, 27] + 0.2 * rng.standard_normal(len(X))


def _five(rng: np.random.Generator, noise: float) -> tuple[np.ndarray, np.ndarray]:
    X = rng.standard_normal((_MOST_ROWS, 5))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + noise * rng.standard_normal(len(X))


def _unscaled(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    X, y = _five(rng, 0.1)
    return X * [1e3, 1.0, 1e-3, 1.0, 1e6], y


def _outliers(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """One cell in a hundred is wild."""
    X, y = _five(rng, 0.2)
    wild = rng.uniform(size=X.shape) < 0.01
    return np.where(wild, 50 * rng.standard_cauchy(X.shape), X), y


def _duplicates(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Every row about three times."""
    X, y = _five(rng, 0.3)
    chosen = rng.integers(len(X) // 3, size=len(X))
    return X[chosen], y[chosen]


def _sin600(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    X = rng.uniform(size=(_MOST_ROWS, 1))
    return X, np.sin(600 * X[:, 0]) + 0.1 * rng.standard_normal(len(X))


def _sin60(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    X = rng.uniform(size=(_MOST_ROWS, 2))
    return X, np.sin(60 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(len(X))


def _steps(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    X = rng.uniform(size=(_MOST_ROWS, 6))
    y = (X[:, 0] > 0.3) + 2.0 * (X[:, 1] > 0.6) + (X[:, 2] > 0.5) * (X[:, 3] > 0.4)
    return X, y + 0.1 * rng.standard_normal(len(X))


def _rings(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    angle, y = rng.uniform(0, 2 * np.pi, _MOST_ROWS), rng.integers(3, size=_MOST_ROWS)
    radius = 1 + y + 0.15 * rng.standard_normal(_MOST_ROWS)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), y


def _xor(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Product of three signs among twenty columns."""
    X = rng.standard_normal((_MOST_ROWS, 20))
    return X, (X[:, 2] * X[:, 7] * X[:, 13] > 0).astype(int)


def _checkerboard(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    X = rng.uniform(0, 6, (_MOST_ROWS, 2))
    return X, np.floor(X).astype(int).sum(axis=1) % 2


def _spirals(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    t, y = 3 * np.pi * np.sqrt(rng.uniform(size=_MOST_ROWS)), rng.integers(2, size=_MOST_ROWS)
    X = np.column_stack([t * np.cos(t + np.pi * y), t * np.sin(t + np.pi * y)])
    return X + 0.3 * rng.standard_normal(X.shape), y


def _rare(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """One row in thirty is in a small ball."""
    X = rng.standard_normal((_MOST_ROWS, 6))
    y = (rng.uniform(size=_MOST_ROWS) < 1 / 30).astype(int)
    X[y == 1] = 0.4 * X[y == 1] + [1.0, -1.0, 1.0, 0.0, 0.0, 0.0]
    return X, y


def _wide(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """More columns than training rows, of which directions that ten of them share decide."""
    Z = rng.standard_normal((1000, 10))
    X = Z @ rng.standard_normal((10, 800)) + 2 * rng.standard_normal((1000, 800))
    return X, np.tanh(Z[:, 0]) + 0.5 * Z[:, 1] * Z[:, 2] + 0.1 * rng.standard_normal(1000)


def _sparse_linear(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Words: counts of 300 that are rare, of which twenty decide."""
    X = rng.poisson(0.1, (_MOST_ROWS, 300)).astype(np.float64)
    score = X[:, :20] @ rng.choice([-1.0, 1.0], 20)
    return X, (score + 0.3 * rng.standard_normal(len(X)) > 0).astype(int)


def _friedman3(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    low, high = np.array([0, 40 * np.pi, 0, 1]), np.array([100, 560 * np.pi, 1, 11])
    X = rng.uniform(low, high, (_MOST_ROWS, 4))
    y = np.arctan((X[:, 1] * X[:, 2] - 1 / (X[:, 1] * X[:, 3])) / np.maximum(X[:, 0], 1e-9))
    return X, y + 0.05 * rng.standard_normal(len(X))


def _waves(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Two classes on either side of a wave, without noise."""
    X = rng.uniform(-3, 3, (_MOST_ROWS, 2))
    return X, (X[:, 1] > np.sin(3 * X[:, 0]) + 0.3 * X[:, 0]).astype(int)


def _pinwheel(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Three arms that turn with the distance from the centre."""
    y = rng.integers(3, size=_MOST_ROWS)
    along, across = rng.uniform(0.3, 3, _MOST_ROWS), 0.18 * rng.standard_normal(_MOST_ROWS)
    angle = 2 * np.pi * y / 3 + 1.2 * along
    cos, sin = np.cos(angle), np.sin(angle)
    return np.column_stack([along * cos - across * sin, along * sin + across * cos]), y


def _three_balls(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Few rows, three classes that overlap a little in three of twelve columns."""
    y = rng.integers(3, size=180)
    X = rng.standard_normal((180, 12))
    X[:, :3] += 2.2 * np.eye(3)[y]
    return X, y


def _skewed(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Few rows of positive numbers over orders of magnitude; the target is a product of powers."""
    X = np.exp(rng.standard_normal((220, 6)) * [1.0, 0.8, 0.8, 0.5, 0.5, 1.0])
    return X, X[:, 0] * np.sqrt(X[:, 1]) * (1 + 0.3 * X[:, 2]) * np.exp(0.15 * rng.standard_normal(len(X)))


TABLES = (
    Table("boston", DESIGN),
    Table("cpu_act", DESIGN),
    Table("wine-quality-red", DESIGN),
    Table("kin40k", DESIGN, smooth=True),
    Table("pol", DESIGN),
    Table("friedman 1, 50 columns", DESIGN, smooth=True, make=_friedman50),
    Table("four of 32 columns", DESIGN, make=_puma),
    Table("unscaled", DESIGN, smooth=True, make=_unscaled),
    Table("sin(600 x)", DESIGN, smooth=True, make=_sin600),
    Table("outlying cells", DESIGN, make=_outliers),
    Table("banknote", DESIGN, classes=True),
    Table("car", DESIGN, classes=True),
    Table("yeast", DESIGN, classes=True),
    Table("rings", DESIGN, classes=True, smooth=True, make=_rings),
    Table("xor of 3 in 20", DESIGN, classes=True, make=_xor),
    Table("digits", DESIGN, classes=True),
    Table("nursery", DESIGN, classes=True),
    Table("rare words", DESIGN, classes=True, make=_sparse_linear),
    Table("waves", DESIGN, classes=True, smooth=True, make=_waves),
    Table("pinwheel", DESIGN, classes=True, smooth=True, make=_pinwheel),
    Table("iris", DESIGN, classes=True),
    Table("three balls", DESIGN, classes=True, make=_three_balls),
    Table("skewed", DESIGN, make=_skewed),
    Table("machine_cpu", JUDGING),
    Table("wine-quality-white", JUDGING),
    Table("parkinsons", JUDGING),
    Table("ccpp", JUDGING),
    Table("abalone", JUDGING),
    Table("protein", JUDGING),
    Table("elevators", JUDGING, smooth=True),
    Table("bike", JUDGING),
    Table("diabetes", JUDGING),
    Table("steps", JUDGING, make=_steps),
    Table("duplicates", JUDGING, smooth=True, make=_duplicates),
    Table("friedman 1, 5 columns", JUDGING, smooth=True, make=_friedman5),
    Table("friedman 3", JUDGING, smooth=True, make=_friedman3),
    Table("sin(60 x)", JUDGING, smooth=True, make=_sin60),
    Table("wide", JUDGING, make=_wide),
    Table("wine", JUDGING, classes=True),
    Table("wifi", JUDGING, classes=True),
    Table("cmc", JUDGING, classes=True),
    Table("checkerboard", JUDGING, classes=True, make=_checkerboard),
    Table("spirals", JUDGING, classes=True, smooth=True, make=_spirals),
    Table("rare class", JUDGING, classes=True, make=_rare),
    Table("breast-cancer", JUDGING, classes=True),
    Table("krkopt", JUDGING, classes=True),
    Table("letter", JUDGING, classes=True),
)
