"""`load`: embedded data, a file from the local folder, or a download, in this order."""

from __future__ import annotations

import csv
import gzip
import lzma
import os
from pathlib import Path
from typing import Any

import numpy as np

from ._entries import EMBEDDED, LEVELS, RECORDINGS, TABLES, TEXTS, Dataset, Entry, Recordings, Sentences, Text, names

VARIABLE = "BOCHNER_DATA"
_MISSING = ("", "?", "NA")


def load(name: str) -> Any:
    """Load a data set by name.

    Parameters
    ----------
    name : str
        One of `names()`.  Embedded data sets are part of the installation; the others are read from the folder given by
        the environment variable ``BOCHNER_DATA``, or downloaded if a public archive has them.

    Returns
    -------
    Dataset, Text, Sentences or Recordings
        A `Text` for a corpus, `Sentences` for judged ones, `Recordings` for sound, and a `Dataset` otherwise.

    Examples
    --------
    >>> from bochner_lab import datasets
    >>> digits = datasets.load("digits")
    >>> digits.X.shape, digits.y.shape, digits.source
    ((1797, 64), (1797,), 'embedded')
    """
    if not isinstance(name, str):
        raise TypeError(
            f"datasets.load: name must be a string, one of {', '.join(names())}, got {type(name).__name__}."
        )
    if name in EMBEDDED:
        return _embedded(name)
    if name in TEXTS:
        return _text(name)
    if name in RECORDINGS:
        return _recordings(name)
    if name in TABLES:
        return _table(name)
    raise ValueError(f"datasets.load: unknown data set {name!r}; the names are {', '.join(names())}.")


def _embedded(name: str) -> Dataset:
    """Return one of the small data sets of scikit-learn."""
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


def _text(name: str) -> Text | Sentences:
    files = TEXTS[name]
    paths = [in_folder(file) for file in files]
    found = [path for path in paths if path is not None]
    if len(found) < len(files):
        absent = (file for file, path in zip(files, paths, strict=True) if path is None)
        raise FileNotFoundError(_absent(name, " and ".join(absent)))
    first, second, third = (lzma.open(path, "rt", encoding="utf-8").read() for path in found)
    source = ", ".join(path.name for path in found)
    if name == "cola":
        return Sentences(name, _judged(first), _judged(second), _judged(third), source)
    return Text(name, first, second, third, source)


def _judged(table: str) -> tuple[tuple[str, bool], ...]:
    """Sentences of lines with a source, a judgement, the author's mark and the sentence."""
    rows = (line.split("\t") for line in table.splitlines())
    return tuple((row[3], row[1] == "1") for row in rows)


def _recordings(name: str) -> Recordings:
    path = in_folder(RECORDINGS[name])
    if path is None:
        raise FileNotFoundError(_absent(name, RECORDINGS[name]))
    with np.load(path) as arrays:
        parts = {key: arrays[key] for key in ("samples", "lengths", "digit", "speaker", "take")}
    if parts["lengths"].sum() != len(parts["samples"]):
        raise ValueError(f"datasets.load: the recordings of {path.name} do not add up to its samples.")
    return Recordings(name, **parts, source=path.name)


def _table(name: str) -> Dataset:
    entry = TABLES[name]
    path = in_folder(entry.file)
    if path is not None:
        return _read(name, entry, path)
    if entry.openml is None:
        raise FileNotFoundError(_absent(name, entry.file))
    try:
        return _download(name, entry)
    except OSError as error:
        raise FileNotFoundError(f"{_absent(name, entry.file)} The download failed: {error}.") from error


def files_of(name: str) -> tuple[str, ...]:
    """Names of the files of a data set that is not embedded."""
    if name in TEXTS:
        return TEXTS[name]
    if name in RECORDINGS:
        return (RECORDINGS[name],)
    return (TABLES[name].file,)


def in_folder(file: str) -> Path | None:
    """The file in the folder of the data sets; None where it is not there."""
    folder = os.environ.get(VARIABLE)
    path = Path(folder) / file if folder else None
    return path if path is not None and path.exists() else None


def _absent(name: str, file: str) -> str:
    folder = os.environ.get(VARIABLE)
    where = f"the folder {folder} ({VARIABLE}) has no such file" if folder else f"{VARIABLE} is not set"
    return f"datasets.load: {name!r} needs {file}, and {where}; set {VARIABLE} to a folder that holds it."


def _read(name: str, entry: Entry, path: Path) -> Dataset:
    """Read the data set from a file of the folder, and check its shape."""
    X, y, columns = _read_npz(path) if path.suffix == ".npz" else _read_csv(entry, path)
    if X.shape != entry.shape:
        raise ValueError(f"datasets.load: {path.name} holds a matrix of shape {X.shape}, not {entry.shape}.")
    X = np.asarray(X, np.float32) / np.float32(entry.divide)
    return Dataset(name, X, y, columns, path.name, entry.n_train)


def _read_npz(path: Path) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    with np.load(path) as arrays:
        X, y = arrays["X"], arrays["y"]
        held = next((arrays[key] for key in ("names", "genes") if key in arrays), None)
    columns = (f"x{k}" for k in range(X.shape[1])) if held is None else map(str, held)
    return X, y, tuple(columns)


def _read_csv(entry: Entry, path: Path) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """Read a CSV file, with categorical columns as codes and missing numbers replaced by the mean of their column."""
    with gzip.open(path, "rt", newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    columns = dict(zip(header, zip(*rows, strict=True), strict=True))
    target = entry.target or header[-1]
    kept = [name for name in header if name != target and name not in entry.drop]
    X = np.stack([_numbers(columns[name]) for name in kept], axis=1)
    return X, _numbers(columns[target]), tuple(kept)


def _numbers(cells: tuple[str, ...]) -> np.ndarray:
    words = sorted(set(cells) - set(_MISSING))
    try:
        values = np.array([float("nan") if cell in _MISSING else float(cell) for cell in cells])
    except ValueError:
        known = [levels for levels in LEVELS if set(words) <= set(levels)]
        levels = min(known, key=len, default=tuple(words))
        return np.array([levels.index(cell) for cell in cells], np.float64)
    return np.where(np.isnan(values), np.nanmean(values), values)


def _download(name: str, entry: Entry) -> Dataset:
    """Download from OpenML through scikit-learn, which caches a copy; categorical columns become codes."""
    columns, target = archived(name, entry)
    X = np.stack([_codes(column) for column in columns.values()], axis=1)
    return Dataset(name, X.astype(np.float32), _codes(target), tuple(columns), "download", entry.n_train)


def archived(name: str, entry: Entry) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Columns and target as OpenML has them."""
    from sklearn.datasets import fetch_openml

    loaded = fetch_openml(name=entry.openml, version=1, as_frame=True)
    frame = loaded.data.drop(columns=[column for column in entry.drop if column in loaded.data])
    columns = {str(column): np.asarray(frame[column]) for column in frame}
    shape = (len(loaded.target), len(columns))
    if shape != entry.shape:
        raise ValueError(f"datasets.load: the download of {name!r} has shape {shape}, not {entry.shape}.")
    return columns, np.asarray(loaded.target)


def _codes(values: np.ndarray) -> np.ndarray:
    """Numbers as they are, and words by the same codes as in a file."""
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError):
        return _numbers(tuple(map(str, values)))
