r"""A model of the time that a fit takes on a cluster, with measured and assumed constants.

A fit of n rows in d dimensions with D features on p workers takes the time

.. math:: T = \frac{n}{p}\,c(d, D) + \text{tree} + \text{tasks} + \text{solve}

- *rows*: :math:`c = (2dD + D^2 + tD)/F` seconds per row and core, for products at F flops (only half of the 2 D^2 of a full
  square are needed, since it is symmetric);
- *tree*: on each of :math:`\lceil\log_k p\rceil` levels, at most k - 1 statistics of :math:`8(D^2 + (t+1)D)` bytes are sent
  to a worker that adds them (blocks of the same worker are added locally);
- *tasks*: the scheduler handles the tasks one after the other, one per block and one per node of the tree;
- *solve*: :math:`D^3/3` flops on one machine.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .._table import format_table, seconds
from .._validation import check_count, check_instance, check_positive, shown
from ._dask_rows import SPLIT_EVERY


@dataclass(frozen=True)
class Work:
    """Size of a fit.

    Parameters
    ----------
    n_rows, n_columns, n_features : int
        Number of rows n, of columns d and of features D.
    n_targets : int
        Number of targets t.
    block_rows : int
        Number of rows per block.
    """

    n_rows: int
    n_columns: int
    n_features: int
    n_targets: int = 1
    block_rows: int = 100_000

    def __post_init__(self) -> None:
        for name in ("n_rows", "n_columns", "n_features", "n_targets", "block_rows"):
            check_count("Work", name, getattr(self, name))

    @property
    def n_blocks(self) -> int:
        """Number of blocks of rows."""
        return -(-self.n_rows // self.block_rows)

    @property
    def flops_per_row(self) -> float:
        """Floating-point operations to project a row and to add its products to half of a square matrix."""
        return 2.0 * self.n_columns * self.n_features + self.n_features**2 + self.n_targets * self.n_features

    @property
    def statistics_bytes(self) -> float:
        """Size of the statistics that one worker sends to another, in bytes."""
        return 8.0 * (self.n_features**2 + (self.n_targets + 1) * self.n_features)


@dataclass(frozen=True)
class Cluster:
    """The cluster on which a model is fitted.

    Parameters
    ----------
    n_workers : int
        Number of workers of one core each.
    flops : float
        Floating-point operations per second of a core in the products of a block.  Measured, see docs/distributed.md.
    bandwidth : float
        Bytes per second between two workers.  Assumed: 10 Gbit/s.
    latency : float
        Seconds per message.  Assumed.
    task_seconds : float
        Seconds per task of the scheduler.  Assumed: one millisecond.
    """

    n_workers: int
    flops: float = 2e10
    bandwidth: float = 1.25e9
    latency: float = 1e-3
    task_seconds: float = 1e-3

    def __post_init__(self) -> None:
        check_count("Cluster", "n_workers", self.n_workers)
        for name in ("flops", "bandwidth", "latency", "task_seconds"):
            check_positive("Cluster", name, getattr(self, name))


class FitTime(NamedTuple):
    """Time of the parts of a fit, in seconds."""

    rows: float
    tree: float
    tasks: float
    solve: float

    @property
    def total(self) -> float:
        """Sum of all parts: an upper bound, since the scheduler and the workers run at the same time."""
        return sum(self)


def fit_time(work: Work, cluster: Cluster, split_every: int = SPLIT_EVERY) -> FitTime:
    """Return the time of a fit in seconds, part by part.

    Parameters
    ----------
    work : Work
        Size of the fit.
    cluster : Cluster
        The cluster.
    split_every : int
        Number of parts that one task of the tree adds.

    Returns
    -------
    FitTime

    Examples
    --------
    >>> work = Work(n_rows=100_000_000, n_columns=100, n_features=1024)
    >>> one, ten = (fit_time(work, Cluster(p)) for p in (1, 10))
    >>> bool(9 < one.total / ten.total <= 10)
    True
    """
    check_instance("fit_time", "work", work, Work, "Work(n_rows=10**6, n_columns=10, n_features=256)")
    check_instance("fit_time", "cluster", cluster, Cluster, "Cluster(n_workers=10)")
    split_every = check_count("fit_time", "split_every", split_every, 2)
    busy = min(cluster.n_workers, work.n_blocks)  # no more workers than blocks have something to do
    blocks_each = -(-work.n_blocks // busy)
    rows = min(blocks_each * work.block_rows, work.n_rows) * work.flops_per_row / cluster.flops
    levels = _levels(busy, split_every)
    arriving = (min(split_every, busy) - 1) * work.statistics_bytes / cluster.bandwidth
    tree = levels * (arriving + cluster.latency)
    n_tasks = work.n_blocks * (1 + 1 / (split_every - 1))
    return FitTime(rows, tree, n_tasks * cluster.task_seconds, work.n_features**3 / 3 / cluster.flops)


def cost_table(work: Work, workers: Sequence[int] = (1, 10, 100, 1000)) -> str:
    """Return a table of the time of a fit, and of the speed-up over one worker, for several numbers of workers.

    Parameters
    ----------
    work : Work
        Size of the fit.
    workers : sequence of int
        Numbers of workers.

    Returns
    -------
    str

    Examples
    --------
    >>> print(cost_table(Work(n_rows=1_000_000, n_columns=10, n_features=256), [1, 10]).splitlines()[0])
    workers    rows     tree    tasks   solve   total  gain
    """
    if not isinstance(workers, Sequence):
        raise TypeError(
            f"cost_table: workers must be a sequence of integers such as (1, 10, 100), got {shown(workers)}."
        )
    alone = fit_time(work, Cluster(1)).total
    lines = []
    for p in workers:
        parts = fit_time(work, Cluster(p))
        texts = [_shown(value) for value in (*parts, parts.total)]
        lines.append([str(p), *texts, f"{alone / parts.total:.1f}"])
    return format_table(["workers", *FitTime._fields, "total", "gain"], lines)


def _shown(value: float) -> str:
    if value >= 1000:
        return f"{value:,.0f} s"
    return seconds(value) if value else "0 s"


def _levels(parts: int, split_every: int) -> int:
    """Levels of a tree over that many parts."""
    levels = 0
    while parts > 1:
        parts, levels = math.ceil(parts / split_every), levels + 1
    return levels
