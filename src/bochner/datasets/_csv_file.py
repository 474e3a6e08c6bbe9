"""The reader of CSV files.

NumPy reads numbers; if that fails, a slower reader tells columns of text from the cell that caused it.
"""

from __future__ import annotations

import csv
import gzip
import io
import warnings
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

import numpy as np

from ._raw_table import MOST_TEXT, Asked, Raw, TableError, bad_cell, option, shown, too_large

MOST_COLUMNS = 100_000
LONGEST_LINE = 2**22
_SEPARATORS = ",;\t|"
_MISSING = ("", "?", "na", "n/a", "nan", "null", "none", "-")


def read_csv(path: Path, asked: Asked) -> Raw:
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
        raise TableError(too_large(path.name, MOST_TEXT))
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
