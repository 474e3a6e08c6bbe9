"""Closed-form errors of specifications agree with their simulation, or say that there is none."""

from __future__ import annotations

import numpy as np
import pytest

from bochner import Approximation, NoClosedForm, kernels, maps
from bochner.approximation import _specification
from bochner.maps.coefficients import AngularCoefficient
from bochner.projections import IID, QMC, Orthogonal, Quadrature, Simplex, SimplexPlus
from bochner.rotations import Haar, Hadamard, StructuredGivens
from support.catalogue import POINTWISE, spec_of
from support.checks import Z_MAX, check_mean
from support.draws import squared_errors
from support.map_variances import rotated

GAUSSIAN, SOFTMAX = kernels.Gaussian(1.3), kernels.Softmax(0.8)
HAAR = [IID(), Orthogonal(Haar()), Simplex(Haar())]

KNOWN = [
    *(
        Approximation(k, m, p, 31)
        for k in (GAUSSIAN, SOFTMAX)
        for m in (maps.Trigonometric(), maps.Positive())
        for p in HAAR
    ),
    *(Approximation(k, maps.Trigonometric(single_last=True), p, 5) for k in (GAUSSIAN, SOFTMAX) for p in HAAR),
    *(Approximation(SOFTMAX, maps.Hyperbolic(), p, 31) for p in HAAR),
    *(Approximation(SOFTMAX, maps.GeneralizedExponential(-0.1 + 0.05j, s), p, 31) for s in (1, -1) for p in HAAR),
    *(Approximation(GAUSSIAN, maps.OptimalPositive(quantile=q), p, 31) for q in (None, 0.9) for p in HAAR),
    Approximation(SOFTMAX, maps.GeneralizedExponential("optimal"), IID(), 31),
    Approximation(SOFTMAX, maps.OptimalPositive(antithetic=True), IID(), 31),
    Approximation(SOFTMAX, maps.GeneralizedExponential(-0.1, -1, antithetic=True), Orthogonal(), 31),
    Approximation(SOFTMAX, maps.ComplexExponential(0.9 + 0.2j), IID(), 31),
    Approximation(SOFTMAX, maps.ComplexExponential((1.0, 0.8j, 1.1), antithetic=True), IID(), 31),
    Approximation(GAUSSIAN, maps.Poisson(), n_projections=40),
    Approximation(SOFTMAX, maps.Poisson(positive=True), n_projections=40),
    Approximation(GAUSSIAN, maps.Geometric(), n_projections=40),
    Approximation(SOFTMAX, maps.Geometric(success=0.7), n_projections=40),
    Approximation(SOFTMAX, maps.AngularHybrid(4), IID(), 31),
    Approximation(SOFTMAX, maps.AngularHybrid(4, shared=False), Orthogonal(), 31),
    Approximation(SOFTMAX, maps.GaussianHybrid(4), IID(), 31),
    Approximation(SOFTMAX, maps.GaussianHybrid(4, sigma=0.8, radius=1.1, shared=False), IID(), 31),
    Approximation(GAUSSIAN, maps.Trigonometric(), Quadrature(Haar()), 8),
    Approximation(SOFTMAX, maps.Trigonometric(), Quadrature(Haar(), "orthoplex"), 6),
    *(
        Approximation(GAUSSIAN, maps.Trigonometric(), Quadrature(Haar(), v), m)
        for v, m in (("simplex", 6), ("orthoplex", 5))
    ),
    *(Approximation(k, maps.Trigonometric(), IID(), 31) for k in (kernels.Matern(1.5, 2.0), kernels.Laplacian(1.5))),
    Approximation(kernels.Cauchy((1.0, 2.0, 3.0)), maps.Trigonometric(), IID(), 31),
    Approximation(kernels.Angular(), maps.Sign(), IID(), 31),
    Approximation(kernels.ArcCosine(0), maps.Rectified(0), IID(), 31),
    Approximation(kernels.ArcCosine(1), maps.Rectified(1), IID(), 31),
    *(Approximation(kernels.Linear(), maps.Identity(), p, 31) for p in HAAR),
    Approximation(kernels.Linear(), maps.Identity(), Orthogonal(Haar(), "fixed"), 2),
]


def points():
    """Short vectors, and 31 rows: squared errors of exponentials are else too skewed for a normal test of their mean."""
    rng = np.random.default_rng(0)
    return 0.3 * rng.standard_normal((3, 3)), 0.3 * rng.standard_normal((2, 3)) + 0.1


ONE_WAY = (maps.ComplexExponential, maps.Poisson, maps.Geometric)
"""Maps whose errors depend on the directions of the points."""


@pytest.mark.parametrize("spec", KNOWN, ids=repr)
@pytest.mark.swept(2)
def test_closed_form_agrees_with_simulation(spec, seed):
    """600 draws; 200 where an error does not change as the points are turned, of which each draw has 16 orientations."""
    X, Y = points()
    exact = spec.mse(X, Y)
    assert exact.shape == (3, 2) and (exact >= 0).all()
    if isinstance(spec.map, ONE_WAY) or spec.kernel.spectrum == "product" or np.ndim(spec.kernel.bandwidth):
        simulated = spec.simulate_mse(X, Y, 600, seed)
        z = (simulated.mse - exact) / np.maximum(simulated.standard_error, 1e-12)
        assert np.abs(z).max() < Z_MAX, (z, exact)
        return
    A, B = (np.concatenate([rotated(Z[i], Z[i])[0] for i in range(len(Z))]) for Z in (X, Y))
    errors = squared_errors(spec.plan(X, Y), A, B, 200, 200 * seed).reshape(200, 3, 16, 2, 16)
    for (i, j), expected in np.ndenumerate(exact):
        check_mean(np.einsum("nkk->n", errors[:, i, :, j]) / 16, expected, f"error at {i}, {j}:")


UNKNOWN = [
    (
        Approximation(SOFTMAX, maps.Positive(), Orthogonal(StructuredGivens())),
        r"nearest that has one is Orthogonal\(Haar",
    ),
    (Approximation(SOFTMAX, maps.Positive(), Simplex(Hadamard())), r"nearest that has one is Simplex\(Haar\(\)\)"),
    (Approximation(SOFTMAX, maps.Hyperbolic(), SimplexPlus()), r"nearest that has one is Orthogonal\(Haar\(\)\)"),
    (Approximation(SOFTMAX, maps.Positive(), QMC()), r"nearest that has one is Orthogonal\(Haar\(\)\)"),
    (Approximation(SOFTMAX, maps.ComplexExponential(1j), Simplex()), r"the nearest that has one is IID\(\)"),
    (Approximation(SOFTMAX, maps.AngularHybrid(4), Simplex()), r"the nearest that has one is shared=False"),
    (Approximation(SOFTMAX, maps.GeneralizedExponential(0.1j, antithetic=True), IID()), r"leave antithetic out"),
    (Approximation(kernels.Matern(1.5), maps.Trigonometric(), Orthogonal()), r"the nearest that has one is IID\(\)"),
    (Approximation(GAUSSIAN, maps.Trigonometric(), Quadrature(StructuredGivens())), r"nearest .* Quadrature\(Haar\(\)"),
    (Approximation(kernels.ArcCosine(2), maps.Rectified(2), IID()), r"the nearest is order 1"),
    (spec_of(POINTWISE), r"no closed form is known for the error of Pointwise"),
    (
        Approximation(
            SOFTMAX, maps.Hybrid((maps.OptimalPositive(A=-0.1), maps.Trigonometric()), (AngularCoefficient(2),))
        ),
        r"no closed form is known for the error of Hybrid",
    ),
]


@pytest.mark.parametrize(
    ("spec", "message"), UNKNOWN, ids=lambda value: repr(value) if not isinstance(value, str) else ""
)
def test_where_there_is_none_the_nearest_is_named(spec, message):
    with pytest.raises(NoClosedForm, match=message):
        spec.mse(*points())


def test_chunks_are_the_same(monkeypatch):
    X, Y = points()
    whole = KNOWN[0].mse(X, Y)
    monkeypatch.setattr(_specification, "_CASE_NUMBERS", 31)
    np.testing.assert_array_equal(KNOWN[0].mse(X, Y), whole)


def test_keys_may_be_left_out_and_precision_hardly_matters():
    X, Y = points()
    np.testing.assert_array_equal(KNOWN[0].mse(X), KNOWN[0].mse(X, X))
    np.testing.assert_allclose(KNOWN[0].mse(X, Y), KNOWN[0].mse(X.astype(np.float32), Y.astype(np.float32)), rtol=1e-4)


@pytest.mark.parametrize("method", ["mse", "simulate_mse"])
def test_errors_that_no_memory_holds_are_refused_at_once(method):
    with pytest.raises(ValueError, match=rf"Approximation\.{method}: this takes about 7\.45e\+03 GiB, more than"):
        getattr(KNOWN[0], method)(np.zeros((10**6, 3)))


def test_bad_input_is_explained():
    with pytest.raises(ValueError, match=r"Approximation\.mse: expected matrices of points as rows"):
        KNOWN[0].mse(np.ones((2, 3, 3)))
    with pytest.raises(ValueError, match=r"n_draws must be an integer of at least 2, got 1\."):
        KNOWN[0].simulate_mse(np.ones((2, 3)), n_draws=1)
    with pytest.raises(ValueError, match=r"simulate_mse: .* induces a kernel that has no exact value here"):
        spec_of(POINTWISE).simulate_mse(np.ones((2, 3)))
