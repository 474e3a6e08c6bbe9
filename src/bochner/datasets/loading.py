"""`load`: embedded data, a local folder, or a download, in that order."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from .catalogue import EMBEDDED, TABLES, TEXTS, names
from .dataset import Dataset
from .download import download
from .embedded import embedded
from .folder import read_entry, read_text

VARIABLE = "BOCHNER_DATA"


def load(name: str) -> Any:
    """A data set by name: a `Dataset`, or a `Text` for a corpus.

    Parameters
    ----------
    name : str
        One of `names()`.  Embedded sets come with the installation; the others are read from the folder that the
        environment variable ``BOCHNER_DATA`` names, or downloaded where a public archive has them.

    Returns
    -------
    Dataset or Text

    Examples
    --------
    >>> from bochner import datasets
    >>> digits = datasets.load("digits")
    >>> digits.X.shape, digits.y.shape, digits.source
    ((1797, 64), (1797,), 'embedded')
    """
    if name in EMBEDDED:
        return embedded(name)
    if name in TEXTS:
        files = {part: _in_folder(TEXTS[name].format(part=part)) for part in ("train", "valid", "test")}
        missing = [TEXTS[name].format(part=part) for part, path in files.items() if path is None]
        if missing:
            raise FileNotFoundError(_absent(name, " and ".join(missing)))
        return read_text(name, {part: path for part, path in files.items() if path is not None})
    if name not in TABLES:
        raise ValueError(f"datasets.load: unknown data set {name!r}; the names are {', '.join(names())}.")
    return _table(name)


def _table(name: str) -> Dataset:
    entry = TABLES[name]
    path = _in_folder(entry.file)
    if path is not None:
        return read_entry(name, entry, path)
    if entry.openml is None:
        raise FileNotFoundError(_absent(name, entry.file))
    try:
        return download(name, entry)
    except OSError as error:
        raise FileNotFoundError(f"{_absent(name, entry.file)} The download failed: {error}.") from error


def _in_folder(file: str) -> Path | None:
    folder = os.environ.get(VARIABLE)
    path = Path(folder) / file if folder else None
    return path if path is not None and path.exists() else None


def _absent(name: str, file: str) -> str:
    folder = os.environ.get(VARIABLE)
    where = f"the folder {folder} ({VARIABLE}) has no such file" if folder else f"{VARIABLE} is not set"
    return f"datasets.load: {name!r} needs {file}, and {where}; set {VARIABLE} to a folder that holds it."
