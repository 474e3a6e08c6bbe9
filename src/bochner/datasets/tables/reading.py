"""`read_table`: a file becomes a checked table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .table import Table, TableError, check_numbers, check_varied, without


class Raw(NamedTuple):
    """What a format's reader gives: numbers, column names, the line of the first row, and keys if there are any."""

    values: np.ndarray
    columns: list[str]
    first_line: int | None = None
    keys: np.ndarray | None = None


def read_table(path: str | Path, *, drop: Sequence[str] = (), drop_constant: bool = False) -> Table:
    """Read a CSV, NPZ or Parquet file of numbers, and check it.

    Parameters
    ----------
    path : str or Path
        ``.csv``, ``.tsv``, ``.txt`` (also ``.gz``): the separator is found out, a first row without numbers is the header.
        ``.npz``, ``.npy``: the array ``X``, or the only matrix there is; a matrix ``Y`` of the same width holds keys.
        ``.parquet``: every column (needs the extra ``parquet``).
    drop : sequence of str
        Columns left out before anything is checked, by name or by position from 1: a target, an identifier.
    drop_constant : bool
        Whether constant columns are left out, too; otherwise they are refused.

    Returns
    -------
    Table

    Raises
    ------
    TableError
        Naming the row and the column, what is there, and what to do.
    """
    path = Path(path)
    if not path.is_file():
        raise TableError(f"{path}: there is no such file.")
    raw = _reader(path)(path, drop)
    values, columns = without(raw.values, raw.columns, drop, path.name)
    check_numbers(values, columns, path.name, raw.first_line)
    keys = None if raw.keys is None else without(raw.keys, raw.columns, drop, path.name)[0]
    if keys is not None:
        check_numbers(keys, columns, f"{path.name}, array Y")
    if drop_constant:
        varied = (values != values[:1]).any(axis=0)
        values, columns = values[:, varied], [c for c, keep in zip(columns, varied, strict=True) if keep]
        keys = None if keys is None else keys[:, varied]
        check_numbers(values, columns, path.name, raw.first_line)
    check_varied(values, columns, path.name)
    return Table(path.name, values, tuple(columns), keys)


def _reader(path: Path):  # type: ignore[no-untyped-def]
    from .csv_file import read_csv
    from .npz_file import read_npz
    from .parquet_file import read_parquet

    readers = {
        ".csv": read_csv,
        ".tsv": read_csv,
        ".txt": read_csv,
        ".npz": read_npz,
        ".npy": read_npz,
        ".parquet": read_parquet,
    }
    suffix = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
    if suffix.lower() not in readers:
        raise TableError(
            f"{path.name}: files of kind {suffix or '(none)'!r} are not read; give one of {', '.join(readers)}."
        )
    return readers[suffix.lower()]
