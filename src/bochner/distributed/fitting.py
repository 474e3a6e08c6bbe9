"""What a block teaches, summed over all of them."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..approximation import FeatureMap
from ..learn.gaussian_process.targets import columns
from ..learn.nadaraya_watson import KernelSums, NadarayaWatsonMachine
from ..learn.ridge_machine import RidgeMachine
from ..learn.statistics import RegressionStatistics
from ..learn.streaming import regression_statistics
from .blocks import Blocks

Machine = RidgeMachine | NadarayaWatsonMachine


def learned(machine: Machine, phi: FeatureMap, blocks: Blocks, targets: Any) -> Machine:
    """The machine, after it has learned the targets of all blocks, besides what it knows.

    Parameters
    ----------
    machine : RidgeMachine or NadarayaWatsonMachine
    phi : FeatureMap
    blocks : Blocks
        With y.
    targets : callable
        From y and weights of a block to targets (n, t) and weights.
    """
    if isinstance(machine, NadarayaWatsonMachine):
        sums = blocks.sum(partial(_kernel_sums, targets=targets), phi)
        _check_some_rows(blocks, sums.target_sums[-1])
        machine.sums = sums if machine.sums is None else machine.sums + sums
        return machine
    total = summed_statistics(phi, blocks, targets, exact=machine.exact)
    machine.check(total.n_targets)
    machine.statistics = total if machine.statistics is None else machine.statistics + total
    return machine


def check_streams(machine: Machine) -> None:
    """Refuse what needs all rows in one place, before anything is computed."""
    if isinstance(machine, NadarayaWatsonMachine):
        return
    if isinstance(machine.alpha, str) and machine.alpha == "loo":
        raise ValueError(f"{machine.owner}: alpha='loo' looks at every row again; on Dask collections use alpha='gcv'.")
    if machine.solver == "dual":
        raise ValueError(f"{machine.owner}: solver='dual' needs all rows in one place; on Dask collections use 'auto'.")


def summed_statistics(
    phi: FeatureMap, blocks: Blocks, targets: Any, dtype: Any = None, *, exact: bool = True
) -> RegressionStatistics:
    """Statistics of all rows, in their precision or in another."""
    total: RegressionStatistics = blocks.sum(partial(_statistics, targets=targets, dtype=dtype, exact=exact), phi)
    _check_some_rows(blocks, total.weight)
    return total


def numbers(y: Any, weights: Any) -> tuple[np.ndarray, Any]:
    """Targets of regression: y itself, as columns."""
    return columns(y), weights


def n_dimensions(y: Any) -> int:
    """Of targets: a Dask collection or an array."""
    if y is None:
        raise ValueError("fit requires y to be passed, but the target y is None.")
    return int(y.ndim) if hasattr(y, "ndim") else np.ndim(y)


def n_columns(y: Any) -> int:
    """Of targets: one for a vector."""
    return int(y.shape[1]) if n_dimensions(y) == 2 else 1


def _check_some_rows(blocks: Blocks, weight: float) -> None:
    if not weight > 0:
        why = "sample_weight is zero in every row" if blocks.weighted else "Found array with 0 sample(s)"
        raise ValueError(f"{blocks.owner}: {why} while a minimum of 1 is required.")


def _statistics(
    X: Any, y: Any, weights: Any, phi: FeatureMap, *, targets: Any, dtype: Any, exact: bool
) -> RegressionStatistics:
    return regression_statistics(phi, X if dtype is None else X.astype(dtype), *targets(y, weights), exact=exact)


def _kernel_sums(X: Any, y: Any, weights: Any, phi: FeatureMap, *, targets: Any) -> KernelSums:
    machine = NadarayaWatsonMachine("")
    Y, w = targets(y, weights)
    machine.add(phi, X, Y, w, verbose=0)
    assert machine.sums is not None
    return machine.sums
