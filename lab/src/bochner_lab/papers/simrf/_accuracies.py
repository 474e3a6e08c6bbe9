"""Accuracies of positive features on the eight data sets, shared by SimRF Figure 8 and Tables 2 and 3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..._estimates import Estimate
from ..._experiment import Results, by_profile
from .._kernel_regression import DATA, Split, accuracies, exact_accuracy, load_split, sigma_grid, tune
from ._couplings import positive_features

OWN_SPLIT = (
    "The split is our own: a tenth of the rows for the test, a tenth of the others for validation; columns "
    "standardised."
)
TABLES: Mapping[str, Mapping[str, Any]] = by_profile(
    smoke={"data": ("banknote", "wifi"), "rows": 600, "sigmas": (0.03, 3.0, 4), "tuning_draws": 2, "draws": 40},
    full={"data": tuple(DATA), "rows": None, "sigmas": (0.01, 5.0, 14), "tuning_draws": 10, "draws": 500},
)
"""Parameters of Tables 2 and 3."""


def tuned(name: str, p: Mapping[str, Any]) -> tuple[Split, float, dict[str, Any]]:
    """A data set and the sigma at which independent features with m = 10 d are best (Figure 10)."""
    split = load_split(name, p["rows"])
    sigmas, spec = sigma_grid(p), positive_features("iid", 10 * split.train.shape[1])
    sigma, found = tune(spec, split, sigmas, p["tuning_draws"], np.random.default_rng(1))
    v = np.linalg.norm(sigma * (split.train[:500] + split.train[-500:][::-1][: len(split.train[:500])]), axis=1).mean()
    exact = exact_accuracy(spec, split.small(4000, 1), sigma)
    return split, sigma, {"sigma": sigma, "sigmas": sigmas, "validation": found, "mean v": float(v), "exact": exact}


def accuracy(
    split: Split, sigma: float, projection: str, m: int, draws: int, rng: np.random.Generator
) -> dict[str, Any]:
    """The mean accuracy over draws."""
    return Estimate.of(accuracies(positive_features(projection, m), split, sigma, draws, rng)).as_numbers()


def stacked(results: Results, data: Sequence[str], key: str) -> Estimate:
    """The numbers ``key`` of several data sets as one array."""
    found = [Estimate.read(results.parts[name][key]) for name in data]
    return Estimate(np.array([x.mean for x in found]), np.array([x.error for x in found]))
