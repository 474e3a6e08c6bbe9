"""Compiled cosines and sines equal the library's, wherever the phase lies."""

from __future__ import annotations

import numpy as np
import pytest

from bochner.linalg.references import waves_reference
from bochner.linalg.transforms import waves

DTYPES = (np.float32, np.float64)


def both(phases, frequency=1.0, gap=0):
    m = phases.shape[1]
    amplitudes = np.linspace(0.5, 1.0, m).astype(phases.dtype)
    out, exact = np.zeros((len(phases), 2 * m + gap), phases.dtype), np.zeros((len(phases), 2 * m + gap))
    waves(phases, frequency, amplitudes, out, m + gap)
    waves_reference(phases.astype(np.float64), frequency, amplitudes.astype(np.float64), exact, m + gap)
    return out, exact


@pytest.mark.parametrize("size", (1e-6, 1.0, 30.0, 7999.0, 8001.0, 1e5, 1e12))
@pytest.mark.parametrize("dtype", DTYPES)
def test_within_two_units_in_the_last_place(dtype, size):
    phases = (size * np.random.default_rng(0).uniform(-1, 1, (7, 333))).astype(dtype)
    out, exact = both(phases)
    assert out.dtype == dtype
    assert np.abs(out - exact).max() <= 2 * np.finfo(dtype).eps


@pytest.mark.parametrize("dtype", DTYPES)
def test_at_multiples_of_a_quarter_turn(dtype):
    phases = (np.pi / 4 * np.arange(-2000, 2000)).astype(dtype)[None, :]
    out, exact = both(phases)
    assert np.abs(out - exact).max() <= 2 * np.finfo(dtype).eps


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_column_between_is_left_alone(dtype):
    phases = np.random.default_rng(0).standard_normal((3, 5)).astype(dtype)
    out, exact = both(phases, frequency=0.5, gap=1)
    assert (out[:, 5] == 0).all()
    np.testing.assert_allclose(out, exact, rtol=0, atol=4 * np.finfo(dtype).eps)


def test_one_large_phase_sends_its_row_alone_to_the_library():
    phases = np.random.default_rng(0).standard_normal((3, 40)).astype(np.float32)
    small, _ = both(phases)
    phases[1, 0] = 1e7
    mixed, exact = both(phases)
    np.testing.assert_array_equal(mixed[[0, 2]], small[[0, 2]])
    assert np.abs(mixed - exact).max() <= 2 * np.finfo(np.float32).eps


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_part_of_the_columns(dtype):
    """As wide products come: some columns of cosines and of sines, of phases with more columns than amplitudes."""
    phases, amplitudes = np.random.default_rng(0).standard_normal((5, 12)).astype(dtype), np.ones(10, dtype)
    out, exact = np.zeros((5, 50), dtype), np.zeros((5, 50))
    waves(phases, 1.0, amplitudes, out, 25, 15)
    waves_reference(phases.astype(np.float64), 1.0, amplitudes.astype(np.float64), exact, 25, 15)
    np.testing.assert_allclose(out, exact, rtol=0, atol=4 * np.finfo(dtype).eps)
    assert (out[:, :15] == 0).all() and (out[:, 25:40] == 0).all()


def test_empty():
    out, _ = both(np.zeros((0, 4)))
    assert out.shape == (0, 8)
