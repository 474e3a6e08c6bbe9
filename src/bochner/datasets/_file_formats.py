"""Readers of CSV, NumPy and Parquet files, with explanatory errors and a limit on the unpacked size.

A reader returns numbers, columns of text and names; `bochner.datasets.read_table` checks them.
"""

from __future__ import annotations

import importlib.util
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ._csv_file import read_csv
from ._raw_table import MOST_BYTES, MOST_CELLS, Asked, Raw, TableError, bad_cell, shown, too_large


def reader_of(path: Path) -> Callable[[Path, Asked], Raw]:
    """Return the reader for a file, chosen by its extension."""
    suffix = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
    if suffix.lower() not in _READERS:
        raise TableError(
            f"{path.name}: files of kind {suffix or '(none)'!r} are not read; give one of {', '.join(_READERS)}."
        )
    return _READERS[suffix.lower()]


def _read_numpy(path: Path, asked: Asked) -> Raw:
    """The array X, or the only matrix; Y of the same width as keys."""
    arrays = _arrays(path)
    matrices = {key: array for key, array in arrays.items() if array.ndim == 2}
    key = "X" if "X" in matrices else next(iter(matrices)) if len(matrices) == 1 else None
    if key is None:
        held = ", ".join(f"{key} {array.shape}" for key, array in list(arrays.items())[:20]) or "no array"
        raise TableError(f"{path.name}: expected a matrix named X, or a single matrix; the file holds {held}.")
    X, Y = matrices[key], matrices.get("Y") if key == "X" else None
    titles = [str(title) for title in np.atleast_1d(arrays.get("names", np.empty(0)))]
    columns = titles if len(titles) == X.shape[1] else [f"x{k + 1}" for k in range(X.shape[1])]
    if Y is not None and Y.shape[1] != X.shape[1]:
        raise TableError(f"{path.name}: X has {X.shape[1]} columns and Y {Y.shape[1]}; queries and keys need the same.")
    vectors = {title: array for title, array in arrays.items() if array.shape == X.shape[:1] and title != "names"}
    keys = None if Y is None else _real(path.name, "Y", Y)
    return Raw(_real(path.name, key, X), columns, None, keys, vectors=vectors)


def _arrays(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of the file; members of an NPZ file that are not arrays are ignored."""
    try:
        if _unpacked(path) > MOST_BYTES:
            raise TableError(too_large(path.name, MOST_BYTES))
        with open(path, "rb") as file:
            loaded = np.load(file, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return {"X": loaded}
            members = {key: loaded[key] for key in loaded.files}
    except TableError:
        raise
    except (
        Exception
    ) as error:  # a broken file fails in the reader of zip files, of headers, of their Python literals, ...
        raise TableError(
            f"{path.name}: NumPy cannot read it ({shown(str(error))}); save arrays of numbers with numpy.savez."
        ) from None
    return {key: value for key, value in members.items() if isinstance(value, np.ndarray)}


def _unpacked(path: Path) -> int:
    if not zipfile.is_zipfile(path):
        return os.path.getsize(path)
    with zipfile.ZipFile(path) as archive:
        return sum(member.file_size for member in archive.infolist())


def _real(name: str, key: str, array: np.ndarray) -> np.ndarray:
    if not array.size:
        raise TableError(f"{name}: array {key} is empty.")
    if array.dtype.kind not in "fiub":
        raise TableError(
            f"{name}: array {key} holds {array.dtype}, not real numbers; its first cell, row 1, column 1, is "
            f"{shown(array.flat[0])}."
        )
    if array.size > MOST_CELLS:
        raise TableError(
            f"{name}: array {key} has {array.size} cells; at most {MOST_CELLS} are read: give a sample of its rows."
        )
    with np.errstate(over="ignore"):
        return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)


def _read_parquet(path: Path, asked: Asked) -> Raw:
    """Every column that is not dropped; missing numbers become NaN, missing text is empty."""
    if importlib.util.find_spec("pyarrow") is None:
        raise TableError(f"{path.name}: Parquet files need pyarrow; pip install 'bochner[parquet]'.")
    import pyarrow
    import pyarrow.parquet

    try:
        facts = pyarrow.parquet.read_metadata(path)
        if facts.num_rows * max(facts.num_columns, 1) > MOST_CELLS:
            raise TableError(
                f"{path.name}: it has {facts.num_rows} rows and {facts.num_columns} columns; at most {MOST_CELLS} "
                f"cells are read: give a sample of its rows."
            )
        table = pyarrow.parquet.read_table(path)
    except (pyarrow.ArrowException, OSError, MemoryError) as error:
        raise TableError(f"{path.name}: it is not a Parquet file ({shown(str(error))}).") from None
    columns = list(table.column_names)
    values, texts = np.zeros((table.num_rows, len(columns))), {}
    for j, title in enumerate(columns):
        if title in asked.drop or str(j + 1) in asked.drop:
            continue
        column = table.column(j)
        if pyarrow.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        cells = column.to_numpy()
        known = [] if cells.dtype.kind in "fiub" else [cell for cell in cells if cell is not None]
        if known and all(isinstance(cell, str) for cell in known):
            texts[j], values[:, j] = np.array(["" if cell is None else cell for cell in cells]), np.nan
        else:
            values[:, j] = _parquet_column(path.name, j, title, cells)
    return Raw(values, columns, texts=texts)


def _parquet_column(name: str, j: int, title: str, series: np.ndarray) -> np.ndarray:
    if series.dtype.kind in "fiub":
        return series.astype(np.float64)
    for i, cell in enumerate(series):
        if cell is not None and not isinstance(cell, int | float | np.number):
            raise TableError(bad_cell(name, i, j, title, f"{shown(cell)}, which is not a number"))
    return np.array([np.nan if cell is None else float(cell) for cell in series])


_READERS: dict[str, Callable[[Path, Asked], Raw]] = {
    ".csv": read_csv,
    ".tsv": read_csv,
    ".txt": read_csv,
    ".npz": _read_numpy,
    ".npy": _read_numpy,
    ".parquet": _read_parquet,
}
