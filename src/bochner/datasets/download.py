"""Downloading from the public archive OpenML, through scikit-learn, which keeps a copy."""

from __future__ import annotations

import numpy as np

from .catalogue import Entry
from .dataset import Dataset


def download(name: str, entry: Entry) -> Dataset:
    """The data set, with columns of words as codes."""
    from sklearn.datasets import fetch_openml

    loaded = fetch_openml(name=entry.openml, version=1, as_frame=True)
    frame = loaded.data.drop(columns=[column for column in entry.drop if column in loaded.data])
    X = np.stack([_codes(frame[column]) for column in frame], axis=1)
    if X.shape != entry.shape:
        raise ValueError(f"datasets.load: the download of {name!r} has shape {X.shape}, not {entry.shape}.")
    return Dataset(name, X.astype(np.float32), _codes(loaded.target), tuple(frame), "download", entry.n_train)


def _codes(column: object) -> np.ndarray:
    values = np.asarray(column)
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError):
        return np.unique(values.astype(str), return_inverse=True)[1].astype(np.float64)
