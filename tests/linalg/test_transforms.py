"""The compiled transforms equal the readable ones, at every size, in both precisions, on any input."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.linalg import hadamard

from bochner.linalg import fwht, fwht_reference
from bochner.linalg.references import simplex_adjoint, simplex_product, simplex_vertices


@pytest.mark.parametrize("level", range(10))
def test_reference_is_the_hadamard_matrix(level):
    x = np.random.default_rng(0).standard_normal((3, 2**level))
    np.testing.assert_allclose(fwht_reference(x), x @ hadamard(2**level), atol=1e-10)


@pytest.mark.parametrize("level", range(21))
@pytest.mark.parametrize("dtype", (np.float32, np.float64))
def test_compiled_equals_reference(level, dtype):
    n = 3 if level > 16 else 35
    x = np.random.default_rng(level).standard_normal((n, 2**level)).astype(dtype)
    expected = fwht_reference(x.astype(np.float64))
    result = fwht(x)
    assert result.dtype == dtype
    # rounding errors of 2^level terms of size one add up as a random walk: eps sqrt(2^level) each of `level` levels
    np.testing.assert_allclose(result, expected, atol=10 * np.finfo(dtype).eps * max(level, 1) * 2 ** (level / 2))


def test_twice_is_d_times():
    x = np.random.default_rng(0).standard_normal((5, 256))
    np.testing.assert_allclose(fwht(fwht(x)), 256 * x, rtol=1e-12, atol=1e-10)


def test_strides_read_only_empty_batched_and_half():
    x = np.random.default_rng(0).standard_normal((6, 4, 64))
    expected = fwht_reference(x)
    np.testing.assert_allclose(fwht(np.asfortranarray(x)), expected, atol=1e-12)
    np.testing.assert_allclose(fwht(np.repeat(x, 3, axis=1)[:, ::3]), expected, atol=1e-12)
    x.flags.writeable = False
    np.testing.assert_allclose(fwht(x), expected, atol=1e-12)
    assert fwht(np.empty((0, 64))).shape == (0, 64)
    half = fwht(x.astype(np.float16))
    assert half.dtype == np.float16
    np.testing.assert_allclose(half, expected, atol=0.05)


def test_torch_and_its_gradient():
    x = torch.randn(3, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True)
    assert torch.autograd.gradcheck(fwht, (x,))
    np.testing.assert_allclose(fwht(x).detach().numpy(), fwht(x.detach().numpy()), atol=1e-12)


@pytest.mark.parametrize("shape", [(3, 12), (3, 0), ()])
def test_other_lengths_are_refused(shape):
    with pytest.raises(ValueError, match=r"fwht: the last axis must be a power of two, got shape .*; pad with zeros"):
        fwht(np.ones(shape))


@pytest.mark.parametrize("r", (2, 3, 8, 65))
def test_simplex_vertices_are_a_simplex(r):
    S = simplex_vertices(r, r + 2)
    cosines = S @ S.T
    np.testing.assert_allclose(np.diag(cosines), 1, atol=1e-12)
    np.testing.assert_allclose(cosines[~np.eye(r, dtype=bool)], -1 / (r - 1), atol=1e-12)
    np.testing.assert_allclose(S.sum(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(S[:, r - 1 :], 0)


@pytest.mark.parametrize("r", (2, 3, 8, 65))
def test_simplex_products_are_products_with_the_vertices(r):
    rng = np.random.default_rng(r)
    S = simplex_vertices(r, r - 1)
    x, y = rng.standard_normal((4, r - 1)), rng.standard_normal((4, r))
    np.testing.assert_allclose(simplex_product(x), x @ S.T, atol=1e-12)
    np.testing.assert_allclose(simplex_adjoint(y), y @ S, atol=1e-12)


def test_the_printed_simplex_is_not_one():
    """SimRF Eq. 9 with sqrt(d + 1) for sqrt(d) + 1: at d = 3 rows have squared length 0.768 and cosine -0.134."""
    d = 3
    printed = np.sqrt(d / (d - 1)) * np.eye(d - 1)[0] - np.sqrt(d + 1) / (d - 1) ** 1.5 * np.ones(d - 1)
    last = np.ones(d - 1) / np.sqrt(d - 1)
    assert printed @ printed == pytest.approx(0.768, abs=1e-3)
    assert printed @ last == pytest.approx(-0.134, abs=1e-3)
