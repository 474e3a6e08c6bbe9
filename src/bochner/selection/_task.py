"""A prediction task: rows, targets, folds, and the loss of each row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from .._validation import check_option

Kind = Literal["regression", "classification"]
FOLDS = 5
MOST_ROWS = 3000
"""Rows that are sampled for cross-validation from larger data."""
_FEW_VALUES = 20
"""Whole numbers with at most this many different values are taken for classes."""
_MANY_VALUES = 100
"""Up to so many, they may be classes all the same."""
_LEAST_ROWS = 20


class Part(NamedTuple):
    """Training rows of one fold with their targets, as given (y) and as a matrix of numbers (T), and the test rows."""

    X: np.ndarray
    y: np.ndarray
    T: np.ndarray
    X_test: np.ndarray


@dataclass(frozen=True)
class Task:
    """Rows and targets to predict, in folds.

    Attributes
    ----------
    X : float64 array (n, d)
        Rows; a sample if there are many.
    y : array (n,)
        Targets as given: numbers, or labels of classes.
    T : float64 array (n, t)
        Targets as numbers: one column, or a column of -1 and 1 for each class.
    kind : {"regression", "classification"}
    fold : int array (n,)
        Number of the fold in which a row is tested.
    scaled : int
        Number of leading columns that are standardised, by their statistics on the training rows of each fold.
    n_given : int
        Number of rows before sampling.
    doubtful : bool
        Whether targets that may be labels of classes were taken for numbers.
    """

    X: np.ndarray = field(repr=False)
    y: np.ndarray = field(repr=False)
    T: np.ndarray = field(repr=False)
    kind: Kind
    fold: np.ndarray = field(repr=False)
    scaled: int
    n_given: int
    doubtful: bool = False

    @classmethod
    def of(
        cls, X: np.ndarray, y: Any, kind: Any, seed: int, *, scaled: int = 0, rows: int = MOST_ROWS, owner: str
    ) -> Task:
        """Check the targets, sample rows, and deal them into folds; classes are spread evenly over the folds."""
        y = _targets(owner, y, len(X))
        doubtful = kind is None and _looks_like_labels(y)
        if kind is None:
            kind = _kind(y)
        check_option(owner, "task", kind, ("regression", "classification"))
        _check_values(owner, y, kind)
        rng = np.random.default_rng(seed)
        chosen = rng.permutation(len(X))[:rows]
        dealt = cls._dealt(np.asarray(X[chosen], dtype=np.float64), y[chosen], kind, scaled, len(X))
        return replace(dealt, doubtful=doubtful)

    @classmethod
    def _dealt(cls, X: np.ndarray, y: np.ndarray, kind: Kind, scaled: int, n_given: int) -> Task:
        fold = np.arange(len(y)) % FOLDS
        if kind == "regression":
            y = y.astype(np.float64)
            return cls(X, y, y[:, None], kind, fold, scaled, n_given)
        classes, number = np.unique(y, return_inverse=True)
        T = 2.0 * (number[:, None] == np.arange(len(classes))) - 1
        order = np.argsort(number, kind="stable")
        return cls(X, y, T, kind, fold[np.argsort(order)], scaled, n_given)

    def first(self, n: int) -> Task:
        """The same task with its first n rows, which are a random sample, in folds of their own.

        Classes keep their shares, and at least two rows per fold if they have as many, so that n may be exceeded.
        """
        if n >= len(self.y):
            return self
        kept = np.arange(len(self.y)) < n
        if self.kind == "classification":
            _, number, counts = np.unique(self.y, return_inverse=True, return_counts=True)
            place = np.empty(len(number), dtype=int)  # of a row in its class
            place[np.argsort(number, kind="stable")] = np.arange(len(number)) - np.repeat(
                counts.cumsum() - counts, counts
            )
            kept = (place < 2 * FOLDS) | (place < n / len(number) * counts[number])
        return self._dealt(self.X[kept], self.y[kept], self.kind, self.scaled, self.n_given)

    @property
    def measure(self) -> str:
        """Name of the error: the root of the mean loss for regression, the mean loss for classification."""
        return "RMSE" if self.kind == "regression" else "error rate"

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return FOLDS

    def parts(self) -> Iterator[tuple[np.ndarray, Part]]:
        """Yield the numbers of the test rows of each fold, with its rows standardised on the training rows."""
        for k in range(FOLDS):
            train, test = np.flatnonzero(self.fold != k), np.flatnonzero(self.fold == k)
            X, X_test = self.X[train], self.X[test]
            mean, spread = np.zeros(X.shape[1]), np.ones(X.shape[1])
            mean[: self.scaled] = X[:, : self.scaled].mean(axis=0)
            spread[: self.scaled] = X[:, : self.scaled].std(axis=0)
            spread[spread == 0] = 1.0
            yield test, Part((X - mean) / spread, self.y[train], self.T[train], (X_test - mean) / spread)

    def losses(self, scores: np.ndarray, T: np.ndarray) -> np.ndarray:
        """Loss of each row: the squared error, or one for a wrong class; ``scores`` and ``T`` are (n, t)."""
        if self.kind == "regression":
            return np.asarray((scores - T)[:, 0] ** 2)
        return np.asarray(scores.argmax(axis=1) != T.argmax(axis=1), dtype=np.float64)

    def error(self, losses: np.ndarray) -> float:
        """The error that is reported for losses of rows."""
        mean = float(np.mean(losses))
        return mean**0.5 if self.kind == "regression" else mean


def _targets(owner: str, given: Any, n: int) -> np.ndarray:
    y: np.ndarray = np.asarray(given)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.shape != (n,):
        raise ValueError(f"{owner}: y must have one target for each of {n} rows, got shape {y.shape}.")
    if n < _LEAST_ROWS:
        raise ValueError(f"{owner}: cross-validation needs at least {_LEAST_ROWS} rows, got {n}.")
    if y.dtype.kind == "O":
        y = y.astype(str)
    if y.dtype.kind not in "fiubUS":
        raise TypeError(f"{owner}: y must hold numbers or labels of classes, got {y.dtype}.")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError(
            f"{owner}: y must be finite, got {int((~np.isfinite(y)).sum())} missing or infinite targets; leave these "
            f"rows out."
        )
    return y


def _kind(y: np.ndarray) -> Kind:
    """Text, truth values and few different whole numbers are classes; other numbers are to be regressed."""
    if y.dtype.kind in "USb":
        return "classification"
    values = np.unique(y)
    return "classification" if len(values) <= _FEW_VALUES and (values == np.round(values)).all() else "regression"


def _looks_like_labels(y: np.ndarray) -> bool:
    """Whether targets are whole numbers with more values than are taken for classes, but still few for so many rows."""
    if _kind(y) == "classification" or (y != np.round(y)).any():
        return False
    return bool(len(np.unique(y)) <= min(_MANY_VALUES, len(y) // 20))


def _check_values(owner: str, y: np.ndarray, kind: Kind) -> None:
    values, counts = np.unique(y, return_counts=True)
    if len(values) < 2:
        raise ValueError(f"{owner}: y is constant, so there is nothing to predict.")
    if kind == "regression" and y.dtype.kind in "US":
        raise ValueError(
            f"{owner}: y holds text such as {str(values[0])!r}; regression needs numbers: use task='classification'."
        )
    if kind == "classification" and counts.mean() < FOLDS:
        raise ValueError(
            f"{owner}: y has {len(values)} classes in {len(y)} rows, fewer than {FOLDS} rows per class; use "
            f"task='regression' if they are numbers, or merge rare classes."
        )
