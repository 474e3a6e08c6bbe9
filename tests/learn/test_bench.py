"""The benchmark's own parts: the data have the spread they claim, and both fits of the scale case learn them."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import Ridge

from bochner.cli import bench_learn, bench_scale


def test_fits_of_the_scale_case_learn_its_function(monkeypatch):
    for name, value in (("ROWS", 6000), ("WIDTH", 256), ("FEWER", 128), ("SEGMENTS", 3)):
        monkeypatch.setattr(bench_scale, name, value)
    results = bench_scale.times()
    assert len(results) == 3 and all(r["time"] > 0 and r["error"] < 0.7 for r in results)


def test_both_solvers_find_the_same(monkeypatch):
    monkeypatch.setattr(bench_scale, "WIDE_BOTH", (1500, 256))
    monkeypatch.setattr(bench_scale, "WIDE", (1500, 256))
    both, alone = bench_scale.both_solvers(), bench_scale.wide_fit()
    assert both["difference"] < 1e-4 and min(both["cg"], both["primal"], alone["time"], alone["memory"]) > 0
    monkeypatch.setattr(bench_scale, "_in_process", {"both_solvers": both, "wide_fit": alone}.get)
    results = list(bench_scale.wide_features())
    assert results[1].met and results[3].met and np.isclose(results[2].value, both["primal"] / alone["time"])


def test_streaming_normal_equations_are_ridge_on_the_features():
    X, y = bench_scale.data(5000, 3)
    fit = bench_scale.SamplerFit(64).partial_fit(X[:3000], y[:3000]).partial_fit(X[3000:], y[3000:])
    expected = (
        Ridge(bench_scale.ALPHA).fit(fit.sampler.transform(X.astype(np.float64)), y).predict(fit.sampler.transform(X))
    )
    np.testing.assert_allclose(fit.predict(X), expected, atol=2e-3 * y.std())


def test_data_are_split_and_left_out_where_they_cannot_be_found(monkeypatch, capsys):
    monkeypatch.setattr(bench_learn, "load", lambda name: (_ for _ in ()).throw(FileNotFoundError(f"no {name}")))
    assert list(bench_learn.accuracy()) == []
    assert "left out letter: no letter" in capsys.readouterr().err


def test_accuracy_on_embedded_data(monkeypatch):
    cases = (
        bench_learn.Case("digits", 0.02, 0.1, 512, classes=True),
        bench_learn.Case("diabetes", 0.01, 1.0, 512),
    )
    monkeypatch.setattr(bench_learn, "CASES", cases)
    monkeypatch.setattr(bench_learn, "SEEDS", range(1))
    results = list(bench_learn.accuracy())
    assert [r.case.split(",")[1].strip() for r in results] == ["digits", "digits", "diabetes", "diabetes"]
    lost, above = results[1].value, results[3].value
    assert lost < 2 and abs(above) < 3  # per cent
