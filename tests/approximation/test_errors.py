"""Whatever does not work together, or is no data, is refused in a sentence."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bochner import Approximation, kernels, maps
from bochner.maps import coefficients
from bochner.projections import IID
from support.catalogue import DISCRETE_MAPS, KERNELS, MAPS, PROJECTIONS, D, data, spec_of

every_map = pytest.mark.parametrize("feature_map", MAPS, ids=repr)


@pytest.mark.parametrize("feature_map", [m for m in MAPS if not m.planned], ids=repr)
def test_maps_with_constants_to_choose_ask_for_data(feature_map):
    with pytest.raises(ValueError, match=r"has constants to choose; call fit\(X(, Y)?\) with data"):
        spec_of(feature_map, None, 5).draw(D, 0)


@every_map
def test_every_map_works_with_the_kernels_it_serves(feature_map):
    for kernel in filter(feature_map.serves, [*KERNELS, None]):
        spec = Approximation(kernel, feature_map, n_projections=3)
        assert spec.fit(*data(), rng=0).gram(*data()).shape == (30, 21), kernel


@every_map
def test_every_other_pair_of_kernel_and_map_says_why_not(feature_map):
    for kernel in [*KERNELS, None]:
        if feature_map.serves(kernel):
            continue
        message = r"Approximation: .* cannot estimate .*: it needs .*; for this kernel use .*\."
        if kernel is None:
            message = r"Approximation: .* needs .*, and no kernel was given; pass kernel=\.\.\., or use Pointwise\(f\)"
        with pytest.raises(ValueError, match=message):
            Approximation(kernel, feature_map)


@pytest.mark.parametrize("feature_map", DISCRETE_MAPS, ids=repr)
def test_discrete_maps_are_independent_by_default(feature_map):
    assert Approximation(kernels.Softmax(), feature_map).projection == IID()


@pytest.mark.parametrize("projection", [p for p in PROJECTIONS if p != IID()], ids=repr)
def test_discrete_maps_have_no_rows_to_couple(projection):
    with pytest.raises(ValueError, match=r"cannot use .*: it has no rows of W to couple; .* use IID\(\)\."):
        Approximation(kernels.Softmax(), maps.Poisson(), projection)


BAD = [
    (lambda: Approximation(), ValueError, r"Approximation: give a kernel, or a map that induces one"),
    (lambda: Approximation(3), TypeError, r"Approximation: kernel must be a kernel such as kernels\.Gaussian\(\)"),
    (
        lambda: Approximation(kernels.Gaussian(), 3),
        TypeError,
        r"map must be a map such as maps\.Trigonometric\(\)",
    ),
    (lambda: Approximation(kernels.Gaussian(), None, 3), TypeError, r"projection must be a projection such as"),
    (lambda: Approximation(kernels.Gaussian(), n_projections=0), ValueError, r"n_projections must be an integer of at"),
    (lambda: maps.GeneralizedExponential(0.2), ValueError, r"A must have a real part below 1/8, .* got 0\.2\."),
    (lambda: maps.GeneralizedExponential("best"), ValueError, r"A must be one of 'optimal', got 'best'\."),
    (lambda: maps.GeneralizedExponential(None), TypeError, r"A must be a real or complex number, got None\."),
    (lambda: maps.GeneralizedExponential(0.0, 2), ValueError, r"s must be one of 1, -1, None, got 2\."),
    (lambda: maps.OptimalPositive(quantile=1.5), ValueError, r"quantile must be a number between 0 and 1, got 1\.5\."),
    (
        lambda: maps.OptimalPositive(antithetic=1),
        TypeError,
        r"OptimalPositive: antithetic must be True or False, got 1\.",
    ),
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
            ValueError, match=r"Approximation\.plan: expected finite numbers whose squares are finite too"
        ):
            Approximation(kernels.Softmax()).fit(torch.full((5, 3), value, dtype=torch.float64))
    hybrid = maps.Hybrid((maps.Positive(), maps.Positive()), (coefficients.GaussianCoefficient((1, 2), (1, 2)),))
    with pytest.raises(ValueError, match=r"left and right act on 2 columns, the data has 3"):
        Approximation(kernels.Softmax(), hybrid).draw(3)
    with pytest.raises(ValueError, match="lengthscale"):
        Approximation(kernels.Gaussian((1.0, 2.0))).draw(3)
