"""Estimators on Dask collections."""

from __future__ import annotations

import copy
from typing import Any

import dask
import dask.array as da
import pytest

from bochner import distributed
from fuzz.exploring import explore
from fuzz.targets import Good, Target, constant, public
from fuzz.values import rows


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


@pytest.mark.parametrize("target", FITS, ids=str)
def test_hostile_arguments(target):
    explore(target.name, target.spoils(), target.check)


@pytest.mark.parametrize("target", FITS, ids=str)
def test_good_arguments_are_accepted(target):
    target.ask({})
