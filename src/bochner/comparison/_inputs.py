"""Checks of the rows and targets of a comparison."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..learn._row_source import check_sizes

_MOST_CLASSES = 20  # whole numbers are classes if there are no more different ones
_TASKS = ("regression", "classification")


def checked(X: Any, y: Any, task: str | None, n_folds: int) -> tuple[np.ndarray, np.ndarray, bool]:
    """Return rows as floats, with NaN for missing numbers, targets as numbers or labels, and whether these are classes."""
    if task is not None and task not in _TASKS:
        raise ValueError(f"compare: task must be one of {', '.join(map(repr, _TASKS))}, got {task!r}.")
    rows, targets = _rows(X), _targets(y)
    if len(rows) != len(targets):
        raise ValueError(f"compare: X has {len(rows)} rows and y {len(targets)} targets; each row needs one.")
    least = 4 * n_folds
    if len(rows) < least:
        raise ValueError(f"compare: {len(rows)} rows are too few for {n_folds} folds; at least {least} are needed.")
    classifies = _are_classes(targets) if task is None else task == "classification"
    if not classifies:
        targets = _numbers(targets)
        try:
            check_sizes(targets, None)
        except ValueError as error:
            raise ValueError(f"compare: {error}") from None
    elif len(np.unique(targets)) < 2:
        raise ValueError(f"compare: y holds one class, {targets.tolist()[0]!r}; classification needs at least two.")
    elif np.unique(targets, return_counts=True)[1].max() < n_folds:
        remedy = "predict it with task='regression'" if targets.dtype.kind in "fiu" else "it names rows, not classes"
        raise ValueError(f"compare: no class of y has {n_folds} rows, one for each fold; {remedy}.")
    return rows, targets, classifies


def _rows(X: Any) -> np.ndarray:
    if hasattr(X, "toarray"):
        raise TypeError("compare: X is sparse; give a dense array, X.toarray(), or compare on some of its columns.")
    dtypes: Any = getattr(X, "dtypes", None)
    try:
        rows = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError):
        texts = (
            [str(name) for name, kind in dtypes.items() if kind.kind not in "fiub"] if hasattr(dtypes, "items") else []
        )
        where = f"; columns {', '.join(texts[:5])} do not" if texts else ""
        raise ValueError(
            f"compare: X must hold numbers{where}. Encode categories with pandas.get_dummies(X)."
        ) from None
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise ValueError(f"compare: X must be a table of rows and columns, got shape {rows.shape}.")
    if np.isinf(rows).any():
        raise ValueError("compare: X holds infinite numbers; remove these rows, or clip them.")
    if np.isnan(rows).all(axis=0).any():
        raise ValueError("compare: a column of X has only missing values; leave it out.")
    return rows


def _targets(y: Any) -> np.ndarray:
    if hasattr(y, "toarray"):
        raise TypeError("compare: y is sparse; give an array of one target per row.")
    targets = np.asarray(y)
    if targets.ndim == 2 and targets.shape[1] == 1:
        targets = targets[:, 0]
    if targets.ndim != 1:
        raise ValueError(
            f"compare: y must have one target per row, got shape {targets.shape}; compare each target separately."
        )
    missing = [value is None or value != value for value in targets.tolist()]
    if any(missing):
        first = missing.index(True) + 1
        raise ValueError(
            f"compare: y is missing in {sum(missing)} rows, the first of them row {first}; leave them out."
        )
    if targets.dtype.kind == "O":
        values = targets.tolist()
        targets = (
            np.array(values) if all(isinstance(v, int | float) for v in values) else np.array([str(v) for v in values])
        )
    if targets.dtype.kind == "f" and not np.isfinite(targets).all():
        raise ValueError("compare: y holds infinite numbers; leave these rows out.")
    return targets


def _are_classes(y: np.ndarray) -> bool:
    if y.dtype.kind not in "fiu":
        return True
    return bool((y == np.round(y)).all()) and len(np.unique(y)) <= _MOST_CLASSES


def _numbers(y: np.ndarray) -> np.ndarray:
    try:
        numbers = y.astype(np.float64)
    except ValueError:
        raise ValueError(
            f"compare: y holds text such as {y.tolist()[0]!r}; regression needs numbers: leave task out to classify."
        ) from None
    if numbers.min() == numbers.max():
        raise ValueError(f"compare: every target is {numbers[0]:g}; there is nothing to predict.")
    return numbers
