"""Readers of CSV, NumPy and Parquet files, with explanatory errors and a limit on the unpacked size.

A reader returns numbers, columns of text and names; `bochner.datasets.read_table` checks them.  CSV files are read by
NumPy; if that fails, a slower reader tells columns of text from the cell that caused it.
"""

from __future__ import annotations

import csv
import gzip
import importlib.util
import io
import os
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import IO, NamedTuple

import numpy as np

from .._table import printable, size

MOST_TEXT, MOST_BYTES = 250_000_000, 1_000_000_000
"""Largest unpacked size of text and of arrays; a small compressed file could otherwise fill the memory."""
MOST_CELLS = 2**27
MOST_COLUMNS = 100_000
LONGEST_LINE = 2**22
_SEPARATORS = ",;\t|"
_MISSING = ("", "?", "na", "n/a", "nan", "null", "none", "-")


class TableError(ValueError):
    """An error in a table: the message names the row, the column and a remedy, and is safe to print for any file."""

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))


class Asked(NamedTuple):
    """Columns by name or position: which ones to leave out, and which ones may hold text as well as numbers."""

    drop: Sequence[str] = ()
    mixed: Sequence[str] = ()


class Raw(NamedTuple):
    """Result of a reader.

    Attributes
    ----------
    values : float array (n, columns)
        Numbers; NaN where a value is missing, and in columns of text.
    columns : list of str
        Names of the columns.
    first_line : int or None
        Line of the file that holds the first row.
    keys : float array or None
        A second matrix.
    texts : dict of int to array
        Cells of the columns of text, as strings; empty where missing.
    vectors : dict of str to array
        Further arrays with one entry per row, which may be targets.
    """

    values: np.ndarray
    columns: list[str]
    first_line: int | None = None
    keys: np.ndarray | None = None
    texts: Mapping[int, np.ndarray] = MappingProxyType({})
    vectors: Mapping[str, np.ndarray] = MappingProxyType({})


def reader_of(path: Path) -> Callable[[Path, Asked], Raw]:
    """Return the reader for a file, chosen by its extension."""
    suffix = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
    if suffix.lower() not in _READERS:
        raise TableError(
            f"{path.name}: files of kind {suffix or '(none)'!r} are not read; give one of {', '.join(_READERS)}."
        )
    return _READERS[suffix.lower()]


def bad_cell(
    name: str, row: int, column: int, title: str, what: str, count: int = 1, first_line: int | None = None
) -> str:
    """Return the message about one cell, with rows and columns counted from 1."""
    line = f" (line {row + first_line} of the file)" if first_line is not None else ""
    more = f", the first of {count} such cells" if count > 1 else ""
    return (
        f"{name}: row {row + 1}{line}, column {shown(title)} (number {column + 1}) holds {what}{more}. Every cell must be "
        f"a finite number: fill it, remove the row, or leave the column out with --drop {option(title, column)}."
    )


def shown(text: object) -> str:
    """Return a cell or a title in quotes, shortened if it is long."""
    written = repr(text)
    return written if len(written) <= 60 else f"{written[:57]}...{written[-1]}"


def option(title: str, column: int) -> str:
    """Return what to type for a column: its name if that can be typed, and its position otherwise."""
    plain = title.isprintable() and len(title) <= 40 and "," not in title and not title.startswith("-")
    return str(column + 1) if not plain else title if " " not in title else f"'{title}'"


def _read_csv(path: Path, asked: Asked) -> Raw:
    """Read numbers and text of a CSV file; dropped columns may contain anything."""
    content = _content(path)
    _check_lines(path.name, content)
    separator = _separator(content)
    first = next(_records(path.name, content, separator))[1]
    if len(first) > MOST_COLUMNS:
        raise TableError(f"{path.name}: the first row has {len(first)} cells; at most {MOST_COLUMNS} columns are read.")
    header = not any(_is_number(cell) for cell in first)
    columns = [(cell.strip() if header else "") or f"x{k + 1}" for k, cell in enumerate(first)]
    dropped = set(asked.drop)
    used = [k for k, column in enumerate(columns) if column not in dropped and str(k + 1) not in dropped]
    texts: dict[int, np.ndarray] = {}
    try:
        read = _quickly(path.name, content, separator, len(columns), used, header)
    except ValueError:
        read, texts = _slowly(path.name, content, separator, columns, used, header, asked.mixed)
    values = np.zeros((len(read), len(columns)))
    values[:, used] = read.reshape(len(read), len(used))
    return Raw(values, columns, 2 if header else 1, texts=texts)


def _content(path: Path) -> bytes:
    """Return the content of the file in UTF-8, without a byte order mark, up to the size limit."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            content = file.read(MOST_TEXT + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise TableError(
            f"{path.name}: it is not a complete gzip file ({error}); name it .csv if it is plain text."
        ) from None
    if len(content) > MOST_TEXT:
        raise TableError(_too_large(path.name, MOST_TEXT))
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise TableError(f"{path.name}: line {line} is not text in UTF-8; save the file as CSV in UTF-8.") from None
    return content.removeprefix(b"\xef\xbb\xbf")


def _too_large(name: str, limit: int) -> str:
    return f"{name}: it holds more than {size(limit)} once unpacked, the most that is read; give a sample of its rows."


def _check_lines(name: str, content: bytes) -> None:
    if not content.strip():
        raise TableError(f"{name}: the file is empty.")
    start = 0
    while len(content) - start > LONGEST_LINE:
        end = max(content.rfind(mark, start, start + LONGEST_LINE) for mark in (b"\n", b"\r"))
        if end < 0:
            line = content.count(b"\n", 0, start) + 1
            raise TableError(
                f"{name}: line {line} has more than {LONGEST_LINE} characters, the most that are read; a table has one row "
                f"per line."
            )
        start = end + 1


def _separator(content: bytes) -> str:
    """Return the most frequent separator of the first line; blanks if it has none."""
    line = content.lstrip()[: LONGEST_LINE + 1].splitlines()[0].decode("utf-8", "replace").strip()
    best = max(_SEPARATORS, key=line.count)
    return best if line.count(best) or " " not in line else " "


def _records(name: str, content: bytes, separator: str) -> Iterator[tuple[int, list[str]]]:
    """The number of the last line of each record, and its cells."""
    reader = csv.reader(_lines(content), delimiter=separator, strict=True)
    start = 1
    try:
        for cells in reader:
            yield reader.line_num, cells
            start = reader.line_num + 1
    except csv.Error as error:
        raise TableError(
            f"{name}: the row that starts at line {start} has broken quotes ({error}); close each quote in the cell where "
            f"it opens, and write quotes inside a cell twice."
        ) from None


def _lines(content: bytes) -> IO[str]:
    return io.TextIOWrapper(io.BytesIO(content), "utf-8", newline="")


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _quickly(name: str, content: bytes, separator: str, width: int, used: list[int], header: bool) -> np.ndarray:
    if any(len(cells) not in (0, width) for _, cells in _records(name, content, separator)):
        raise ValueError("rows of different lengths")  # NumPy ignores cells after the last used one
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a table without rows is reported later
        return np.loadtxt(
            _lines(content),
            delimiter=separator,
            skiprows=int(header),
            usecols=used,
            quotechar='"',
            comments=None,
            ndmin=2,
        )


def _slowly(
    name: str,
    content: bytes,
    separator: str,
    columns: list[str],
    used: list[int],
    header: bool,
    mixed: Sequence[str],
) -> tuple[np.ndarray, dict[int, np.ndarray]]:
    """Read row by row: missing cells become NaN, columns without a number are text; a row of another length is an error."""
    rows: list[list[str]] = []
    for i, (line, cells) in enumerate(_records(name, content, separator), start=-int(header)):
        if i < 0 or not cells:
            continue
        if len(cells) != len(columns):
            raise TableError(
                f"{name}: row {i + 1} (line {line} of the file) has {len(cells)} cells, the first row has {len(columns)}; a "
                f"separator is missing, or one too many."
            )
        rows.append(cells)
    values, texts = np.full((len(rows), len(used)), np.nan), {}
    for k, j in enumerate(used):
        cells = [row[j].strip() for row in rows]
        if _is_text(cells, columns[j] in mixed or str(j + 1) in mixed):
            texts[j] = np.array(["" if cell.lower() in _MISSING else cell for cell in cells])
        else:
            values[:, k] = [_number(name, i, j, columns[j], cell, 1 + int(header)) for i, cell in enumerate(cells)]
    return values, texts


def _is_text(cells: list[str], mixed: bool) -> bool:
    """Whether no cell is a number and some hold text or, for a mixed column, whether any does."""
    known = [cell for cell in cells if cell.lower() not in _MISSING]
    kinds = {_is_number(cell) for cell in known}
    return kinds == {False} or (mixed and False in kinds)


def _number(name: str, i: int, j: int, title: str, cell: str, first_line: int) -> float:
    if cell.lower() in _MISSING:
        return float("nan")
    try:
        return float(cell)
    except ValueError:
        raise TableError(
            bad_cell(name, i, j, title, f"the text {shown(cell)}", first_line=first_line)
            + f" If the column holds categories, encode it with --categorical {option(title, j)}."
        ) from None


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
            raise TableError(_too_large(path.name, MOST_BYTES))
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
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".txt": _read_csv,
    ".npz": _read_numpy,
    ".npy": _read_numpy,
    ".parquet": _read_parquet,
}
