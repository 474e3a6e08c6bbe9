"""Grids of frequencies and sines in a box: their error, its bound, and where they are refused."""

import numpy as np
import pytest

from bochner import Approximation, catalogue, kernels, maps

BOXED = [maps.FourierGrid(), maps.HilbertSpace()]
KERNELS = [kernels.Gaussian(0.7), kernels.Matern(1.5, 0.7), kernels.Matern(0.5), kernels.Laplacian(0.7)]


def corners_and_points(d, n=60):
    """Points in a cube, with all of its corners: the error is largest at opposite ones."""
    ends = np.stack(np.meshgrid(*[[-1.0, 1.0]] * d, indexing="ij"), axis=-1).reshape(-1, d)
    return np.concatenate([ends, np.random.default_rng(0).uniform(-1, 1, (n, d))])


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("feature_map", BOXED, ids=repr)
def test_error_is_within_the_bound_and_falls(feature_map, kernel, d):
    X, errors = corners_and_points(d), []
    for m in (15, 100, 500):
        plan = Approximation(kernel, feature_map, n_projections=m).plan(X)
        error = np.abs(plan.draw(d).gram(X) - kernel(X))
        assert error.max() <= plan.map.bound(kernel, m) * (1 + 1e-6) + 1e-13
        np.testing.assert_allclose(plan.mse(X), error**2, atol=1e-14)
        errors.append(error.max())
    assert errors[2] < 0.75 * errors[0]


@pytest.mark.parametrize("d", [1, 2])
def test_error_of_all_frequencies_is_that_of_the_images(d):
    """Poisson's formula, with a margin so small that images count and so many frequencies that nothing is left out."""
    kernel, X = kernels.Gaussian(), corners_and_points(d, 10)
    phi = Approximation(kernel, maps.FourierGrid(margin=1.0), n_projections=401).fit(X)
    shifts = 3.0 * np.stack(np.meshgrid(*[range(-3, 4)] * d, indexing="ij"), axis=-1).reshape(-1, d)
    summed = sum(kernel(X, X + shift) for shift in shifts)
    np.testing.assert_allclose(phi.gram(X), summed, atol=1e-12)


def test_sines_are_the_kernel_of_the_mirror_images():
    """One column: the walls are at 1.5, so that the images of y are y + 6 n and 3 - y + 6 n, with a minus."""
    kernel, X = kernels.Gaussian(), corners_and_points(1, 10)
    phi = Approximation(kernel, maps.HilbertSpace(margin=1.0), n_projections=100).fit(X)
    summed = sum(kernel(X, X + 6.0 * n) - kernel(X, 3.0 - X + 6.0 * n) for n in range(-3, 4))
    np.testing.assert_allclose(phi.gram(X), summed, atol=1e-12)


@pytest.mark.parametrize("feature_map", BOXED, ids=repr)
def test_fewer_features_than_random_ones_need(feature_map):
    """At equal width in two columns the largest error is a tenth of that of orthogonal random features."""
    kernel, X = kernels.Matern(2.5), corners_and_points(2)
    error = np.abs(Approximation(kernel, feature_map, n_projections=200).fit(X).gram(X) - kernel(X)).max()
    random = np.abs(Approximation(kernel).with_width(200).draw(2, rng=0).gram(X) - kernel(X)).max()
    assert error < random / 10


@pytest.mark.parametrize("feature_map", BOXED, ids=repr)
def test_box_moves_with_the_bandwidth(feature_map):
    """A plan, rescaled, is the plan of the other bandwidth."""
    X = corners_and_points(2)
    old, new = kernels.Matern(1.5, (0.5, 1.0)), kernels.Matern(1.5, (1.0, 4.0))
    planned = Approximation(old, feature_map, n_projections=51).plan(X).map
    moved = planned.rescaled(old, new)
    np.testing.assert_allclose(moved.low, Approximation(new, feature_map, n_projections=51).plan(X).map.low)
    assert planned.rescaled(old, old) is planned


@pytest.mark.parametrize("feature_map", BOXED, ids=repr)
def test_candidates_have_them_for_few_columns(feature_map):
    def tried(d):
        return any(isinstance(s.map, type(feature_map)) for s in catalogue.candidates(kernels.Gaussian(), d))

    assert tried(3) and not tried(4)


@pytest.mark.parametrize("feature_map", BOXED, ids=repr)
def test_what_is_refused(feature_map):
    name, cls, X = type(feature_map).__name__, type(feature_map), np.zeros((5, 4))
    with pytest.raises(ValueError, match=f"{name}: it serves data of at most 3 columns, got 4"):
        Approximation(kernels.Gaussian(), feature_map).fit(X)
    with pytest.raises(ValueError, match="needs a kernel of the difference with a spectral density"):
        Approximation(kernels.Cauchy(), feature_map)
    with pytest.raises(ValueError, match=f"{name}.*call fit\\(X\\) with data, whose box it needs"):
        Approximation(kernels.Gaussian(), feature_map).draw(2)
    with pytest.raises(ValueError, match=f"{name}: its box has 1 columns, the data has 2"):
        Approximation(kernels.Gaussian(), cls(low=[0.0], high=[1.0])).draw(2)
    with pytest.raises(ValueError, match=f"{name}: low and high must be two corners"):
        cls(low=[1.0], high=[0.0])
    with pytest.raises(ValueError, match=f"{name}: low and high must be two corners"):
        cls(low=[1.0])
    with pytest.raises(ValueError, match=f"{name}: low must be a corner of a box"):
        cls(low="here", high=[0.0])
    with pytest.raises(ValueError, match=f"{name}: margin must be"):
        cls(margin=0.0)
    with pytest.raises(ValueError, match="Cauchy: its spectral density has no closed form"):
        kernels.Cauchy().spectral_density(np.ones((1, 1)))
