"""JAX arrays go in and come out as NumPy arrays and tensors do; what is not an array of numbers is refused in words."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch

from bochner import Approximation, kernels, maps
from support.catalogue import DISCRETE_MAPS, KERNELS, MAPS, POINTWISE, data, spec_of

jax = pytest.importorskip("jax")
jnp = jax.numpy

X, Y = (Z.astype(np.float32) for Z in data())
GAUSSIAN = Approximation(kernels.Gaussian(), n_projections=8)
TRACED_MAPS = [maps.Trigonometric(), maps.OptimalPositive(), maps.Poisson(positive=True), maps.ClusterHybrid(2, 2)]


def as_jax(x):
    return jnp.asarray(x)


def check_same(got, expected, rtol=1e-3, atol=1e-4):
    np.testing.assert_allclose(np.asarray(got), np.asarray(expected), rtol=rtol, atol=atol)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.swept(4)
def test_kernels_agree_with_numpy(kernel):
    gram = jax.jit(kernel)(as_jax(X), as_jax(Y))
    assert isinstance(gram, jax.Array) and gram.dtype == X.dtype
    check_same(gram, kernel(X, Y), 2e-5, 2e-5)


@pytest.mark.parametrize("kernel", [kernels.Gaussian(), kernels.Matern(1.5), kernels.ArcCosine(1)], ids=repr)
def test_kernels_have_gradients(kernel):
    gradient = jax.jit(jax.grad(lambda x: kernel(x, as_jax(Y)).sum()))(as_jax(X))
    assert gradient.shape == X.shape and bool(jnp.isfinite(gradient).all())


@pytest.mark.parametrize("feature_map", [m for m in MAPS if m is not POINTWISE], ids=repr)
@pytest.mark.swept(4)
def test_features_agree_with_numpy(feature_map):
    """Constants are chosen from JAX arrays, and features computed under jit."""
    here, there = spec_of(feature_map).fit(X, Y, rng=0), spec_of(feature_map).fit(as_jax(X), as_jax(Y), rng=0)
    queries, keys, gram = jax.jit(lambda x, y: (there.queries(x), there.keys(y), there.gram(x, y)))(
        as_jax(X), as_jax(Y)
    )
    assert isinstance(queries, jax.Array) and queries.dtype == X.dtype
    check_same(queries, here.queries(X))
    check_same(keys, here.keys(Y))
    check_same(gram, here.gram(X, Y))


@pytest.mark.parametrize("feature_map", TRACED_MAPS, ids=repr)
def test_features_are_traced_in_any_order(feature_map):
    """What a trace computes once is kept for later: it must outlive the trace."""
    phi = spec_of(feature_map).fit(X, Y, rng=0)
    x, y = as_jax(X), as_jax(Y)
    check_same(jax.jit(phi.gram)(x, y), phi.gram(X, Y))
    gradient = jax.jit(jax.grad(lambda x: phi.gram(x, y).sum()))(x)
    assert gradient.shape == x.shape and bool(jnp.isfinite(gradient).all())
    check_same(jax.vmap(phi.queries)(x[:, None]), phi.queries(X)[:, None])
    check_same(phi.queries(x), phi.queries(X))


@pytest.mark.parametrize("map", [maps.Trigonometric(), maps.Positive()], ids=repr)
def test_gradients_of_jax_are_those_of_torch(map):
    phi = Approximation(kernels.Gaussian(1.3), map, n_projections=8).draw(3, rng=0)
    leaf = torch.tensor(X, requires_grad=True)
    phi.gram(leaf).sum().backward()
    check_same(jax.grad(lambda x: phi.gram(x).sum())(as_jax(X)), leaf.grad, rtol=1e-3, atol=1e-3)


def test_constants_are_not_chosen_inside_a_trace():
    spec = Approximation(kernels.Softmax(), maps.OptimalPositive(), n_projections=8)
    with pytest.raises(TypeError, match=r"got a JAX tracer; call this outside of jit"):
        jax.jit(lambda x: spec.fit(x, rng=0).queries(x))(as_jax(X))


# NumPy arrays of every make


def awkward(X):
    big = np.full((2 * len(X), 2 * X.shape[1]), 7.0)
    big[::2, ::2] = X
    frozen = X.copy()
    frozen.flags.writeable = False
    return {
        "read-only": frozen,
        "strided": big[::2, ::2],
        "reversed": X[::-1].copy()[::-1],
        "Fortran order": np.asfortranarray(X),
        "big-endian": X.astype(X.dtype.newbyteorder(">")),
        "nested lists": X.tolist(),
        "matrix": np.matrix(X),
        "pandas": pd.DataFrame(X, columns=list("abc")),
        "mask that hides nothing": np.ma.masked_array(X, mask=False),
    }


WIDE = X.astype(np.float64)


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # of np.matrix
@pytest.mark.parametrize("make", awkward(WIDE))
def test_how_numbers_lie_in_memory_changes_nothing(make):
    rows = awkward(WIDE)[make]
    phi = GAUSSIAN.fit(rows, rng=0)
    np.testing.assert_array_equal(phi.queries(rows), phi.queries(WIDE))
    np.testing.assert_array_equal(phi.gram(rows), phi.gram(WIDE))
    np.testing.assert_array_equal(GAUSSIAN.mse(rows), GAUSSIAN.mse(WIDE))
    np.testing.assert_array_equal(kernels.Gaussian()(rows), kernels.Gaussian()(WIDE))


REFUSED = {
    "masked": (np.ma.masked_greater(WIDE, 1.0), ValueError, r"masked array with \d+ of 90 entries masked; fill them"),
    "objects": (WIDE.astype(object), TypeError, "expected an array of real numbers .* got object"),
    "text": (WIDE.astype(str), TypeError, "expected an array of real numbers"),
    "complex": (WIDE + 1j, TypeError, "expected an array of real numbers .* got complex128"),
    "ragged": ([[1.0, 2.0], [3.0]], ValueError, "rows of different lengths"),
    "sparse": (scipy.sparse.csr_array(WIDE), TypeError, r"got a sparse matrix; pass X\.toarray\(\)"),
    "sparse tensor": (
        torch.tensor(WIDE).to_sparse(),
        TypeError,
        r"got one of layout torch.sparse_coo; pass X\.to_dense",
    ),
    "integer tensor": (torch.ones(4, 3, dtype=torch.int64), TypeError, "a tensor of a floating type, got torch.int64"),
    "pandas with text": (pd.DataFrame({"a": [1.0], "b": ["x"], "c": [2.0]}), TypeError, "got object"),
}


DOORS = {
    "fit": GAUSSIAN.fit,
    "mse": GAUSSIAN.mse,
    "queries": GAUSSIAN.draw(3, rng=0).queries,
    "gram": GAUSSIAN.draw(3, rng=0).gram,
    "kernel": kernels.Gaussian(),
}


@pytest.mark.parametrize(
    "kind, door", [(kind, door) for kind in REFUSED for door in DOORS if (kind, door) != ("sparse", "queries")]
)
def test_what_is_no_array_of_numbers_is_refused(kind, door):
    (rows, error, message), door = REFUSED[kind], DOORS[door]
    with pytest.raises(error, match=message):
        door(rows)


@pytest.mark.parametrize("feature_map", [maps.OptimalPositive(), maps.Poisson(positive=True), *DISCRETE_MAPS], ids=repr)
def test_shapes_alone_go_through_drawn_features(feature_map):
    phi = spec_of(feature_map).fit(X, Y, rng=0)
    meta = torch.tensor(X, device="meta")
    assert phi.queries(meta).shape == (len(X), phi.n_features_out) and phi.queries(meta).is_meta


def test_values_are_asked_of_tensors_where_they_matter():
    meta = torch.ones(4, 3, device="meta")
    for door in (spec_of(maps.OptimalPositive()).fit, GAUSSIAN.mse):
        with pytest.raises(TypeError, match="got one on the meta device"):
            door(meta)
