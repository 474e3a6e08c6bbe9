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
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from .._table import printable, size

MOST_TEXT, MOST_BYTES = 250_000_000, 1_000_000_000
"""Largest unpacked size of text and of arrays; a small compressed file could otherwise fill the memory."""
MOST_CELLS, MOST_COLUMNS, LONGEST_LINE = 2**27, 100_000, 2**22
MISSING = ["?", "-"]
"""Words for a missing cell, beside those of pandas."""
_DECIMAL_COMMA, _DECIMAL_POINT = re.compile(r"\s*[-+]?\d+,\d+\s*"), re.compile(r"\s*[-+]?\d+\.\d+\s*")
_LOOKED_AT = 1000


class TableError(ValueError):
    """An error in a table: the message names the row, the column and a remedy, and is safe to print for any file."""

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))


class Contents(NamedTuple):
    """What a file holds.

    Attributes
    ----------
    frame : DataFrame
        The columns, with the labels that pandas gives them.
    titles : list of str
        Names of the columns in the file, of which several may be the same.
    code : list of str
        Lines that read the frame as ``data``, without the first import.
    first_line : int or None
        Line of the file that holds the first row.
    keys : array or None
        A second matrix.
    vectors : dict of str to array
        Further arrays with one entry per row.
    """

    frame: Any
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
        raise TableError(f"{path.name}: files of kind {suffix or '(none)'!r} are not read; give one of {kinds}.")
    return _READERS[suffix.lower()](path)


def shown(text: object) -> str:
    """Return a cell or a title in quotes, shortened if it is long."""
    written = repr(text)
    return written if len(written) <= 60 else f"{written[:57]}...{written[-1]}"


def _too_large(name: str, limit: int) -> TableError:
    return TableError(
        f"{name}: it holds more than {size(limit)} once unpacked, the most that is read; give a sample of its rows."
    )


def _too_many_cells(name: str, n: int) -> TableError:
    return TableError(f"{name}: it has {n} cells; at most {MOST_CELLS} are read: give a sample of its rows.")


def _read_csv(path: Path) -> Contents:
    """A table with a separator that is recognised, and a header if no cell of its first row is a number."""
    name, content = path.name, _text(path)
    _check_lines(name, content)
    separator = _separator(content)
    if (n := content.count(separator.encode()) + content.count(b"\n")) > MOST_CELLS:
        raise _too_many_cells(name, n)
    first, decimal = _check_records(name, content, separator)
    header = not any(_is_number(cell, decimal) for cell in first)
    options: dict[str, Any] = {} if separator == "," else {"sep": r"\s+" if separator == " " else separator}
    options |= {"decimal": decimal} if decimal != "." else {}
    options |= {} if header else {"header": None}
    options |= {"na_values": MISSING, "skipinitialspace": True}
    try:
        frame = pd.read_csv(io.BytesIO(content), **options, low_memory=False)
    except (ValueError, OverflowError) as error:  # pandas' errors of parsing are ValueErrors
        raise TableError(f"{name}: pandas cannot read it ({shown(str(error))}).") from None
    written = ", ".join([repr(str(path)), *(f"{key}={value!r}" for key, value in options.items())])
    titles = [cell.strip() or f"x{k + 1}" for k, cell in enumerate(first)] if header else []
    rename = "" if header else '.rename(columns=lambda k: f"x{k + 1}")'
    frame.columns = [str(label) if header else f"x{k + 1}" for k, label in enumerate(frame.columns)]
    return Contents(
        frame, titles or list(frame.columns), [f"data = pd.read_csv({written}){rename}"], 2 if header else 1
    )


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
    if len(content) > MOST_TEXT:
        raise _too_large(path.name, MOST_TEXT)
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise TableError(f"{path.name}: line {line} is not text in UTF-8; save the file as CSV in UTF-8.") from None
    return content.removeprefix(b"\xef\xbb\xbf")


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
    for mark in ";\t|":  # numbers with decimal commas have more commas than separators
        if mark in line and all(_is_number(cell, ",") for cell in line.split(mark)):
            return mark
    best = max(";\t|,", key=line.count)
    return best if line.count(best) or " " not in line else " "


def _records(name: str, content: bytes, separator: str) -> Iterator[tuple[int, list[str]]]:
    """The number of the last line of each record that is not blank, and its cells."""
    lines = io.TextIOWrapper(io.BytesIO(content), "utf-8", newline="")
    reader = csv.reader(lines, delimiter=separator, strict=True, skipinitialspace=True)
    start = 1
    try:
        for cells in reader:
            if separator == " ":
                cells = [cell for cell in cells if cell]
            if cells and (len(cells) > 1 or cells[0].strip()):
                yield reader.line_num, cells
            start = reader.line_num + 1
    except csv.Error as error:
        raise TableError(
            f"{name}: the row that starts at line {start} has broken quotes ({error}); close each quote in the cell where "
            f"it opens, and write quotes inside a cell twice."
        ) from None


def _check_records(name: str, content: bytes, separator: str) -> tuple[list[str], str]:
    """The cells of the first row, and the decimal mark; raises for rows of another length, and for unclear decimals."""
    first: list[str] = []
    commas: list[str] = []
    points: list[str] = []
    for i, (line, cells) in enumerate(_records(name, content, separator)):
        if not first:
            first = cells
            if len(first) > MOST_COLUMNS:
                raise TableError(
                    f"{name}: the first row has {len(first)} cells; at most {MOST_COLUMNS} columns are read."
                )
            header = not any(_is_number(cell, ".") or _is_number(cell, ",") for cell in first)
        if len(cells) != len(first):
            raise TableError(
                f"{name}: row {i + 1 - header} (line {line} of the file) has {len(cells)} cells, the first row has "
                f"{len(first)}; a separator is missing, or one too many."
            )
        if i < _LOOKED_AT:
            commas += [cell for cell in cells if _DECIMAL_COMMA.fullmatch(cell)][:1]
            points += [cell for cell in cells if _DECIMAL_POINT.fullmatch(cell)][:1]
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
    titles = [str(title) for title in np.atleast_1d(arrays.get("names", np.empty(0)))]
    if len(set(titles)) != X.shape[1]:
        titles = [f"x{k + 1}" for k in range(X.shape[1])]
    vectors = {title: array for title, array in arrays.items() if array.shape == X.shape[:1] and title != "names"}
    loaded = f"np.load({str(path)!r})" + ("" if path.suffix == ".npy" else f"[{key!r}]")
    code = ["import numpy as np", f"data = pd.DataFrame({loaded}).rename(columns=lambda k: f'x{{k + 1}}')"]
    if titles[0] != "x1":
        code[1] = f"data = pd.DataFrame({loaded}, columns={titles!r})"
    frame = pd.DataFrame(X, columns=titles)
    return Contents(frame, titles, code, keys=None if keys is None else _real(path.name, "Y", keys), vectors=vectors)


def _arrays(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of the file; members of an NPZ file that are not arrays are ignored."""
    try:
        for what, declared, there in _declared(path):
            if there > MOST_BYTES or declared > MOST_BYTES >= there:
                if declared > there:
                    raise ValueError(f"{what} declares {size(declared)} and holds {size(there)}")
                raise _too_large(path.name, MOST_BYTES)
        with open(path, "rb") as file:
            loaded = np.load(file, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return {"X": loaded}
            members = {key: loaded[key] for key in loaded.files}
    except TableError:
        raise
    except Exception as error:  # a broken file fails in the reader of zip files, of headers, of their literals, ...
        raise TableError(
            f"{path.name}: NumPy cannot read it ({shown(str(error))}); save arrays of numbers with numpy.savez."
        ) from None
    return {key: value for key, value in members.items() if isinstance(value, np.ndarray)}


def _declared(path: Path) -> Iterator[tuple[str, int, int]]:
    """For the file and each array in it: its name, the bytes that its header declares, and those that it unpacks to."""
    if not zipfile.is_zipfile(path):
        with path.open("rb") as file:
            yield path.name, _bytes_in_header(file), os.path.getsize(path)
        return
    with zipfile.ZipFile(path) as archive:
        yield path.name, 0, sum(member.file_size for member in archive.infolist())
        for member in archive.infolist():
            if member.filename.endswith(".npy"):
                with archive.open(member) as file:
                    yield member.filename, _bytes_in_header(file), member.file_size


def _bytes_in_header(file: Any) -> int:
    version = np.lib.format.read_magic(file)
    read: Any = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    declared: int = dtype.itemsize
    for length in shape:
        declared *= length
    return declared


def _real(name: str, key: str, array: np.ndarray) -> np.ndarray:
    if not array.size:
        raise TableError(f"{name}: array {key} is empty.")
    if array.dtype.kind not in "fiub":
        raise TableError(
            f"{name}: array {key} holds {array.dtype}, not real numbers; its first cell, row 1, column 1, is "
            f"{shown(array.flat[0])}."
        )
    if array.size > MOST_CELLS:
        raise _too_many_cells(name, array.size)
    with np.errstate(over="ignore"):
        return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)


def _read_parquet(path: Path) -> Contents:
    """Every column; text stays coded by its dictionary, whose expansion may be far larger than the file."""
    if importlib.util.find_spec("pyarrow") is None:
        raise TableError(f"{path.name}: Parquet files need pyarrow; pip install pyarrow.")
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        facts, schema = pq.read_metadata(path), pq.read_schema(path)
        if facts.num_rows * max(facts.num_columns, 1) > MOST_CELLS:
            raise _too_many_cells(path.name, facts.num_rows * facts.num_columns)
        if sum(facts.row_group(k).total_byte_size for k in range(facts.num_row_groups)) > MOST_BYTES:
            raise _too_large(path.name, MOST_BYTES)
        texts = [field.name for field in schema if any(kind(field.type) for kind in _long_types(pa))]
        nested = {k: field for k, field in enumerate(schema) if pa.types.is_nested(field.type)}
        flat = [field.name for k, field in enumerate(schema) if k not in nested]
        table = pq.read_table(path, read_dictionary=texts, columns=flat if nested else None)
        if sum(_expanded(column, pa) for column in table.columns) > MOST_BYTES:
            raise _too_large(path.name, MOST_BYTES)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            frame = table.to_pandas(ignore_metadata=True)
    except (pa.ArrowException, OSError, MemoryError) as error:
        raise TableError(f"{path.name}: it is not a Parquet file ({shown(str(error))}).") from None
    for k, field in nested.items():  # named by its type where a cell is asked for
        frame.insert(k, field.name, pd.Series([field.type] * len(frame), dtype=object), allow_duplicates=True)
    titles = [str(field.name) for field in schema]
    return Contents(frame, titles, [f"data = pd.read_parquet({str(path)!r})"])


def _long_types(pa: Any) -> tuple[Callable[[Any], bool], ...]:
    """Types whose cells have any length."""
    return pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary


def _expanded(column: Any, pa: Any) -> int:
    """Largest number of bytes of a column if every row had its longest text."""
    if not pa.types.is_dictionary(column.type):
        return int(column.nbytes)
    longest = max((len(str(value)) for chunk in column.chunks for value in chunk.dictionary.to_pylist()), default=0)
    return longest * len(column)


_READERS: dict[str, Callable[[Path], Contents]] = {
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".txt": _read_csv,
    ".npz": _read_numpy,
    ".npy": _read_numpy,
    ".parquet": _read_parquet,
}
