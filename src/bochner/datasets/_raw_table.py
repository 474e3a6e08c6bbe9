"""What readers of files return before it is checked, how much they read at most, and their words about a wrong cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from .._table import printable, size

MOST_TEXT, MOST_BYTES = 250_000_000, 1_000_000_000
"""Largest unpacked size of text and of arrays; a small compressed file could otherwise fill the memory."""
MOST_CELLS = 2**27


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


def too_large(name: str, limit: int) -> str:
    """Return the message about a file whose content is larger than a limit."""
    return f"{name}: it holds more than {size(limit)} once unpacked, the most that is read; give a sample of its rows."
