"""The benchmark's own parts: the data have the spread they claim, and both fits of the scale case learn them."""

from __future__ import annotations

import numpy as np

from bochner.cli.bench import learn_accuracy, learn_scale


def test_fits_of_the_scale_case_learn_its_function():
    X, y = learn_scale.data(6000, 3)
    Z, z = learn_scale.data(2000, 4)
    for fit in (learn_scale.fit_ours, learn_scale.fit_sampler):
        error = np.sqrt(np.mean((fit(X, y, 256)(Z) - z) ** 2)) / z.std()
        assert error < 0.7


def test_data_are_split_and_left_out_where_they_cannot_be_found(monkeypatch, capsys):
    monkeypatch.setattr(learn_accuracy, "load", lambda name: (_ for _ in ()).throw(FileNotFoundError(f"no {name}")))
    assert list(learn_accuracy.run()) == []
    assert "left out letter: no letter" in capsys.readouterr().err


def test_accuracy_on_embedded_data(monkeypatch):
    cases = (
        learn_accuracy.Case("digits", 0.02, 0.1, 512, classes=True),
        learn_accuracy.Case("diabetes", 0.01, 1.0, 512),
    )
    monkeypatch.setattr(learn_accuracy, "CASES", cases)
    monkeypatch.setattr(learn_accuracy, "SEEDS", range(1))
    results = list(learn_accuracy.run())
    assert [r.case.split(",")[1].strip() for r in results] == ["digits", "digits", "diabetes", "diabetes"]
    lost, above = results[1].value, results[3].value
    assert lost < 2 and abs(above) < 3  # per cent
