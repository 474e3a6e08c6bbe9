"""Laws of all maps, over every projection and kernel that they work with."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch

from bochner import Approximation, catalogue, kernels, maps, projections, rotations
from bochner.approximation import _feature_map, _gram
from bochner.maps import coefficients
from bochner.projections import IID, Orthogonal, Quadrature
from bochner.rotations import Haar, Hadamard
from support.catalogue import (
    ADAPTIVE_MAPS,
    DISCRETE_MAPS,
    FIXED_MAPS,
    HOMOGENEOUS_MAPS,
    KERNELS,
    LISTED,
    MAPS,
    OTHER_MAPS,
    POINTWISE,
    PROJECTIONS,
    UNBIASED_PROJECTIONS,
    UNBIASED_SPECS,
    D,
    data,
    kernel_of,
    pairs,
    part_of,
    registered,
    spec_of,
    works,
)
from support.checks import check_mean

every_map = pytest.mark.parametrize("feature_map", MAPS, ids=repr)


def estimates(spec, X, Y, draws, seed):
    """Estimates of k(x_i, y_i) over independent redraws, (draws, pairs); data-driven constants are chosen anew."""
    rng = np.random.default_rng(seed)
    A, B = data()
    drawn = (spec.fit(A, B, rng) for _ in range(draws))
    return np.array([np.sum(phi.queries(X) * phi.keys(Y), axis=-1) for phi in drawn])


def check_mean_is_the_kernel(feature_map, kernel, projection, seed):
    """Over 60 draws of 137 rows: a mean of exponentials of few rows has too heavy a tail for a normal test.

    Rows give what more draws of fewer rows would; coefficients of hybrids are drawn once for all rows, so that these have
    more draws.
    """
    drawn_once = isinstance(feature_map, maps.Hybrid | maps.AngularHybrid | maps.GaussianHybrid)
    m, draws = (41, 200) if drawn_once else (137, 60)
    spec = Approximation(kernel, feature_map, projection, m)
    assert spec.unbiased
    X, Y = pairs(seed)
    exact = spec.kernel.paired(X, Y)
    for k, values in enumerate(estimates(spec, X, Y, draws, seed).T):
        check_mean(values, float(exact[k]), f"{spec} pair {k}")


@pytest.mark.parametrize(("feature_map", "projection"), UNBIASED_SPECS, ids=repr)
def test_mean_is_the_kernel(feature_map, projection, seed):
    """Softmax where the map serves it; the Gaussian kernel's estimate is a fixed multiple, which another test holds."""
    check_mean_is_the_kernel(feature_map, kernel_of(feature_map), projection, seed)


UNBIASED_ADAPTIVE_MAPS = [m for m in ADAPTIVE_MAPS if m.unbiased(IID())]
"""All but landmarks, which are held to the trace identity instead (tests/maps/test_landmarks.py)."""
OTHER_ADAPTIVE_MAPS = [m for m in OTHER_MAPS if m.unbiased(IID()) and not (m.planned and m.uses_rows)]


@pytest.mark.parametrize("feature_map", [*DISCRETE_MAPS, *UNBIASED_ADAPTIVE_MAPS, *OTHER_ADAPTIVE_MAPS], ids=repr)
def test_mean_is_the_kernel_with_constants_from_data(feature_map, seed):
    check_mean_is_the_kernel(feature_map, kernel_of(feature_map), None, seed)


@pytest.mark.parametrize(("feature_map", "kernel"), HOMOGENEOUS_MAPS, ids=repr)
@pytest.mark.parametrize(
    "projection",
    [*UNBIASED_PROJECTIONS, Orthogonal(Haar(), "fixed"), Quadrature(Haar(), origin="resample")],
    ids=repr,
)
@pytest.mark.swept(3)
def test_mean_is_the_kernel_for_homogeneous_maps(feature_map, kernel, projection, seed):
    """Uniform directions are enough: fixed radii and resampled origins are unbiased too."""
    check_mean_is_the_kernel(feature_map, kernel, projection, seed)


SHIFT_INVARIANT = [(k, P) for k in KERNELS if k.shift_invariant for P in UNBIASED_PROJECTIONS]


def couplable(kernel, projection):
    """Whether the rows of the kernel's law may come from that projection."""
    return kernel.spectrum != "product" or projection == IID()


COUPLABLE = part_of([pair for pair in SHIFT_INVARIANT if couplable(*pair)], share=4)


@pytest.mark.parametrize("kernel, projection", COUPLABLE, ids=repr)
def test_mean_is_the_kernel_for_shift_invariant_kernels(kernel, projection, seed):
    check_mean_is_the_kernel(maps.Trigonometric(), kernel, projection, seed)


OTHER_KERNELS = [k for k in KERNELS if not k.shift_invariant]


@pytest.mark.parametrize("kernel", OTHER_KERNELS, ids=repr)
def test_mean_is_the_kernel_for_other_kernels(kernel, seed):
    """With the map and the projection that they get by default."""
    spec = Approximation(kernel)
    if not spec.unbiased:
        pytest.skip(f"{spec.map!r} declares a bias")
    check_mean_is_the_kernel(spec.map, kernel, spec.projection, seed)


@pytest.mark.parametrize("kernel, projection", [pair for pair in SHIFT_INVARIANT if not couplable(*pair)], ids=repr)
def test_kernels_whose_rows_cannot_be_coupled_say_so(kernel, projection):
    with pytest.raises(ValueError, match="use IID"):
        Approximation(kernel, maps.Trigonometric(), projection, 5)


@pytest.mark.parametrize("projection", UNBIASED_PROJECTIONS, ids=repr)
def test_pointwise_estimates_the_kernel_that_it_induces(projection, seed):
    """E f(w.x) f(w.y) for f = u^2 is |x|^2|y|^2 + 2(x.y)^2."""
    spec = Approximation(map=maps.Pointwise(np.square), projection=projection, n_projections=137)
    X, Y = pairs(seed)
    exact = np.sum(X**2, axis=1) * np.sum(Y**2, axis=1) + 2 * np.sum(X * Y, axis=1) ** 2
    for k, values in enumerate(estimates(spec, X, Y, 60, seed).T):
        check_mean(values, exact[k], f"{spec} pair {k}")


@pytest.mark.parametrize("feature_map", [*FIXED_MAPS, *DISCRETE_MAPS, *UNBIASED_ADAPTIVE_MAPS], ids=repr)
def test_gaussian_features_are_softmax_features_without_the_norms(feature_map, seed):
    X, Y = pairs(seed)
    A, B = data(seed)
    softmax = Approximation(kernels.Softmax(), feature_map, n_projections=7).fit(A, B, seed)
    gaussian = Approximation(kernels.Gaussian(), feature_map, n_projections=7).fit(A, B, seed)
    factor = np.exp(-np.sum(X**2, axis=1) / 2)[:, None] * np.exp(-np.sum(Y**2, axis=1) / 2)[None]
    np.testing.assert_allclose(gaussian.gram(X, Y), factor * softmax.gram(X, Y), rtol=1e-9, atol=1e-12)


FIXED = [*FIXED_MAPS, *(m for m, _ in HOMOGENEOUS_MAPS), *(m for m in OTHER_MAPS if m.planned), POINTWISE]
WORKING = [(m, P) for m in FIXED for P in LISTED if m not in OTHER_MAPS or works(m, P)]


@pytest.mark.parametrize(("feature_map", "projection"), WORKING, ids=repr)
def test_every_projection_works_with_every_map(feature_map, projection, seed):
    """Width, symmetry and positivity as declared, on every kind of projection, approximate ones included."""
    X, Y = pairs(seed)
    phi = spec_of(feature_map, projection, 7).draw(D, seed)
    queries, keys = phi.queries(X), phi.keys(Y)
    assert queries.shape == keys.shape == (3, phi.n_features_out)
    assert phi.spec.layout == (*phi.spec.layout[:2], phi.symmetric, phi.positive)
    assert phi.spec.n_features_out == phi.n_features_out
    np.testing.assert_allclose(phi.gram(X, Y), queries @ keys.T, rtol=1e-12, atol=1e-12)
    assert np.isfinite(queries).all() and np.isfinite(keys).all()
    assert not phi.symmetric or np.array_equal(phi.keys(X), queries)
    assert phi.symmetric or projection.signed or not feature_map.layout(IID()).symmetric
    assert not phi.positive or ((queries > 0).all() and (keys > 0).all())


@every_map
def test_symmetry_and_positivity_are_declared_truly(feature_map, seed):
    A, B = data(seed)
    phi = spec_of(feature_map, None, 9).fit(A, B, seed)
    assert (phi.spec.symmetric, phi.spec.positive) == (phi.symmetric, phi.positive)
    assert phi.spec.n_features_out == phi.n_features_out
    if phi.symmetric:
        np.testing.assert_array_equal(phi.queries(B), phi.keys(B))
    else:
        assert np.abs(phi.queries(B) - phi.keys(B)).max() > 1e-3
    if phi.positive:
        np.testing.assert_allclose(np.exp(phi.log_queries(A)), phi.queries(A), rtol=1e-12)
        np.testing.assert_allclose(np.exp(phi.log_keys(B)), phi.keys(B), rtol=1e-12)
    else:
        with pytest.raises(ValueError, match="are not positive; use a positive map"):
            phi.log_queries(A)


@every_map
def test_torch_agrees_with_numpy(feature_map, seed):
    if feature_map is POINTWISE:
        feature_map = maps.Pointwise(lambda u: u * u)
        spec = Approximation(map=feature_map, n_projections=6)
    else:
        spec = spec_of(feature_map, None, 6)
    A, B = data(seed)
    phi = spec.fit(A, B, seed)
    again = spec.fit(torch.tensor(A), torch.tensor(B), seed)
    for method in ("queries", "keys", "gram"):
        expected = getattr(phi, method)(A)
        np.testing.assert_allclose(getattr(phi, method)(torch.tensor(A)).numpy(), expected, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(getattr(again, method)(A), expected, rtol=1e-9, atol=1e-11)
    batch = torch.tensor(np.stack([A[:5], A[5:10]]))
    assert phi.queries(batch).shape == (2, 5, phi.n_features_out)
    np.testing.assert_allclose(phi.gram(batch)[1].numpy(), phi.gram(A[5:10]), rtol=1e-9, atol=1e-11)


SMOOTH = [m for m in MAPS if m is not POINTWISE and not isinstance(m, maps.Sign) and m != maps.Rectified(0)]


@pytest.mark.parametrize("feature_map", SMOOTH, ids=repr)
def test_gradients(feature_map, seed):
    """gradcheck, away from the places where signs, clusters and positive parts change."""
    A, B = data(seed)
    phi = spec_of(feature_map, None, 3).fit(A, B, seed)
    x = torch.tensor(A[:2] + 0.01, requires_grad=True)
    for features in (phi.queries, phi.keys):
        assert torch.autograd.gradcheck(features, (x,), atol=1e-5, rtol=1e-4, fast_mode=True)


@every_map
def test_float32_is_within_its_rounding_of_float64(feature_map, seed):
    if isinstance(feature_map, maps.Sign) or feature_map == maps.Rectified(0):
        pytest.skip("a sign is not continuous: rounding may flip it")
    A, B = data(seed)
    phi = spec_of(feature_map, None, 8).fit(A, B, seed)
    for features in (phi.queries, phi.keys):
        wide, single = features(A), features(A.astype(np.float32))
        assert single.dtype == np.float32 and wide.dtype == np.float64
        # a feature is exp of a sum of terms of size up to ten, so eps is multiplied by about a hundred
        np.testing.assert_allclose(single, wide, rtol=2e-4, atol=2e-4 * np.abs(wide).max())
    assert features(A.astype(np.float16)).dtype == np.float16
    assert phi.gram(A.astype(np.float32), B.astype(np.float32)).dtype == np.float32
    if feature_map is not POINTWISE:  # its function is one of NumPy's
        assert phi.queries(torch.tensor(A, dtype=torch.bfloat16)).dtype == torch.bfloat16


@every_map
def test_normalised_gram_is_the_ratio(feature_map, seed):
    A, B = data(seed)
    phi = spec_of(feature_map, None, 40).fit(A, B, seed)
    plain = phi.gram(A, B)
    sums = plain.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(phi.gram(A, B, normalize=True) * sums, plain, rtol=1e-7, atol=1e-7 * np.abs(plain).max())


@every_map
def test_gram_in_chunks_is_the_same(feature_map, seed, monkeypatch):
    A, B = data(seed)
    phi = spec_of(feature_map, None, 5).fit(A, B, seed)
    whole = phi.gram(A, B)
    monkeypatch.setattr(_gram, "CHUNK_BYTES", 1)
    monkeypatch.setattr(_gram, "_PRODUCT_ROWS", 1)
    for module in (_gram, _feature_map):
        monkeypatch.setattr(module, "rows_per_tile", lambda *arguments: 2)
    np.testing.assert_allclose(phi.gram(A, B), whole, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(phi.gram(A), phi.queries(A) @ phi.keys(A).T, rtol=1e-12, atol=1e-13)


@every_map
def test_specs_and_drawn_maps_are_values(feature_map, seed):
    spec = spec_of(feature_map, None, 5)
    names = vars(projections) | vars(rotations) | vars(kernels) | vars(maps) | vars(coefficients) | registered()
    assert eval(repr(spec), names | {"Approximation": Approximation, "numpy": np}) == spec
    assert pickle.loads(pickle.dumps(spec)) == spec and hash(pickle.loads(pickle.dumps(spec))) == hash(spec)
    assert spec != Approximation(spec.kernel, spec.map, spec.projection, 6)
    A, B = data(seed)
    phi = spec.fit(A, B, seed)
    assert spec.n_projections == 5 and phi.spec.planned and phi.spec == spec.plan(A, B, seed)
    again = pickle.loads(pickle.dumps(phi))
    np.testing.assert_array_equal(again.queries(A), phi.queries(A))
    assert repr(again) == repr(phi) and f"{D} -> {phi.n_features_out} features" in repr(phi)


@every_map
def test_one_int_gives_one_draw_and_one_generator_several(feature_map, seed):
    A, B = data(seed)
    spec = spec_of(feature_map, None, 5)
    np.testing.assert_array_equal(spec.fit(A, B, seed).queries(A), spec.fit(A, B, seed).queries(A))
    rng = np.random.default_rng(seed)
    difference = np.abs(spec.fit(A, B, rng).gram(A) - spec.fit(A, B, rng).gram(A)).max()
    assert difference == 0 if feature_map.deterministic else difference > 1e-3
    if feature_map.planned:
        np.testing.assert_array_equal(spec.draw(D, seed).queries(A), spec.fit(A, B, seed).queries(A))


def test_what_the_defaults_are():
    simplex = "Simplex(rotation=Haar(), radii='kernel')"
    assert Approximation(kernels.Softmax()).map == maps.DenseExponential()
    assert repr(Approximation(kernels.Softmax()).projection) == simplex
    assert repr(Approximation(kernels.Matern(1.5)).map) == "Trigonometric(single_last=False)"
    assert Approximation(kernels.Gaussian()).projection == Orthogonal(Haar())
    assert Approximation(kernels.Laplacian()).projection == IID()
    assert Approximation(kernels.Softmax(), maps.Hyperbolic()).projection == Orthogonal(Haar())
    for feature_map, kernel in HOMOGENEOUS_MAPS:
        assert Approximation(kernel).map == feature_map
        assert Approximation(kernel).projection == Orthogonal(Haar(), radii="fixed")


def test_unbiased_is_a_claim_of_all_three():
    softmax = kernels.Softmax()
    assert not Approximation(softmax, projection=Orthogonal(Hadamard())).unbiased
    assert not Approximation(softmax, projection=Orthogonal(Haar(), radii="fixed")).unbiased
    assert Approximation(kernels.Angular(), projection=Orthogonal(Haar(), radii="fixed")).unbiased
    assert Approximation(softmax, maps.Poisson()).unbiased


# Nobody is left out


@pytest.mark.parametrize("feature_map", catalogue.maps().values(), ids=repr)
def test_every_listed_map_meets_the_laws(feature_map):
    """Each is among the maps under the common laws, and under that of the mean if it says that it is unbiased."""
    held = [type(m) for m in MAPS]
    assert held.count(type(feature_map)) >= 1
    under_the_mean = [
        *(type(m) for m, _ in UNBIASED_SPECS),
        *(type(m) for m in (*DISCRETE_MAPS, *UNBIASED_ADAPTIVE_MAPS, *OTHER_ADAPTIVE_MAPS)),
        *(type(m) for m, _ in HOMOGENEOUS_MAPS),
    ]
    if any(feature_map.unbiased(P) and works(feature_map, P) for P in UNBIASED_PROJECTIONS):
        assert under_the_mean.count(type(feature_map)) >= 1, f"{feature_map!r} with {kernel_of(feature_map)!r}"


@pytest.mark.parametrize("kernel", catalogue.kernels().values(), ids=repr)
def test_every_listed_kernel_meets_the_law_of_the_mean(kernel):
    held = [k for k, _ in COUPLABLE] + OTHER_KERNELS
    assert held.count(kernel) >= 1


def test_every_listed_projection_meets_the_laws():
    assert set(catalogue.projections().values()) <= set(PROJECTIONS)
    used = [getattr(P, part, None) for P in PROJECTIONS for part in ("rotation", "geometry", "radial_law")]
    for part in (*catalogue.rotations().values(), *catalogue.geometries().values(), *catalogue.radii().values()):
        assert used.count(part) >= 1, part
