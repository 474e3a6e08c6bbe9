"""The benchmarks of optimisation and hashing run, at small sizes."""

from __future__ import annotations

from bochner.cli import bench_hashing, bench_optimize
from bochner.rotations import Kac


def test_optimisation(monkeypatch):
    monkeypatch.setattr(bench_optimize, "_D", 20)
    monkeypatch.setattr(bench_optimize, "_DIRECTIONS", 8)
    asked, matrix = bench_optimize._ask(Kac())
    assert asked.unit == matrix.unit == "ms" and min(asked.value, matrix.value) > 0 and "16 points" in matrix.case


def test_hashing(monkeypatch):
    monkeypatch.setattr(bench_hashing, "_BITS", (64,))
    first, second, queried, encoded = bench_hashing._cases("rows", *bench_hashing._embeddings(1500, 70))
    assert abs(first.value) < 0.2 and first.goal.startswith(">= -0.01") and abs(second.value) < 0.2
    assert queried.value > 0 and "to 64 bits" in encoded.case
    assert encoded.value > 0 or "needs faiss-cpu" in encoded.details
