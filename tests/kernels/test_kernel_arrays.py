"""Shapes, types, tiles and batches of NumPy arrays."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import mutually_broadcastable_shapes

from bochner.kernels import ArcCosine, Gaussian, Laplacian, Linear, Matern, _kernel
from support.kernel_references import ANY_WIDTH, KERNELS, D, points


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("dtype", (np.float16, np.float32, np.float64))
def test_floating_types_stay(kernel, dtype):
    X, Y = points(6, D, 1, dtype), points(5, D, 2, dtype)
    for result in (kernel(X, Y), kernel(X), kernel.diagonal(X), kernel.paired(X[:5], Y), kernel.scaled(X)):
        assert result.dtype == dtype


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_half_precision_is_computed_in_float32(kernel):
    X, Y = points(6, D, 1, np.float16), points(5, D, 2, np.float16)
    expected = kernel(X.astype(np.float32), Y.astype(np.float32)).astype(np.float16)
    np.testing.assert_array_equal(kernel(X, Y), expected)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_integers_and_lists_become_float64(kernel):
    X = [[1, 2, 3], [0, -1, 1]]
    K = kernel(X)
    assert K.dtype == kernel.diagonal(X).dtype == kernel.scaled(X).dtype == np.float64
    np.testing.assert_array_equal(K, kernel(np.array(X, dtype=np.float64)))


def test_mixed_types_promote():
    assert Gaussian()(points(3, 2, 1, np.float32), points(3, 2, 2)).dtype == np.float64


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_inputs_are_left_alone(kernel):
    X = points(6, D, 1).copy()
    before = X.copy()
    kernel(X), kernel(X, X + 1), kernel.diagonal(X), kernel.scaled(X)
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("kernel", ANY_WIDTH, ids=repr)
@pytest.mark.parametrize("d", (3, 12))
def test_leading_axes_broadcast(kernel, d):
    X, Y = points(2 * 5, d, 1).reshape(2, 1, 5, d), points(3 * 4, d, 2).reshape(3, 4, d)
    K = kernel(X, Y)
    assert K.shape == (2, 3, 5, 4)
    for i in range(2):
        for j in range(3):
            np.testing.assert_allclose(K[i, j], kernel(X[i, 0], Y[j]), rtol=1e-13, atol=1e-15)


@settings(max_examples=60)
@given(
    kernel=st.sampled_from(ANY_WIDTH),
    batches=mutually_broadcastable_shapes(num_shapes=2, max_dims=2, max_side=3),
    n=st.integers(1, 4),
    p=st.integers(1, 4),
    d=st.integers(1, 12),
    dtype=st.sampled_from((np.float32, np.float64)),
)
def test_gram_holds_the_paired_values(kernel, batches, n, p, d, dtype):
    rng = np.random.default_rng(0)
    X, Y = (rng.standard_normal((*b, k, d)).astype(dtype) for b, k in zip(batches.input_shapes, (n, p), strict=True))
    K = kernel(X, Y)
    assert K.shape == (*batches.result_shape, n, p) and K.dtype == dtype
    pairs = kernel.paired(X[..., :, None, :], Y[..., None, :, :])
    tolerance = 2**10 * np.finfo(dtype).eps
    np.testing.assert_allclose(K, pairs, rtol=tolerance, atol=tolerance * np.abs(pairs).max())


@pytest.mark.parametrize("kernel", ANY_WIDTH, ids=repr)
@pytest.mark.parametrize("n, p, d", [(50, 70, 3), (50, 70, 20), (200, 3, 12), (2, 200, 12)])
def test_tiles_change_nothing(kernel, n, p, d, monkeypatch):
    X, Y = points(n, d, 1), points(p, d, 2)
    whole = kernel(X, Y), kernel(X), kernel.paired(X[:1], Y), kernel.diagonal(Y)
    for name, value in {"SIDE": 16, "LONG": 64, "NUMBERS": 100, "FEWEST": 7}.items():
        monkeypatch.setattr(_kernel, name, value)
    tiled = kernel(X, Y), kernel(X), kernel.paired(X[:1], Y), kernel.diagonal(Y)
    for a, b in zip(tiled, whole, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14 * np.abs(b).max())


def test_tiles_of_batches_change_nothing(monkeypatch):
    X, Y = points(3 * 20, 12, 1).reshape(3, 20, 12), points(30, 12, 2)
    whole = Gaussian()(X, Y), Gaussian()(X)
    monkeypatch.setattr(_kernel, "LONG", 64)
    np.testing.assert_allclose(Gaussian()(X, Y), whole[0], rtol=1e-13)
    np.testing.assert_allclose(Gaussian()(X), whole[1], rtol=1e-13)


@pytest.mark.parametrize("kernel", [Gaussian(8.0), Matern(0.8, 8.0), Laplacian(8.0), ArcCosine(1), Linear()], ids=repr)
@pytest.mark.parametrize("n, p, d", [(2000, 2000, 16), (150_000, 10, 16), (10, 150_000, 16), (300, 300, 10_000)])
def test_temporaries_stay_small(kernel, n, p, d):
    X, Y = np.ones((n, d)), np.zeros((p, d))
    X[::2] = -1.0
    kernel(X[:2], Y[:2])  # imports are not temporaries
    tracemalloc.start()
    K = kernel(X, Y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak - K.nbytes < 64e6
