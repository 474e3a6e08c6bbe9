"""The benchmark of optimisation and hashing runs, at small sizes."""

from __future__ import annotations

from bochner.cli import bench_optimize
from bochner.cli.bench import SUITES
from bochner.rotations import Kac


def test_cases(monkeypatch):
    assert "optimize" in SUITES
    monkeypatch.setattr(bench_optimize, "_D", 20)
    monkeypatch.setattr(bench_optimize, "_DIRECTIONS", 8)
    asked = bench_optimize._ask(Kac())
    assert asked.unit == "ms" and 0 < asked.value and "all 16 points" in asked.details
    first, second, queried, encoded = bench_optimize._hashing("rows", *bench_optimize._embeddings(600, 32), bits=64)
    assert abs(first.value) < 0.2 and first.goal.startswith(">= -0.01") and abs(second.value) < 0.2
    assert queried.value > 0 and "to 64 bits" in encoded.case
    assert encoded.value > 0 or "needs faiss-cpu" in encoded.details or "no Hadamard rotation" in encoded.details
