"""`read_table`: a user's file as a checked matrix, with the pandas code that makes the same one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .table_files import MOST_CELLS, Contents, TableError, read_file, shown

MINIMUM_ROWS = 10  # fewer tell nothing about errors
_LISTED = 20  # columns in a message
_CATEGORIES, _MOST_CATEGORIES = 50, 1000
"""Largest numbers of categories of a column of text, and of a column that is named as categorical."""
_UNKNOWN = "missing"


@dataclass(frozen=True)
class Table:
    """A checked matrix with named columns."""

    name: str  # name of the file
    # (n, d): the numbers; columns of numbers come first, then those that encode categories. NaN where a number is
    # missing and ``impute`` was asked for.
    X: np.ndarray = field(repr=False)
    columns: tuple[str, ...]  # names of the columns; ``"colour=red"`` for a category
    # (p, d): a second matrix, if the file contains queries and keys
    keys: np.ndarray | None = field(default=None, repr=False)
    # (n,): the target, if one was asked for, as numbers or text, and its name
    y: np.ndarray | None = field(default=None, repr=False)
    target: str = ""
    # columns of the file that hold categories, and that were left out since they are constant
    encoded: tuple[str, ...] = ()
    constant: tuple[str, ...] = ()
    # how many of the columns are numbers of the file, and rows that were left out since a value is missing
    n_numbers: int = 0
    n_left_out: int = 0
    code: str = ""  # lines that read ``X`` and ``y`` with pandas


def read_table(
    path: str | Path,
    *,
    drop: Sequence[str] = (),
    target: str | None = None,
    categorical: Sequence[str] = (),
    drop_missing: bool = False,
    impute: bool = False,
) -> Table:
    """Read a CSV, NPZ or Parquet file, encode its categories, and check it.

    A column in which every cell is text holds categories: it becomes one column of zeros and ones per category.  Columns
    are told by name or, where no column has that name, by position, counted from one.  Constant columns are left out.
    What cannot be used raises a `TableError`, which says where and what to do.

    Parameters
    ----------
    path : str or Path
        The file.  ``.csv``, ``.tsv``, ``.txt`` (also ``.gz``): separator and decimal mark are recognised, and a first row
        without numbers is the header.  ``.npz``, ``.npy``: the array ``X``, or the only matrix in the file; a matrix
        ``Y`` of the same width contains keys.  ``.parquet``: every column; needs pyarrow.
    drop, categorical : sequences of str
        Columns to leave out (a name that several columns have means all of them), and columns of numbers, or of numbers
        and text, that hold categories.
    target : str, optional
        Column to predict, or a vector of an NPZ file.
    drop_missing, impute : bool
        Whether to leave out rows with missing numbers, or to keep these as NaN; otherwise they are an error.
    """
    file = _File(Path(path), read_file(Path(path)))
    left_out = {k for column in drop for k in file.positions(column, "to drop")}
    named = {file.position(column, "to encode") for column in categorical} - left_out
    y, of_y = None if target is None else file.contents.vectors.get(target), None
    if target is not None and y is None:
        of_y = file.position(target, "to predict")
        if of_y in left_out:
            raise TableError(f"{file.name}: column {shown(target)} is the target, and cannot be dropped.")
        y = file.cells(of_y)
    data = {k: file.cells(k, k in named) for k in range(len(file.titles)) if k not in left_out and k != of_y}
    texts = [k for k, cells in data.items() if cells.dtype.kind == "O"]
    numbers = [k for k in data if k not in texts]
    values = np.column_stack([data[k] for k in numbers]) if numbers else np.empty((len(file.frame), 0))
    rows = file.rows(values, numbers, y, target, drop_missing, impute)
    values, keys = values[rows], file.contents.keys
    if keys is not None:
        if texts:
            raise TableError(f"{file.name}: categories are not encoded in a file of queries and keys.")
        keys = keys[:, numbers]
        file.check_finite(keys, numbers, f"{file.name}, array Y")
    every = values if keys is None else np.concatenate([values, keys])
    constant = [k for j, k in enumerate(numbers) if len(set(every[~np.isnan(every[:, j]), j])) < 2]
    stay = [j for j, k in enumerate(numbers) if k not in constant]
    encoded = [k for k in texts if len(set(data[k][rows])) > 1]
    blocks = [file.encoded(k, data[k][rows], k in named) for k in encoded]
    columns = [file.titles[numbers[j]] for j in stay] + [str(name) for block in blocks for name in block.columns]
    if not columns:
        raise TableError(f"{file.name}: no columns are left.")
    constant += [k for k in texts if k not in encoded]
    return Table(
        file.name,
        np.concatenate([values[:, stay], *(block.to_numpy(values.dtype) for block in blocks)], axis=1),
        tuple(columns),
        None if keys is None else keys[:, stay],
        None if y is None else y[rows],
        "" if target is None else target if of_y is None else file.titles[of_y],
        tuple(file.titles[k] for k in encoded),
        tuple(file.titles[k] for k in constant),
        len(stay),
        len(file.frame) - len(rows),
        file.code(of_y, target, sorted([*left_out, *constant]), encoded, numbers, drop_missing),
    )


class _File:
    """The contents of a file, with columns found by name or position, and messages about its cells."""

    def __init__(self, path: Path, contents: Contents) -> None:
        self.path, self.name, self.contents = path, path.name, contents
        self.frame, self.titles = contents.frame, contents.titles

    def positions(self, column: str, purpose: str) -> list[int]:
        """Columns of a name or, if there is none, the one at a position counted from one."""
        found = [k for k, title in enumerate(self.titles) if title == column]
        if not found and column.isascii() and column.isdigit() and 1 <= int(column) <= len(self.titles):
            found = [int(column) - 1]
        if not found:
            listed = ", ".join(self.titles[:_LISTED]) + (", ..." if len(self.titles) > _LISTED else "")
            raise TableError(f"{self.name}: there is no column {shown(column)} {purpose}; the columns are {listed}.")
        return found

    def position(self, column: str, purpose: str) -> int:
        """The only column of a name, or the one at a position."""
        found = self.positions(column, purpose)
        if len(found) > 1:
            numbers = ", ".join(str(k + 1) for k in found)
            raise TableError(
                f"{self.name}: {len(found)} columns are named {shown(column)}; say which one {purpose} by its number, one "
                f"of {numbers}."
            )
        return found[0]

    def cells(self, k: int, mixed: bool = False) -> np.ndarray:
        """Cells of a column: floats with NaN where one is missing, or text in an array of objects, with None there."""
        series = self.frame.iloc[:, k]
        if series.dtype.kind in "fiub" and not mixed:
            floats = np.float32 if series.dtype == np.float32 else np.float64
            return np.asarray(series.to_numpy(dtype=floats, na_value=np.nan))
        series = series.astype(object)
        known = series[series.notna()]
        if not mixed:
            for i, cell in known.items():
                if not isinstance(cell, str | int | float | np.number):
                    raise TableError(self._bad_cell(int(str(i)), k, f"{shown(cell)}, which is not a number"))
        numbers = pd.to_numeric(known, errors="coerce")
        if mixed or (len(known) and numbers.isna().all()):
            return np.asarray(known.map(lambda cell: str(cell).strip()).reindex(series.index).replace({np.nan: None}))
        if numbers.isna().any():
            i = numbers.index[int(np.flatnonzero(numbers.isna())[0])]
            encode = f" If the column holds categories, encode it with --categorical {self._option(k)}."
            raise TableError(self._bad_cell(i, k, f"the text {shown(str(series.iloc[i]))}") + encode)
        return np.asarray(numbers.reindex(series.index).to_numpy(dtype=np.float64))

    def rows(
        self,
        values: np.ndarray,
        numbers: list[int],
        y: np.ndarray | None,
        target: str | None,
        drop_missing: bool,
        impute: bool,
    ) -> np.ndarray:
        """Numbers of the rows to use; raises for too few, and for missing or infinite cells."""
        unknown = np.zeros(len(values), bool) if y is None else np.asarray(pd.isna(y))
        gaps = np.isnan(values).any(axis=1) & (not impute)
        rows = np.flatnonzero(~(gaps | unknown)) if drop_missing else np.arange(len(values))
        if len(rows) < MINIMUM_ROWS:
            raise TableError(
                f"{self.name}: {len(rows)} rows are too few; at least {MINIMUM_ROWS} are needed to measure errors."
            )
        if not drop_missing and unknown.any():
            i = int(np.flatnonzero(unknown)[0])
            raise TableError(
                f"{self.name}: the target {shown(target)} is missing in {int(unknown.sum())} rows, the first of them row "
                f"{i + 1}{self._line(i)}; leave them out with --drop-missing."
            )
        checked = values[rows]
        self.check_finite(np.where(np.isnan(checked), 0, checked) if impute else checked, numbers, self.name)
        if y is not None and y.dtype.kind == "f" and not np.isfinite(y[rows]).all():
            raise TableError(f"{self.name}: the target {shown(target)} holds an infinite number.")
        return rows

    def check_finite(self, values: np.ndarray, numbers: list[int], name: str) -> None:
        """Raise for missing or infinite cells; the message counts the missing ones of each column."""
        bad = np.argwhere(~np.isfinite(values))
        if not len(bad):
            return
        i, j = int(bad[0, 0]), int(bad[0, 1])
        missing: Any = np.isnan(values)
        what = "a missing value" if missing[i, j] else f"{values[i, j]}"
        message = self._bad_cell(i, numbers[j], what, len(bad), name)
        if missing[i, j]:
            counts = [(self.titles[numbers[k]], int(n)) for k, n in enumerate(missing.sum(axis=0)) if n]
            where = ", ".join(f"{shown(title)} ({n})" for title, n in counts[:_LISTED])
            message += (
                f" Missing values are in {int(missing.any(axis=1).sum())} of {len(values)} rows, in the columns {where}"
                f"{', ...' if len(counts) > _LISTED else ''}; leave these rows out with --drop-missing, or fill cells "
                f"with medians by --impute."
            )
        raise TableError(message)

    def encoded(self, k: int, cells: np.ndarray, named: bool) -> pd.DataFrame:
        """Zeros and ones for each category of a column, under the categories' names."""
        n, most = len(set(cells)), _MOST_CATEGORIES if named else _CATEGORIES
        if n > most or n * len(cells) > MOST_CELLS:
            remedy = "" if named else f", or encode it with --categorical {self._option(k)}"
            raise TableError(
                f"{self.name}: column {shown(self.titles[k])} (number {k + 1}) holds {n} different texts in "
                f"{len(cells)} rows, such as {shown(cells[0] or _UNKNOWN)}; at most {most} are encoded. If it is an "
                f"identifier, leave it out with --drop {self._option(k)}{remedy}."
            )
        return pd.get_dummies(pd.Series(cells).fillna(_UNKNOWN), prefix=self.titles[k], prefix_sep="=", dtype=float)

    def code(
        self,
        of_y: int | None,
        target: str | None,
        left_out: list[int],
        encoded: list[int],
        numbers: list[int],
        drop_missing: bool,
    ) -> str:
        """Lines that read the same ``X`` and ``y``; empty if there is no target that pandas reads."""
        if target is None or (of_y is None and drop_missing):
            return ""
        labels = [str(label) for label in self.frame.columns]
        gaps = [label for label, missing in zip(labels, self.frame.isna().any(), strict=True) if missing]
        *imports, read = self.contents.code
        lines, out = [*imports, "import pandas as pd", "", read], [labels[k] for k in left_out]
        if of_y is None:
            lines.append(f"y = np.load({str(self.path)!r})[{target!r}]")
        else:
            if drop_missing and (empty := [labels[k] for k in [*numbers, of_y] if labels[k] in gaps]):
                lines.append(f"data = data.dropna(subset={empty!r})")
            lines.append(f"y = data[{labels[of_y]!r}]")
            out = [labels[of_y], *out]
        lines.append(f"X = data.drop(columns={out!r})")
        if encoded:
            columns = [labels[k] for k in encoded]
            unknown = {label: _UNKNOWN for label in columns if label in gaps}
            fill = f".fillna({unknown!r})" if unknown else ""
            lines.append(f'X = pd.get_dummies(X{fill}, columns={columns!r}, prefix_sep="=", dtype=float)')
        return "\n".join(lines)

    def _line(self, i: int) -> str:
        first = self.contents.first_line
        return "" if first is None else f" (line {i + first} of the file)"

    def _bad_cell(self, i: int, k: int, what: str, count: int = 1, name: str = "") -> str:
        """The message about one cell, with rows and columns counted from one."""
        more = f", the first of {count} such cells" if count > 1 else ""
        line = self._line(i) if name in ("", self.name) else ""
        return (
            f"{name or self.name}: row {i + 1}{line}, column {shown(self.titles[k])} (number {k + 1}) holds {what}{more}. "
            f"Every cell must be a finite number: fill it, remove the row, or leave the column out with --drop "
            f"{self._option(k)}."
        )

    def _option(self, k: int) -> str:
        """What to type for a column: its name if that can be typed and is its own, and its position otherwise."""
        title = self.titles[k]
        plain = title.isprintable() and len(title) <= 40 and "," not in title and not title.startswith("-")
        if not plain or self.titles.count(title) > 1:
            return str(k + 1)
        return title if " " not in title else f"'{title}'"
