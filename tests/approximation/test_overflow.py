"""Finite rows give finite features or a sentence, never NaN; the check looks at no feature of ordinary rows."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from bochner import Approximation, kernels, maps, projections, rotations
from bochner.approximation import _overflow
from support.catalogue import MAPS, POINTWISE, spec_of

NO_DATA = np.float32(-3.4028235e38)
"""What rasters write where they have no data."""
ROWS = np.random.default_rng(0).standard_normal((60, 8)).astype(np.float32)
OVERFLOW = r"leave the range of float(32|64) on these rows, whose largest number is .*; rescale the data"


def with_no_data():
    X = ROWS.copy()
    X[7, 2] = NO_DATA
    return X


@pytest.mark.parametrize("kernel", (kernels.Gaussian(), kernels.Matern(1.5), kernels.Cauchy()), ids=repr)
@pytest.mark.parametrize("rotation", (rotations.Haar(), rotations.Hadamard()), ids=repr)
@pytest.mark.parametrize("sparse", (False, True))
def test_the_largest_float_is_refused(kernel, rotation, sparse):
    phi = Approximation(kernel, projection=projections.Orthogonal(rotation), n_projections=32).draw(8, rng=0)
    X = scipy.sparse.csr_array(with_no_data()) if sparse else with_no_data()
    for method in (phi.queries, phi.keys):
        with pytest.raises(ValueError, match=rf"FeatureMap\.{method.__name__}: the features of .*{OVERFLOW}"):
            method(X)
    out = np.empty((60, phi.n_features_out), np.float32)
    with pytest.raises(ValueError, match=OVERFLOW):
        phi.fill_queries(X, out)


@pytest.mark.parametrize("lengthscale", (1e-38, 1e-40, 1e-60, 1e-308))
def test_a_tiny_lengthscale_is_refused(lengthscale):
    phi = Approximation(kernels.Gaussian(lengthscale), n_projections=16).draw(8, rng=0)
    with pytest.raises(ValueError, match=OVERFLOW):
        phi.queries(ROWS)
    with pytest.raises(ValueError, match=OVERFLOW):
        phi.gram(ROWS)


@pytest.mark.parametrize("size", (1e20, 1e100, 1e160, 1e300))
@pytest.mark.parametrize("dtype", (np.float32, np.float64))
@pytest.mark.parametrize("feature_map", MAPS, ids=repr)
def test_no_map_answers_nan(feature_map, dtype, size):
    """Every call on finite rows returns finite numbers, infinite products aside, or raises a ValueError."""
    if size > float(np.finfo(dtype).max):
        pytest.skip("not a number of that type")
    small = ROWS[:20, :3].astype(dtype)
    phi = spec_of(feature_map, None, 5).fit(small, rng=0)
    huge = (size * small / np.abs(small).max()).astype(dtype)
    for call in (phi.queries, phi.keys, phi.log_queries, phi.gram, lambda X: phi.gram(X, normalize=phi.positive)):
        try:
            found = call(huge)
        except ValueError as error:
            assert "leave the range" in str(error) or "not positive" in str(error)
        else:
            assert not np.isnan(found).any()


def test_exponentials_that_overflow_are_refused_with_the_methods_that_do_not():
    X = np.full((2, 3), 400.0)
    with pytest.raises(ValueError, match=r"or use log_queries and log_keys or gram\(normalize=True\)"):
        Approximation(kernels.Softmax(), maps.Trigonometric(), n_projections=8).draw(3, rng=0).queries(X)
    phi = Approximation(kernels.Softmax(), maps.Positive(), n_projections=8).draw(3, rng=0)
    assert np.isfinite(phi.log_queries(X)).all()
    np.testing.assert_allclose(phi.gram(X, normalize=True).sum(axis=1), 1)


def test_ordinary_rows_are_not_looked_at(monkeypatch):
    def never(*args, **kwargs):
        raise AssertionError("features of ordinary rows were tested")

    monkeypatch.setattr("bochner.approximation._feature_map.check_overflow", never)
    for feature_map in MAPS:
        if feature_map is not POINTWISE:
            spec_of(feature_map, None, 5).fit(ROWS[:, :3], rng=0).queries(2 * ROWS[:, :3])


@pytest.mark.parametrize("largest", (1e14, 1e30))
def test_rows_are_safe_by_their_length_and_that_of_the_longest_row_of_w(largest):
    x = np.ones((2, 2), np.float32)
    assert _overflow.noticing(lambda: 3, np.float32(largest) * x, 1.0) == (3, largest > 1e15)
    assert _overflow.noticing(lambda: 3, x, largest) == (3, largest > 1e15)


def test_a_gram_matrix_beyond_the_memory_says_so():
    X = np.zeros((3_000_000, 1), np.float32)
    phi = Approximation(kernels.Gaussian(), n_projections=2).draw(1, rng=0)
    for owner, call in (("FeatureMap.gram", phi.gram), ("Gaussian", kernels.Gaussian())):
        with pytest.raises(
            ValueError, match=rf"{owner}: this takes about .* GiB, more than .*; take fewer rows at a time"
        ):
            call(X)
