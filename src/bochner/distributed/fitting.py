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


def learned(options: Machine, phi: FeatureMap, blocks: Blocks, targets: Any, known: Any = None) -> Machine:
    """A machine of these options that has learned the targets of all blocks, besides what ``known`` has learned.

    Parameters
    ----------
    options : RidgeMachine or NadarayaWatsonMachine
    phi : FeatureMap
    blocks : Blocks
        With y.
    targets : callable
        From y and weights of a block to targets (n, t) and weights.
    known : RidgeMachine or NadarayaWatsonMachine, optional
    """
    if isinstance(options, NadarayaWatsonMachine):
        sums = blocks.sum(partial(_kernel_sums, targets=targets), phi)
        return NadarayaWatsonMachine(options.owner, sums if known is None else known.sums + sums)
    total = summed_statistics(phi, blocks, targets)
    options.check(total.n_targets)
    if known is not None:
        if known.statistics is None:
            raise ValueError(f"{options.owner}: the first rows were few, and fitted as such on one machine; "
                             f"begin with fit on a Dask collection, or with solver='primal'.")  # fmt: skip
        total = known.statistics + total
    return RidgeMachine(options.owner, options.alpha, options.alphas, options.intercept, options.solver, total)


def check_streams(machine: Machine) -> None:
    """Refuse what needs all rows in one place, before anything is computed."""
    if isinstance(machine, NadarayaWatsonMachine):
        return
    if isinstance(machine.alpha, str) and machine.alpha == "loo":
        raise ValueError(f"{machine.owner}: alpha='loo' looks at every row again; on Dask collections use alpha='gcv'.")
    if machine.solver == "dual":
        raise ValueError(f"{machine.owner}: solver='dual' needs all rows in one place; on Dask collections use 'auto'.")


def summed_statistics(phi: FeatureMap, blocks: Blocks, targets: Any, dtype: Any = None) -> RegressionStatistics:
    """Statistics of all rows, in their precision or in another."""
    total: RegressionStatistics = blocks.sum(partial(_statistics, targets=targets, dtype=dtype), phi)
    return total


def numbers(y: Any, weights: Any) -> tuple[np.ndarray, Any]:
    """Targets of regression: y itself, as columns."""
    return columns(y), weights


def n_targets(machine: Machine) -> int:
    """How many targets it has learned."""
    if isinstance(machine, NadarayaWatsonMachine):
        assert machine.sums is not None
        return len(machine.sums.target_sums) - 1
    return len(machine.solution.intercept)


def n_dimensions(y: Any) -> int:
    """Of a Dask collection or an array."""
    return int(y.ndim) if hasattr(y, "ndim") else np.ndim(y)


def _statistics(X: Any, y: Any, weights: Any, phi: FeatureMap, *, targets: Any, dtype: Any) -> RegressionStatistics:
    return regression_statistics(phi, X if dtype is None else X.astype(dtype), *targets(y, weights))


def _kernel_sums(X: Any, y: Any, weights: Any, phi: FeatureMap, *, targets: Any) -> KernelSums:
    machine = NadarayaWatsonMachine("")
    Y, w = targets(y, weights)
    machine.add(phi, X, Y, w, verbose=0)
    assert machine.sums is not None
    return machine.sums
