"""Laws of all projections."""

from __future__ import annotations

import dataclasses
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_limits

import bochner
import bochner.projections as projections
from bochner import geometries, kernels, radii, rotations
from bochner.projections import IID, QMC, Orthogonal, Quadrature, Simplex, SimplexPlus
from bochner.rotations import Haar
from support.catalogue import COUPLED, PROJECTIONS, QUADRATURES, registered
from support.checks import check_mean, probes
from support.projection_laws import (
    block_means,
    check_adjoint_identity,
    check_blocks_are_independent,
    check_dense_equals_apply,
    check_exponential_mean,
    check_normal_law,
    check_rows_and_combinations,
    check_second_moments,
)

PUBLIC = vars(rotations) | vars(radii) | vars(projections) | {"geometries": geometries} | registered()
every_projection = pytest.mark.parametrize("projection", PROJECTIONS, ids=repr)
GAUSSIAN = [p for p in PROJECTIONS if p.gaussian_rows and not isinstance(p, QMC)]  # test_qmc has its own, over redraws
UNBIASED = [p for p in PROJECTIONS if p.unbiased]


def sizes(d):
    """One row, less than a block, a block, several and a cut one."""
    return sorted({1, max(d - 1, 1), d, 2 * d + 1})


@every_projection
@pytest.mark.parametrize("d", (1, 3, 20))
def test_dense_equals_apply(projection, d, seed):
    for m in sizes(d):
        P = projection.sample(d, m, seed)
        assert P.shape == (m, d)
        check_dense_equals_apply(P, seed)
        check_rows_and_combinations(P, seed)


@every_projection
@pytest.mark.parametrize("d", (1, 3, 20))
def test_adjoint_identity(projection, d, seed):
    for m in sizes(d):
        check_adjoint_identity(projection.sample(d, m, seed), seed)


@every_projection
def test_batch_axes_strides_and_read_only_input(projection, seed):
    d, m = 70, 150
    P = projection.sample(d, m, seed)
    X = np.random.default_rng(seed).standard_normal((2, 5, d))
    flat = P(X.reshape(-1, d))
    np.testing.assert_array_equal(P(X), flat.reshape(2, 5, m))
    np.testing.assert_allclose(P(X[0, 0]), flat[0], rtol=1e-12, atol=1e-12)
    strided = np.asfortranarray(np.repeat(X, 2, axis=-1))[..., ::2]
    np.testing.assert_allclose(P(strided), P(X), rtol=1e-12, atol=1e-12)
    X.flags.writeable = False
    np.testing.assert_array_equal(P(X).reshape(-1, m), flat)
    assert P(np.empty((0, d))).shape == (0, m)
    integers = np.arange(d)
    assert P(integers).dtype == np.float64
    half = P(X.astype(np.float16))
    assert half.dtype == np.float16
    np.testing.assert_allclose(half, P(X.astype(np.float16).astype(np.float32)), rtol=1e-3, atol=1e-3)


@every_projection
def test_torch_agrees_and_gradients_flow(projection, seed):
    d = 5
    P = projection.sample(d, 2 * d + 1, seed)
    X = np.random.default_rng(seed).standard_normal((3, d))
    x = torch.tensor(X, requires_grad=True)
    y = P(x)
    np.testing.assert_allclose(y.detach().numpy(), P(X), atol=1e-10)
    np.testing.assert_allclose(P.adjoint(y.detach()).numpy(), P.adjoint(P(X)), atol=1e-8)
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), P.adjoint(np.ones((3, P.shape[0]))), atol=1e-8)
    low = P(torch.tensor(X, dtype=torch.bfloat16))
    assert low.dtype == torch.bfloat16
    np.testing.assert_allclose(low.float().numpy(), P(X), atol=0.05 * np.abs(P(X)).max())


@every_projection
def test_both_precisions_share_their_draw(projection, seed):
    P = projection.sample(20, 50, seed)
    X = np.random.default_rng(seed).standard_normal((4, 20))
    np.testing.assert_allclose(P(X.astype(np.float32)), P(X), atol=1e-4 * P.radii.max())


@every_projection
def test_one_int_gives_one_draw_and_one_generator_several(projection, seed):
    first, second = (projection.sample(6, 13, seed).to_dense() for _ in range(2))
    np.testing.assert_array_equal(first, second)
    rng = np.random.default_rng(seed)
    first, second = (projection.sample(6, 13, rng).to_dense() for _ in range(2))
    assert np.abs(first - second).max() > 0.1
    assert np.abs(projection.sample(6, 13).to_dense() - projection.sample(6, 13).to_dense()).max() > 0.1


@every_projection
def test_draw_and_product_do_not_depend_on_the_number_of_threads(projection, seed):
    d = 17
    X = np.random.default_rng(seed).standard_normal((1500, d)).astype(np.float32)
    results = []
    for n in (1, 2, 5):
        with bochner.threads(n):
            P = projection.sample(d, 40, seed)
            results.append((P.to_dense(), P(X), P.adjoint(P(X))))
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("projection", [Orthogonal(), Simplex(), SimplexPlus(), Quadrature()], ids=repr)
def test_draws_do_not_depend_on_the_threads_of_blas(projection, seed):
    drawn = []
    for n in (1, 2, 4):
        with threadpool_limits(n):
            drawn.append(projection.sample(300, 320, seed).to_dense())
    np.testing.assert_array_equal(drawn[0], drawn[1])
    np.testing.assert_array_equal(drawn[0], drawn[2])


def test_products_in_other_threads_have_the_same_bits(seed, two_threads_of_blas):
    P = IID().sample(300, 700, seed)
    X = np.random.default_rng(seed).standard_normal((600, 300))
    expected = P(X)
    with ThreadPoolExecutor(4) as pool:
        for result in pool.map(lambda _: P(X), range(8)):
            np.testing.assert_array_equal(result, expected)


@every_projection
def test_repr_rebuilds_equality_compares_and_pickle_keeps(projection, seed):
    assert eval(repr(projection), PUBLIC) == projection
    assert pickle.loads(pickle.dumps(projection)) == projection
    assert hash(projection) == hash(pickle.loads(pickle.dumps(projection)))
    P = projection.sample(70, 20, seed)
    X = np.ones((2, 70))
    expected = P(X)
    again = pickle.loads(pickle.dumps(P))
    np.testing.assert_array_equal(again(X), expected)
    np.testing.assert_array_equal(again.weights, P.weights)
    assert repr(again) == repr(P) and "m=20, d=70" in repr(P) and repr(projection) in repr(P)


@every_projection
def test_radii_weights_and_blocks_describe_the_rows(projection, seed):
    d, m = 16, 40
    P = projection.sample(d, m, seed)
    assert sum(P.block_sizes) == m
    np.testing.assert_allclose(np.linalg.norm(P.to_dense(), axis=1), P.radii, rtol=1e-10)
    assert P.weights.shape == (m,) and P.weights.sum() + P.origin_weight == pytest.approx(1)
    if not projection.has_origin:
        np.testing.assert_allclose(P.weights, 1 / m)
        assert P.origin_weight == 0 and not P.reflected


@pytest.mark.parametrize("projection", [*COUPLED, *QUADRATURES], ids=repr)
def test_lengths_have_a_stream_of_their_own(projection, seed):
    """Another rotation of the same dimension changes no length."""
    lengths = projection.sample(16, 40, seed).radii
    other = dataclasses.replace(projection, rotation=Haar())
    np.testing.assert_array_equal(lengths, other.sample(16, 40, seed).radii)


@pytest.mark.parametrize("projection", COUPLED, ids=repr)
@pytest.mark.parametrize("d", (1, 2, 4, 16))
def test_rows_of_a_block_stand_as_their_geometry_says(projection, d, seed):
    m = 2 * d + max(d - 1, 1)
    P = projection.sample(d, m, seed)
    W, start = P.to_dense(), 0
    for r in P.block_sizes:
        block, radii = W[start : start + r], P.radii[start : start + r]
        cosines = (block / radii[:, None]) @ (block / radii[:, None]).T
        off = cosines[~np.eye(r, dtype=bool)]
        if isinstance(projection, Orthogonal):
            np.testing.assert_allclose(off, 0, atol=1e-12)
        elif isinstance(projection, Simplex):
            np.testing.assert_allclose(off, -1 / max(r - 1, 1), atol=1e-12)
        elif r > 3:  # smaller blocks may have one length above the sum of the others
            excess = max(2 * radii.max() - radii.sum(), 0)
            assert np.linalg.norm(block.sum(axis=0)) <= excess + 1.01e-6 * radii.mean()
        start += r
    assert start == m


@pytest.mark.parametrize("projection", GAUSSIAN, ids=repr)
@pytest.mark.parametrize("d", (1, 2, 3, 17, 64))
@pytest.mark.swept(3)
def test_second_moments_of_gaussian_rows(projection, d, seed):
    check_second_moments(projection, d, rows_in_a_block(projection, d), seed, n_blocks=2000 if d < 10 else 500)


@pytest.mark.parametrize("projection", GAUSSIAN, ids=repr)
@pytest.mark.parametrize("d", (1, 2, 3, 17, 64))
@pytest.mark.swept(3)
def test_gaussian_rows_are_normal_in_every_direction(projection, d, seed):
    check_normal_law(projection, d, rows_in_a_block(projection, d), seed, n_blocks=2000 if d < 10 else 500)


@pytest.mark.parametrize("projection", GAUSSIAN, ids=repr)
@pytest.mark.parametrize("d", (1, 2, 3, 17, 64))
@pytest.mark.swept(3)
def test_exponential_mean_of_gaussian_rows(projection, d, seed):
    rows = rows_in_a_block(projection, d)
    check_exponential_mean(projection, d, rows, seed, n_blocks=max(4000 // max(rows // 8, 1), 400))


@pytest.mark.parametrize("projection", [*COUPLED, *QUADRATURES], ids=repr)
def test_blocks_are_independent(projection, seed):
    check_blocks_are_independent(projection, 4, rows_in_a_block(projection, 4), seed)


def rows_in_a_block(projection, d):
    """Rows drawn together; independent rows count as blocks of one."""
    return projection.block_sizes(d, 10 * d + 10)[0]


SPECTRA = [kernels.Gaussian(), kernels.Matern(1.5), kernels.Cauchy(), kernels.RationalQuadratic(2.0)]


@pytest.mark.parametrize("projection", UNBIASED, ids=repr)
@pytest.mark.parametrize("kernel", SPECTRA, ids=repr)
@pytest.mark.swept(3)
def test_spectral_laws_give_the_kernel(projection, kernel, seed):
    """Weighted means of cos(w . z) over independent blocks equal the kernel, d = 3 (padded by fast rotations)."""
    Z = np.stack(list(probes(3, 1.5, seed).values()))
    if isinstance(projection, QMC):  # all rows of a draw are one block
        rng = np.random.default_rng(seed)
        values = np.concatenate([block_means(projection, 3, 9, Z, np.cos, 1, rng, kernel=kernel) for _ in range(1500)])
    else:
        values = block_means(projection, 3, rows_in_a_block(projection, 3), Z, np.cos, 4000, seed, kernel=kernel)
    for k, z in enumerate(Z):
        check_mean(values[:, k], float(kernel(z[None], np.zeros((1, 3)))[0, 0]), f"{projection} {kernel} probe {k}")


def test_independent_rows_of_a_product_law(seed):
    P = IID().sample(3, 20000, seed, kernel=kernels.Laplacian())
    z = np.array([0.5, -0.3, 0.4])
    check_mean(np.cos(P(z)), np.exp(-1.2), "Laplacian")


@pytest.mark.parametrize("projection", [p for p in PROJECTIONS if p != IID()], ids=repr)
def test_product_laws_need_independent_rows(projection):
    with pytest.raises(
        ValueError,
        match=r"with Laplacian\(lengthscale=1\.0\): the rows of this kernel are a product law .* use IID\(\)\.",
    ):
        projection.sample(3, 4, 0, kernel=kernels.Laplacian())
