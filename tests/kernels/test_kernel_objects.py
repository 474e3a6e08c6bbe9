"""Kernels are plain values with declared facts, light to import, and clear about what they refuse."""

from __future__ import annotations

import dataclasses
import pickle
import subprocess
import sys

import numpy as np
import pytest
from scipy.sparse import csr_array

from bochner import kernels
from bochner.kernels import (
    Angular,
    ArcCosine,
    Cauchy,
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Radial,
    RationalQuadratic,
    ShiftInvariant,
    Softmax,
)
from support.kernel_references import KERNELS, points

X = points(4, 3)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_repr_rebuilds(kernel):
    assert eval(repr(kernel), vars(kernels)) == kernel


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_pickle_rebuilds(kernel):
    assert pickle.loads(pickle.dumps(kernel)) == kernel


def test_equality_and_hash():
    assert len(set(KERNELS)) == len(KERNELS)
    assert Gaussian() == Gaussian(1) == Gaussian(np.float32(1)) != Gaussian(2)
    assert Gaussian([1, 2]) == Gaussian((1.0, 2.0)) == Gaussian(np.array([1, 2])) != Gaussian([2, 1])
    assert hash(Gaussian([1, 2])) == hash(Gaussian(np.array([1.0, 2.0])))
    assert Gaussian() != Cauchy() and ArcCosine(np.int64(1)) == ArcCosine(1)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_fields_are_frozen_and_plain(kernel):
    for field in dataclasses.fields(kernel):
        assert type(getattr(kernel, field.name)) in (int, float, tuple) or isinstance(
            getattr(kernel, field.name), Kernel
        )
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(kernel, field.name, 1.0)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_facts_are_declared(kernel):
    assert isinstance(kernel, Kernel) and kernel.references
    assert kernel.shift_invariant is isinstance(kernel, ShiftInvariant)
    assert kernel.dot_product is isinstance(kernel, Softmax | Linear | ArcCosine | Angular | kernels.PowerSeries)
    assert kernel.spectrum == ("radial" if isinstance(kernel, Radial) or kernel.dot_product else "product")


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_facts_are_true(kernel):
    A, B = points(5, 3, 1), points(5, 3, 2)
    Q = np.linalg.qr(points(3, 3, 3))[0]
    if kernel.shift_invariant:
        np.testing.assert_allclose(kernel(A + 0.7, B + 0.7), kernel(A, B), rtol=1e-12)
    if kernel.dot_product:
        np.testing.assert_allclose(kernel(A @ Q, B @ Q), kernel(A, B), rtol=1e-12, atol=1e-14)


def test_import_is_light():
    script = "import sys, bochner.kernels; print(' '.join({m.partition('.')[0] for m in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not {"scipy", "torch", "sklearn", "numba", "matplotlib", "array_api_compat"} & set(done.stdout.split())


@pytest.mark.parametrize(
    "make, error, message",
    [
        (lambda: Gaussian(0), ValueError, r"^Gaussian: lengthscale must be a positive number, got 0\.$"),
        (lambda: Gaussian("auto"), TypeError, r"^Gaussian: lengthscale must be a positive number, got 'auto'\.$"),
        (lambda: Cauchy(np.nan), ValueError, r"^Cauchy: lengthscale must be a positive number, got nan\.$"),
        (lambda: Laplacian([1, -2]), ValueError, r"^Laplacian: lengthscale\[1\] must be a positive number, got -2\.$"),
        (lambda: Gaussian([]), ValueError, r"^Gaussian: lengthscale must be .* one for each dimension, got \[\]\.$"),
        (
            lambda: Gaussian(np.ones((2, 2))),
            TypeError,
            r"^Gaussian: lengthscale\[0\] must be a positive number, got \[",
        ),
        (lambda: Matern(0), ValueError, r"^Matern: nu must be a positive number, got 0\.$"),
        (lambda: Matern(np.inf), ValueError, r"^Matern: nu must be a positive number, got inf\.$"),
        (lambda: Matern(1.5, -1.0), ValueError, r"^Matern: lengthscale must be a positive number, got -1\.0\.$"),
        (lambda: RationalQuadratic(-1), ValueError, r"^RationalQuadratic: alpha must be a positive number, got -1\.$"),
        (
            lambda: kernels.ExponentialPower(2.1),
            ValueError,
            r"^ExponentialPower: power must be at most 2, above which the function is not a kernel, got 2\.1\.$",
        ),
        (
            lambda: kernels.LpExponential(1.0, 1.5),
            ValueError,
            r"^LpExponential: power must be at most 1, .* got 1\.5\.$",
        ),
        (lambda: kernels.Periodic(-1.0), ValueError, r"^Periodic: period must be a positive number, got -1\.0\.$"),
        (
            lambda: kernels.Periodic(1.0, 1e-9),
            ValueError,
            r"^Periodic: lengthscale must be at least 1e-6, .* got 1e-09\.$",
        ),
        (
            lambda: kernels.Product(Gaussian()),
            TypeError,
            r"^Product: factors must be a sequence of kernels, got Gaussian",
        ),
        (lambda: kernels.Sum([]), ValueError, r"^Sum: terms must be at least one kernel, got none\.$"),
        (lambda: kernels.Sum([Gaussian()], [1, 2]), ValueError, r"^Sum: weights must be 1 numbers, .* got 2\.$"),
        (
            lambda: kernels.Product([Linear()]),
            TypeError,
            r"^Product: factors must be kernels of the difference .* got Lin",
        ),
        (
            lambda: kernels.Columns(Gaussian(), [1, 1]),
            ValueError,
            r"^Columns: indices must be different columns, .* \(1, 1\)",
        ),
        (lambda: kernels.Columns(Gaussian(), [3])(X), ValueError, r"^Columns: indices must be below 3, .* got 3\.$"),
        (lambda: kernels.Additive(Gaussian(), 4)(X), ValueError, r"^Additive: order must be at most 3, .* got 4\.$"),
        (lambda: kernels.Periodic((1, 2))(X), ValueError, r"^Periodic: period has 2 entries, .* last axis is 3\.$"),
        (lambda: kernels.Sum([Gaussian()]).sample_scales(3, 0), ValueError, r"^Sum: its rows .* use sample_rows\("),
        (lambda: kernels.Polynomial(0), ValueError, r"^Polynomial: degree must be an integer of at least 1, got 0\.$"),
        (
            lambda: kernels.Polynomial(2, -1),
            ValueError,
            r"^Polynomial: offset must be a number of at least zero, got -1\.$",
        ),
        (
            lambda: kernels.DotProduct([1, -1]),
            ValueError,
            r"^DotProduct: coefficients\[1\] must be a number of at least zero",
        ),
        (
            lambda: kernels.DotProduct([0, 0]),
            ValueError,
            r"^DotProduct: coefficients must not be all zero, got \[0, 0\]",
        ),
        (
            lambda: kernels.DotProduct(3),
            TypeError,
            r"^DotProduct: coefficients must be a sequence of numbers, got 3\.$",
        ),
        (lambda: Softmax(0.0), ValueError, r"^Softmax: scale must be a positive number, got 0\.0\.$"),
        (lambda: ArcCosine(3), ValueError, r"^ArcCosine: order must be one of 0, 1, 2, got 3\.$"),
        (lambda: ArcCosine(1.0), TypeError, r"^ArcCosine: order must be an integer of at least 0, got 1\.0\.$"),
    ],
)
def test_bad_parameters(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize(
    "bad, error, message",
    [
        (np.ones(3), ValueError, r"expected points as rows, .* got shape \(3,\); one point is x\.reshape\(1, -1\)"),
        (1.0, ValueError, r"expected points as rows, an array of shape \(\.\.\., n, d\), got shape \(\)"),
        (np.ones((0, 3)), ValueError, r"expected at least one point of at least one coordinate, got shape \(0, 3\)"),
        (np.ones((3, 0)), ValueError, r"expected at least one point of at least one coordinate, got shape \(3, 0\)"),
        ([[1.0, np.nan, 0.0]], ValueError, r"expected finite numbers, got nan at index \(0, 1\)"),
        ([[1.0, np.inf, 0.0]], ValueError, r"expected finite numbers, got inf at index \(0, 1\)"),
        ([[1.0, 2.0], [3.0]], ValueError, r"expected a rectangular array of numbers"),
        (np.ones((2, 3), complex), TypeError, r"expected an array of real numbers .* got complex128"),
        ([["a", "b", "c"]], TypeError, r"expected an array of real numbers"),
        (csr_array(np.eye(3)), TypeError, r"expected a dense array, got a sparse matrix; pass X\.toarray\(\)"),
    ],
    ids=["vector", "number", "no points", "no coordinates", "nan", "inf", "ragged", "complex", "strings", "sparse"],
)
def test_bad_inputs(kernel, bad, error, message):
    name = type(kernel).__name__
    calls = [kernel, kernel.scaled, lambda Z: kernel(X, Z), lambda Z: kernel.paired(X, Z)]
    if not isinstance(bad, csr_array):
        calls.append(kernel.diagonal)
    for call in calls:
        with pytest.raises(error, match=rf"^{name}: {message}"):
            call(bad)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_sparse_rows_have_a_diagonal(kernel):
    rows = csr_array(np.diag([0.5, 1.0, 2.0]))
    np.testing.assert_allclose(kernel.diagonal(rows), kernel.diagonal(rows.toarray()))


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_inputs_that_do_not_fit_each_other(kernel):
    name = type(kernel).__name__
    with pytest.raises(
        ValueError, match=rf"^{name}: .* last axis is 3, got shape \(4, 2\)\. X and Y must have the same"
    ):
        kernel(X, np.ones((4, 2)))
    with pytest.raises(
        ValueError, match=rf"^{name}: the leading axes of X and Y must broadcast, got \(2,\) and \(3,\)"
    ):
        kernel(np.ones((2, 4, 3)), np.ones((3, 4, 3)))
    with pytest.raises(ValueError, match=rf"^{name}: the rows of X and Y must broadcast, got \(4,\) and \(5,\)"):
        kernel.paired(X, np.ones((5, 3)))


@pytest.mark.parametrize("kind", (Gaussian, Laplacian, Cauchy))
def test_lengthscales_that_do_not_fit_the_inputs(kind):
    message = (
        rf"^{kind.__name__}: lengthscale has 2 entries, one for each dimension, got inputs whose last axis is 3\.$"
    )
    for call in (kind([1, 2]), kind([1, 2]).diagonal, kind([1, 2]).scaled):
        with pytest.raises(ValueError, match=message):
            call(X)


def test_arrays_of_two_libraries():
    torch = pytest.importorskip("torch")
    with pytest.raises(
        TypeError, match=r"^Gaussian: X and Y must come from the same array library, got Tensor and nda"
    ):
        Gaussian()(torch.ones(2, 3), X)
    with pytest.raises(
        TypeError, match=r"^Linear: X and Y must come from the same array library, got ndarray and Tens"
    ):
        Linear()(X, torch.ones(2, 3, dtype=torch.float64))


def test_tensors_of_integers():
    torch = pytest.importorskip("torch")
    with pytest.raises(
        TypeError, match=r"^Angular: expected a tensor of a floating type, got torch\.int64; convert it"
    ):
        Angular()(torch.ones(2, 3, dtype=torch.int64))


def test_rows_of_the_laplacian():
    with pytest.raises(ValueError, match=r"^Laplacian: its rows have independent Cauchy entries .* use sample_rows\("):
        Laplacian().sample_scales(5, 0)
    with pytest.raises(ValueError, match=r"^Laplacian: m must be an integer of at least 1, got 0\.$"):
        Laplacian().sample_rows(3, 0, 0)
    with pytest.raises(TypeError, match=r"^Laplacian: d must be an integer of at least 1, got 2\.5\.$"):
        Laplacian().sample_rows(2.5, 4, 0)


def test_an_order_without_end_names_the_gaussian_kernel():
    with pytest.raises(ValueError, match=r"Matern: nu must be at most 1e\+15, got 1e\+300; use Gaussian\(\)"):
        kernels.Matern(1e300)
    X = np.random.default_rng(0).standard_normal((5, 2))
    np.testing.assert_allclose(kernels.Matern(1e15)(X), kernels.Gaussian()(X), atol=1e-13)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("make", [kernels.Matern, kernels.RationalQuadratic])
def test_orders_that_cannot_be_computed_are_refused(make):
    """Smaller ones ended in an OverflowError, or were NaN in float32."""
    X = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)
    for order in (1e-15, 1e15):
        assert np.isfinite(make(order)(X)).all()
    with pytest.raises(ValueError, match=r"must be at least 1e-15, got .*smaller ones overflow"):
        make(1e-320)
    with pytest.raises(ValueError, match=r"must be at most 1e\+15, got .*use Gaussian\(\)"):
        make(1e308)
