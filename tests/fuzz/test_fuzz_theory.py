"""Closed forms: they answer with numbers (infinite ones too) or say which argument is impossible."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from bochner import extending, theory
from fuzz.exploring import explore
from fuzz.targets import Good, constant, public, target_of
from fuzz.values import rows


def pairs() -> theory.Pairs:
    return theory.Pairs.of(rows(4), rows(4, seed=1))


GOOD: Good = {
    "A": constant(-0.1),
    "T": constant(None),
    "V": constant(1.5),
    "X": lambda: rows(4, 4),
    "Y": lambda: rows(4, 4, seed=1),
    "Z": lambda: rows(4, 4, seed=2),
    "angles": constant("uniform"),
    "blocks": constant(2),
    "c": constant(0.5),
    "d": constant(4),
    "degree": constant(2),
    "epsilon": constant(0.5),
    "gradient": lambda: rows(1, 4)[0],
    "m": constant(3),
    "mean_x2": lambda: np.array([1.5, 0.2]),
    "mean_y2": lambda: np.array([0.5, 3.0]),
    "minus": lambda: np.array([0.0, 0.5, 30.0]),
    "n": constant(3),
    "n_rules": constant(2),
    "nodes": lambda: np.array([-1.0, 0.0, 1.0]),
    "p": constant(0.5),
    "pairs": pairs,
    "probabilities": lambda: np.array([0.5, 0.3, 0.2]),
    "probability": constant(0.5),
    "plus": lambda: np.array([0.0, 0.5, 30.0]),
    "radius": constant(1.5),
    "rate": constant(0.5),
    "rho": constant(0.5),
    "s": constant(1),
    "sigma": constant(0.7),
    "steps": constant(5),
    "theta": constant(0.5),
    "value": constant(0.5),
    "width": constant(8),
    "x": lambda: rows(4, 4),
    "x2": lambda: np.array([1.0]),
    "y": lambda: rows(4, 4, seed=1),
    "y2": lambda: np.array([4.0]),
    "z": lambda: np.array([0.5, 1.5]),
}

BLOCKS = (
    *("CoefficientMoments", "angular_coefficient", "gaussian_coefficient", "normalized_gaussian_coefficient"),
    *("hybrid_mse", "rotated_fourth_moment", "orthogonal_pair_covariance", "shared_relative_covariance"),
    "sampled_positive_log_relative_mse",
)
"""Building blocks of closed forms, which maps call with numbers that they have checked."""
RECORDS = ("Erratum", "SampledBlocks", "UniformDiscrepancy")
NAMES = [name for name in (*theory.__all__, *extending.__all__) if hasattr(theory, name)]
CLOSED_FORMS = SimpleNamespace(__all__=NAMES, **{name: getattr(theory, name) for name in NAMES})
FUNCTIONS = [
    target_of(name, call, GOOD, infinite=True) for name, call in public(CLOSED_FORMS, leave_out=(*RECORDS, *BLOCKS))
]
PAIRS = [target_of("Pairs.of", theory.Pairs.of, GOOD, infinite=True)]


@pytest.mark.parametrize("target", [*FUNCTIONS, *PAIRS], ids=str)
def test_hostile_arguments(target):
    explore(target.name, target.spoils(), target.check)


@pytest.mark.parametrize("target", [*FUNCTIONS, *PAIRS], ids=str)
def test_good_arguments_are_accepted(target):
    target.ask({})
