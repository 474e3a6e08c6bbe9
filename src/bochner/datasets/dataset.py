"""What a loaded data set is."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Dataset:
    """A matrix of points with a target.

    Attributes
    ----------
    name : str
    X : float array (n, d)
        Points as rows, as they are in the source: not scaled.
    y : array (n,)
        Target: numbers, or integers that count the classes.
    feature_names : tuple of str
    source : str
        Where it came from: "embedded", a file, or "download".
    n_train : int, optional
        The first rows that are for training, where the data come with a split.
    """

    name: str
    X: np.ndarray = field(repr=False)
    y: np.ndarray = field(repr=False)
    feature_names: tuple[str, ...] = field(repr=False)
    source: str
    n_train: int | None = None


@dataclass(frozen=True)
class Text:
    """A corpus in three parts, tokens separated by spaces."""

    name: str
    train: str = field(repr=False)
    valid: str = field(repr=False)
    test: str = field(repr=False)
    source: str
