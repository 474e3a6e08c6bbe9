"""Laws of all maps, over every projection and kernel that they work with."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch

import bochner
from bochner import Approximation, kernels, maps, projections, rotations
from bochner.approximation import gram as gram_module
from bochner.maps import coefficients
from bochner.projections import IID, Orthogonal, Quadrature
from bochner.rotations import Haar, Hadamard
from catalogue import (
    ADAPTIVE_MAPS,
    DISCRETE_MAPS,
    FIXED_MAPS,
    HOMOGENEOUS_MAPS,
    KERNELS,
    MAPS,
    POINTWISE,
    PROJECTIONS,
    UNBIASED_PROJECTIONS,
    spec_of,
)
from checks import check_mean, probes

D = 3
every_map = pytest.mark.parametrize("feature_map", MAPS, ids=repr)


def data(seed=0, n=30):
    rng = np.random.default_rng(seed)
    return 0.6 * rng.standard_normal((n, D)), 0.6 * rng.standard_normal((n - 9, D)) + 0.2


def pairs(seed=0):
    """Pairs whose sum lies on an axis, on the diagonal and on a generic direction, at norm 1.2, and differ besides."""
    Z = np.stack(list(probes(D, 1.2, seed).values()))
    apart = np.array([0.3, -0.4, 0.25])
    return Z / 2 + apart, Z / 2 - apart


def estimates(spec, X, Y, draws, seed):
    """Estimates of k(x_i, y_i) over independent redraws, (draws, pairs); data-driven constants are chosen anew."""
    rng = np.random.default_rng(seed)
    A, B = data()
    drawn = (spec.fit(A, B, rng) for _ in range(draws))
    return np.array([np.sum(phi.queries(X) * phi.keys(Y), axis=-1) for phi in drawn])


def check_mean_is_the_kernel(spec, seed, draws):
    """Forty rows a draw: a mean of exponentials of one row has too heavy a tail for a normal test."""
    X, Y = pairs(seed)
    exact = spec.kernel.paired(X, Y)
    for k, values in enumerate(estimates(spec, X, Y, draws, seed).T):
        check_mean(values, float(exact[k]), f"{spec} pair {k}")


@pytest.mark.parametrize("feature_map", FIXED_MAPS, ids=repr)
@pytest.mark.parametrize("projection", UNBIASED_PROJECTIONS, ids=repr)
def test_mean_is_the_kernel(feature_map, projection, seed):
    """Softmax; the Gaussian kernel's estimate is a fixed multiple of it, which another test holds."""
    spec = spec_of(feature_map, projection, 41)
    assert spec.unbiased
    check_mean_is_the_kernel(spec, seed, 200)


@pytest.mark.parametrize("feature_map", [*DISCRETE_MAPS, *ADAPTIVE_MAPS], ids=repr)
def test_mean_is_the_kernel_with_constants_from_data(feature_map, seed):
    check_mean_is_the_kernel(
        spec_of(feature_map, None, 41), seed, 60 if isinstance(feature_map, maps.ClusterHybrid) else 150
    )


@pytest.mark.parametrize(("feature_map", "kernel"), HOMOGENEOUS_MAPS, ids=repr)
@pytest.mark.parametrize(
    "projection",
    [*UNBIASED_PROJECTIONS, Orthogonal(Haar(), "fixed"), Quadrature(Haar(), origin="resample")],
    ids=repr,
)
def test_mean_is_the_kernel_for_homogeneous_maps(feature_map, kernel, projection, seed):
    """Uniform directions are enough: fixed radii and resampled origins are unbiased too."""
    spec = Approximation(kernel, feature_map, projection, 41)
    assert spec.unbiased
    check_mean_is_the_kernel(spec, seed, 200)


@pytest.mark.parametrize("kernel", [k for k in KERNELS if k.shift_invariant], ids=repr)
@pytest.mark.parametrize("projection", UNBIASED_PROJECTIONS, ids=repr)
def test_mean_is_the_kernel_for_shift_invariant_kernels(kernel, projection, seed):
    if kernel.spectrum == "product" and projection != IID():
        with pytest.raises(ValueError, match="use IID"):
            Approximation(kernel, maps.Trigonometric(), projection, 5)
        return
    check_mean_is_the_kernel(Approximation(kernel, maps.Trigonometric(), projection, 41), seed, 200)


@pytest.mark.parametrize("projection", UNBIASED_PROJECTIONS, ids=repr)
def test_pointwise_estimates_the_kernel_that_it_induces(projection, seed):
    """E f(w.x) f(w.y) for f = u^2 is |x|^2|y|^2 + 2(x.y)^2."""
    spec = Approximation(map=maps.Pointwise(np.square), projection=projection, n_projections=41)
    X, Y = pairs(seed)
    exact = np.sum(X**2, axis=1) * np.sum(Y**2, axis=1) + 2 * np.sum(X * Y, axis=1) ** 2
    for k, values in enumerate(estimates(spec, X, Y, 200, seed).T):
        check_mean(values, exact[k], f"{spec} pair {k}")


@pytest.mark.parametrize("feature_map", [*FIXED_MAPS, *DISCRETE_MAPS, *ADAPTIVE_MAPS], ids=repr)
def test_gaussian_features_are_softmax_features_without_the_norms(feature_map, seed):
    X, Y = pairs(seed)
    A, B = data(seed)
    softmax = Approximation(kernels.Softmax(), feature_map, n_projections=7).fit(A, B, seed)
    gaussian = Approximation(kernels.Gaussian(), feature_map, n_projections=7).fit(A, B, seed)
    factor = np.exp(-np.sum(X**2, axis=1) / 2)[:, None] * np.exp(-np.sum(Y**2, axis=1) / 2)[None]
    np.testing.assert_allclose(gaussian.gram(X, Y), factor * softmax.gram(X, Y), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("feature_map", [*FIXED_MAPS, *(m for m, _ in HOMOGENEOUS_MAPS), POINTWISE], ids=repr)
def test_every_projection_works_with_every_map(feature_map, seed):
    """Width, symmetry and positivity as declared, on all projections of the catalogue, approximate ones included."""
    X, Y = pairs(seed)
    for projection in PROJECTIONS:
        phi = spec_of(feature_map, projection, 7).draw(D, seed)
        queries, keys = phi.queries(X), phi.keys(Y)
        assert queries.shape == keys.shape == (3, phi.n_features_out)
        np.testing.assert_allclose(phi.gram(X, Y), queries @ keys.T, rtol=1e-12, atol=1e-12)
        if phi.symmetric:
            np.testing.assert_array_equal(phi.keys(X), queries)
        else:
            assert not feature_map.symmetric or projection.sample(D, 7, 0).signed
        if phi.positive:
            assert (queries > 0).all() and (keys > 0).all()
        assert np.isfinite(queries).all() and np.isfinite(keys).all()


@every_map
def test_symmetry_and_positivity_are_declared_truly(feature_map, seed):
    A, B = data(seed)
    phi = spec_of(feature_map, None, 9).fit(A, B, seed)
    if feature_map.symmetric:
        assert phi.symmetric
        np.testing.assert_array_equal(phi.queries(B), phi.keys(B))
    if not phi.symmetric:
        assert np.abs(phi.queries(B) - phi.keys(B)).max() > 1e-3
    assert phi.positive == (feature_map.positive or repr(feature_map) == repr(maps.GeneralizedExponential("optimal")))
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


POSITIVE = [m for m in MAPS if m.positive]


@pytest.mark.parametrize("feature_map", POSITIVE, ids=repr)
@pytest.mark.parametrize("dtype", (np.float32, np.float64))
def test_large_norms_give_finite_normalised_results(feature_map, dtype, seed):
    """|x|^2 = 400: the plain features overflow or vanish, the normalised Gram matrix is exact all the same."""
    A, B = data(seed)
    A, B = (20 * Z / np.linalg.norm(Z, axis=1, keepdims=True) for Z in (A, B))
    phi = spec_of(feature_map, None, 16).fit(A, B, seed)
    weights = phi.gram(A.astype(dtype), B.astype(dtype), normalize=True)
    assert np.isfinite(weights).all() and weights.dtype == dtype
    np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=1e-4)
    logs = np.logaddexp.reduce(phi.log_queries(A)[:, None, :] + phi.log_keys(B)[None, :, :], axis=-1)
    exact = np.exp(logs - np.logaddexp.reduce(logs, axis=1, keepdims=True))
    # float32 logarithms of size 400 carry errors of 400 eps
    np.testing.assert_allclose(weights, exact, atol=0.02 if dtype == np.float32 else 1e-9)


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
    monkeypatch.setattr(gram_module, "_CHUNK_NUMBERS", 7 * phi.n_features_out)
    np.testing.assert_allclose(phi.gram(A, B), whole, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(phi.gram(A), phi.queries(A) @ phi.keys(A).T, rtol=1e-12, atol=1e-13)


@every_map
def test_specs_and_drawn_maps_are_values(feature_map, seed):
    spec = spec_of(feature_map, None, 5)
    names = vars(projections) | vars(rotations) | vars(kernels) | vars(maps) | vars(coefficients)
    assert eval(repr(spec), names | {"Approximation": Approximation, "numpy": np}) == spec
    assert pickle.loads(pickle.dumps(spec)) == spec and hash(pickle.loads(pickle.dumps(spec))) == hash(spec)
    assert spec != Approximation(spec.kernel, spec.map, spec.projection, 6)
    A, B = data(seed)
    phi = spec.fit(A, B, seed)
    assert spec.n_projections == 5 and phi.spec == spec
    again = pickle.loads(pickle.dumps(phi))
    np.testing.assert_array_equal(again.queries(A), phi.queries(A))
    assert repr(again) == repr(phi) and f"{D} -> {phi.n_features_out} features" in repr(phi)


@every_map
def test_one_int_gives_one_draw_and_one_generator_several(feature_map, seed):
    A, B = data(seed)
    spec = spec_of(feature_map, None, 5)
    np.testing.assert_array_equal(spec.fit(A, B, seed).queries(A), spec.fit(A, B, seed).queries(A))
    rng = np.random.default_rng(seed)
    assert np.abs(spec.fit(A, B, rng).gram(A) - spec.fit(A, B, rng).gram(A)).max() > 1e-3
    if not feature_map.needs_data:
        np.testing.assert_array_equal(spec.draw(D, seed).queries(A), spec.fit(A, B, seed).queries(A))


@pytest.mark.parametrize("feature_map", [m for m in MAPS if m.needs_data], ids=repr)
def test_maps_with_constants_to_choose_ask_for_data(feature_map):
    with pytest.raises(ValueError, match=r"has constants to choose; call fit\(X, Y\) with data"):
        spec_of(feature_map, None, 5).draw(D, 0)


@every_map
@pytest.mark.parametrize("kernel", [*KERNELS, None], ids=repr)
def test_every_pair_of_kernel_and_map_works_or_says_why_not(feature_map, kernel):
    if feature_map.serves(kernel):
        spec = Approximation(kernel, feature_map, n_projections=3)
        assert spec.fit(*data(), rng=0).gram(*data()).shape == (30, 21)
        return
    if kernel is None:
        message = r"Approximation: .* needs .*, and no kernel was given; pass kernel=\.\.\., or use Pointwise\(f\)"
    else:
        message = r"Approximation: .* cannot estimate .*: it needs .*; for this kernel use .*\."
    with pytest.raises(ValueError, match=message):
        Approximation(kernel, feature_map)


@pytest.mark.parametrize("feature_map", DISCRETE_MAPS, ids=repr)
@pytest.mark.parametrize("projection", PROJECTIONS, ids=repr)
def test_discrete_maps_have_no_rows_to_couple(feature_map, projection):
    if projection == IID():
        assert Approximation(kernels.Softmax(), feature_map, projection) == Approximation(
            kernels.Softmax(), feature_map
        )
        return
    with pytest.raises(ValueError, match=r"cannot use .*: it draws tables of integers .* use IID\(\)\."):
        Approximation(kernels.Softmax(), feature_map, projection)


def test_what_the_defaults_are():
    simplex = "Simplex(rotation=Haar(), radii='kernel')"
    assert repr(Approximation(kernels.Softmax()).map) == "OptimalPositive(quantile=None, antithetic=False)"
    assert repr(Approximation(kernels.Softmax()).projection) == simplex
    assert repr(Approximation(kernels.Matern(1.5)).map) == "Trigonometric()"
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


BAD = [
    (lambda: Approximation(), ValueError, r"Approximation: give a kernel, or a map that induces one"),
    (lambda: Approximation("rbf"), TypeError, r"Approximation: kernel must be a kernel such as kernels\.Gaussian\(\)"),
    (
        lambda: Approximation(kernels.Gaussian(), "trig"),
        TypeError,
        r"map must be a map such as maps\.Trigonometric\(\)",
    ),
    (lambda: Approximation(kernels.Gaussian(), None, "iid"), TypeError, r"projection must be a projection such as"),
    (lambda: Approximation(kernels.Gaussian(), n_projections=0), ValueError, r"n_projections must be an integer of at"),
    (lambda: maps.GeneralizedExponential(0.2), ValueError, r"A must have a real part below 1/8, .* got 0\.2\."),
    (lambda: maps.GeneralizedExponential("best"), ValueError, r"A must be one of 'optimal', got 'best'\."),
    (lambda: maps.GeneralizedExponential(None), TypeError, r"A must be a real or complex number, got None\."),
    (lambda: maps.GeneralizedExponential(0.0, 2), ValueError, r"s must be one of 1, -1, None, got 2\."),
    (lambda: maps.OptimalPositive(quantile=1.5), ValueError, r"quantile must be a number between 0 and 1, got 1\.5\."),
    (lambda: maps.Positive(antithetic=1), TypeError, r"Positive: antithetic must be True or False, got 1\."),
    (lambda: maps.ComplexExponential("i"), TypeError, r"A must be a number, a diagonal or a square matrix, got 'i'\."),
    (lambda: maps.ComplexExponential(np.ones((2, 3))), ValueError, r"square matrix, got shape \(2, 3\)\."),
    (lambda: maps.ComplexExponential((1.0, 0.0)), ValueError, r"A must be finite and invertible"),
    (lambda: maps.Poisson(rate=-1.0), ValueError, r"Poisson: rate must be a positive number, got -1\.0\."),
    (lambda: maps.Geometric(success=1.0), ValueError, r"success must be a number between 0 and 1, got 1\.0\."),
    (lambda: maps.Rectified(3), ValueError, r"Rectified: order must be one of 0, 1, 2, got 3\."),
    (lambda: maps.Pointwise(3), TypeError, r"Pointwise: f must be a function of an array, got 3\."),
    (lambda: maps.AngularHybrid(0), ValueError, r"n_coefficients must be an integer of at least 1, got 0\."),
    (
        lambda: maps.GaussianHybrid(width=1.0),
        ValueError,
        r"GaussianHybrid: width needs matrices; leave one of them out\.",
    ),
    (lambda: maps.GaussianHybrid(sigma=1.0, matrices=(1.0,)), ValueError, r"sigma belongs to the bipolar hybrid"),
    (lambda: maps.GaussianHybrid(matrices=(0.0,)), ValueError, r"matrices must be invertible"),
    (lambda: maps.GaussianHybrid(matrices=()), TypeError, r"matrices must be a list of at least one, such as \[M\]"),
    (
        lambda: maps.GaussianHybrid(matrices=np.eye(3)),
        TypeError,
        r"matrices must be a list of at least one, such as \[M\]",
    ),
    (
        lambda: maps.GaussianHybrid(matrices=("a",)),
        TypeError,
        r"finite real numbers, diagonals or symmetric matrices, got",
    ),
    (lambda: maps.GaussianHybrid(matrices=(np.nan,)), ValueError, r"finite real numbers, .* got one of shape \(\)"),
    (
        lambda: maps.GaussianHybrid(matrices=(1.0,), default="pos"),
        TypeError,
        r"default must be a map such as Hyperbolic",
    ),
    (lambda: maps.GaussianHybrid(matrices=(((1, 2), (0, 1)),)), ValueError, r"symmetric matrices"),
    (lambda: maps.ClusterHybrid(0, 2), ValueError, r"n_query_clusters must be an integer of at least 1, got 0\."),
    (lambda: maps.ClusterHybrid(2, 2, "soft"), ValueError, r"coefficients must be one of 'zero-one', 'gaussian'"),
    (
        lambda: maps.ClusterHybrid(2, 2, width=1.0),
        ValueError,
        r"width and n_coefficients belong to coefficients='gaussian'",
    ),
    (lambda: maps.ClusterHybrid(2, 2, light=2), ValueError, r"light must be a number between 0 and 1, got 2\."),
    (
        lambda: maps.ClusterHybrid(2, 2, default=maps.Poisson()),
        ValueError,
        r"ClusterHybrid: Poisson\(.* has no W to share",
    ),
    (lambda: maps.ClusterHybrid(2, 2, default="pos"), TypeError, r"default must be a map such as Hyperbolic\(\)"),
    (lambda: maps.ClusterHybrid(2, 2, default=maps.Sign()), ValueError, r"the base Sign\(\) needs the angular kernel"),
    (
        lambda: maps.Hybrid((maps.Sign(), maps.Positive()), (coefficients.AngularCoefficient(),)),
        ValueError,
        r"Hybrid: the base Sign\(\) needs the angular kernel, .* but hybrids estimate the Gaussian and the softmax kernel",
    ),
    (lambda: maps.Hybrid((maps.Positive(),), ()), ValueError, r"one base more than coefficients, got 1 bases and 0"),
    (lambda: maps.Hybrid(maps.Positive(), ()), TypeError, r"bases must be a sequence of maps"),
    (
        lambda: maps.Hybrid((maps.Poisson(), maps.Positive()), (coefficients.AngularCoefficient(),)),
        ValueError,
        r"has no W to share",
    ),
]


@pytest.mark.parametrize(("make", "error", "message"), BAD)
def test_bad_parameters_are_explained(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_bad_data_is_explained():
    spec = Approximation(kernels.Softmax(), maps.Positive(), n_projections=4)
    phi = spec.draw(3, 0)
    with pytest.raises(
        ValueError, match=r"FeatureMap\.queries: expected an array whose last axis is 3, got shape \(2, 4\)"
    ):
        phi.queries(np.ones((2, 4)))
    with pytest.raises(ValueError, match=r"FeatureMap\.keys: expected finite numbers, got nan"):
        phi.keys([[np.nan, 1.0, 2.0]])
    with pytest.raises(ValueError, match=r"Approximation\.fit: expected points as rows"):
        spec.fit(np.ones(3))
    with pytest.raises(ValueError, match=r"Y must have X's columns"):
        spec.fit(np.ones((2, 3)), np.ones((2, 4)))
    with pytest.raises(ValueError, match=r"A has 2 rows, but the data has d = 3 columns"):
        Approximation(kernels.Softmax(), maps.ComplexExponential((1.0, 2.0))).draw(3)
    with pytest.raises(ValueError, match=r"4 clusters of queries need 4 distinct rows, got 1\."):
        Approximation(kernels.Softmax(), maps.ClusterHybrid(4, 1)).fit(np.ones((9, 3)))
    with pytest.raises(ValueError, match=r"Pointwise: f must return one number for each projection"):
        Approximation(map=maps.Pointwise(np.sum)).draw(3, 0).queries(np.ones((2, 3)))


def test_more_bad_data_is_explained():
    spec = Approximation(kernels.Softmax(), maps.Positive(), n_projections=4)
    phi = spec.draw(3, 0)
    with pytest.raises(ValueError, match=r"FeatureMap\.gram: expected points as rows"):
        phi.gram(np.ones(3))
    with pytest.raises(TypeError, match=r"FeatureMap\.gram: X and Y must come from the same array library"):
        phi.gram(np.ones((2, 3)), torch.ones(2, 3))
    with pytest.raises(TypeError, match=r"Approximation\.fit: X and Y must come from the same array library"):
        spec.fit(np.ones((2, 3)), torch.ones(2, 3))
    for value in (np.nan, 1e200):
        with pytest.raises(
            ValueError, match=r"Approximation\.fit: expected finite numbers whose squares are finite too"
        ):
            Approximation(kernels.Softmax()).fit(torch.full((5, 3), value, dtype=torch.float64))
    hybrid = maps.Hybrid((maps.Positive(), maps.Positive()), (coefficients.GaussianCoefficient((1, 2), (1, 2)),))
    with pytest.raises(ValueError, match=r"left and right act on 2 columns, the data has 3"):
        Approximation(kernels.Softmax(), hybrid).draw(3)
    with pytest.raises(ValueError, match="lengthscale"):
        Approximation(kernels.Gaussian((1.0, 2.0))).draw(3)


@every_map
def test_single_rows_and_no_rows(feature_map, seed):
    A, B = data(seed)
    phi = spec_of(feature_map, None, 5).fit(A, B, seed)
    np.testing.assert_allclose(phi.queries(A[0]), phi.queries(A)[0], rtol=1e-12, atol=1e-12)
    assert phi.queries(A[:0]).shape == (0, phi.n_features_out)
    assert phi.gram(A[:1], B).shape == (1, len(B))


@every_map
@pytest.mark.parametrize("scale", (0.0, 1e-7, 1e-3))
def test_zero_and_tiny_data(feature_map, scale, seed):
    """Constants chosen from nothing are still good: estimates near zero are near the kernel."""
    if isinstance(feature_map, maps.ClusterHybrid) and not scale:
        pytest.skip("one point makes no clusters")
    A, B = (scale * Z for Z in data(seed))
    spec = spec_of(feature_map, None, 200)
    phi = spec.fit(A, B, seed)
    for dtype in (np.float32, np.float64):
        estimate = phi.gram(A.astype(dtype), B.astype(dtype))
        assert np.isfinite(estimate).all()
        if isinstance(spec.kernel, kernels.Softmax):
            # a mean of 200 terms of variance of order one, rates and shifts included
            np.testing.assert_allclose(estimate, spec.kernel(A, B), atol=0.5)


@pytest.mark.parametrize("feature_map", [maps.ClusterHybrid(3, 3, diagonal="real"), maps.Poisson(rate=20.0)], ids=repr)
@pytest.mark.parametrize("dtype", (np.float32, np.float64))
def test_features_that_vanish_do_not_spoil_the_stabiliser(feature_map, dtype, seed):
    A, B = data(seed)
    A, B = (20 * np.abs(Z) / np.linalg.norm(Z, axis=1, keepdims=True) for Z in (A, B))
    B[:4, 0] = 0  # powers of zero vanish
    phi = Approximation(kernels.Softmax(), feature_map, n_projections=64).fit(A, B, seed)
    weights = phi.gram(A.astype(dtype), B.astype(dtype), normalize=True)
    assert np.isfinite(weights).all()
    np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=1e-4)


@pytest.mark.parametrize("feature_map", DISCRETE_MAPS, ids=repr)
def test_gradients_at_zero_coordinates(feature_map, seed):
    phi = Approximation(kernels.Softmax(), feature_map, n_projections=20).draw(3, seed)
    x = torch.tensor([[0.0, 0.5, 0.0], [0.0, 0.0, -0.4]], dtype=torch.float64, requires_grad=True)
    (jacobian,) = torch.autograd.functional.jacobian(lambda z: phi.queries(z), (x,))
    step = 1e-6
    for i, j in ((0, 0), (0, 2), (1, 1)):
        moved = [x.detach().clone() for _ in range(2)]
        moved[0][i, j], moved[1][i, j] = step, -step
        slope = (phi.queries(moved[0]) - phi.queries(moved[1])) / (2 * step)
        np.testing.assert_allclose(jacobian[..., i, j].numpy(), slope.numpy(), atol=1e-4)


def test_mixed_precisions_take_the_wider_one(seed):
    A, B = data(seed)
    phi = Approximation(kernels.Softmax(), maps.Positive(), n_projections=5).draw(3, seed)
    assert phi.gram(A.astype(np.float32), B).dtype == phi.gram(A, B.astype(np.float32)).dtype == np.float64
    half = torch.tensor(A, dtype=torch.bfloat16)
    shifted = Approximation(kernels.Gaussian(1.7), maps.Poisson(positive=True), n_projections=5).fit(half, rng=seed)
    assert torch.isfinite(shifted.log_queries(half)).all()


def test_positive_discrete_maps_stay_unbiased_below_their_shift():
    A, B = data()
    phi = Approximation(kernels.Gaussian(), maps.Poisson(positive=True), n_projections=50).fit(A, B, 0)
    low = A - 3
    assert (phi.queries(low) < 0).any()
    with pytest.raises(ValueError, match="some rows fall below the data"):
        phi.log_queries(low)


def test_lengthscale_and_scale_act_on_the_data():
    X, Y = pairs()
    wide = Approximation(kernels.Gaussian((0.5, 1.0, 2.0)), n_projections=6).draw(3, 0)
    unit = Approximation(kernels.Gaussian(), n_projections=6).draw(3, 0)
    np.testing.assert_allclose(wide.gram(X, Y), unit.gram(X / [0.5, 1.0, 2.0], Y / [0.5, 1.0, 2.0]), rtol=1e-12)
    scaled = Approximation(kernels.Softmax(0.25), maps.Positive(), n_projections=6).draw(3, 0)
    plain = Approximation(kernels.Softmax(), maps.Positive(), n_projections=6).draw(3, 0)
    np.testing.assert_allclose(scaled.gram(X, Y), plain.gram(X / 2, Y / 2), rtol=1e-12)


def test_results_do_not_depend_on_the_number_of_threads():
    X = np.random.default_rng(0).standard_normal((1500, 100)).astype(np.float32)
    phi = Approximation(kernels.Gaussian(10.0), projection=Orthogonal(rotations.StructuredGivens())).draw(100, 0)
    with bochner.threads(1):
        one = phi.queries(X)
    with bochner.threads(4):
        np.testing.assert_array_equal(phi.queries(X), one)
