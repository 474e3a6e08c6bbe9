"""`read_table`: read a user's file as a checked table of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from .._validation import check_flag
from ._file_formats import TableError, bad_cell, option, reader_of, shown

MINIMUM_ROWS = 10
_LISTED = 20


@dataclass(frozen=True)
class Table:
    """A checked matrix with named columns.

    Attributes
    ----------
    name : str
        Name of the file.
    X : float array (n, d)
        The numbers.
    columns : tuple of str
        Names of the columns.
    keys : float array (p, d) or None
        A second matrix, if the file contains queries and keys.
    """

    name: str
    X: np.ndarray = field(repr=False)
    columns: tuple[str, ...]
    keys: np.ndarray | None = field(default=None, repr=False)


def read_table(path: str | Path, *, drop: Sequence[str] = (), drop_constant: bool = False) -> Table:
    """Read a CSV, NPZ or Parquet file of numbers, and check it.

    Text of more than 250 MB and arrays of more than 1 GB, once unpacked, are refused.

    Parameters
    ----------
    path : str or Path
        The file.  ``.csv``, ``.tsv``, ``.txt`` (also ``.gz``): the separator is detected, and a first row without
        numbers is the header.  ``.npz``, ``.npy``: the array ``X``, or the only matrix in the file; a matrix ``Y`` of the
        same width contains keys.  ``.parquet``: every column (needs the extra ``parquet``).
    drop : sequence of str
        Columns to leave out before anything is checked, such as a target or an identifier, by name or by position.
    drop_constant : bool
        Whether to leave out constant columns as well; otherwise they raise an error.

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
    if isinstance(drop, str) or not isinstance(drop, Sequence) or not all(isinstance(column, str) for column in drop):
        raise TypeError("read_table: drop must be a sequence of strings, names or positions of columns.")
    check_flag("read_table", "drop_constant", drop_constant)
    path = Path(path)
    if not path.is_file():
        raise TableError(f"{path}: there is no such file.")
    raw = reader_of(path)(path, drop)
    kept = _kept(raw.columns, drop, path.name)
    _check_numbers(raw.values, raw.columns, kept, path.name, raw.first_line)
    if raw.keys is not None:
        _check_numbers(raw.keys, raw.columns, kept, f"{path.name}, array Y")
    constant = [k for k in kept if (raw.values[:, k] == raw.values[0, k]).all()]
    if constant and not drop_constant:
        raise TableError(_constant(raw.values, raw.columns, constant, path.name))
    kept = sorted(set(kept) - set(constant))
    if not kept:
        raise TableError(f"{path.name}: no columns are left.")
    columns = tuple(raw.columns[k] for k in kept)
    return Table(path.name, raw.values[:, kept], columns, None if raw.keys is None else raw.keys[:, kept])


def _kept(columns: Sequence[str], drop: Sequence[str], name: str) -> list[int]:
    """Positions of the columns that are not dropped."""
    positions = {str(k + 1): k for k in range(len(columns))} | {column: k for k, column in enumerate(columns)}
    unknown = [column for column in drop if column not in positions]
    if unknown:
        listed = ", ".join(columns[:_LISTED]) + (", ..." if len(columns) > _LISTED else "")
        raise TableError(f"{name}: there is no column {shown(unknown[0])} to drop; the columns are {listed}.")
    left_out = {positions[column] for column in drop}
    return [k for k in range(len(columns)) if k not in left_out]


def _check_numbers(
    values: np.ndarray, columns: Sequence[str], kept: list[int], name: str, first_line: int | None = None
) -> None:
    """Raise a `TableError` for too few rows, no columns, and missing or infinite cells."""
    if not kept:
        raise TableError(f"{name}: no columns are left.")
    if len(values) < MINIMUM_ROWS:
        raise TableError(
            f"{name}: {len(values)} rows are too few; at least {MINIMUM_ROWS} are needed to measure the error of a Gram "
            f"matrix."
        )
    bad = np.argwhere(~np.isfinite(values[:, kept]))
    if len(bad):
        i, j = int(bad[0, 0]), kept[bad[0, 1]]
        what = "a missing value" if np.isnan(values[i, j]) else f"{values[i, j]}"
        raise TableError(bad_cell(name, i, j, columns[j], what, len(bad), first_line))


def _constant(values: np.ndarray, columns: Sequence[str], constant: list[int], name: str) -> str:
    j, others = constant[0], [shown(columns[k]) for k in constant[1:6]]
    more = f"{', '.join(others)}{', ...' if len(constant) > 6 else ''}"
    also = f" So are {len(constant) - 1} more: {more}." if others else ""
    return (
        f"{name}: column {shown(columns[j])} (number {j + 1}) is constant: every row, from 1 to {len(values)}, has "
        f"{values[0, j]:g}. It tells nothing and cannot be standardised; drop it with --drop {option(columns[j], j)}, or "
        f"all such columns with --drop-constant.{also}"
    )
