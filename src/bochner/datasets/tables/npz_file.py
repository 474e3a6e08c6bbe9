"""NumPy files: a matrix of points, and one of keys where there is one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .reading import Raw
from .table import TableError


def read_npz(path: Path, drop: Sequence[str]) -> Raw:
    """The array X, or the only matrix; Y of the same width as keys."""
    try:
        loaded = np.load(path, allow_pickle=False)
        arrays = {"X": loaded} if isinstance(loaded, np.ndarray) else {key: loaded[key] for key in loaded.files}
    except (ValueError, OSError) as error:
        raise TableError(
            f"{path.name}: NumPy cannot read it ({error}); save arrays of numbers with numpy.savez."
        ) from None
    matrices = {key: array for key, array in arrays.items() if array.ndim == 2}
    key = "X" if "X" in matrices else next(iter(matrices)) if len(matrices) == 1 else None
    if key is None:
        shapes = ", ".join(f"{key} {array.shape}" for key, array in arrays.items()) or "nothing"
        raise TableError(f"{path.name}: expected a matrix named X, or a single matrix; the file holds {shapes}.")
    X, Y = matrices[key], matrices.get("Y")
    titles = [str(title) for title in arrays.get("names", [])]
    columns = titles if len(titles) == X.shape[1] else [f"x{k + 1}" for k in range(X.shape[1])]
    if Y is not None and Y.shape[1] != X.shape[1]:
        raise TableError(f"{path.name}: X has {X.shape[1]} columns and Y {Y.shape[1]}; queries and keys need the same.")
    return Raw(_real(path, key, X), columns, None, None if Y is None or key != "X" else _real(path, "Y", Y))


def _real(path: Path, key: str, array: np.ndarray) -> np.ndarray:
    if array.dtype.kind not in "fiub":
        raise TableError(f"{path.name}: array {key} holds {array.dtype}, not real numbers; its first cell, row 1, column 1, "
                         f"is {array.flat[0]!r}." if array.size else f"{path.name}: array {key} is empty.")  # fmt: skip
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)
