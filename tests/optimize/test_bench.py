"""The benchmark of optimisation and hashing runs, at small sizes."""

from __future__ import annotations

import math

from bochner.cli import bench_optimize
from bochner.cli.bench import SUITES
from bochner.rotations import Kac


def test_cases(monkeypatch):
    assert "optimize" in SUITES
    monkeypatch.setattr(bench_optimize, "_D", 20)
    monkeypatch.setattr(bench_optimize, "_DIRECTIONS", 8)
    asked = bench_optimize._ask(Kac())
    assert asked.unit == "ms" and 0 < asked.value and "all 16 points" in asked.details
    encoded, queried, recall = bench_optimize._hashing(600, 32)
    assert math.isfinite(encoded.value) and queried.value > 0
    assert abs(recall.value) < 0.2 and recall.goal.startswith(">= -0.01")
