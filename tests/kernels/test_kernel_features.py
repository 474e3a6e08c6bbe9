"""Features of the kernels that are mixtures or made of others: their error, files, and the machines that use them."""

from __future__ import annotations

import numpy as np
import pytest

import bochner
from bochner import Approximation, kernels, learn, projections

KERNELS = [
    kernels.ExponentialPower(0.7),
    kernels.GeneralizedCauchy(1.2, 0.8, (0.5, 1.0, 2.0)),
    kernels.GeneralizedMatern(1.5, 1.2),
    kernels.Kummer(0.5, 2.0, 1.2, (0.5, 1.0, 2.0)),
    kernels.Tricomi(0.5, 1.5),
    kernels.Beta(1.0, 1.5),
    kernels.LpExponential(1.0, 0.7),
    kernels.Periodic(2.0, (0.5, 1.0, 2.0)),
    kernels.Product((kernels.Periodic(), kernels.Gaussian(2.0)), 1.5),
    kernels.Sum((kernels.Columns(kernels.Gaussian(), (1,)), kernels.Matern(1.5))),
    kernels.Additive(kernels.Gaussian(), 2, (0.5, 1.0, 2.0)),
]
X = np.random.default_rng(5).standard_normal((6, 3))
X.flags.writeable = False


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_error_of_independent_rows_is_the_closed_form(kernel, seed):
    """|z| < 5 for 36 entries of 600 draws each."""
    spec = Approximation(kernel, projection=projections.IID(), n_projections=8)
    found = spec.simulate_mse(X, n_draws=600, rng=seed)
    assert np.all(np.abs(found.mse - spec.mse(X)) <= 5 * found.standard_error + 1e-12)


@pytest.mark.parametrize("kernel", [k for k in KERNELS if k.spectrum == "radial"], ids=repr)
@pytest.mark.swept(3)
def test_orthogonal_rows_are_unbiased(kernel, seed):
    """200 draws of eight blocks."""
    spec = Approximation(kernel, n_projections=24)
    K = np.array([spec.draw(3, rng=i + 10_000 * seed).gram(X) for i in range(200)])
    error = K.std(axis=0, ddof=1) / 200**0.5 + 1e-12
    assert isinstance(spec.projection, projections.Orthogonal)
    assert np.all(np.abs(K.mean(axis=0) - kernel(X)) <= 5 * error)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_saved_features_are_the_same(kernel, tmp_path):
    phi = Approximation(kernel, n_projections=4).draw(3, rng=0)
    phi.save(tmp_path / "phi.npz")
    loaded = bochner.load(tmp_path / "phi.npz")
    assert loaded.spec == phi.spec
    np.testing.assert_array_equal(loaded.queries(X), phi.queries(X))


def test_machines_use_composite_kernels():
    """A weekly pattern far from the data, and an additive function of columns, which a Gaussian kernel cannot have."""
    rng = np.random.default_rng(0)
    days = rng.uniform(0, 70, (400, 1))
    weekly = np.sin(2 * np.pi * days[:, 0] / 7) + 0.05 * rng.standard_normal(400)
    model = learn.KernelRidge(
        kernel=kernels.Periodic(7.0), gamma=None, n_components=128, standardize=False, random_state=0
    ).fit(days, weekly)
    later = np.linspace(700, 714, 50)[:, None]
    assert np.abs(model.predict(later) - np.sin(2 * np.pi * later[:, 0] / 7)).max() < 0.1

    Z = rng.uniform(-2, 2, (600, 8))
    y = np.sin(2 * Z).sum(axis=1)
    shared = {"n_components": 256, "random_state": 0}
    additive = learn.GaussianProcess(kernel=kernels.Additive(kernels.Gaussian(0.7)), **shared).fit(Z[:400], y[:400])
    plain = learn.GaussianProcess(kernel=kernels.Gaussian(), **shared).fit(Z[:400], y[:400])
    error = [np.square(model.predict(Z[400:]) - y[400:]).mean() for model in (additive, plain)]
    assert error[0] < error[1] / 4
