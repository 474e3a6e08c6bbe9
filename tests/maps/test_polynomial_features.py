"""Features of polynomial kernels: unbiased, with the error of the closed forms, exact where all monomials fit."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.kernel_approximation import PolynomialCountSketch

from bochner import Approximation, NoClosedForm, kernels, learn, maps, theory
from bochner.projections import IID, Orthogonal
from bochner.rotations import Hadamard
from support.checks import check_mean
from support.map_variances import rotated

D, N = 4, 1500
X = np.random.default_rng(3).standard_normal((5, D)) / 2
X[0] = [1.0, 0.0, 0.0, 0.0]  # e1 and the diagonal, where wrong moments show
X[1] = 0.5
X.flags.writeable = False
FIXED = Orthogonal(radii="fixed")
CASES = [
    (kernels.Polynomial(2), maps.Maclaurin(exact=False), FIXED, 9),
    (kernels.Polynomial(3, 0.5, 0.5), maps.Maclaurin(exact=False), FIXED, 16),
    (kernels.Polynomial(2, 0.0), maps.Maclaurin(exact=False), Orthogonal(), 9),
    (kernels.Polynomial(2, 0.0), maps.Maclaurin(False, False), Orthogonal(), 7),
    (kernels.Polynomial(2, 0.0), maps.Maclaurin(False, False), IID(), 4),
    (kernels.Polynomial(3), maps.Maclaurin(), FIXED, 20),
    (kernels.DotProduct((0.0, 1.0, 0.0, 0.5)), maps.Maclaurin(), FIXED, 11),
    (kernels.DotProduct((0.0, 1.0, 0.5)), maps.Maclaurin(exact=False), IID(), 8),
    (kernels.Polynomial(3, 0.5, 0.5), maps.Maclaurin(), FIXED, 2),
    (kernels.Polynomial(2), maps.TensorSketch(), IID(), 6),
    (kernels.Polynomial(3, 0.0), maps.TensorSketch(), IID(), 7),
    (kernels.Polynomial(2, 0.3), maps.TensorSketch(), IID(), 1),
    (kernels.Polynomial(2, 0.3), maps.TensorSketch(), IID(), 2),
]


@pytest.mark.parametrize("kernel, feature_map, rows, m", CASES, ids=repr)
@pytest.mark.swept(3)
def test_mean_and_error(kernel, feature_map, rows, m, seed):
    """|z| < 5 of mean and squared error at every pair, over N draws; over a fourth of them at 16 orientations of the points
    where the law of the features does not change as they are turned."""
    spec = Approximation(kernel, feature_map, rows, m)
    turned = isinstance(feature_map, maps.Maclaurin)
    draws, copies = (N // 4, 16) if turned else (N, 1)
    A = np.concatenate([rotated(x, x)[0] for x in X]) if turned else X
    K = np.array([spec.draw(D, rng=seed * N + i).gram(A) for i in range(draws)]).reshape(draws, 5, copies, 5, copies)
    K = np.einsum("nikjk->nkij", K)
    exact, error = kernel(X), spec.mse(X)
    means, errors = K.mean(axis=1), ((K - exact) ** 2).mean(axis=1)
    for i in range(len(X)):
        for j in range(i, len(X)):
            check_mean(means[:, i, j], exact[i, j], label=f"mean at {i}, {j}")
            check_mean(errors[:, i, j], error[i, j], label=f"error at {i}, {j}")


def test_fast_rotations_estimate_the_kernel(seed):
    spec = Approximation(kernels.Polynomial(2), maps.Maclaurin(exact=False), Orthogonal(Hadamard(), "fixed"), 120)
    K = np.array([spec.draw(D, rng=seed * N + i).gram(X) for i in range(N // 10)])
    for i in range(1, len(X)):
        check_mean(K[:, i, 0], spec.kernel(X)[i, 0])
    with pytest.raises(NoClosedForm, match=r"nearest that has one is Orthogonal\(Haar\(\)\)"):
        spec.mse(X)


@pytest.mark.parametrize(
    "kernel, width", [(kernels.Polynomial(3), 35), (kernels.DotProduct((0, 2.0, 0, 1.0)), 24)], ids=repr
)
def test_all_monomials_are_exact(kernel, width):
    spec = Approximation(kernel, n_projections=width)
    np.testing.assert_allclose(spec.draw(D, rng=0).gram(X), kernel(X), rtol=1e-12)
    np.testing.assert_array_equal(spec.mse(X), 0)
    assert Approximation(kernel, n_projections=width - 1).mse(X).max() > 0


def test_exact_degrees_and_complex_rows_lower_the_error():
    """On unit vectors, at equal width."""
    Z = np.random.default_rng(0).standard_normal((50, 10))
    Z /= np.linalg.norm(Z, axis=1, keepdims=True)
    k = kernels.Polynomial(3, 0.5, 0.5)
    error = [Approximation(k, m, n_projections=200).mse(Z).mean() for m in maps.Maclaurin.variants().values()]
    assert error[0] < error[1] < error[2]


def test_sketch_is_that_of_scikit_learn_in_law():
    """Two implementations of one law: the mean squared error of theirs is our closed form, within 5 standard errors."""
    k = kernels.Polynomial(2, 1.0)
    theirs = []
    for i in range(400):
        Phi = PolynomialCountSketch(degree=2, coef0=1, n_components=16, random_state=i).fit_transform(X)
        theirs.append((Phi @ Phi.T - k(X))[0, 1] ** 2)
    check_mean(np.array(theirs), Approximation(k, maps.TensorSketch(), n_projections=16).mse(X)[0, 1])


@pytest.mark.parametrize("dtype", (np.float32, np.float64))
def test_sparse_rows_have_the_features_of_dense_ones(dtype):
    rows = sparse.random(30, 50, 0.1, format="csr", random_state=0, dtype=dtype)
    phi = Approximation(kernels.Polynomial(3), maps.TensorSketch(), n_projections=33).draw(50, rng=0)
    assert phi.queries(rows).dtype == dtype
    np.testing.assert_allclose(phi.queries(rows), phi.queries(rows.toarray()), rtol=1e-4, atol=1e-4)


def test_variance_functions_hold_for_leading_axes():
    one = theory.product_sketch_variance(X[0], X[1], 2, 5, d=D, block=D)
    all_of_them = theory.product_sketch_variance(X[:, None], X[None], 2, 5, d=D, block=D)
    assert all_of_them.shape == (5, 5) and all_of_them[0, 1] == pytest.approx(one)


def test_machines_use_polynomial_kernels():
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((500, 6))
    y = Z[:, 0] * Z[:, 1] - Z[:, 2] ** 2
    model = learn.KernelRidge(kernel=kernels.Polynomial(2), gamma=None, n_components=64, random_state=0).fit(Z, y)
    assert model.score(Z, y) > 0.999


def test_a_kernel_that_is_not_a_polynomial_is_refused():
    with pytest.raises(
        ValueError, match=r"TensorSketch\(\) cannot estimate DotProduct\(.*: it needs a polynomial kernel"
    ):
        Approximation(kernels.DotProduct((1.0, 1.0)), maps.TensorSketch())
