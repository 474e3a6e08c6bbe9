"""Laws of all rotations."""

from __future__ import annotations

import pickle
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from scipy import stats

import bochner.rotations as rotations
from bochner.projections import Orthogonal
from bochner.rotations import FastRotation, Haar
from support.catalogue import ROTATIONS, registered
from support.checks import check_law
from support.projection_laws import check_orthogonal

DIMENSIONS = (1, 2, 3, 17, 64)
every_rotation = pytest.mark.parametrize("rotation", ROTATIONS, ids=repr)
every_fast_rotation = pytest.mark.parametrize("rotation", [R for R in ROTATIONS if R != Haar()], ids=repr)


@every_rotation
@pytest.mark.parametrize("d", DIMENSIONS)
def test_drawn_matrices_are_orthogonal(rotation, d, seed):
    check_orthogonal(rotation.sample(d, 3, seed))


@every_rotation
@pytest.mark.parametrize("d", DIMENSIONS)
def test_apply_and_adjoint_are_products_with_the_matrix(rotation, d, seed):
    R = rotation.sample(d, 2, seed)
    X = np.random.default_rng(seed).standard_normal((4, 3, R.dim))
    for block, matrix in enumerate(R.to_dense()):
        np.testing.assert_allclose(R(X, block), X @ matrix.T, atol=1e-12)
        np.testing.assert_allclose(R.adjoint(X, block), X @ matrix, atol=1e-12)


@every_fast_rotation
@pytest.mark.parametrize("d", (*DIMENSIONS, 256, 1024))
@pytest.mark.parametrize("dtype", (np.float32, np.float64))
@pytest.mark.parametrize("back", (False, True))
def test_compiled_lanes_equal_the_readable_chain(rotation, d, dtype, back, seed):
    R = rotation.sample(d, 2, seed)
    lanes = np.random.default_rng(seed).standard_normal((3, R.dim + 1, 16)).astype(dtype)
    rows = lanes[:, : R.dim].astype(np.float64).transpose(0, 2, 1)
    expected = R.rows(rows[..., None, :], slice(1, 2), back=back)[..., 0, :].transpose(0, 2, 1)  # the readable chain
    compiled = lanes.copy()
    R.lanes(compiled, 1, back=back)
    np.testing.assert_allclose(compiled[:, : R.dim], expected, atol=300 * np.finfo(dtype).eps)
    np.testing.assert_array_equal(compiled[:, R.dim], lanes[:, R.dim])  # the line after the data is not touched


@every_rotation
def test_torch_agrees_and_gradients_flow(rotation, seed):
    R = rotation.sample(8, 2, seed)
    X = np.random.default_rng(seed).standard_normal((3, 8))
    x = torch.tensor(X, requires_grad=True)
    y = R(x, 1)
    np.testing.assert_allclose(y.detach().numpy(), R(X, 1), atol=1e-12)
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), R.adjoint(np.ones((3, 8)), 1), atol=1e-12)


@every_rotation
def test_one_int_gives_one_draw_and_one_generator_several(rotation, seed):
    first, second = (rotation.sample(6, 2, seed).to_dense() for _ in range(2))
    np.testing.assert_array_equal(first, second)
    rng = np.random.default_rng(seed)
    first, second = (rotation.sample(6, 2, rng).to_dense() for _ in range(2))
    assert np.abs(first - second).max() > 0.1


@every_rotation
def test_repr_rebuilds_equality_compares_and_pickle_keeps(rotation, seed):
    assert eval(repr(rotation), vars(rotations) | registered()) == rotation
    assert pickle.loads(pickle.dumps(rotation)) == rotation
    drawn = rotation.sample(5, 2, seed)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(drawn)).to_dense(), drawn.to_dense())
    assert repr(rotation) in repr(drawn)


@every_fast_rotation
def test_stored_numbers_grow_as_d_log_d(rotation):
    for d in (256, 4096):
        numbers = sum(a.size for stage in rotation.sample(d, 1, 0).stages for a in stage.to_arrays().values())
        if isinstance(rotation, rotations.Hadamard | rotations.Butterfly):
            assert numbers <= 6 * d
        else:
            assert numbers <= 9 * d * np.log2(d)  # Kac keeps 3 * 4 * ln 2 * d log2 d


@pytest.mark.parametrize("rotation", [R for R in ROTATIONS if isinstance(R, FastRotation)], ids=repr)
def test_large_dimensions(rotation, seed):
    """Norms and scalar products survive at d = 2^14, past every cache-blocking threshold."""
    R = rotation.sample(2**14, 1, seed)
    lanes = np.random.default_rng(seed).standard_normal((1, R.dim, 16)).astype(np.float32)
    turned = lanes.copy()
    R.lanes(turned, 0, back=False)
    np.testing.assert_allclose(turned[0].T @ turned[0], lanes[0].T @ lanes[0], atol=0.2)  # norms squared are 16384
    R.lanes(turned, 0, back=True)
    np.testing.assert_allclose(turned, lanes, atol=2e-4)


@pytest.mark.parametrize("rotation", [R for R in ROTATIONS if R.isotropy == "exact"], ids=repr)
@pytest.mark.parametrize("d", (2, 4, 8))
def test_exact_rotations_have_uniform_rows(rotation, d, seed):
    """(u . e)^2 ~ Beta(1/2, (d-1)/2) for every row, on an axis and on a generic direction, and u . e is symmetric."""
    R = rotation.sample(d, 3000, seed).to_dense()
    generic = np.random.default_rng(seed).standard_normal(d)
    law = stats.beta(0.5, (d - 1) / 2)
    for e in (np.eye(d)[0], np.ones(d) / np.sqrt(d), generic / np.linalg.norm(generic)):
        products = R @ e  # (3000, d)
        for row in {0, 1, d - 1}:
            check_law(products[:, row] ** 2, law, f"{rotation} d={d} row {row}")
            assert abs(np.mean(np.sign(products[:, row]))) < 5 / np.sqrt(3000)


@pytest.mark.parametrize(
    "rotation", [rotations.Hadamard(), rotations.StructuredGivens(), rotations.Butterfly()], ids=repr
)
def test_the_largest_dimension(rotation, seed):
    """A million columns, not a power of two before padding: the norm survives, forth and back."""
    P = Orthogonal(rotation, radii="fixed").sample(2**20 - 5, 2**20, seed)
    x = np.random.default_rng(seed).standard_normal((1, 2**20 - 5)).astype(np.float32)
    y = P(x)
    assert np.linalg.norm(y) == pytest.approx(2**10 * np.linalg.norm(x), rel=1e-4)
    np.testing.assert_allclose(P.adjoint(y) / 2**20, x, atol=1e-3)


def test_memory_of_a_large_hadamard_projection():
    assert Orthogonal(rotations.Hadamard(3)).sample(65536, 262144, 0).nbytes < 16e6


def test_numpy_numbers_become_plain_ones():
    assert repr(rotations.Hadamard(np.int64(2))) == "Hadamard(blocks=2)"
    assert repr(rotations.Kac(np.float64(3.0))) == "Kac(constant=3.0)"


def test_half_precision_accumulates_in_float32(seed):
    R = rotations.Hadamard(3).sample(256, rng=seed)
    X = np.random.default_rng(seed).standard_normal((8, 256)).astype(np.float16)
    np.testing.assert_array_equal(R(X), R(X.astype(np.float32)).astype(np.float16))


def test_claims_are_declared():
    for rotation in ROTATIONS:
        assert rotation.isotropy in ("exact", "approximate")
        assert (rotation.isotropy == "approximate") == (rotation.uniform_directions == "none")


@dataclass(frozen=True)
class OneBlock(FastRotation):
    """Stages for one block, whatever is asked for."""

    uniform_directions = "none"

    def stages(self, dim, n_blocks, rng):
        return [rotations.hd_block(rng, 1, dim)]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: rotations.Hadamard(0), ValueError, r"Hadamard: blocks must be an integer of at least 1, got 0\."),
        (lambda: rotations.Hadamard(1.5), TypeError, r"Hadamard: blocks must be an integer of at least 1, got 1\.5\."),
        (
            lambda: rotations.Hadamard(2**63),
            ValueError,
            r"Hadamard: blocks must be at most 100, got 9223372036854775808;",
        ),
        (lambda: rotations.MultiHadamard(101), ValueError, r"MultiHadamard: blocks must be at most 100, got 101;"),
        (
            lambda: rotations.Butterfly(products=10**9),
            ValueError,
            r"Butterfly: products must be at most 100, got 1000000000; a few factors suffice\.",
        ),
        (
            lambda: rotations.Kac(1e12),
            ValueError,
            r"Kac: constant must be at most 1000, got 1000000000000\.0; the walk has mixed long before\.",
        ),
        (
            lambda: Haar().sample(10**7),
            ValueError,
            r"Haar\(\): this takes about 7\.45e\+05 GiB, more than .*; use fewer rows or dimensions\.",
        ),
        (lambda: rotations.Kac(-1.0), ValueError, r"Kac: constant must be a positive number, got -1\.0\."),
        (lambda: rotations.Kac("four"), TypeError, r"Kac: constant must be a positive number, got 'four'\."),
        (
            lambda: rotations.Butterfly("gamma"),
            ValueError,
            r"Butterfly: angles must be one of 'beta', 'uniform', 'tree', got 'gamma'\.",
        ),
        (
            lambda: Haar().sample(3, rng=0)(np.ones(3), 1),
            ValueError,
            r"block must be below 1, the number drawn, got 1\.",
        ),
        (
            lambda: Haar().sample(3, rng=0)(np.ones(3), "0"),
            TypeError,
            r"block must be an integer of at least 0, got '0'\.",
        ),
        (
            lambda: rotations.Hadamard().sample(48, rng=0)(np.ones(48)),
            ValueError,
            r"last axis is 64, got shape \(48,\)\. Data of fewer columns is padded with zeros to 64\.",
        ),
        (lambda: rotations.hd_block(0, 1, 12), ValueError, r"hd_block: dim must be a power of two, got 12;"),
        (
            lambda: rotations.SignedWalsh([[1, 2]], 0, 1),
            ValueError,
            r"SignedWalsh: these numbers do not make an orthogonal factor: Signs are \+1 and -1",
        ),
        (
            lambda: rotations.SignedWalsh([1, -1], 0, 1),
            ValueError,
            r"SignedWalsh: signs must be an array of integers with 2 axes, blocks first, got \[1, -1\]\.",
        ),
        (
            lambda: rotations.GivensLevel(1, np.full((1, 1, 2), np.nan)),
            ValueError,
            r"GivensLevel: angles must be an array of finite numbers with 3 axes, blocks first, got ndarray of shape",
        ),
        (lambda: rotations.GivensWalk([[1]], [[1]], [[0.5]]), ValueError, r"GivensWalk: these numbers do not make"),
        (
            lambda: rotations.Permutation([[0, 0]]),
            ValueError,
            r"Permutation: these numbers .*: Every coordinate comes once",
        ),
        (
            lambda: OneBlock().sample(6, 2, rng=0),
            ValueError,
            r"OneBlock\(\): stage 0, SignedWalsh, does not fit 2 blocks of dimension 8\.",
        ),
        (lambda: rotations.StructuredGivens(mix=1), TypeError, r"StructuredGivens: mix must be True or False, got 1\."),
        (lambda: Haar().sample(0), ValueError, r"Haar\(\): d must be an integer of at least 1, got 0\."),
        (lambda: Haar().sample_rows(3, 4), ValueError, r"Haar\(\): n_rows must be at most 3, the dimension, got 4\."),
        (
            lambda: Haar().sample_rows(600, 1.5),
            TypeError,
            r"Haar\(\): n_rows must be an integer of at least 1, got 1\.5\.",
        ),
        (lambda: Haar().sample(3, 0), ValueError, r"Haar\(\): n_blocks must be an integer of at least 1, got 0\."),
        (lambda: Haar().sample(3, rng="seed"), TypeError, r"rng must be .* got 'seed'\."),
        (lambda: Haar().sample(3, rng=-1), ValueError, r"rng must be a non-negative integer, .* got -1\."),
        (
            lambda: Haar().sample(3, rng=0)(np.ones((2, 4))),
            ValueError,
            r"Haar\(\): expected an array whose last axis is 3, got shape \(2, 4\)\.",
        ),
    ],
)
def test_bad_input_is_explained(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_a_new_rotation_needs_one_method():
    class Flip(FastRotation):
        uniform_directions = "none"

        def stages(self, dim, n_blocks, rng):
            return rotations.Hadamard(1).stages(dim, n_blocks, rng)

    check_orthogonal(Flip().sample(8, rng=0))
