"""Mutants that once survived the suite: each of these tests fails for one of them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from bochner import Approximation, NoClosedForm, kernels, maps
from bochner.projections import IID, QMC, Orthogonal

X = np.random.default_rng(0).standard_normal((7, 3))


@pytest.mark.parametrize("sequence", ("halton", "sobol"))
@pytest.mark.parametrize("point", (0.0, 1.0 - 2.0**-53, 1.0))
def test_points_at_the_edge_of_the_cube_give_finite_rows(sequence, point, monkeypatch):
    """The normal quantile of zero and of one is infinite; points are kept half a cell away."""
    monkeypatch.setattr(QMC, "_points", lambda self, d, m, rng: np.full((m, d), point))
    W = QMC(sequence).sample(2, 3, 0).to_dense()
    assert np.isfinite(W).all() and (np.sign(W) == (1 if point else -1)).all()


def test_antithetic_features_of_coupled_rows_have_no_closed_form():
    spec = Approximation(kernels.Softmax(), maps.GeneralizedExponential(-0.1, antithetic=True), IID(), 8)
    assert np.isfinite(spec.mse(X)).all()
    coupled = Approximation(kernels.Softmax(), maps.GeneralizedExponential(-0.1, antithetic=True), Orthogonal(), 8)
    with pytest.raises(NoClosedForm):
        coupled.mse(X)


@pytest.mark.parametrize(
    "feature_map",
    (maps.Trigonometric(), maps.Positive(), maps.Framed(maps.Positive()), maps.Poisson(rate=0.4)),
    ids=repr,
)
@pytest.mark.parametrize("dtype", (np.float32, np.float64))
def test_sparse_rows_have_the_features_of_dense_ones(feature_map, dtype):
    """Whether the map reads sparse rows or has them made dense, and with a lengthscale per column."""
    rows = np.where(np.abs(X) > 0.5, X, 0).astype(dtype)
    phi = Approximation(kernels.Gaussian((0.5, 1.0, 2.0)), feature_map, n_projections=6).fit(X, rng=0)
    for form in (scipy.sparse.csr_array, scipy.sparse.coo_array, scipy.sparse.csc_array):
        for method in (phi.queries, phi.keys):
            np.testing.assert_allclose(method(form(rows)), method(rows), rtol=1e-4 if dtype == np.float32 else 1e-12)
