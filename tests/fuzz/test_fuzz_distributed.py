"""Estimators on Dask collections, and the cost model."""

from __future__ import annotations

import copy
from typing import Any

import dask
import dask.array as da
import pytest

from bochner import distributed
from fuzz.exploring import explore
from fuzz.targets import Good, Target, constant, public, target_of
from fuzz.values import rows

GOOD: Good = {
    "n_workers": constant(4),
    "n_rows": constant(1000),
    "n_columns": constant(10),
    "n_features": constant(64),
    "work": constant(distributed.Work(1000, 10, 64)),
    "cluster": constant(distributed.Cluster(4)),
    "workers": constant((1, 10)),
}
COSTS = [
    target_of(name, call, GOOD)
    for name, call in public(distributed)
    if name in ("Cluster", "Work", "cost_table", "fit_time")
]


def blocks() -> Any:
    return da.from_array(rows(), chunks=(3, -1))


def fitting(kind: type) -> Target:
    classifies = "Classifier" in kind.__name__
    y = da.from_array(rows()[:, 0] > 0 if classifies else rows()[:, 0], chunks=3)
    estimator = kind(n_components=2, random_state=0)

    def fit(subject: Any, **arguments: Any) -> Any:
        with dask.config.set(scheduler="synchronous"):
            return subject.fit(**arguments)

    good: Good = {"X": blocks, "y": constant(y)}
    return Target(
        f"{kind.__name__}.fit",
        fit,
        good,
        subject=lambda: copy.deepcopy(estimator),
        changes=("X", "y"),  # collections keep what they found out about themselves
        required=("X", "y"),
    )


FITS = [fitting(kind) for name, kind in public(distributed) if hasattr(kind, "fit")]


@pytest.mark.parametrize("target", [*COSTS, *FITS], ids=str)
def test_hostile_arguments(target):
    explore(target.name, target.spoils(), target.check)


@pytest.mark.parametrize("target", [*COSTS, *FITS], ids=str)
def test_good_arguments_are_accepted(target):
    target.ask({})
