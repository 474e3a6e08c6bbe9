"""The data and the kernel of a command, from its options."""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .. import catalogue, datasets
from ..datasets import Dataset, Table, TableError, read_table
from ..kernels import Kernel, resolve_bandwidth
from ..selection import MOST_FEATURES

DEFAULT = "diabetes"
RULES = ("scale", "median")


@dataclass(frozen=True)
class Problem:
    """Points, separate keys if there are any, the kernel, and a description."""

    name: str
    X: np.ndarray
    Y: np.ndarray | None
    kernel: Kernel
    standardized: bool

    @property
    def description(self) -> str:
        """What the data are."""
        keys = f" and {len(self.Y)} keys" if self.Y is not None else ""
        scaled = ", columns standardised" if self.standardized else ""
        return f"{self.name}: {len(self.X)} rows{keys} x {self.X.shape[1]} columns{scaled}; {self.kernel!r}"


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
    drop = "leave out a column, such as the target, by name or position; may be repeated"
    parser.add_argument("--drop", action="append", default=[], metavar="COLUMN", help=drop)
    parser.add_argument("--drop-constant", action="store_true", help="leave out constant columns")
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
    table = _table(options)
    X, Y = table.X, table.keys
    if not options.no_standardize:
        X, Y = _standardized(table)
    return Problem(table.name, X, Y, _kernel(options, X), not options.no_standardize)


def _table(options: argparse.Namespace) -> Table:
    drop = [column for given in options.drop for column in given.split(",")]
    if Path(options.data).exists() or options.data not in datasets.names():
        return read_table(options.data, drop=drop, drop_constant=options.drop_constant)
    if drop:
        raise TableError(f"{options.data}: --drop is for files; this data set has its columns.")
    try:
        loaded = datasets.load(options.data)
    except FileNotFoundError as error:
        raise TableError(str(error)) from None
    if not isinstance(loaded, Dataset):
        raise TableError(f"{options.data}: this data set is a text; give a table of numbers.")
    varied = (loaded.X != loaded.X[:1]).any(axis=0)
    columns = tuple(name for name, keep in zip(loaded.feature_names, varied, strict=True) if keep)
    return Table(loaded.name, loaded.X[:, varied], columns)


def _standardized(table: Table) -> tuple[np.ndarray, np.ndarray | None]:
    """Columns of mean zero and variance one on the rows of X."""
    X, Y = table.X, table.keys
    with np.errstate(all="ignore"):
        mean, deviation = X.mean(axis=0, dtype=np.float64), X.std(axis=0, dtype=np.float64)
        good = np.isfinite(mean) & np.isfinite(deviation) & (deviation > 0)
    if not good.all():
        title = table.columns[int(np.flatnonzero(~good)[0])]
        raise TableError(
            f"{table.name}: column {title!r} cannot be standardised, since its numbers are too large or too close together "
            f"for float64; rescale it, or leave it out with --drop."
        )
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
