"""A table of numbers, and what must hold of it before kernels are compared on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

MINIMUM_ROWS = 10


class TableError(ValueError):
    """What is wrong with a table, at which row and column, and what to do."""


@dataclass(frozen=True)
class Table:
    """A checked matrix with named columns; ``keys`` is a second matrix, where the file holds queries and keys."""

    name: str
    X: np.ndarray = field(repr=False)
    columns: tuple[str, ...]
    keys: np.ndarray | None = field(default=None, repr=False)


def without(values: np.ndarray, columns: Sequence[str], drop: Sequence[str], name: str) -> tuple[np.ndarray, list[str]]:
    """The matrix and its column names without those of ``drop``, names or positions counted from 1."""
    positions = {str(k + 1): k for k in range(len(columns))} | {column: k for k, column in enumerate(columns)}
    unknown = [column for column in drop if column not in positions]
    if unknown:
        raise TableError(f"{name}: there is no column {unknown[0]!r} to drop; the columns are {', '.join(columns)}.")
    left_out = {positions[column] for column in drop}
    kept = [k for k in range(len(columns)) if k not in left_out]
    return values[:, kept], [columns[k] for k in kept]


def check_numbers(values: np.ndarray, columns: Sequence[str], name: str, first_line: int | None = None) -> None:
    """Refuse too few rows, no columns, and cells that are missing or infinite; ``first_line`` is the first row's line."""
    if values.shape[1] == 0:
        raise TableError(f"{name}: no columns are left.")
    if len(values) < MINIMUM_ROWS:
        raise TableError(f"{name}: {len(values)} rows are too few; at least {MINIMUM_ROWS} are needed for a Gram matrix "
                         f"whose error means something.")  # fmt: skip
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        i, j = bad[0]
        what = "a missing value" if np.isnan(values[i, j]) else f"{values[i, j]}"
        raise TableError(bad_cell(name, int(i), int(j), columns[j], what, len(bad), first_line))


def check_varied(values: np.ndarray, columns: Sequence[str], name: str) -> None:
    """Refuse columns that are constant."""
    constant = np.flatnonzero((values == values[:1]).all(axis=0))
    if not len(constant):
        return
    j, others = constant[0], [columns[k] for k in constant[1:6]]
    also = (
        f" So are {len(constant) - 1} more: {', '.join(others)}{', ...' if len(constant) > 6 else ''}."
        if others
        else ""
    )
    raise TableError(f"{name}: column {columns[j]!r} (number {j + 1}) is constant: every row, from 1 to {len(values)}, "
                     f"has {values[0, j]:g}. It tells nothing and cannot be standardised; drop it with --drop "
                     f"{columns[j]}, or all such columns with --drop-constant.{also}")  # fmt: skip


def bad_cell(
    name: str, row: int, column: int, title: str, what: str, count: int = 1, first_line: int | None = None
) -> str:
    """The sentence about one cell, rows and columns counted from 1."""
    line = f" (line {row + first_line} of the file)" if first_line is not None else ""
    more = f", the first of {count} such cells" if count > 1 else ""
    return (f"{name}: row {row + 1}{line}, column {title!r} (number {column + 1}) holds {what}{more}. Every cell must be a "
            f"finite number: fill it, remove the row, or leave the column out with --drop {title}.")  # fmt: skip
