"""Features by tiles are those of the map itself, whatever the tiles and the threads."""

from __future__ import annotations

import numpy as np
import pytest

from bochner import Approximation, kernels, maps, projections, threads
from bochner.linalg import engine
from bochner.rotations import StructuredGivens

SPECS = [
    Approximation(kernels.Gaussian(1.5), n_projections=9),
    Approximation(kernels.Softmax(), maps.Trigonometric(), n_projections=9),
    Approximation(kernels.Gaussian(), projection=projections.Quadrature(), n_projections=9),
    Approximation(kernels.Gaussian(), projection=projections.Quadrature(origin="resample"), n_projections=9),
    Approximation(kernels.Gaussian(), maps.GeneralizedExponential(-0.1, -1), n_projections=9),
    Approximation(kernels.Gaussian(), maps.GeneralizedExponential(-0.1, -1, antithetic=True), n_projections=9),
    Approximation(kernels.Gaussian(), maps.GeneralizedExponential(-0.1 + 0.1j, -1), n_projections=9),
    Approximation(kernels.Gaussian(), maps.Positive(), n_projections=9),
    Approximation(kernels.Matern(1.5), projection=projections.Orthogonal(StructuredGivens()), n_projections=9),
    Approximation(kernels.ArcCosine(1), n_projections=9),
]


@pytest.mark.parametrize("key", (False, True))
@pytest.mark.parametrize("dtype", (np.float32, np.float64))
@pytest.mark.parametrize("spec", SPECS, ids=lambda s: f"{s.map!r}-{s.projection!r}")
def test_equal_to_the_map_on_all_rows(spec, dtype, key):
    for seed in range(3):  # the node at zero of a quadrature has either sign
        phi = spec.draw(5, rng=seed)
        X = np.random.default_rng(seed).standard_normal((2, 30, 5)).astype(dtype)
        result = phi.keys(X) if key else phi.queries(X)
        expected = phi.features(spec.at_unit_scale(X.astype(np.float64)), key=key)
        assert result.dtype == dtype
        np.testing.assert_allclose(result, expected, rtol=0, atol=60 * np.finfo(dtype).eps * np.abs(expected).max())


@pytest.mark.parametrize("spec", [SPECS[0], SPECS[8]], ids=["dense", "fast"])
def test_neither_threads_nor_walks_within_walks_change_a_bit(spec, monkeypatch):
    monkeypatch.setattr(engine.rows_per_tile, "__defaults__", (1 << 10,))
    wide = Approximation(spec.kernel, spec.map, spec.projection, 3000)  # more columns than one tile of a product has
    phi, X = wide.draw(5, rng=0), np.random.default_rng(0).standard_normal((100, 5))
    results = []
    for n in (1, 2, 3):
        with threads(n):
            results.append(phi.queries(X))
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


def test_half_precision_is_computed_in_float32():
    phi = SPECS[0].draw(5, rng=0)
    X = np.random.default_rng(0).standard_normal((10, 5)).astype(np.float16)
    result = phi.queries(X)
    assert result.dtype == np.float16
    np.testing.assert_array_equal(result, phi.queries(X.astype(np.float32)).astype(np.float16))
