"""Class labels: the classes and their counts, the row weights they imply, and their encoding as targets."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from .._validation import shown


@dataclass(frozen=True)
class Labels:
    """The classes in each column of y and their counts; those of two sets of rows can be added."""

    columns: tuple[tuple[np.ndarray, np.ndarray], ...]  # one pair per column of y

    @classmethod
    def of(cls, y: Any, weights: Any = None) -> Labels:
        """Count the classes of y, (n,) or (n, k)."""
        if len(y):
            check_classification_targets(y)
        columns = np.reshape(y, (len(y), -1)).T if np.ndim(y) > 1 else [np.asarray(y)]
        return cls(tuple(np.unique(column, return_counts=True) for column in columns))

    @property
    def classes(self) -> np.ndarray:
        """Sorted classes of the first column."""
        return self.columns[0][0]

    def __add__(self, other: object) -> Labels:
        if not isinstance(other, Labels):
            return NotImplemented
        return Labels(tuple(_merged(*pair) for pair in zip(self.columns, other.columns, strict=True)))


def check_one_kind(owner: str, y: Any) -> None:
    """Raise a ValueError for labels that cannot be sorted, such as numbers beside texts."""
    kinds = {type(value).__name__ for value in np.ravel(y)} if np.asarray(y).dtype == object else set()
    if len(kinds) < 2:
        return
    try:
        np.unique(y)
    except TypeError:
        raise ValueError(
            f"{owner}: y must have labels of one kind, got {' and '.join(sorted(kinds))}; convert them, for instance to str."
        ) from None


def _merged(one: Any, other: Any) -> tuple[np.ndarray, np.ndarray]:
    if not len(one[0]):  # of no rows, and so of no type
        return other  # type: ignore[no-any-return]
    if not len(other[0]):
        return one  # type: ignore[no-any-return]
    values, home = np.unique(np.concatenate([one[0], other[0]]), return_inverse=True)
    return values, np.bincount(home, weights=np.concatenate([one[1], other[1]])).astype(int)


def row_weights(owner: str, class_weight: Any, classes: np.ndarray, labels: Labels | None, n_columns: int) -> Any:
    """Return a function from y to weights of the rows, given the weights of the classes; None if there are none.

    Parameters
    ----------
    owner : str
        The estimator, for messages.
    class_weight : "balanced", dict, list of dict or None
        A dict for each column, where rows have several labels.
    classes : array (k,)
    labels : Labels or None
        All of them, for balanced weights.
    n_columns : int
    """
    if class_weight is None:
        return None
    if n_columns > 1:
        if labels is None:
            raise ValueError(
                f"{owner}: class_weight needs all rows at once for several labels per row; pass "
                "sample_weight to partial_fit."
            )
        return partial(_weights_of, tables=_tables_of_labels(owner, class_weight, labels))
    if isinstance(class_weight, dict):
        weights = compute_class_weight(class_weight, classes=classes, y=classes)
    elif isinstance(class_weight, str) and class_weight == "balanced" and labels is not None:
        weights = _balanced(labels.columns[0][1])
    else:
        raise ValueError(f"{owner}: class_weight must be 'balanced', a dict or None, got {shown(class_weight)}.")
    return partial(_weights_of, tables=((classes, weights),))


def _tables_of_labels(owner: str, class_weight: Any, labels: Labels) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
    """Classes of each column with their weights."""
    if isinstance(class_weight, str) and class_weight == "balanced":
        return tuple((classes, _balanced(counts)) for classes, counts in labels.columns)
    if not isinstance(class_weight, list) or len(class_weight) != len(labels.columns):
        raise ValueError(
            f"{owner}: class_weight must be 'balanced', None or a list of {len(labels.columns)} dicts, one for "
            f"each label, got {shown(class_weight)}."
        )
    pairs = zip(class_weight, labels.columns, strict=True)
    return tuple((classes, compute_class_weight(one, classes=classes, y=classes)) for one, (classes, _) in pairs)


def _balanced(counts: np.ndarray) -> np.ndarray:
    return np.asarray(counts.sum() / (len(counts) * counts))


def _weights_of(y: np.ndarray, *, tables: Any) -> np.ndarray:
    """Weights of rows: the product of those of their columns."""
    columns = y.T if y.ndim > 1 else [y]
    parts = [
        weights[np.searchsorted(classes, column)] for column, (classes, weights) in zip(columns, tables, strict=True)
    ]
    return np.asarray(np.prod(parts, axis=0))


def class_targets(
    y: Any, weights: Any, *, classes: np.ndarray, several: bool, signed: bool, weights_of: Any
) -> tuple[np.ndarray, np.ndarray | None]:
    """Encode classes as targets: 1 for the class of a row and 0 or -1 for the others; one signed column for two classes.

    Parameters
    ----------
    y, weights
        Of some rows.
    classes : array (k,)
    several : bool
        Whether y is zeros and ones, (n, k).
    signed : bool
        Whether the others are -1.
    weights_of : callable or None
        From y to the weights of the classes of the rows.
    """
    if several and len(y) and type_of_target(y) != "multilabel-indicator":
        raise ValueError(f"y must be zeros and ones, got {type_of_target(y)}.")
    labels = np.asarray(y) if several else _known(y, classes)
    if weights_of is not None:
        by_class = weights_of(labels)
        weights = by_class if weights is None else weights * by_class
    member = (labels if several else labels[:, None] == classes).astype(np.float64)
    if not signed:
        return member, weights
    targets = 2 * member - 1
    return targets[:, 1:] if len(classes) == 2 and not several else targets, weights


def _known(y: Any, classes: np.ndarray) -> np.ndarray:
    labels: np.ndarray = np.ravel(y)
    unseen = np.setdiff1d(labels, classes)
    if len(unseen):
        raise ValueError(f"y has {shown(unseen.tolist())}, which are not among the classes {shown(classes.tolist())}.")
    return labels
