"""CSV files: the quick reader of NumPy, and a slow walk that finds the cell it failed at."""

from __future__ import annotations

import csv
import gzip
import io
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .reading import Raw
from .table import TableError, bad_cell

SEPARATORS = ",;\t|"
MISSING = ("", "?", "na", "n/a", "nan", "null", "none", "-")


def read_csv(path: Path, drop: Sequence[str]) -> Raw:
    """Numbers of a CSV file; cells of dropped columns may hold anything."""
    text = _text(path)
    if not text.strip():
        raise TableError(f"{path.name}: the file is empty.")
    separator = _separator(text)
    first = next(csv.reader(io.StringIO(text), delimiter=separator))
    header = not any(_is_number(cell) for cell in first)
    columns = _columns(first, header)
    used = _used(columns, drop)
    try:
        read = _quickly(text, separator, len(columns), used, header)
    except ValueError:
        read = _slowly(path.name, text, separator, columns, used, header)
    values = np.zeros((len(read), len(columns)))
    values[:, used] = read.reshape(len(read), len(used))
    return Raw(values, columns, 2 if header else 1)


def _text(path: Path) -> str:
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise TableError(f"{path.name}: line {line} is not text in UTF-8; save the file as CSV in UTF-8.") from None


def _separator(text: str) -> str:
    """The separator that the first line has most of; blanks if it has none."""
    line = text.lstrip().partition("\n")[0]
    best = max(SEPARATORS, key=line.count)
    return best if line.count(best) or " " not in line.strip() else " "


def _columns(first: list[str], header: bool) -> list[str]:
    return [cell.strip() or f"x{k + 1}" for k, cell in enumerate(first)] if header else [
        f"x{k + 1}" for k in range(len(first))
    ]  # fmt: skip


def _used(columns: list[str], drop: Sequence[str]) -> list[int]:
    return [k for k, column in enumerate(columns) if column not in drop and str(k + 1) not in drop]


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _quickly(text: str, separator: str, width: int, used: list[int], header: bool) -> np.ndarray:
    if any(len(cells) not in (0, width) for cells in csv.reader(io.StringIO(text), delimiter=separator)):
        raise ValueError("rows of different lengths")  # NumPy would not look at cells behind the last used one
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # no rows: said later, in our words
        return np.loadtxt(io.StringIO(text), delimiter=separator, skiprows=int(header), usecols=used, quotechar='"',
                          comments=None, ndmin=2)  # fmt: skip


def _slowly(name: str, text: str, separator: str, columns: list[str], used: list[int], header: bool) -> np.ndarray:
    """Row by row: missing cells become NaN, and the first cell of text or row of another length is explained."""
    rows, reader = [], csv.reader(io.StringIO(text), delimiter=separator)
    for i, cells in enumerate(reader, start=-int(header)):
        if i < 0 or not cells:
            continue
        if len(cells) != len(columns):
            raise TableError(f"{name}: row {i + 1} (line {reader.line_num} of the file) has {len(cells)} cells, the first "
                             f"row has {len(columns)}; a separator is missing, or one too many.")  # fmt: skip
        rows.append([_cell(name, i, j, columns[j], cells[j], 1 + int(header)) for j in used])
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(used))


def _cell(name: str, i: int, j: int, title: str, cell: str, first_line: int) -> float:
    cell = cell.strip()
    if cell.lower() in MISSING:
        return float("nan")
    try:
        return float(cell)
    except ValueError:
        raise TableError(bad_cell(name, i, j, title, f"the text {cell!r}", first_line=first_line)) from None
