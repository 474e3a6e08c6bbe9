"""The benchmarks of optimisation and hashing run, at small sizes."""

from __future__ import annotations

from bochner.rotations import Kac
from bochner_lab.benchmarks import hashing, optimize


def test_optimisation(monkeypatch):
    monkeypatch.setattr(optimize, "_D", 20)
    monkeypatch.setattr(optimize, "_DIRECTIONS", 8)
    asked, matrix = optimize._ask(Kac())
    assert asked.unit == matrix.unit == "ms" and min(asked.value, matrix.value) > 0 and "16 points" in matrix.case


def test_hashing(monkeypatch):
    monkeypatch.setattr(hashing, "_BITS", (64,))
    first, second, queried, encoded = hashing._cases("rows", *hashing._embeddings(1500, 70))
    assert abs(first.value) < 0.2 and first.goal.startswith(">= -0.01") and abs(second.value) < 0.2
    assert queried.value > 0 and "to 64 bits" in encoded.case
    assert encoded.value > 0 or "needs faiss-cpu" in encoded.details
