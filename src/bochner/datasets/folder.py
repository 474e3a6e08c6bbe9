"""Reading the files of the local folder."""

from __future__ import annotations

import csv
import gzip
import lzma
from pathlib import Path

import numpy as np

from .catalogue import LEVELS, Entry
from .dataset import Dataset, Text

MISSING = ("", "?", "NA")


def read_entry(name: str, entry: Entry, path: Path) -> Dataset:
    """The data set in that file, of the shape it must have."""
    X, y, columns = _npz(path) if path.suffix == ".npz" else _csv(entry, path)
    if X.shape != entry.shape:
        raise ValueError(f"datasets.load: {path.name} holds a matrix of shape {X.shape}, not {entry.shape}.")
    X = np.asarray(X, np.float32) / np.float32(entry.divide)
    return Dataset(name, X, y, columns, path.name, entry.n_train)


def read_text(name: str, paths: dict[str, Path]) -> Text:
    """The corpus in those files."""
    parts = {part: lzma.open(path, "rt", encoding="utf-8").read() for part, path in paths.items()}
    return Text(name, parts["train"], parts["valid"], parts["test"], ", ".join(path.name for path in paths.values()))


def _npz(path: Path) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    with np.load(path) as arrays:
        X, y = arrays["X"], arrays["y"]
        held = next((arrays[key] for key in ("names", "genes") if key in arrays), None)
    columns = (f"x{k}" for k in range(X.shape[1])) if held is None else map(str, held)
    return X, y, tuple(columns)


def _csv(entry: Entry, path: Path) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """Columns of words as codes; a missing number as the mean of its column."""
    with gzip.open(path, "rt", newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    columns = dict(zip(header, zip(*rows, strict=True), strict=True))
    target = entry.target or header[-1]
    kept = [name for name in header if name != target and name not in entry.drop]
    X = np.stack([_numbers(columns[name]) for name in kept], axis=1)
    return X, _numbers(columns[target]), tuple(kept)


def _numbers(cells: tuple[str, ...]) -> np.ndarray:
    words = sorted(set(cells) - set(MISSING))
    try:
        values = np.array([float("nan") if cell in MISSING else float(cell) for cell in cells])
    except ValueError:
        known = [levels for levels in LEVELS if set(words) <= set(levels)]
        levels = min(known, key=len, default=tuple(words))
        return np.array([levels.index(cell) for cell in cells], np.float64)
    return np.where(np.isnan(values), np.nanmean(values), values)
