"""Torch tensors: the same numbers, their types, and their gradients."""

from __future__ import annotations

import numpy as np
import pytest

from bochner.kernels import ArcCosine, Gaussian, Laplacian, Linear, Matern, Softmax
from support.kernel_references import ANY_WIDTH, KERNELS, D, points

torch = pytest.importorskip("torch")


def tensor(n, d, seed, dtype=torch.float64, gradient=False):
    return torch.tensor(points(n, d, seed), dtype=dtype).requires_grad_(gradient)


@pytest.mark.parametrize("kernel", ANY_WIDTH, ids=repr)
@pytest.mark.parametrize("d", (3, 12))
def test_same_numbers_as_numpy(kernel, d):
    X, Y = tensor(9, d, 1), tensor(8, d, 2)
    for ours, theirs in (
        (kernel(X, Y), kernel(X.numpy(), Y.numpy())),
        (kernel(X), kernel(X.numpy())),
        (kernel.diagonal(X), kernel.diagonal(X.numpy())),
        (kernel.paired(X[:8], Y), kernel.paired(X[:8].numpy(), Y.numpy())),
        (kernel.scaled(X), kernel.scaled(X.numpy())),
    ):
        assert isinstance(ours, torch.Tensor)
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("dtype", (torch.float16, torch.bfloat16, torch.float32, torch.float64))
def test_floating_types_stay(kernel, dtype):
    X, Y = tensor(6, D, 1, dtype), tensor(5, D, 2, dtype)
    for result in (kernel(X, Y), kernel(X), kernel.diagonal(X), kernel.paired(X[:5], Y), kernel.scaled(X)):
        assert result.dtype == dtype
    if dtype in (torch.float16, torch.bfloat16):
        torch.testing.assert_close(kernel(X, Y), kernel(X.float(), Y.float()).to(dtype), rtol=0, atol=0)


@pytest.mark.parametrize("kernel", ANY_WIDTH, ids=repr)
def test_leading_axes_broadcast(kernel):
    X, Y = tensor(10, 12, 1).reshape(2, 1, 5, 12), tensor(12, 12, 2).reshape(3, 4, 12)
    np.testing.assert_allclose(kernel(X, Y).numpy(), kernel(X.numpy(), Y.numpy()), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("kernel", ANY_WIDTH, ids=repr)
@pytest.mark.parametrize("d", (2, 10))
def test_gradients_are_those_of_finite_differences(kernel, d):
    X = (tensor(3, d, 1) / d**0.5).requires_grad_()
    Y = (tensor(4, d, 2) / d**0.5).requires_grad_()
    assert torch.autograd.gradcheck(kernel, (X, Y))
    assert torch.autograd.gradcheck(kernel.paired, (X, Y[:3]))


@pytest.mark.parametrize("kernel", [Gaussian(), Matern(1.5), Matern(0.8), Matern(3.0), ArcCosine(2)], ids=repr)
def test_second_derivatives(kernel):
    X, Y = tensor(2, 3, 1, gradient=True), tensor(3, 3, 2, gradient=True)
    assert torch.autograd.gradgradcheck(kernel, (X, Y))


@pytest.mark.parametrize("kernel", ANY_WIDTH, ids=repr)
@pytest.mark.parametrize("d", (3, 12))
@pytest.mark.parametrize("dtype", (torch.float32, torch.float64))
def test_gradients_at_equal_opposite_and_zero_points_are_finite(kernel, d, dtype):
    X = tensor(4, d, 1, dtype)
    X[3] = 0
    X.requires_grad_()
    for Y in (X, X.detach().clone(), -X.detach()):
        (gradient,) = torch.autograd.grad(kernel(X, Y).sum(), X)
        assert torch.isfinite(gradient).all()


@pytest.mark.parametrize("kernel", [k for k in ANY_WIDTH if k.shift_invariant], ids=repr)
def test_shift_invariant_kernels_are_stationary_at_equal_points(kernel):
    X = tensor(1, 12, 1, gradient=True)
    (gradient,) = torch.autograd.grad(kernel(X, X.detach().clone()).sum(), X)
    torch.testing.assert_close(gradient, torch.zeros_like(X), rtol=0, atol=0)


def test_gradients_of_diagonals():
    X = tensor(5, 4, 1, gradient=True)
    square = (X**2).sum(dim=1, keepdim=True).detach()
    for kernel, expected in (
        (Linear(), 2 * X),
        (Softmax(0.5), X * torch.exp(square / 2)),
        (ArcCosine(0), 0 * X),
        (ArcCosine(1), 2 * X),
        (ArcCosine(2), 12 * square * X),
    ):
        (gradient,) = torch.autograd.grad(kernel.diagonal(X).sum(), X)
        torch.testing.assert_close(gradient, expected.detach(), rtol=1e-12, atol=1e-12)


def test_matern_curvature_at_zero():
    """The second derivative along an axis at x = y is -nu/(nu - 1) for nu > 1."""
    for nu in (1.7, 3.0, 6.0):
        X = torch.zeros(1, 3, dtype=torch.float64, requires_grad=True)
        (first,) = torch.autograd.grad(Matern(nu)(X, torch.zeros_like(X)).sum(), X, create_graph=True)
        (second,) = torch.autograd.grad(first[0, 0], X)
        assert second[0, 0].item() == pytest.approx(-nu / (nu - 1), rel=1e-6)


def test_no_term_of_a_general_matern_is_kept_for_the_gradient():
    X = tensor(200, 3, 1, gradient=True)
    saved = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t.numel()) or t, lambda t: t):
        Matern(0.8)(X)
    assert sum(saved) < 20 * 200 * 200


@pytest.mark.parametrize("kernel", [Gaussian(), Laplacian(), Matern(0.8), Softmax(), ArcCosine(1)], ids=repr)
def test_device_is_kept(kernel):
    X = tensor(4, 3, 1)
    assert kernel(X).device == kernel.diagonal(X).device == kernel.scaled(X).device == X.device
