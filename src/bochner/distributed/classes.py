"""Classes of blocks: which there are, how often, and the targets that stand for them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from ..learn import KernelClassifier


def class_counts(X: Any, y: Any, weights: Any) -> Counter[Any]:
    """How often each class is in a block."""
    y = np.ravel(y)
    if len(y):
        check_classification_targets(y)
    classes, counts = np.unique(y, return_counts=True)
    return Counter(dict(zip(classes.tolist(), counts.tolist(), strict=True)))


def weights_of_classes(class_weight: Any, classes: np.ndarray, counts: Any, *, several: bool) -> np.ndarray | None:
    """A weight for each class, from a dict or, balanced, from all counts."""
    if class_weight is None:
        return None
    if several:
        raise ValueError("KernelClassifier: class_weight is for one class a row; on Dask collections with several labels "
                         "a row pass sample_weight.")  # fmt: skip
    if isinstance(class_weight, dict):
        found: np.ndarray = compute_class_weight(class_weight, classes=classes, y=classes)
        return found
    if class_weight != "balanced":
        raise ValueError(f"KernelClassifier: class_weight must be 'balanced', a dict or None, got {class_weight!r}.")
    numbers = np.array([counts[label] for label in classes.tolist()], dtype=np.float64)
    balanced: np.ndarray = numbers.sum() / (len(numbers) * numbers)
    return balanced


def reweigh(y: Any, weights: Any, *, classes: np.ndarray, class_weights: np.ndarray) -> np.ndarray:
    """Weights of the rows of a block, times those of their classes."""
    by_class: np.ndarray = class_weights[np.searchsorted(classes, _known(y, classes))]
    return by_class if weights is None else weights * by_class


def class_targets(
    y: Any, weights: Any, *, classes: np.ndarray, several: bool, method: str
) -> tuple[np.ndarray, np.ndarray | None]:
    """Targets and weights of a block, as one machine makes them."""
    if several and len(y) and type_of_target(y) != "multilabel-indicator":
        raise ValueError(f"y must be zeros and ones, got {type_of_target(y)}.")
    labels = y if several else _known(y, classes)
    return KernelClassifier(method=method)._targets(labels, classes, several), weights


def _known(y: Any, classes: np.ndarray) -> np.ndarray:
    labels: np.ndarray = np.ravel(y)
    unseen = np.setdiff1d(labels, classes)
    if len(unseen):
        raise ValueError(f"y has {unseen}, which are not among the classes {classes}.")
    return labels
