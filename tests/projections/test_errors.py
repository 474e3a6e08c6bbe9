"""Bad parameters and bad data are refused in a sentence, and change nothing."""

from __future__ import annotations

import numpy as np
import pytest

import bochner
from bochner import projections, radii
from bochner.projections import IID, QMC, Blocks, Orthogonal, Quadrature, Simplex, SimplexPlus
from bochner.rotations import Haar, Hadamard

torch = pytest.importorskip("torch")  # the oldest dependencies are tried without it

BAD = [
    (lambda: IID().sample(3, 0), ValueError, r"IID\(\): m must be an integer of at least 1, got 0\."),
    (lambda: IID().sample(0, 3), ValueError, r"IID\(\): d must be an integer of at least 1, got 0\."),
    (lambda: IID().sample(3.0, 3), TypeError, r"IID\(\): d must be an integer of at least 1, got 3\.0\."),
    (lambda: IID().sample(True, 3), TypeError, r"IID\(\): d must be an integer of at least 1, got True\."),
    (lambda: IID().sample(3, "many"), TypeError, r"IID\(\): m must be an integer of at least 1, got 'many'\."),
    (lambda: IID().sample(3, 3, rng=0.5), TypeError, r"rng must be .*, got 0\.5\."),
    (
        lambda: IID().sample(3, 3, kernel="rbf"),
        TypeError,
        r"IID\(\): kernel must be a kernel such as kernels\.Gaussian\(\), got 'rbf'\.",
    ),
    (
        lambda: Orthogonal("haar"),
        TypeError,
        r"Orthogonal: rotation must be a rotation such as rotations\.Haar\(\), got 'haar'\.",
    ),
    (
        lambda: Simplex(Haar(), radii="chi"),
        ValueError,
        r"Simplex: radii must be one of 'kernel', 'coupled', 'fixed', 'shared', got 'chi'\.",
    ),
    (lambda: SimplexPlus(None), TypeError, r"SimplexPlus: rotation must be a rotation"),
    (
        lambda: Quadrature(vertices="cube"),
        ValueError,
        r"Quadrature: vertices must be one of 'simplex', 'orthoplex', got 'cube'\.",
    ),
    (
        lambda: Quadrature(origin="clip"),
        ValueError,
        r"Quadrature: origin must be one of 'signed', 'resample', got 'clip'\.",
    ),
    (lambda: Quadrature(rotation=3), TypeError, r"Quadrature: rotation must be a rotation such as"),
    (lambda: QMC("latin"), ValueError, r"QMC: sequence must be one of 'halton', 'sobol', got 'latin'\."),
    (
        lambda: QMC("sobol").sample(30000, 2),
        ValueError,
        r"Sobol points exist up to d = 21201, got d = 30000; use QMC\('halton'\)\.",
    ),
    (
        lambda: Blocks(geometry="simplex"),
        TypeError,
        r"Blocks: geometry must be a geometry such as geometries\.Orthogonal\(\), got 'simplex'\.",
    ),
    (lambda: Blocks(Haar), TypeError, r"Blocks: rotation must be a rotation such as rotations\.Haar\(\), got <class"),
    (
        lambda: Blocks(radii=2.0),
        ValueError,
        r"Blocks: radii must be one of 'kernel', 'coupled', 'fixed', 'shared', got 2\.0\.",
    ),
    (
        lambda: radii.SphericalRadial("clip"),
        ValueError,
        r"SphericalRadial: origin must be one of 'signed', 'resample', got 'clip'\.",
    ),
    (
        lambda: IID().sample(10**6, 10**9),
        ValueError,
        r"IID\(\) with d = 1000000 and m = 1000000000: this takes about 7\.45e\+06 GiB, more than the .* GiB of memory of "
        r"this machine; use fewer rows or dimensions\.",
    ),
    (lambda: Orthogonal().sample(10**6, 10**6 + 1), ValueError, r"this takes about .* GiB, more than"),
    (lambda: projections.GaussHermite(0), ValueError, r"GaussHermite: order must be an integer of at least 1, got 0\."),
    (lambda: bochner.threads(0).__enter__(), ValueError, r"threads: n must be an integer of at least 1, got 0\."),
]


@pytest.mark.parametrize(("make", "error", "message"), BAD)
def test_bad_parameters_are_explained(make, error, message):
    with pytest.raises(error, match=message):
        make()


BAD_DATA = [
    (np.ones((2, 4)), ValueError, r"expected an array whose last axis is 3, got shape \(2, 4\)\."),
    (1.0, ValueError, r"expected an array whose last axis is 3, got a single number\."),
    (
        [[1.0, np.nan, 0.0]],
        ValueError,
        r"expected finite numbers, got nan at index \(0, 1\); 1 of 3 entries are not finite\.",
    ),
    ([[1.0, np.inf, -np.inf]], ValueError, r"expected finite numbers, got inf at index \(0, 1\); 2 of 3 entries"),
    ([["a", "b", "c"]], TypeError, r"expected an array of real numbers .*, got <U1\."),
    ([[1j, 0, 0]], TypeError, r"expected an array of real numbers .*, got complex128\."),
    ([[None, 1, 2]], TypeError, r"expected an array of real numbers .*, got object\."),
    ([[1.0, 2.0, 3.0], [1.0]], ValueError, r"expected a rectangular array of numbers"),
    (torch.ones(2, 4), ValueError, r"expected an array whose last axis is 3, got shape \(2, 4\)\."),
    (torch.ones(2, 3, dtype=torch.int64), TypeError, r"expected a tensor of a floating type, got torch\.int64"),
]


@pytest.mark.parametrize(("data", "error", "message"), BAD_DATA)
@pytest.mark.parametrize("projection", [IID(), Orthogonal(Hadamard(3))], ids=repr)
def test_bad_data_is_explained_and_changes_nothing(projection, data, error, message):
    P = projection.sample(3, 3, 0)
    before = P.to_dense()
    with pytest.raises(error, match=message):
        P(data)
    with pytest.raises(error, match=message):
        P.adjoint(data)
    np.testing.assert_array_equal(P.to_dense(), before)


def test_sparse_input_is_refused_with_a_remedy():
    from scipy import sparse

    with pytest.raises(TypeError, match=r"expected a dense array, got a sparse matrix; pass X\.toarray\(\)\."):
        IID().sample(3, 3, 0)(sparse.csr_array(np.eye(3)))


def test_other_byte_orders_and_subclasses_of_tensors():
    P = Orthogonal(Hadamard(3)).sample(100, 300, 0)
    X = np.ones((40, 100))
    np.testing.assert_array_equal(P(X.astype(">f8")), P(X))
    parameter = torch.nn.Parameter(torch.ones(2, 100, dtype=torch.float64))
    assert P(parameter).requires_grad
    assert P.adjoint(torch.empty(0, 300)).shape == (0, 100)


def test_large_finite_numbers_are_no_offence():
    assert np.isfinite(IID().sample(3, 3, 0)(np.full((4, 3), 1e307))).all()
