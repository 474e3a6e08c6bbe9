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
from ..datasets import EMBEDDED, Table, TableError, embedded, read_table
from ..kernels import Kernel, resolve_bandwidth
from ..selection import MOST_FEATURES
from ..selection._code import Source
from ..selection._judge import BUDGET
from ..selection._task import MOST_ROWS, Task

DEFAULT = "diabetes"
RULES = ("scale", "median")


@dataclass(frozen=True)
class Problem:
    """Points, separate keys if there are any, the kernel, and a description.

    With a target, ``task`` holds rows, targets and folds; X is then as in the file, since columns are standardised in each
    training part, ``searched`` names the kernel if its bandwidth is chosen there, and ``source`` is code that reads X and y.
    """

    name: str
    X: np.ndarray
    Y: np.ndarray | None
    kernel: Kernel
    standardized: bool
    encoded: tuple[str, ...] = ()
    n_left_out: int = 0
    task: Task | None = None
    searched: str = ""
    source: Source = Source()

    @property
    def description(self) -> str:
        """What the data are."""
        keys = f" and {len(self.Y)} keys" if self.Y is not None else ""
        scaled = ", columns standardised" if self.standardized else ""
        encoded = f", {', '.join(self.encoded)} one-hot encoded" if self.encoded else ""
        rows = "row" if self.n_left_out == 1 else "rows"
        left_out = f", {self.n_left_out} {rows} with missing values left out" if self.n_left_out else ""
        kernel = f"{self.searched} kernel, its bandwidth chosen" if self.searched else repr(self.kernel)
        task = f"; {self.task.kind}" if self.task is not None else ""
        shape = f"{len(self.X)} rows{keys} x {self.X.shape[1]} columns"
        return f"{self.name}: {shape}{scaled}{encoded}{left_out}; {kernel}{task}"


def add_arguments(parser: argparse.ArgumentParser, features: str, default: int | None) -> None:
    """Options that say which data and which kernel."""
    data = "CSV, NPZ or Parquet file, or the name of a data set (default: embedded data)"
    parser.add_argument("data", nargs="?", default=DEFAULT, metavar="DATA", help=data)
    parser.add_argument("--kernel", default="gaussian", choices=sorted(catalogue.kernels()), help="default: gaussian")
    bandwidth = parser.add_mutually_exclusive_group()
    lengthscale = (
        "a number; 'scale', as in the estimators: gamma = 1/(d Var X) (default); 'median': the median distance"
    )
    bandwidth.add_argument("--lengthscale", help=lengthscale)
    bandwidth.add_argument(
        "--gamma", help="a number, alternative to --lengthscale, as in scikit-learn; the scale of softmax"
    )
    parser.add_argument("--features", type=int, default=default, help=features)
    target = "column to predict, by name or position: compare by the cross-validated error of predictions"
    parser.add_argument("--target", metavar="COLUMN", help=target)
    task = "by default, text and at most 20 different whole numbers are classes"
    parser.add_argument("--task", choices=("regression", "classification"), help=task)
    budget = f"with --target: seconds for the whole comparison, with fewer rows if need be (default {BUDGET:g})"
    parser.add_argument("--budget", type=float, default=BUDGET, metavar="SECONDS", help=budget)
    drop = "leave out a column, such as an identifier, by name or position; may be repeated"
    parser.add_argument("--drop", action="append", default=[], metavar="COLUMN", help=drop)
    categorical = "one-hot encode a column that contains numbers; columns of text are always encoded; may be repeated"
    parser.add_argument("--categorical", action="append", default=[], metavar="COLUMN", help=categorical)
    parser.add_argument("--drop-constant", action="store_true", help="leave out constant columns")
    parser.add_argument("--drop-missing", action="store_true", help="leave out rows with missing values")
    parser.add_argument("--no-standardize", action="store_true", help="do not standardize the columns")
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


def read_problem(options: argparse.Namespace) -> Problem:
    """Read, check and standardise the data; raises a TableError or ValueError for the user."""
    if options.features is not None:
        check_range(options, "features", 1, MOST_FEATURES)
    if options.seed < 0:
        raise ValueError(f"--seed must not be negative, got {options.seed}.")
    if not 0 < options.budget < float("inf"):
        raise ValueError(f"--budget must be a positive number of seconds, got {options.budget:g}.")
    if options.task is not None and options.target is None:
        raise ValueError(f"--task {options.task} needs the column to predict; give --target COLUMN.")
    table, source = _table(options)
    free = options.gamma is None and options.lengthscale is None and catalogue.kernel(options.kernel).has_bandwidth
    free = free and table.y is not None  # chosen on training rows, which are standardised by their own moments
    X, Y = table.X, table.keys
    if not options.no_standardize:
        moments = _moments(table)
        X, Y = (X, Y) if free else _standardized(table, *moments)
    kernel = catalogue.kernel(options.kernel) if free else _kernel(options, X)
    facts: dict[str, Any] = {"encoded": table.encoded, "n_left_out": table.n_left_out}
    if table.y is None:
        return Problem(table.name, X, Y, kernel, not options.no_standardize, **facts)
    if Y is not None:
        raise ValueError(f"{table.name}: a file of queries and keys has nothing to predict; leave --target out.")
    scaled = 0 if options.no_standardize else table.n_numbers
    task = Task.of(
        table.X,
        table.y,
        options.task,
        options.seed,
        scaled=scaled,
        rows=_rows(options),
        owner=f"--target {options.target}",
    )
    facts |= {"task": task, "searched": options.kernel if free else "", "source": source}
    return Problem(table.name, table.X, None, kernel, not options.no_standardize, **facts)


def _rows(options: argparse.Namespace) -> int:
    """Rows for cross-validation."""
    return MOST_ROWS if getattr(options, "rows", None) is None else int(options.rows)


def _table(options: argparse.Namespace) -> tuple[Table, Source]:
    """The table, and the code that reads its X and y."""
    drop, categorical = (
        [column for given in columns for column in given.split(",")] for columns in (options.drop, options.categorical)
    )
    if Path(options.data).exists() or options.data not in EMBEDDED:
        asked: dict[str, Any] = {"drop": drop, "drop_constant": options.drop_constant, "target": options.target}
        asked |= {"categorical": categorical, "drop_missing": options.drop_missing}
        arguments = ", ".join([repr(options.data), *(f"{name}={value!r}" for name, value in asked.items() if value)])
        if not Path(options.data).exists():
            near = difflib.get_close_matches(options.data, EMBEDDED, 1)
            meant = f" The data set with the nearest name is {near[0]}." if near else ""
            raise TableError(f"{options.data}: there is no such file.{meant}")
        lines = f"table = read_table({arguments})", "X, y = table.X, table.y"
        return read_table(options.data, **asked), Source(("from bochner.datasets import read_table",), lines)
    if drop or categorical:
        raise TableError(f"{options.data}: --drop and --categorical are for files; this data set has its columns.")
    if options.target not in (None, "y", "target"):
        raise TableError(f"{options.data}: this data set has one target; name it by --target y.")
    loaded = embedded(options.data)
    varied = (loaded.X != loaded.X[:1]).any(axis=0)
    if options.target is not None:
        varied[:] = True  # as the code to paste reads it; a constant column changes no distance
    columns = tuple(name for name, keep in zip(loaded.columns, varied, strict=True) if keep)
    lines = f"data = embedded({options.data!r})", "X, y = data.X, data.y"
    y = None if options.target is None else loaded.y
    table = Table(loaded.name, loaded.X[:, varied], columns, y=y, n_numbers=len(columns))
    return table, Source(("from bochner.datasets import embedded",), lines)


def _moments(table: Table) -> tuple[np.ndarray, np.ndarray]:
    """Means and standard deviations by which the columns of numbers are standardised; categories stay as they are."""
    X = table.X
    with np.errstate(all="ignore"):
        mean, deviation = X.mean(axis=0, dtype=np.float64), X.std(axis=0, dtype=np.float64)
        good = np.isfinite(mean) & np.isfinite(deviation) & ((deviation > 0) | (table.y is not None))
    if not good.all():
        title = table.columns[int(np.flatnonzero(~good)[0])]
        raise TableError(
            f"{table.name}: column {title!r} cannot be standardised, since its numbers are too large or too close together "
            f"for float64; rescale it, or leave it out with --drop."
        )
    mean[table.n_numbers :], deviation[table.n_numbers :] = 0.0, 1.0
    deviation[deviation == 0] = 1.0
    return mean, deviation


def _standardized(table: Table, mean: np.ndarray, deviation: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Columns of numbers with mean zero and variance one on the rows of X."""
    X, Y = table.X, table.keys
    return ((X - mean) / deviation).astype(X.dtype), None if Y is None else ((Y - mean) / deviation).astype(Y.dtype)


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
