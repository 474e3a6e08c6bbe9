"""The data and the kernel of a command, from its options."""

from __future__ import annotations

import argparse
import difflib
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .. import catalogue
from ..kernels import Kernel, resolve_bandwidth
from ..selection import MOST_FEATURES
from .table_files import TableError
from .tables import Table, read_table

EMBEDDED = ("breast-cancer", "diabetes", "digits", "even-digits", "iris", "wine")
"""Tables that come with scikit-learn; even-digits asks of each handwritten digit whether it is even."""
_NAMED = 5  # columns that a description names: enough to recognise them, in one line
_TARGETS = {"breast-cancer": "diagnosis", "diabetes": "progression", "digits": "digit", "even-digits": "even or odd",
            "iris": "species", "wine": "cultivar"}  # fmt: skip
RULES = ("scale", "median")


@dataclass(frozen=True)
class Problem:
    """A table, its rows as a kernel sees them, separate keys if there are any, and the kernel.

    ``X`` is standardised unless that was refused, and missing numbers are the medians of their columns; ``table.X`` is as
    in the file.
    """

    table: Table
    X: np.ndarray
    Y: np.ndarray | None
    kernel: Kernel
    standardized: bool

    @property
    def description(self) -> str:
        """What the data are."""
        table = self.table
        keys = f" and {len(self.Y)} keys" if self.Y is not None else ""
        target = f", target {table.target!r}" if table.target else ""
        scaled = ", columns standardised" if self.standardized and not table.target else ""
        encoded = f", {', '.join(table.encoded)} one-hot encoded" if table.encoded else ""
        more = ", ..." if len(table.constant) > _NAMED else ""
        constant = f", constant columns ({', '.join(table.constant[:_NAMED])}{more}) left out" if table.constant else ""
        rows = "row" if table.n_left_out == 1 else "rows"
        left_out = f", {table.n_left_out} {rows} with missing values left out" if table.n_left_out else ""
        cells = int(np.isnan(table.X).sum())
        imputed = f", {cells} missing number{'s' * (cells > 1)} replaced by medians" if cells else ""
        shape = f"{len(self.X)} rows{keys} x {self.X.shape[1]} columns"
        return f"{table.name}: {shape}{target}{scaled}{encoded}{constant}{left_out}{imputed}"


def add_arguments(parser: argparse.ArgumentParser, features: str, default: int | None) -> None:
    """Options that say which data and which kernel."""
    data = f"CSV, NPZ or Parquet file, or a table of scikit-learn: {', '.join(EMBEDDED)}"
    parser.add_argument("data", nargs="?", metavar="DATA", help=data)
    parser.add_argument("--kernel", default="gaussian", choices=sorted(catalogue.kernels()), help="default: gaussian")
    bandwidth = parser.add_mutually_exclusive_group()
    lengthscale = (
        "a number; 'scale', as in the estimators: gamma = 1/(d Var X) (default); 'median': the median distance"
    )
    bandwidth.add_argument("--lengthscale", help=lengthscale)
    gamma = "a number, alternative to --lengthscale, as in scikit-learn; the scale of softmax"
    bandwidth.add_argument("--gamma", help=gamma)
    parser.add_argument("--features", type=int, default=default, help=features)
    drop = "leave out a column, such as an identifier, by name or by position counted from 1; may be repeated"
    parser.add_argument("--drop", action="append", default=[], metavar="COLUMN", help=drop)
    categorical = "one-hot encode a column that contains numbers; columns of text are always encoded; may be repeated"
    parser.add_argument("--categorical", action="append", default=[], metavar="COLUMN", help=categorical)
    missing = parser.add_mutually_exclusive_group()
    missing.add_argument("--drop-missing", action="store_true", help="leave out rows with missing values")
    missing.add_argument(
        "--impute",
        action="store_true",
        help="replace missing numbers by the medians of their columns, as is done in any case if there is a --target",
    )
    parser.add_argument("--no-standardize", action="store_true", help="do not standardize the columns for the kernel")
    parser.add_argument("--seed", type=int, default=0, help="seed of all draws (default 0)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def check_range(options: argparse.Namespace, option: str, least: int, most: int) -> None:
    """Raise a ValueError if an option is outside its range."""
    value = getattr(options, option)
    if not least <= value <= most:
        bound = f"at least {least}" if value < least else f"at most {most}"
        raise ValueError(f"--{option} must be {bound}, got {value}.")


def writable(option: str, folder: Path) -> None:
    """Make the folder and write into it: to find out before the work that it cannot hold the results."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{option} {folder} is a file; give a folder.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ValueError(f"{option} {folder} cannot be written to ({error.strerror}); give another folder.") from None


def read_problem(options: argparse.Namespace, default: str | None = None, target: str | None = None) -> Problem:
    """Read and check the data, and the rows that a kernel sees; raises a TableError or ValueError for the user."""
    if options.features is not None:
        check_range(options, "features", 1, MOST_FEATURES)
    if options.seed < 0:
        raise ValueError(f"--seed must not be negative, got {options.seed}.")
    if (name := options.data or default) is None:
        raise ValueError(f"give a CSV, NPZ or Parquet file, or one of {', '.join(EMBEDDED)}.")
    table = _table(name, target, options)
    if table.y is not None and table.keys is not None:
        raise ValueError(f"{table.name}: a file of queries and keys has nothing to predict; leave --target out.")
    X, Y = _filled(table.X), table.keys
    if not options.no_standardize:
        mean, deviation = _moments(table, X)
        X = ((X - mean) / deviation).astype(X.dtype)
        Y = None if Y is None else ((Y - mean) / deviation).astype(Y.dtype)
    return Problem(table, X, Y, _kernel(options, X), not options.no_standardize)


def _table(name: str, target: str | None, options: argparse.Namespace) -> Table:
    drop, categorical = (
        [column for given in columns for column in given.split(",")] for columns in (options.drop, options.categorical)
    )
    if Path(name).exists() or name not in EMBEDDED:
        if not Path(name).exists():
            near = difflib.get_close_matches(name, EMBEDDED, 1)
            meant = f" The table with the nearest name is {near[0]}." if near else ""
            raise TableError(f"{name}: there is no such file.{meant}")
        impute = not options.drop_missing and (options.impute or target is not None)  # estimators take gaps
        asked: dict[str, Any] = {"drop_missing": options.drop_missing, "impute": impute}
        return read_table(name, drop=drop, categorical=categorical, target=target, **asked)
    if drop or categorical:
        raise TableError(f"{name}: --drop and --categorical are for files; this table has its columns.")
    if target not in (None, "y", "target"):
        raise TableError(f"{name}: this table has one target; name it by --target y.")
    return _embedded(name, target is not None)


def _embedded(name: str, with_target: bool) -> Table:
    """A table of scikit-learn, without its constant columns."""
    from sklearn import datasets

    function = f"load_{name.removeprefix('even-').replace('-', '_')}"
    loaded = getattr(datasets, function)()
    X = loaded.data.astype(np.float64)
    varied = (X != X[:1]).any(axis=0)
    columns = tuple(str(title) for title, keep in zip(loaded.feature_names, varied, strict=True) if keep)
    y = loaded.target
    code = f"from sklearn.datasets import {function}\n\nX, y = {function}(return_X_y=True)"
    if name == "even-digits":
        y, code = np.where(y % 2, "odd", "even"), f"{code}\ny = (y % 2 == 0)"
    elif "target_names" in loaded:
        y = np.asarray([str(title) for title in loaded.target_names])[y]
    constant = tuple(str(title) for title, keep in zip(loaded.feature_names, varied, strict=True) if not keep)
    target = _TARGETS[name]
    facts: dict[str, Any] = {"constant": constant, "n_numbers": len(columns)}
    facts |= {"y": y, "target": target, "code": code} if with_target else {}
    return Table(name, X[:, varied], columns, **facts)


def _filled(X: np.ndarray) -> np.ndarray:
    gaps = np.isnan(X)
    return np.where(gaps, np.nanmedian(X, axis=0), X).astype(X.dtype) if gaps.any() else X


def _moments(table: Table, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means and standard deviations by which the columns of numbers are standardised; categories stay as they are."""
    with np.errstate(all="ignore"):
        mean, deviation = X.mean(axis=0, dtype=np.float64), X.std(axis=0, dtype=np.float64)
        good = np.isfinite(mean) & np.isfinite(deviation) & (deviation > 0)
    if not good.all():
        title = table.columns[int(np.flatnonzero(~good)[0])]
        raise TableError(
            f"{table.name}: column {title!r} cannot be standardised, since its numbers are too large or too close together "
            f"for float64; rescale it, or leave it out with --drop."
        )
    mean[table.n_numbers :], deviation[table.n_numbers :] = 0.0, 1.0
    return mean, deviation


def _kernel(options: argparse.Namespace, X: np.ndarray) -> Kernel:
    """The kernel with the bandwidth that the options ask for; by default, that of the estimators."""
    kernel, owner = catalogue.kernel(options.kernel), f"--kernel {options.kernel}"
    if options.gamma is not None:
        return resolve_bandwidth(kernel, _number("--gamma", options.gamma), X, owner=owner)
    if options.lengthscale is None:
        return resolve_bandwidth(kernel, kernel.default_rule, X, owner=owner)
    if options.lengthscale in RULES:
        return resolve_bandwidth(kernel, options.lengthscale, X, owner=owner)
    return kernel.with_bandwidth(_number("--lengthscale", options.lengthscale, *RULES))


def _number(option: str, text: str, *words: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not (np.isfinite(value) and value > 0):
        accepted = " or ".join(["a positive number", *(repr(word) for word in words)])
        raise ValueError(f"{option} must be {accepted}, got {text!r}.")
    return value
