"""Relative errors on a sphere: the closed forms of the library in terms of angles, and their limits (HRF Section 3)."""

from __future__ import annotations

import numpy as np
import pytest

from bochner import theory
from bochner_lab.papers.hrf import _sphere_errors as sphere


def test_errors_are_those_of_the_theory():
    theta, r, m, n = np.linspace(0.1, 3.0, 7), 1.3, 5, 4
    x = r * np.stack([np.ones_like(theta), np.zeros_like(theta)], axis=1)
    y = r * np.stack([np.cos(theta), np.sin(theta)], axis=1)
    pairs = theory.Pairs.of(x, y)
    np.testing.assert_allclose(
        sphere.angular_log_relative_rmse(theta, r, m, n),
        theory.angular_hybrid_log_relative_mse(pairs, m, n, 2) / 2,
        rtol=1e-10,
    )


def test_largest_error_of_a_base():
    """W(r)/sqrt(2m) with W = e^(2 r^2) (1 - e^(-4 r^2)), also where it overflows."""
    for r in (0.3, 1.0, 2.0):
        W = np.exp(2 * r**2) * -np.expm1(-4 * r**2)
        assert float(sphere.log_max_relative_rmse(r, 7)) == pytest.approx(np.log(W / np.sqrt(14)))
    assert float(sphere.log_max_relative_rmse(30.0, 7)) == pytest.approx(1800 - np.log(14) / 2)


def test_slope_at_small_angles():
    for theta in (1e-9, np.pi - 1e-9):
        slope = sphere.angular_log_relative_rmse(theta, 1.3, 4, 6) - np.log(1e-9) / 2
        assert float(slope) == pytest.approx(float(sphere.log_small_angle_slope(1.3, 4, 6)), abs=1e-6)
