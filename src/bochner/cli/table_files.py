"""Readers of CSV, NumPy and Parquet files into data frames; sizes are bounded before anything large is allocated."""

from __future__ import annotations

import csv
import gzip
import importlib.util
import io
import os
import re
import warnings
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ..reporting import printable, size

MOST_TEXT, MOST_BYTES = 250_000_000, 1_000_000_000
"""Largest unpacked size of text and of arrays; a small compressed file could otherwise fill the memory."""
MOST_CELLS, MOST_COLUMNS, LONGEST_LINE = 2**27, 100_000, 2**22
"""Largest table, 1 GB in float64, and the widest one; a longer line would be split into more cells than that."""
_MISSING = ["?", "-"]  # beside pandas' own words for a missing cell
_NUMBER = r"\s*[-+]?\d+{}\d+\s*"
_LOOKED_AT = 1000  # rows from which the decimal mark is told


class TableError(ValueError):
    """An error in a table: the message names the row, the column and a remedy, and is safe to print for any file."""

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))


class Contents(NamedTuple):
    """What a file holds: a frame, the titles of its columns in the file, and code that reads it as ``data``.

    ``first_line`` is the line of the first row, ``keys`` a second matrix, ``vectors`` holds arrays of one entry per row.
    """

    frame: pd.DataFrame
    titles: list[str]
    code: list[str]
    first_line: int | None = None
    keys: np.ndarray | None = None
    vectors: Mapping[str, np.ndarray] = MappingProxyType({})


def read_file(path: Path) -> Contents:
    """Read a file by the reader for its extension."""
    if not path.exists():
        raise TableError(f"{path.name}: there is no such file.")
    suffix = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
    if suffix.lower() not in _READERS:
        kinds = ", ".join(_READERS)
        raise TableError(
            f"{path.name or path}: files of kind {suffix or '(none)'!r} are not read; give one of {kinds}."
        )
    return _READERS[suffix.lower()](path)


def shown(text: object) -> str:
    """Return a cell or a title in quotes, shortened if it is long."""
    written = repr(text)
    return written if len(written) <= 60 else f"{written[:57]}...{written[-1]}"


def _check_size(name: str, n_bytes: int, most: int, n_cells: int = 0) -> None:
    if n_cells > MOST_CELLS:
        raise TableError(f"{name}: it has {n_cells} cells; at most {MOST_CELLS} are read: give a sample of its rows.")
    if n_bytes > most:
        raise TableError(
            f"{name}: it holds more than {size(most)} once unpacked, the most that is read; give a sample of its rows."
        )


def _read_csv(path: Path) -> Contents:
    """A table with a separator that is recognised, and a header if no cell of its first row is a number."""
    name, content = path.name, _text(path)
    if not content.strip():
        raise TableError(f"{name}: the file is empty.")
    if long := re.search(rb"[^\r\n]{%d}" % (LONGEST_LINE + 1), content):
        line = content.count(b"\n", 0, long.start()) + 1
        raise TableError(
            f"{name}: line {line} has more than {LONGEST_LINE} characters, the most that are read; a table has one row "
            f"per line."
        )
    separator = _separator(content.lstrip()[: LONGEST_LINE + 1].splitlines()[0].decode().strip())
    _check_size(name, 0, 0, content.count(separator.encode()) + content.count(b"\n"))
    first, decimal = _check_records(name, content, separator)
    header = not any(_is_number(cell, decimal) for cell in first)
    options: dict[str, Any] = {} if separator == "," else {"sep": r"\s+" if separator == " " else separator}
    options |= {"decimal": decimal} if decimal != "." else {}
    options |= {} if header else {"header": None}
    options |= {"na_values": _MISSING, "skipinitialspace": True}
    try:
        frame = pd.read_csv(io.BytesIO(content), **options, low_memory=False)
    except (ValueError, OverflowError) as error:  # pandas' errors of parsing are ValueErrors
        raise TableError(f"{name}: pandas cannot read it ({shown(str(error))}).") from None
    frame.columns = pd.Index([str(label) if header else f"x{k + 1}" for k, label in enumerate(frame.columns)])
    titles = [cell.strip() or f"x{k + 1}" for k, cell in enumerate(first)] if header else list(frame.columns)
    written = ", ".join([repr(str(path)), *(f"{key}={value!r}" for key, value in options.items())])
    rename = "" if header else '.rename(columns=lambda k: f"x{k + 1}")'
    return Contents(frame, titles, [f"data = pd.read_csv({written}){rename}"], 1 + header)


def _text(path: Path) -> bytes:
    """Return the content of the file in UTF-8, without a byte order mark, up to the size limit."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            most = MOST_TEXT if path.suffix == ".gz" else min(MOST_TEXT, os.path.getsize(path))
            content: bytes = file.read(most + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise TableError(
            f"{path.name}: it is not a complete gzip file ({error}); name it .csv if it is plain text."
        ) from None
    _check_size(path.name, len(content), MOST_TEXT)
    try:
        content.decode()
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise TableError(f"{path.name}: line {line} is not text in UTF-8; save the file as CSV in UTF-8.") from None
    return content.removeprefix(b"\xef\xbb\xbf")


def _separator(line: str) -> str:
    """Return the most frequent separator of the first line; blanks if it has none."""
    for mark in ";\t|":  # numbers with decimal commas have more commas than separators
        if mark in line and all(_is_number(cell, ",") for cell in line.split(mark)):
            return mark
    best = max(";\t|,", key=line.count)
    return best if line.count(best) or " " not in line else " "


def _check_records(name: str, content: bytes, separator: str) -> tuple[list[str], str]:
    """The cells of the first row, and the decimal mark; raises for what pandas would fill or guess without a word."""
    lines = io.TextIOWrapper(io.BytesIO(content), "utf-8", newline="")
    reader = csv.reader(lines, delimiter=separator, strict=True, skipinitialspace=True)
    first: list[str] = []
    seen: dict[str, list[str]] = {",": [], ".": []}  # numbers by decimal mark
    row, start = 0, 1
    try:
        for cells in reader:
            cells = [cell for cell in cells if cell] if separator == " " else cells
            start = reader.line_num + 1
            if not cells or (len(cells) == 1 and not cells[0].strip()):
                continue
            if not first:
                first, row = cells, int(any(_is_number(cell, mark) for cell in cells for mark in seen)) - 1
                if len(first) > MOST_COLUMNS:
                    raise TableError(
                        f"{name}: the first row has {len(first)} cells; at most {MOST_COLUMNS} columns are read."
                    )
            row += 1
            if len(cells) != len(first):
                raise TableError(
                    f"{name}: row {row} (line {reader.line_num} of the file) has {len(cells)} cells, the first row has "
                    f"{len(first)}; a separator is missing, or one too many."
                )
            if row < _LOOKED_AT:
                for mark, found in seen.items():
                    pattern = _NUMBER.format(re.escape(mark))
                    found += [cell for cell in cells if re.fullmatch(pattern, cell)][: not found]
    except csv.Error as error:
        raise TableError(
            f"{name}: the row that starts at line {start} has broken quotes ({error}); close each quote in the cell where "
            f"it opens, and write quotes inside a cell twice."
        ) from None
    commas, points = seen.values()
    if commas and (separator == "," or points):
        other = f"and numbers such as {shown(points[0])}" if points else "in quotes, and commas between the cells"
        raise TableError(
            f"{name}: it has numbers such as {shown(commas[0])} {other}; write all decimals with a point, or all with a "
            f"comma and ';' between the cells."
        )
    return first, "," if commas else "."


def _is_number(cell: str, decimal: str) -> bool:
    try:
        float(cell.replace(",", ".") if decimal == "," else cell)
    except ValueError:
        return False
    return True


def _read_numpy(path: Path) -> Contents:
    """The array X, or the only matrix; Y of the same width as keys."""
    arrays = _arrays(path)
    matrices = {key: array for key, array in arrays.items() if array.ndim == 2}
    key = "X" if "X" in matrices else next(iter(matrices)) if len(matrices) == 1 else None
    if key is None:
        held = ", ".join(f"{key} {array.shape}" for key, array in list(arrays.items())[:20]) or "no array"
        raise TableError(f"{path.name}: expected a matrix named X, or a single matrix; the file holds {held}.")
    X, keys = _real(path.name, key, matrices[key]), matrices.get("Y") if key == "X" else None
    if keys is not None and keys.shape[1] != X.shape[1]:
        raise TableError(
            f"{path.name}: X has {X.shape[1]} columns and Y {keys.shape[1]}; queries and keys need the same."
        )
    keys = None if keys is None else _real(path.name, "Y", keys)
    titles = [str(title) for title in np.atleast_1d(arrays.get("names", np.empty(0)))]
    if len(set(titles)) != X.shape[1]:
        titles = [f"x{k + 1}" for k in range(X.shape[1])]
    vectors = {title: array for title, array in arrays.items() if array.shape == X.shape[:1] and title != "names"}
    loaded = f"np.load({str(path)!r})" + ("" if path.suffix == ".npy" else f"[{key!r}]")
    code = ["import numpy as np", f"data = pd.DataFrame({loaded}).rename(columns=lambda k: f'x{{k + 1}}')"]
    if titles[0] != "x1":
        code[1] = f"data = pd.DataFrame({loaded}, columns={titles!r})"
    return Contents(pd.DataFrame(X, columns=titles), titles, code, keys=keys, vectors=vectors)


def _arrays(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of the file; members of an NPZ file that are not arrays are ignored.

    NumPy asks for the memory that a header promises, touches only what the file holds, and then finds it too short.
    """
    try:
        held = os.path.getsize(path)
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                held = sum(member.file_size for member in archive.infolist())
        _check_size(path.name, held, MOST_BYTES)
        with open(path, "rb") as file:
            loaded = np.load(file, allow_pickle=False)
            members = {"X": loaded} if isinstance(loaded, np.ndarray) else {key: loaded[key] for key in loaded.files}
    except TableError:
        raise
    except Exception as error:  # a broken file fails in the reader of zip files, of headers, of their literals, ...
        raise TableError(
            f"{path.name}: NumPy cannot read it ({shown(str(error))}); save arrays of numbers with numpy.savez."
        ) from None
    return {key: value for key, value in members.items() if isinstance(value, np.ndarray)}


def _real(name: str, key: str, array: np.ndarray) -> np.ndarray:
    if not array.size:
        raise TableError(f"{name}: array {key} is empty.")
    if array.dtype.kind not in "fiub":
        raise TableError(
            f"{name}: array {key} holds {array.dtype}, not real numbers; its first cell, row 1, column 1, is "
            f"{shown(array.flat[0])}."
        )
    _check_size(name, 0, 0, array.size)
    with np.errstate(over="ignore"):
        return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)


def _read_parquet(path: Path) -> Contents:
    """Every column; text stays coded by its dictionary, whose expansion may be far larger than the file."""
    if importlib.util.find_spec("pyarrow") is None:
        raise TableError(f"{path.name}: Parquet files need pyarrow; pip install pyarrow.")
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary
    try:
        facts, schema = pq.read_metadata(path), pq.read_schema(path)
        unpacked = sum(facts.row_group(k).total_byte_size for k in range(facts.num_row_groups))
        _check_size(path.name, unpacked, MOST_BYTES, facts.num_rows * max(facts.num_columns, 1))
        texts = [field.name for field in schema if any(kind(field.type) for kind in kinds)]
        nested = {k: field for k, field in enumerate(schema) if pa.types.is_nested(field.type)}
        flat = [field.name for k, field in enumerate(schema) if k not in nested]
        table = pq.read_table(path, read_dictionary=texts, columns=flat if nested else None)
        _check_size(path.name, sum(map(_expanded, table.columns)), MOST_BYTES)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            frame = table.to_pandas(ignore_metadata=True)
    except (pa.ArrowException, OSError, MemoryError) as error:
        raise TableError(f"{path.name}: it is not a Parquet file ({shown(str(error))}).") from None
    for k, field in nested.items():  # named by its type where a cell is asked for
        frame.insert(k, field.name, pd.Series([field.type] * len(frame), dtype=object), allow_duplicates=True)
    return Contents(frame, [str(field.name) for field in schema], [f"data = pd.read_parquet({str(path)!r})"])


def _expanded(column: Any) -> int:
    """Largest number of bytes of a column of Arrow if every row had its longest text."""
    words = [len(str(word)) for part in column.chunks for word in getattr(part, "dictionary", None) or ()]
    return max(words) * len(column) if words else int(column.nbytes)


_READERS: dict[str, Callable[[Path], Contents]] = {
    **dict.fromkeys((".csv", ".tsv", ".txt"), _read_csv),
    **dict.fromkeys((".npz", ".npy"), _read_numpy),
    ".parquet": _read_parquet,
}
