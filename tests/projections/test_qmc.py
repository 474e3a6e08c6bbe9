"""Low-discrepancy rows: each is N(0, I) by itself, over redraws, whatever its place in the sequence."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from bochner.projections import IID, QMC
from support.checks import check_law, check_mean, probes

PROJECTIONS = [QMC("halton"), QMC("sobol")]


@pytest.mark.parametrize("projection", PROJECTIONS, ids=repr)
@pytest.mark.parametrize("d", (1, 3))
def test_each_row_is_normal_over_redraws(projection, d, seed):
    rng = np.random.default_rng(seed)
    W = np.array([projection.sample(d, 9, rng).to_dense() for _ in range(1500)])
    for label, v in probes(d, 1.5, seed).items():
        products = W @ v
        for row in (0, 1, 5, 8):
            check_law(products[:, row], stats.norm(0, 1.5), f"{projection} {label} row {row}")
        check_mean(np.exp(products).mean(axis=1), np.exp(1.125), f"{projection} {label}: E exp(w.v)")


@pytest.mark.parametrize("projection", PROJECTIONS, ids=repr)
@pytest.mark.parametrize("m", (1, 7, 64))
def test_any_number_of_rows(projection, m):
    W = projection.sample(5, m, 0).to_dense()
    assert W.shape == (m, 5) and np.isfinite(W).all()


@pytest.mark.parametrize("projection", PROJECTIONS, ids=repr)
def test_points_are_spread_more_evenly_than_independent_ones(projection):
    """The error of a smooth mean in d = 2 with 256 rows is at most a third of that of independent rows."""
    z = np.array([0.7, -0.4])

    def error(kind):
        return np.std([np.cos(kind.sample(2, 256, seed)(z)).mean() for seed in range(60)])

    assert error(projection) < error(IID()) / 3
