"""Any shape and precision: features have the shape, the type and the values of their rows taken one by one."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bochner import Approximation, kernels, maps
from bochner.projections import IID, Orthogonal, Quadrature, Simplex
from bochner.rotations import Haar, Hadamard, Kac, StructuredGivens

HYPERPLANES = st.builds(
    lambda pair, projection, m: Approximation(*pair, projection, m),
    st.sampled_from([(kernels.Linear(), maps.Identity()), (kernels.ArcCosine(1), maps.Rectified(1))]),
    st.sampled_from([IID(), Orthogonal(Haar(), "fixed"), Quadrature(Haar())]),
    st.integers(1, 40),
)

POWERS = st.builds(
    lambda feature_map, m: Approximation(kernels.Softmax(), feature_map, n_projections=m),
    st.sampled_from([maps.Poisson(rate=0.3), maps.Geometric(success=0.7)]),
    st.integers(1, 40),
)

EXPONENTIALS = st.builds(
    lambda feature_map, projection, m: Approximation(kernels.Softmax(), feature_map, projection, m),
    st.sampled_from(
        [
            maps.Trigonometric(),
            maps.Positive(),
            maps.Hyperbolic(),
            maps.AngularHybrid(2),
            maps.GeneralizedExponential(-0.1 + 0.05j),
            maps.ComplexExponential(0.7j),
        ]
    ),
    st.sampled_from(
        [IID(), Orthogonal(Haar()), Orthogonal(Hadamard(2)), Simplex(Kac()), Quadrature(StructuredGivens())]
    ),
    st.integers(1, 40),
)


@settings(max_examples=60)
@given(
    spec=st.one_of(EXPONENTIALS, HYPERPLANES, POWERS),
    d=st.integers(1, 70),
    lead=st.lists(st.integers(1, 3), max_size=2),
    n=st.integers(1, 5),
    dtype=st.sampled_from([np.float16, np.float32, np.float64]),
    seed=st.integers(0, 2**31),
)
def test_batches_are_rows_side_by_side(spec, d, lead, n, dtype, seed):
    X = (0.2 * np.random.default_rng(seed).standard_normal((*lead, n, d))).astype(dtype)
    phi = spec.draw(d, seed)
    features = phi.queries(X)
    assert features.shape == (*lead, n, phi.n_features_out) and features.dtype == dtype
    rows = np.stack([phi.queries(row) for row in X.reshape(-1, d)]).reshape(features.shape)
    tolerance = 200 * np.finfo(dtype).eps
    np.testing.assert_allclose(features, rows, rtol=tolerance, atol=tolerance)
    assert phi.gram(X).shape == (*lead, n, n)
