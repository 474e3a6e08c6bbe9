"""The table of errata: numbers that differ, and those that are known."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from bochner import theory

TABLE = {(entry.paper, entry.equation, entry.example): entry for entry in theory.errata()}
GOLDEN = [  # paper, start of the equation, printed, right, tolerance
    ("hrf", "Sec. 2.1", 0.0660, 0.13194, 1e-3),
    ("hrf", "Sec. 2.3", 0.1319, 0.4525, 1e-3),
    ("hrf", "Eq. 36", 0.642, 0.9655, 1e-3),
    ("hrf", "Eq. 44", 0.511, 0.323, 2e-3),
    ("hrf", "Eq. 47", 0.2405, 0.2583, 1e-3),
    ("hrf", "Theorem 3.5", 5.51e20, 6.06e20, 1e-3),
    ("hrf", "Eqs. 89", 0.5385, 0.985, 1e-3),
    ("crt", "Theorem 4.2", 0.00110, 0.01468, 3e-3),
    ("simrf", "Eqs. 9", 0.768, 1.0, 1e-3),
    ("simrf", "Eq. 67", 0.093, 21.565, 5e-3),
    ("simrf", "Eq. 77", 0.9467, 0.88746, 1e-4),
    ("simrf", "Sec. 4.1", 2.96, 4.01, 2e-3),
    ("simrf", "Eqs. 16", 1.2, 2.0, 1e-12),
    ("omc", "Theorem 5.1", 256, 8, 0),
    ("qbf", "Sec. 3", 0.36787944, 0.0, 1e-6),
    ("qbf", "Sec. 3, butterflies", 0.125, 5 / 72, 1e-12),
    ("qbf", "Sec. 4.2", 0.63662, 0.31831, 1e-4),
    ("qbf", "Sec. 2, weights", 0.118, 0.2336, 2e-2),
    ("qbf", "Eq. 6", 0.0183, 0.00152, 5e-3),
    ("qbf", "Proposition 2.1", 9.7e-7, 7.36e-6, 5e-3),
    ("qbf", "Sec. 8", 0.0, 0.132, 2e-3),
]


@pytest.mark.parametrize("entry", TABLE.values(), ids=lambda e: f"{e.paper} {e.equation}")
def test_the_two_numbers_differ(entry):
    scale = max(abs(entry.printed_value), abs(entry.right_value))
    # the root of Eq. 7 is wrong by rounding alone, yet on the wrong side of one
    assert abs(entry.printed_value - entry.right_value) > (1e-8 if entry.equation == "Eq. 7" else 0.04) * scale


@pytest.mark.parametrize("paper, start, printed, right, tolerance", GOLDEN)
def test_the_numbers_are_the_known_ones(paper, start, printed, right, tolerance):
    entry = next(e for e in TABLE.values() if e.paper == paper and e.equation.startswith(start))
    assert entry.printed_value == pytest.approx(printed, rel=tolerance, abs=1e-12)
    assert entry.right_value == pytest.approx(right, rel=tolerance, abs=1e-12)


def test_entries_are_frozen_and_unique():
    entries = theory.errata()
    assert len(TABLE) == len(entries)
    with pytest.raises(dataclasses.FrozenInstanceError):
        entries[0].paper = "other"


def test_the_printed_root_leaves_the_domain_of_bounded_features():
    entry = next(e for e in TABLE.values() if e.equation == "Eq. 7")
    assert entry.printed_value > 1 > entry.right_value


def test_a_gap_is_never_negative():
    entry = next(e for e in TABLE.values() if "Eq. 25" in e.equation)
    assert entry.printed_value < 0 < entry.right_value


def test_every_erratum_differs_in_four_digits():
    """The table of the documentation prints four digits: both numbers must differ there."""
    for entry in theory.errata():
        assert f"{entry.printed_value:.4g}" != f"{entry.right_value:.4g}", entry


def test_butterflies_and_arc_cosine_rules_have_the_stated_numbers():
    """The two numbers that are constants, by simulation: 200,000 draws, |z| < 5."""
    rng, n = np.random.default_rng(0), 200_000
    c2, a = rng.uniform(size=n), rng.uniform(0, 2 * np.pi, n)  # the square of the second level's cosine is uniform
    g = rng.standard_normal((2, n))
    relu = np.maximum(g, 0).prod(axis=0) + np.maximum(-g, 0).prod(axis=0)
    for values, expected in (
        ((c2 * np.cos(a) ** 2) ** 2, 0.125),
        (np.abs(g).prod(axis=0), 2 / np.pi),
        (relu, 1 / np.pi),
    ):
        assert abs(values.mean() - expected) / (values.std() / np.sqrt(n)) < 5
