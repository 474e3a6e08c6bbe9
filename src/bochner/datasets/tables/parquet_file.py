"""Parquet files, by pyarrow."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .reading import Raw
from .table import TableError, bad_cell


def read_parquet(path: Path, drop: Sequence[str]) -> Raw:
    """Every column that is not dropped; missing values become NaN."""
    if importlib.util.find_spec("pyarrow") is None:
        raise TableError(f"{path.name}: Parquet files need pyarrow; pip install 'bochner[parquet]'.")
    import pyarrow
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.read_table(path)
    except (pyarrow.ArrowInvalid, OSError) as error:
        raise TableError(f"{path.name}: it is not a Parquet file ({error}).") from None
    columns = list(table.column_names)
    values = np.zeros((table.num_rows, len(columns)))
    for j, title in enumerate(columns):
        if title not in drop and str(j + 1) not in drop:
            values[:, j] = _column(path.name, j, title, table.column(j).to_pandas())
    return Raw(values, columns)


def _column(name: str, j: int, title: str, cells: object) -> np.ndarray:
    series = np.asarray(cells)
    if series.dtype.kind in "fiub":
        return series.astype(np.float64)
    for i, cell in enumerate(series):
        if cell is not None and not isinstance(cell, int | float | np.number):
            raise TableError(bad_cell(name, i, j, title, f"{cell!r}, which is no number"))
    return np.array([np.nan if cell is None else float(cell) for cell in series])
