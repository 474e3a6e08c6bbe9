"""Test errors of kernel machines on tables, by random splits and draws that all methods share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from bochner.learn import KernelClassifier, KernelRidge

from ..._estimates import Estimate
from ..._experiment import dataset

REGRESSION = {
    "boston": "boston",
    "ccpp": "ccpp",
    "cpu_act": "cpu_act",
    "parkinsons": "parkinsons",
    "wine": "wine-quality-red",
}
CLASSIFICATION = {"banknote": "banknote", "car": "car", "wifi": "wifi", "yeast": "yeast"}
TABLES = REGRESSION | CLASSIFICATION


def test_errors(
    name: str, machines: Mapping[str, Mapping[str, Any]], seeds: int, rows: int, rng: np.random.Generator
) -> dict[str, Any]:
    """Errors of machines with these parameters on splits of at most ``rows`` rows, four fifths of them for training.

    Returns
    -------
    dict
        For each machine the errors of all seeds: root mean squared errors in standard deviations of the target, or
        shares of wrong classes.
    """
    loaded = dataset(TABLES[name])
    X, y = np.asarray(loaded.X, dtype=np.float64), np.asarray(loaded.y)
    found: dict[str, list[float]] = {machine: [] for machine in machines}
    for seed in rng.integers(2**31, size=seeds):
        order = np.random.default_rng(seed).permutation(len(X))[:rows]
        train, test = order[len(order) // 5 :], order[: len(order) // 5]
        mean, deviation = X[train].mean(0), X[train].std(0)
        Z = (X - mean) / np.where(deviation > 0, deviation, 1.0)
        for machine, parameters in machines.items():
            found[machine].append(_error(name, parameters, int(seed), Z[train], y[train], Z[test], y[test]))
    return found


def _error(
    name: str, parameters: Mapping[str, Any], seed: int, X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: Any
) -> float:
    kind = KernelRidge if name in REGRESSION else KernelClassifier
    fixed: dict[str, Any] = {
        "kernel": "gaussian",
        "gamma": "scale",
        "alpha": "gcv",
    }  # what is not compared is not searched for
    model = kind(**fixed, random_state=seed, n_jobs=1, **parameters).fit(X, y)
    predicted = model.predict(X_test)
    if name in CLASSIFICATION:
        return float((predicted != y_test).mean())
    return float(np.sqrt(((predicted - y_test) ** 2).mean()) / np.std(y))


def difference(found: Mapping[str, Any], one: str, other: str) -> Estimate:
    """The mean difference of the errors of two machines over common seeds."""
    return Estimate.of(np.subtract(found[one], found[other]))


def differences(parts: Iterable[Mapping[str, Any]], one: str, other: str) -> Estimate:
    """Estimated differences between two methods, one for each table."""
    return Estimate.stack(difference(part, one, other) for part in parts)


def against(found: Mapping[str, Any], one: str, other: str) -> str:
    """Both mean errors, in words."""
    return f"{np.mean(found[one]):.4f} against {np.mean(found[other]):.4f}"
