"""`read_table`: read a user's file as a checked table of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .._validation import check_flag
from ._file_formats import reader_of
from ._raw_table import MOST_CELLS, Asked, Raw, TableError, bad_cell, option, shown

MINIMUM_ROWS = 10
_LISTED = 20
_CATEGORIES, _MOST_CATEGORIES = 50, 1000
"""Largest numbers of categories of a column of text, and of a column that is named as categorical."""


@dataclass(frozen=True)
class Table:
    """A checked matrix with named columns.

    Attributes
    ----------
    name : str
        Name of the file.
    X : float array (n, d)
        The numbers; columns of numbers come first, then those that encode categories.
    columns : tuple of str
        Names of the columns; ``"colour=red"`` for a category.
    keys : float array (p, d) or None
        A second matrix, if the file contains queries and keys.
    y : array (n,) or None
        The target, if one was asked for: numbers, or text.
    encoded : tuple of str
        Names of the columns of the file that hold categories.
    n_numbers : int
        How many of the columns are numbers of the file.
    n_left_out : int
        Rows that were left out since a value is missing.
    """

    name: str
    X: np.ndarray = field(repr=False)
    columns: tuple[str, ...]
    keys: np.ndarray | None = field(default=None, repr=False)
    y: np.ndarray | None = field(default=None, repr=False)
    encoded: tuple[str, ...] = ()
    n_numbers: int = 0
    n_left_out: int = 0


def read_table(
    path: str | Path,
    *,
    drop: Sequence[str] = (),
    drop_constant: bool = False,
    target: str | None = None,
    categorical: Sequence[str] = (),
    drop_missing: bool = False,
) -> Table:
    """Read a CSV, NPZ or Parquet file, encode its categories, and check it.

    A column in which every cell is text holds categories: it becomes one column of zeros and ones per category.  Text of
    more than 250 MB and arrays of more than 1 GB, once unpacked, are refused.

    Parameters
    ----------
    path : str or Path
        The file.  ``.csv``, ``.tsv``, ``.txt`` (also ``.gz``): the separator is detected, and a first row without
        numbers is the header.  ``.npz``, ``.npy``: the array ``X``, or the only matrix in the file; a matrix ``Y`` of the
        same width contains keys.  ``.parquet``: every column (needs the extra ``parquet``).
    drop : sequence of str
        Columns to leave out before anything is checked, such as an identifier, by name or by position.
    drop_constant : bool
        Whether to leave out constant columns as well; otherwise they raise an error.
    target : str, optional
        The column to predict, by name or by position, or a vector of an NPZ file; it becomes ``y``.
    categorical : sequence of str
        Columns that hold categories though they contain numbers, by name or by position.  A missing value is a category
        of its own.
    drop_missing : bool
        Whether to leave out rows with a missing number or target; otherwise they raise an error.

    Returns
    -------
    Table

    Raises
    ------
    TableError
        If the file cannot be read.  The message names the row and the column, the content of the cell, and a remedy.
    """
    if not isinstance(path, str | Path):
        raise TypeError(f"read_table: path must be a string or a Path, got {type(path).__name__}.")
    for name, given in (("drop", drop), ("categorical", categorical)):
        if isinstance(given, str) or not isinstance(given, Sequence) or not all(isinstance(one, str) for one in given):
            raise TypeError(f"read_table: {name} must be a sequence of strings, names or positions of columns.")
    if target is not None and not isinstance(target, str):
        raise TypeError(
            f"read_table: target must be the name or the position of a column, got {type(target).__name__}."
        )
    check_flag("read_table", "drop_constant", drop_constant)
    check_flag("read_table", "drop_missing", drop_missing)
    path = Path(path)
    if not path.is_file():
        raise TableError(f"{path}: there is no such file.")
    raw = reader_of(path)(path, Asked(drop, [*categorical, *([] if target is None else [target])]))
    return _Checked(path.name, raw).table(drop, drop_constant, target, categorical, drop_missing)


class _Checked:
    """The content of a file on its way to a table."""

    def __init__(self, name: str, raw: Raw) -> None:
        self.name, self.raw = name, raw
        titles = {title: k for k, title in enumerate(raw.columns)}
        self.positions = {str(k + 1): k for k in range(len(raw.columns))} | titles

    def table(
        self,
        drop: Sequence[str],
        drop_constant: bool,
        target: str | None,
        categorical: Sequence[str],
        drop_missing: bool,
    ) -> Table:
        raw = self.raw
        left_out = {self._position(column, "to drop") for column in drop}
        named = {self._position(column, "to encode") for column in categorical} - left_out
        y, of_y = self._target(target, left_out)
        kept = [k for k in range(len(raw.columns)) if k not in left_out and k != of_y]
        numbers = [k for k in kept if k not in raw.texts and k not in named]
        if not kept:
            raise TableError(f"{self.name}: no columns are left.")
        rows = self._rows(numbers, y, of_y, target, drop_missing)
        if raw.keys is not None:
            if named:
                raise TableError(f"{self.name}: categories are not encoded in a file of queries and keys.")
            _check_finite(raw.keys[:, numbers], numbers, raw.columns, f"{self.name}, array Y", None)
        values = raw.values[rows][:, numbers]
        constant = [k for j, k in enumerate(numbers) if (values[:, j] == values[0, j]).all()]
        if constant and not drop_constant:
            raise TableError(_constant(raw.values[rows], raw.columns, constant, self.name))
        numbers = [k for k in numbers if k not in constant]
        parts, titles, encoded = [raw.values[rows][:, numbers]], [raw.columns[k] for k in numbers], []
        for k in (k for k in kept if k in raw.texts or k in named):
            block, categories = self._encoded(k, rows, k in named, drop_constant)
            if categories:
                parts.append(block.astype(raw.values.dtype))
                titles += categories
                encoded.append(raw.columns[k])
        if not titles:
            raise TableError(f"{self.name}: no columns are left.")
        X = np.concatenate(parts, axis=1) if encoded else parts[0]
        keys = None if raw.keys is None else raw.keys[:, numbers]
        y, left = None if y is None else y[rows], len(raw.values) - len(rows)
        return Table(self.name, X, tuple(titles), keys, y, tuple(encoded), len(numbers), left)

    def _position(self, column: str, purpose: str) -> int:
        if column not in self.positions:
            listed = ", ".join(self.raw.columns[:_LISTED]) + (", ..." if len(self.raw.columns) > _LISTED else "")
            raise TableError(f"{self.name}: there is no column {shown(column)} {purpose}; the columns are {listed}.")
        return self.positions[column]

    def _target(self, target: str | None, left_out: set[int]) -> tuple[np.ndarray | None, int | None]:
        """The target's cells, and the position of its column if it is one of the table."""
        if target is None:
            return None, None
        if target in self.raw.vectors:
            return self.raw.vectors[target], None
        k = self._position(target, "to predict")
        if k in left_out:
            raise TableError(f"{self.name}: column {shown(target)} is the target, and cannot be dropped.")
        return self.raw.texts.get(k, self.raw.values[:, k]), k

    def _rows(
        self, numbers: list[int], y: np.ndarray | None, of_y: int | None, target: str | None, drop_missing: bool
    ) -> np.ndarray:
        """Numbers of the rows to use; raises a `TableError` for too few, and for missing or infinite cells."""
        values, columns = self.raw.values[:, numbers], self.raw.columns
        unknown = np.zeros(len(values), bool) if y is None else _missing(y)
        rows = np.flatnonzero(~(np.isnan(values).any(axis=1) | unknown)) if drop_missing else np.arange(len(values))
        if len(rows) < MINIMUM_ROWS:
            raise TableError(
                f"{self.name}: {len(rows)} rows are too few; at least {MINIMUM_ROWS} are needed to measure errors."
            )
        if not drop_missing and unknown.any():
            i = int(np.flatnonzero(unknown)[0])
            line = f" (line {i + self.raw.first_line} of the file)" if self.raw.first_line is not None else ""
            raise TableError(
                f"{self.name}: the target {shown(target)} is missing in {int(unknown.sum())} rows, the first of them row "
                f"{i + 1}{line}; leave them out with --drop-missing."
            )
        _check_finite(values[rows], numbers, columns, self.name, self.raw.first_line)
        if y is not None and y.dtype.kind == "f" and not np.isfinite(y[rows]).all():
            raise TableError(f"{self.name}: the target {shown(target)} holds an infinite number.")
        return rows

    def _encoded(self, k: int, rows: np.ndarray, named: bool, drop_constant: bool) -> tuple[np.ndarray, list[str]]:
        """Zeros and ones for each category of a column, and the categories' names; none of a constant column."""
        title, cells = self.raw.columns[k], self._cells(k)[rows]
        categories, number = np.unique(cells, return_inverse=True)
        most = _MOST_CATEGORIES if named else _CATEGORIES
        if len(categories) > most or len(categories) * len(rows) > MOST_CELLS:
            remedy = "" if named else f", or encode it with --categorical {option(title, k)}"
            raise TableError(
                f"{self.name}: column {shown(title)} (number {k + 1}) holds {len(categories)} different texts in "
                f"{len(rows)} rows, such as {shown(str(cells[0]))}; at most {most} are encoded. If it is an identifier, "
                f"leave it out with --drop {option(title, k)}{remedy}."
            )
        if len(categories) == 1:
            if drop_constant:
                return np.empty((len(rows), 0)), []
            raise TableError(
                f"{self.name}: column {shown(title)} (number {k + 1}) is constant: every row has {shown(str(cells[0]))}; "
                f"drop it with --drop {option(title, k)}, or all such columns with --drop-constant."
            )
        names = [f"{title}={category or 'missing'}" for category in categories]
        return (number[:, None] == np.arange(len(categories))).astype(np.float64), names

    def _cells(self, k: int) -> np.ndarray:
        if k in self.raw.texts:
            return self.raw.texts[k]
        return np.array(["" if np.isnan(value) else f"{value:g}" for value in self.raw.values[:, k]])


def _missing(y: np.ndarray) -> np.ndarray:
    """Which targets are missing."""
    if y.dtype.kind == "U":
        return np.asarray(y == "")
    return np.asarray(np.isnan(y)) if y.dtype.kind == "f" else np.zeros(len(y), bool)


def _check_finite(
    values: np.ndarray, numbers: list[int], columns: Sequence[str], name: str, first_line: int | None
) -> None:
    """Raise a `TableError` for missing or infinite cells; it counts the missing ones of each column."""
    bad = np.argwhere(~np.isfinite(values))
    if not len(bad):
        return
    i, j = int(bad[0, 0]), int(bad[0, 1])
    missing: Any = np.isnan(values)
    what = "a missing value" if missing[i, j] else f"{values[i, j]}"
    message = bad_cell(name, i, numbers[j], columns[numbers[j]], what, len(bad), first_line)
    if missing[i, j]:
        counts = [(columns[numbers[k]], int(n)) for k, n in enumerate(missing.sum(axis=0)) if n]
        where = ", ".join(f"{shown(title)} ({n})" for title, n in counts[:_LISTED])
        message += (
            f" Missing values are in {int(missing.any(axis=1).sum())} of {len(values)} rows, in the columns {where}"
            f"{', ...' if len(counts) > _LISTED else ''}; leave these rows out with --drop-missing."
        )
    raise TableError(message)


def _constant(values: np.ndarray, columns: Sequence[str], constant: list[int], name: str) -> str:
    j, others = constant[0], [shown(columns[k]) for k in constant[1:6]]
    more = f"{', '.join(others)}{', ...' if len(constant) > 6 else ''}"
    also = f" So are {len(constant) - 1} more: {more}." if others else ""
    return (
        f"{name}: column {shown(columns[j])} (number {j + 1}) is constant: every row, from 1 to {len(values)}, has "
        f"{values[0, j]:g}. It tells nothing and cannot be standardised; drop it with --drop {option(columns[j], j)}, or "
        f"all such columns with --drop-constant.{also}"
    )
