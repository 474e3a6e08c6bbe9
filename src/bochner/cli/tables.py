"""`read_table`: a user's file as a checked matrix, with the pandas code that makes the same one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .table_files import MOST_CELLS, Contents, TableError, read_file, shown

MINIMUM_ROWS = 10
_LISTED = 20
_CATEGORIES, _MOST_CATEGORIES = 50, 1000
"""Largest numbers of categories of a column of text, and of a column that is named as categorical."""
_UNKNOWN = "missing"


@dataclass(frozen=True)
class Table:
    """A checked matrix with named columns.

    Attributes
    ----------
    name : str
        Name of the file.
    X : float array (n, d)
        The numbers; columns of numbers come first, then those that encode categories.  NaN where a number is missing
        and ``impute`` was asked for.
    columns : tuple of str
        Names of the columns; ``"colour=red"`` for a category.
    keys : float array (p, d) or None
        A second matrix, if the file contains queries and keys.
    y : array (n,) or None
        The target, if one was asked for: numbers, or text.
    target : str
        Name of the target.
    encoded, constant : tuple of str
        Columns of the file that hold categories, and that were left out since they are constant.
    n_numbers : int
        How many of the columns are numbers of the file.
    n_left_out : int
        Rows that were left out since a value is missing.
    code : str
        Lines that read ``X`` and ``y`` with pandas.
    """

    name: str
    X: np.ndarray = field(repr=False)
    columns: tuple[str, ...]
    keys: np.ndarray | None = field(default=None, repr=False)
    y: np.ndarray | None = field(default=None, repr=False)
    target: str = ""
    encoded: tuple[str, ...] = ()
    constant: tuple[str, ...] = ()
    n_numbers: int = 0
    n_left_out: int = 0
    code: str = ""


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

    Parameters
    ----------
    path : str or Path
        The file.  ``.csv``, ``.tsv``, ``.txt`` (also ``.gz``): separator and decimal mark are recognised, and a first row
        without numbers is the header.  ``.npz``, ``.npy``: the array ``X``, or the only matrix in the file; a matrix
        ``Y`` of the same width contains keys.  ``.parquet``: every column; needs pyarrow.
    drop : sequence of str
        Columns to leave out; a name that several columns have means all of them.
    target : str, optional
        Column to predict, or a vector of an NPZ file.
    categorical : sequence of str
        Columns of numbers, or of numbers and text, that hold categories.
    drop_missing : bool
        Whether to leave out rows with missing numbers; otherwise these are an error.
    impute : bool
        Whether to keep missing numbers, as NaN.

    Returns
    -------
    Table

    Raises
    ------
    TableError
        If the table cannot be used; the message says where and what to do.
    """
    contents = read_file(Path(path))
    return _Checked(Path(path), contents).table(drop, target, categorical, drop_missing, impute)


class _Checked:
    """The contents of a file, with columns found by name or position."""

    def __init__(self, path: Path, contents: Contents) -> None:
        self.path, self.name, self.contents = path, path.name, contents
        self.frame, self.titles = contents.frame, contents.titles

    def table(
        self, drop: Sequence[str], target: str | None, categorical: Sequence[str], drop_missing: bool, impute: bool
    ) -> Table:
        left_out = {k for column in drop for k in self._positions(column, "to drop")}
        named = {self._position(column, "to encode") for column in categorical} - left_out
        y, of_y, unknown = self._target(target, left_out)
        kept = [k for k in range(len(self.titles)) if k not in left_out and k != of_y]
        data: dict[int, Any] = {k: self._cells(k, k in named) for k in kept}
        texts = [k for k in kept if k in named or data[k].dtype.kind == "O"]
        numbers = [k for k in kept if k not in texts]
        values = np.column_stack([data[k] for k in numbers]) if numbers else np.empty((len(self.frame), 0))
        rows = self._rows(values, numbers, y, unknown, target, drop_missing, impute)
        values = values[rows]
        keys = self.contents.keys
        if keys is not None and texts:
            raise TableError(f"{self.name}: categories are not encoded in a file of queries and keys.")
        if keys is not None:
            keys = keys[:, numbers]
            self._check_finite(keys, numbers, f"{self.name}, array Y")
        constant = [k for j, k in enumerate(numbers) if _constant(values[:, j], None if keys is None else keys[:, j])]
        constant += [k for k in texts if len(set(data[k][rows])) == 1]
        stay = [j for j, k in enumerate(numbers) if k not in constant]
        parts, columns = [values[:, stay]], [self.titles[numbers[j]] for j in stay]
        encoded = [k for k in texts if k not in constant]
        for k in encoded:
            block, names = self._encoded(k, data[k][rows], k in named)
            parts.append(block.astype(values.dtype))
            columns += names
        if not columns:
            raise TableError(f"{self.name}: no columns are left.")
        return Table(
            self.name,
            np.concatenate(parts, axis=1),
            tuple(columns),
            None if keys is None else keys[:, stay],
            None if y is None else y[rows],
            "" if target is None else target if of_y is None else self.titles[of_y],
            tuple(self.titles[k] for k in encoded),
            tuple(self.titles[k] for k in constant),
            len(stay),
            len(self.frame) - len(rows),
            self._code(of_y, target, [*left_out, *constant], encoded, numbers, data, drop_missing),
        )

    def _positions(self, column: str, purpose: str) -> list[int]:
        """Columns of a name or, if there is none, the one at a position counted from one."""
        found = [k for k, title in enumerate(self.titles) if title == column]
        if not found and column.isascii() and column.isdigit() and 1 <= int(column) <= len(self.titles):
            found = [int(column) - 1]
        if not found:
            listed = ", ".join(self.titles[:_LISTED]) + (", ..." if len(self.titles) > _LISTED else "")
            raise TableError(f"{self.name}: there is no column {shown(column)} {purpose}; the columns are {listed}.")
        return found

    def _position(self, column: str, purpose: str) -> int:
        found = self._positions(column, purpose)
        if len(found) > 1:
            numbers = ", ".join(str(k + 1) for k in found)
            raise TableError(
                f"{self.name}: {len(found)} columns are named {shown(column)}; say which one {purpose} by its number, one "
                f"of {numbers}."
            )
        return found[0]

    def _target(self, target: str | None, left_out: set[int]) -> tuple[np.ndarray | None, int | None, np.ndarray]:
        """The target's cells, the position of its column if it is one of the table, and where it is missing."""
        if target is None:
            return None, None, np.zeros(len(self.frame), bool)
        if target in self.contents.vectors:
            vector = self.contents.vectors[target]
            return vector, None, np.asarray(pd.isna(vector))
        k = self._position(target, "to predict")
        if k in left_out:
            raise TableError(f"{self.name}: column {shown(target)} is the target, and cannot be dropped.")
        return self._cells(k, mixed=False), k, self.frame.iloc[:, k].isna().to_numpy()

    def _cells(self, k: int, mixed: bool) -> np.ndarray:
        """Cells of a column: floats with NaN where one is missing, or text in an array of objects."""
        series = self.frame.iloc[:, k]
        missing = series.isna().to_numpy()
        if series.dtype.kind in "fiub" and not mixed:
            floats = series.dtype == np.float32
            return np.asarray(series.to_numpy(dtype=np.float32 if floats else np.float64, na_value=np.nan))
        known = series[~missing]
        if mixed:
            return _texts(series, missing)
        if isinstance(series.dtype, pd.CategoricalDtype):
            known = known.astype(object)
        odd = next((cell for cell in known if not isinstance(cell, str | int | float | np.number)), None)
        if odd is not None:
            i = int(np.flatnonzero([cell is odd for cell in series])[0])
            raise TableError(self._bad_cell(i, k, f"{shown(odd)}, which is not a number"))
        numbers = pd.to_numeric(known, errors="coerce")
        if len(known) and numbers.isna().all():
            return _texts(series, missing)
        if numbers.isna().any():
            label = numbers.index[int(np.flatnonzero(numbers.isna())[0])]
            i = self.frame.index.get_loc(label)
            encode = f" If the column holds categories, encode it with --categorical {self._option(k)}."
            raise TableError(self._bad_cell(i, k, f"the text {shown(str(series.iloc[i]))}") + encode)
        cells = np.full(len(series), np.nan)
        cells[~missing] = numbers.to_numpy(dtype=np.float64)
        return cells

    def _rows(
        self,
        values: np.ndarray,
        numbers: list[int],
        y: np.ndarray | None,
        unknown: np.ndarray,
        target: str | None,
        drop_missing: bool,
        impute: bool,
    ) -> np.ndarray:
        """Numbers of the rows to use; raises for too few, and for missing or infinite cells."""
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
        self._check_finite(
            np.nan_to_num(checked, posinf=np.inf, neginf=-np.inf) if impute else checked, numbers, self.name
        )
        if y is not None and y.dtype.kind == "f" and not np.isfinite(y[rows]).all():
            raise TableError(f"{self.name}: the target {shown(target)} holds an infinite number.")
        return rows

    def _check_finite(self, values: np.ndarray, numbers: list[int], name: str) -> None:
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

    def _encoded(self, k: int, cells: np.ndarray, named: bool) -> tuple[np.ndarray, list[str]]:
        """Zeros and ones for each category of a column, and the categories' names."""
        categories = sorted(set(cells))
        most = _MOST_CATEGORIES if named else _CATEGORIES
        if len(categories) > most or len(categories) * len(cells) > MOST_CELLS:
            remedy = "" if named else f", or encode it with --categorical {self._option(k)}"
            raise TableError(
                f"{self.name}: column {shown(self.titles[k])} (number {k + 1}) holds {len(categories)} different texts in "
                f"{len(cells)} rows, such as {shown(cells[0])}; at most {most} are encoded. If it is an identifier, "
                f"leave it out with --drop {self._option(k)}{remedy}."
            )
        dummies = pd.get_dummies(pd.Series(cells), dtype=float)
        return dummies.to_numpy(), [f"{self.titles[k]}={category}" for category in dummies.columns]

    def _code(
        self,
        of_y: int | None,
        target: str | None,
        left_out: list[int],
        encoded: list[int],
        numbers: list[int],
        data: dict[int, Any],
        drop_missing: bool,
    ) -> str:
        """Lines that read the same ``X`` and ``y``; empty if there is no target that pandas reads."""
        if target is None or (of_y is None and drop_missing):
            return ""
        labels = [str(label) for label in self.frame.columns]
        lines = [line for line in self.contents.code if line.startswith("import")] + ["import pandas as pd", ""]
        lines += [line for line in self.contents.code if not line.startswith("import")]
        if of_y is None:
            lines.append(f"y = np.load({str(self.path)!r})[{target!r}]")
            out = [labels[k] for k in sorted(left_out)]
            return "\n".join([*lines, f"X = data.drop(columns={out!r})"])
        gaps = [labels[k] for k in [*numbers, of_y] if self.frame.iloc[:, k].isna().any()]
        if drop_missing and gaps:
            lines.append(f"data = data.dropna(subset={gaps!r})")
        lines.append(f"y = data[{labels[of_y]!r}]")
        lines.append(f"X = data.drop(columns={[labels[of_y], *(labels[k] for k in sorted(left_out))]!r})")
        unknown = {labels[k]: _UNKNOWN for k in encoded if _UNKNOWN in data[k]}
        fill = f".fillna({unknown!r})" if unknown else ""
        if encoded:
            columns = [labels[k] for k in encoded]
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


def _texts(series: Any, missing: np.ndarray) -> np.ndarray:
    cells = series.astype(object).to_numpy()
    return np.array(
        [_UNKNOWN if gone else str(cell).strip() for cell, gone in zip(cells, missing, strict=True)], object
    )


def _constant(values: np.ndarray, keys: np.ndarray | None) -> bool:
    known = values[~np.isnan(values)]
    return not len(known) or bool((known == known[0]).all() and (keys is None or (keys == known[0]).all()))
