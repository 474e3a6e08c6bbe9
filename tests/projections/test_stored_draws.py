"""A draw is its arrays: restored, it has the same bits, and arrays that cannot be a draw are refused."""

from __future__ import annotations

import numpy as np
import pytest

from bochner import kernels
from bochner.projections import IID, Orthogonal, Quadrature, SimplexPlus
from bochner.rotations import Butterfly, Hadamard, Kac, StructuredGivens
from support.catalogue import PROJECTIONS


@pytest.mark.parametrize("projection", PROJECTIONS, ids=repr)
@pytest.mark.parametrize(("d", "m"), [(1, 3), (6, 17)])
def test_restored_operators_have_the_same_bits(projection, d, m, seed):
    P = projection.sample(d, m, seed, kernel=kernels.Matern(1.5))
    again = projection.restore(d, m, {name: array.copy() for name, array in P.to_arrays().items()})
    rng = np.random.default_rng(seed)
    for dtype in (np.float32, np.float64):
        X, Z = rng.standard_normal((40, d)).astype(dtype), rng.standard_normal((40, m)).astype(dtype)
        np.testing.assert_array_equal(again(X), P(X))
        np.testing.assert_array_equal(again.adjoint(Z), P.adjoint(Z))
    np.testing.assert_array_equal(again.weights, P.weights)
    np.testing.assert_array_equal(again.radii, P.radii)
    assert (again.origin_weight, again.origin, again.block_sizes) == (P.origin_weight, P.origin, P.block_sizes)
    assert repr(again) == repr(P)


def test_names_are_stable():
    """What files of past versions hold: do not rename."""
    names = {
        IID(): {"W", "radii"},
        Quadrature(): {"W", "radii", "weights"},
        SimplexPlus(Hadamard(3)): {"W", "radii"},
        Orthogonal(Hadamard(2)): {"radii", "order", "stages.0.signs", "stages.1.signs"},
        Orthogonal(Kac()): {"radii", "order", "stages.0.first", "stages.0.second", "stages.0.angles"},
        Orthogonal(StructuredGivens()): {"radii", "order", "stages.0.signs", "stages.1.angles", "stages.2.angles"},
        Orthogonal(Butterfly(mix=False, products=2)): {
            "radii",
            "order",
            *(f"stages.{k}.angles" for k in (0, 1, 3, 4)),
            *(f"stages.{k}.order" for k in (2, 5)),
        },
    }
    for projection, expected in names.items():
        assert set(projection.sample(4, 6, 0).to_arrays()) == expected
        if "order" in expected:
            assert set(projection.sample(4, 8, 0).to_arrays()) == expected - {"order"}  # no block is cut


def test_a_cut_block_without_an_order_keeps_the_first_rows():
    """Files of version 1 hold no order."""
    P = Orthogonal(Hadamard(2)).sample(4, 6, 0)
    arrays = P.to_arrays()
    arrays.pop("order")
    first = Orthogonal(Hadamard(2)).restore(4, 6, arrays)
    whole = first.rotation.to_dense()[1]
    np.testing.assert_allclose(first.to_dense()[4:], first.radii[4:, None] * whole[:2])
    np.testing.assert_allclose(P.to_dense()[4:], P.radii[4:, None] * whole[P.order[:2]])


def test_a_restored_operator_does_not_share_its_arrays():
    P = IID().sample(3, 5, 0)
    arrays = P.to_arrays() | {"W": P.to_dense()}
    again = IID().restore(3, 5, arrays)
    arrays["W"][:] = 0
    np.testing.assert_array_equal(again.to_dense(), P.to_dense())


def changed(projection, name, change):
    """Arrays of a draw in d = 4, m = 6, with one of them changed, or taken away."""
    arrays = {key: array.copy() for key, array in projection.sample(4, 6, 0).to_arrays().items()}
    value = change(arrays.pop(name))
    return arrays if value is None else arrays | {name: value}


def first_entry(value):
    def change(array):
        array.flat[0] = value
        return array

    return change


TAMPERED = [
    (IID(), "W", lambda a: None, r"IID\(\): the stored arrays have no 'W'; they are radii\."),
    (IID(), "W", lambda a: a[:, :3], r"'W' must be float64 of shape \(6, 4\), got float64 of shape \(6, 3\)\."),
    (
        IID(),
        "W",
        lambda a: a.astype(np.float32),
        r"'W' must be float64 of shape \(6, 4\), got float32 of shape \(6, 4\)\.",
    ),
    (IID(), "W", lambda a: a.astype(object), r"'W' must be float64 of shape \(6, 4\), got object"),
    (IID(), "W", first_entry(np.nan), r"IID\(\): the stored array 'W' must be finite\."),
    (IID(), "radii", first_entry(np.inf), r"the stored array 'radii' must be finite\."),
    (IID(), "radii", first_entry(-1.0), r"the stored array 'radii' must not be negative\."),
    (Quadrature(), "weights", lambda a: None, r"the stored arrays have no 'weights'"),
    (Quadrature(), "weights", first_entry(-0.5), r"the stored array 'weights' must not be negative\."),
    (Orthogonal(Hadamard(1)), "stages.0.signs", first_entry(3), r"stage 0, SignedWalsh, are not orthogonal\."),
    (Orthogonal(Hadamard(1)), "stages.0.signs", lambda a: a.astype(float), r"'stages\.0\.signs' must be int8"),
    (Orthogonal(Hadamard(1)), "order", first_entry(4), r"the stored array 'order' must hold each coordinate once\."),
    (Orthogonal(Hadamard(1)), "order", lambda a: a[:3], r"'order' must be int32 of shape \(4,\)"),
    (Orthogonal(Kac()), "stages.0.first", first_entry(4), r"stage 0, GivensWalk, are not orthogonal\."),
    (Orthogonal(Kac()), "stages.0.second", first_entry(-1), r"stage 0, GivensWalk, are not orthogonal\."),
    (Orthogonal(Kac()), "stages.0.angles", lambda a: a[:, :-1], r"'stages\.0\.angles' must be float64 of shape"),
    (Orthogonal(StructuredGivens()), "stages.1.angles", first_entry(np.nan), r"'stages\.1\.angles' must be finite\."),
    (
        Orthogonal(Butterfly(mix=False, products=2)),
        "stages.2.order",
        lambda a: np.zeros_like(a),
        r"stage 2, Permutation, are not orthogonal\.",
    ),
]


@pytest.mark.parametrize(("projection", "name", "change", "message"), TAMPERED)
def test_tampered_arrays_are_refused(projection, name, change, message):
    with pytest.raises(ValueError, match=message):
        projection.restore(4, 6, changed(projection, name, change))


def test_arrays_of_another_projection_are_refused():
    arrays = Orthogonal(Hadamard(2)).sample(4, 6, 0).to_arrays()
    with pytest.raises(ValueError, match=r"the stored arrays 'stages\.1\.signs' belong to another projection\."):
        Orthogonal(Hadamard(1)).restore(4, 6, arrays)
    with pytest.raises(ValueError, match=r"the stored arrays have no 'W'"):
        Orthogonal().restore(4, 6, arrays)
    with pytest.raises(ValueError, match=r"'radii' must be float64 of shape \(7,\), got float64 of shape \(6,\)\."):
        Orthogonal(Hadamard(2)).restore(4, 7, arrays)
    with pytest.raises(TypeError, match=r"arrays must be a mapping of names to arrays, got list\."):
        IID().restore(4, 6, [np.ones(6)])
