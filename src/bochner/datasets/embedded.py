"""Data that come with the installation: the small sets inside scikit-learn."""

from __future__ import annotations

import numpy as np

from .dataset import Dataset


def embedded(name: str) -> Dataset:
    """One of the embedded sets."""
    from sklearn import datasets

    loaders = {
        "breast-cancer": datasets.load_breast_cancer,
        "diabetes": datasets.load_diabetes,
        "digits": datasets.load_digits,
        "iris": datasets.load_iris,
        "wine": datasets.load_wine,
    }
    loaded = loaders[name]()
    return Dataset(name, np.asarray(loaded.data, np.float64), loaded.target, tuple(loaded.feature_names), "embedded")
