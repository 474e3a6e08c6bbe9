"""Widths: as many rows as fit, and whole rules where the dimension is known."""

import numpy as np
import pytest

import bochner
from bochner import Approximation, kernels, maps
from bochner.projections import Orthogonal, Quadrature
from support.checks import check_mean, z_score
from support.draws import squared_errors
from support.map_variances import rotated


@pytest.mark.parametrize(("d", "width", "rows"), [(8, 101, 45), (8, 37, 18), (8, 17, 8), (4, 21, 10), (300, 64, 31)])
def test_a_quadrature_has_whole_rules_if_one_fits(d, width, rows):
    spec = bochner.mechanism("qbf-h").with_width(width, d=d)
    assert spec.n_projections == rows
    assert spec.n_features_out <= width


def test_without_the_dimension_rows_fill_the_width():
    assert bochner.mechanism("qbf-h").with_width(101).n_projections == 50
    assert Approximation(kernels.Gaussian()).with_width(101, d=8).n_projections == 50


def test_whole_rules_have_the_error_of_the_closed_form_and_cut_ones_a_larger_one():
    """d = 4, where 8 rows are one rule of 5 and a cut one of 3; arc-cosine kernel of order one, 1500 draws, z > 5."""
    X = np.random.default_rng(0).standard_normal((6, 4))
    kernel, rows = kernels.ArcCosine(1), Quadrature()
    whole, cut = (Approximation(kernel, maps.Rectified(1), rows, m) for m in (5, 8))
    a, b = (squared_errors(spec, X, X, 1500).mean(axis=(1, 2)) for spec in (whole, cut))
    assert (b.mean() - a.mean()) / np.hypot(*(v.std(ddof=1) / np.sqrt(len(v)) for v in (a, b))) > 5


@pytest.mark.parametrize("d", [0, 1.5])
def test_a_bad_dimension_is_refused(d):
    with pytest.raises((ValueError, TypeError), match=r"with_width: d must be"):
        bochner.mechanism("qbf-h").with_width(64, d=d)


GRID = Approximation(kernels.Gaussian(), maps.Trigonometric(), bochner.mechanism("gq").projection, 5)
FAR = np.array([[2.5, 0.0, 0.0], [1.0, 1.0, 1.0], [0.3, -0.2, 0.5]])


def test_the_grid_has_the_error_of_theory_bias_included():
    """Along an axis, ones and a generic direction; 3000 draws, |z| < 5.  Without the bias it is rejected."""
    origin = np.zeros((1, 3))
    errors = squared_errors(GRID, FAR, origin, 3000)
    se = errors.std(0, ddof=1) / np.sqrt(len(errors))
    assert np.abs((errors.mean(0) - GRID.mse(FAR, origin)) / se).max() < 5
    independent = Approximation(kernels.Gaussian(), maps.Trigonometric(), bochner.projections.IID(), 5).mse(FAR, origin)
    assert np.abs((errors.mean(0) - independent) / se).max() > 5


@pytest.mark.parametrize("feature_map", [maps.Trigonometric(), maps.Positive()], ids=repr)
def test_orthogonal_rows_of_one_length_have_the_error_of_independent_ones(feature_map):
    """6 rows in d = 4, in 16 orientations; 1000 draws, |z| < 5.  Independent lengths are rejected by z > 5."""
    x, y = rotated(np.array([0.7, 0, 0, 0]), np.array([0.1, 0, 0, 0]))
    y = -y if isinstance(feature_map, maps.Trigonometric) else y
    spec = Approximation(kernels.Gaussian(), feature_map, Orthogonal(radii="shared"), 6)
    own, iid = (Approximation(kernels.Gaussian(), feature_map, p, 6) for p in (Orthogonal(), bochner.projections.IID()))
    errors = np.diagonal(squared_errors(spec, x, y, 1000), axis1=1, axis2=2).mean(axis=1)
    check_mean(errors, iid.mse(x[:1], y[:1])[0, 0])
    if isinstance(feature_map, maps.Trigonometric):  # the gain of positive features is below their noise here
        assert abs(z_score(errors, own.mse(x[:1], y[:1])[0, 0])[0]) > 5
