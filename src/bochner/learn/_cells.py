"""Tables with words and gaps as numbers: categories become blocks of zeros and ones, and gaps medians with an indicator.

A block is one column of the table for the search: all of it shares one scale, so that two rows of different categories are
as far apart as two values of a standardised column, see `Coordinates.standard`.
"""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from .._validation import shown
from ._row_source import is_missing, named

MOST_LEVELS = 64  # levels of a column that have a place of their own: the most frequent ones, of at least two rows
_GAP = ""  # level of a missing category; words are never empty, since those count as missing
_CATEGORIES = ("category", "Categorical", "Enum", "bool", "boolean", "Boolean")


@dataclass(frozen=True)
class Cells:
    """How each column of a table becomes columns of numbers.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"size": [1.0, None, 3.0], "kind": ["a", "b", "a"]})
    >>> cells = Cells.of("example", table)
    >>> cells.numbers("example", table)
    array([[1., 0., 1., 0.],
           [2., 1., 0., 1.],
           [3., 0., 1., 0.]])
    >>> cells.blocks
    ((1, 2), (2, 4))
    """

    levels: tuple[tuple[str, ...] | None, ...]  # for each column its levels in order, or None for a column of numbers
    fills: np.ndarray  # (d,): what stands for a gap: the median of a column of numbers; NaN for categories
    gaps: np.ndarray  # (d,): which columns of numbers had gaps, and have an indicator

    @classmethod
    def of(cls, owner: str, X: Any) -> Cells | None:
        """Read a table; None if all of it is numbers, without gaps."""
        columns = _columns(X)
        if columns is None:
            return None
        levels: list[tuple[str, ...] | None] = []
        fills, gaps = np.full(len(columns), np.nan), np.zeros(len(columns), dtype=bool)
        for j, (name, kind, values) in enumerate(columns):
            if np.asarray(values).dtype.kind in "mM":
                raise ValueError(
                    f"{owner}: expected columns of numbers or words, got {shown(name)} of type {kind}; encode dates as "
                    f"numbers first."
                )
            with named(f"{owner}: column {shown(name)}"):
                numbers = _numbers(values, kind)
            if numbers is None:
                odd = _odd(values)
                if odd is not None and not hasattr(X, "columns"):
                    return None  # scikit-learn's checks say what is wrong with an array of objects
                if odd is not None:
                    raise ValueError(
                        f"{owner}: expected columns of numbers or words, got {shown(name)} with {shown(odd)}; leave it "
                        f"out, or convert it to numbers."
                    )
                levels.append(_levels(owner, name, _words(values)))
                continue
            levels.append(None)
            known = numbers[~np.isnan(numbers)]
            gaps[j] = len(known) < len(numbers)
            fills[j] = np.median(known[np.isfinite(known)]) if np.isfinite(known).any() else 0.0
        if all(level is None for level in levels) and not gaps.any():
            return None
        return cls(tuple(levels), fills, gaps)

    @property
    def n_columns(self) -> int:
        """Columns of numbers in all."""
        return sum(self._sizes)

    @property
    def _sizes(self) -> list[int]:
        return [
            1 + int(gap) if level is None else len(level) for level, gap in zip(self.levels, self.gaps, strict=True)
        ]

    @property
    def blocks(self) -> tuple[tuple[int, int], ...]:
        """First columns, and ends, of what shares a scale: the levels of a category, and an indicator of gaps."""
        ends = np.cumsum(self._sizes)
        found = []
        for level, gap, end, size in zip(self.levels, self.gaps, ends, self._sizes, strict=True):
            if level is None and gap:
                found.append((int(end) - 1, int(end)))
            elif level is not None and size:
                found.append((int(end) - size, int(end)))
        return tuple(found)

    def numbers(self, owner: str, X: Any) -> np.ndarray:
        """Numbers (n, n_columns) of a table with the same columns; a category that is new has zeros for all levels."""
        columns = _columns(X, always=True)
        if columns is None:
            raise TypeError(
                f"{owner}: it was fitted to a table with categories or gaps, got {type(X).__name__}; pass a data frame or a "
                f"dense array with the same columns."
            )
        parts = []
        for (name, kind, values), level, fill, gap in zip(columns, self.levels, self.fills, self.gaps, strict=True):
            if level is not None:
                words = np.array(_words(values), dtype=object)
                parts.append(np.column_stack([words == one for one in level]) if level else np.empty((len(words), 0)))
                continue
            numbers = _numbers(values, kind)
            if numbers is None:
                word = shown(_word_in(values))
                raise ValueError(
                    f"{owner}: column {shown(name)} held numbers in fit, and has {word} now; pass numbers."
                )
            absent = np.isnan(numbers)
            parts.append(np.where(absent, fill, numbers)[:, None])
            if gap:
                parts.append(absent[:, None])
        n = len(columns[0][2]) if columns else 0
        return np.concatenate([np.empty((n, 0)), *parts], axis=1).astype(np.float64)


def _columns(X: Any, *, always: bool = False) -> list[tuple[Any, str, Any]] | None:
    """Names, types and values of the columns of a table that may have words or gaps; None of any other kind of rows."""
    if hasattr(X, "dtypes") and hasattr(X, "columns") and hasattr(X, "shape"):
        frame = X.iloc if hasattr(X, "iloc") else None
        names = list(X.columns)
        series = [frame[:, j] if frame is not None else X[name] for j, name in enumerate(names)]
        return [(name, str(one.dtype), one) for name, one in zip(names, series, strict=True)]
    if sparse.issparse(X) or not isinstance(X, np.ndarray | list | tuple) or isinstance(X, np.ma.MaskedArray):
        return None
    try:
        array = np.asarray(X)
    except ValueError:  # rows of unequal length
        return None
    if array.ndim != 2:
        return None
    if array.dtype.kind == "f":
        return [(j, "float", column) for j, column in enumerate(array.T)] if always or np.isnan(array).any() else None
    if array.dtype.kind not in "OUS" and not always:
        return None
    return [(j, str(array.dtype), column) for j, column in enumerate(array.T)]


def _numbers(values: Any, kind: str) -> np.ndarray | None:
    """Values as floats, with NaN for gaps; None for categories."""
    if kind.partition("(")[0] in _CATEGORIES:
        return None
    array = np.asarray(values)
    if array.dtype == object:
        if any(
            not isinstance(v, str | int | float | np.number) or isinstance(v, bool) for v in array if not is_missing(v)
        ):
            return None
        array = np.array([np.nan if is_missing(value) else value for value in array], dtype=object)
    if array.dtype.kind == "c":
        raise ValueError("Complex data not supported")  # scikit-learn's words
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError):
        return None


def _odd(values: Any) -> Any:
    """The first value that is neither a word nor a number; None if there is none."""
    known = (str, bool, int, float, np.bool_, np.number)
    return next((v for v in np.asarray(values, dtype=object) if not is_missing(v) and not isinstance(v, known)), None)


def _words(values: Any) -> list[str]:
    """Values as words: whole numbers alike, whether they are integers or floats, and nothing for a gap."""
    return [_GAP if is_missing(value) else _word(value) for value in np.asarray(values, dtype=object)]


def _word(value: Any) -> str:
    whole = isinstance(value, float | np.floating) and float(value).is_integer()
    return str(int(value)) if whole else str(value).strip()


def _word_in(values: Any) -> str:
    """The first value that is no number."""
    for word in _words(values):
        try:
            float(word)
        except ValueError:
            if word != _GAP:
                return word
    return ""


def _levels(owner: str, name: Any, words: list[str]) -> tuple[str, ...]:
    """The most frequent levels, in alphabetical order."""
    counts = Counter(words)
    kept = [word for word, count in counts.most_common(MOST_LEVELS) if count > 1 or len(words) < 4]
    if not kept and len(counts) > 1:
        warnings.warn(
            f"{owner}: column {shown(name)} has a different word in every row, such as {shown(words[0])}, and is left out.",
            UserWarning,
            stacklevel=2,
        )
    return tuple(sorted(kept))
