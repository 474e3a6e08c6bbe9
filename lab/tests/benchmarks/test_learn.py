"""The benchmark's own parts: the data have the spread they claim, and both fits of the scale case learn them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from bochner.learn import KernelRidge
from bochner_lab.benchmarks import _accuracy, _contenders, _scale, wide


def test_fits_of_the_scale_case_learn_its_function(monkeypatch):
    for name, value in (("ROWS", 6000), ("WIDTH", 256), ("FEWER", 128), ("SEGMENTS", 3)):
        monkeypatch.setattr(_scale, name, value)
    results = _scale.times()
    assert len(results) == 3 and all(r["time"] > 0 and r["error"] < 0.7 for r in results)


def test_wide_features_at_a_small_size(monkeypatch):
    sizes = {"ROWS": 1500, "WIDTH": 256, "BOTH": (1500, 256), "CHUNKS": 2, "CHUNK_ROWS": 100}
    for name, value in sizes.items():
        monkeypatch.setattr(wide, name, value)
    here = lambda module, what, *numbers: getattr(wide, what)(*numbers)  # noqa: E731
    monkeypatch.setattr(wide, "in_process", here)
    results = list(wide.run())
    assert len(results) == 8 and all(result.value > 0 for result in results)
    assert all(result.met for result in results[4:]), results[4:]
    assert "from 200 rows" in results[0].details and f"at width {256 // wide.FACTOR}" in results[0].details


def test_streaming_normal_equations_are_ridge_on_the_features():
    X, y = _scale.data(5000, 3)
    fit = _scale.SamplerFit(64).partial_fit(X[:3000], y[:3000]).partial_fit(X[3000:], y[3000:])
    expected = Ridge(_scale.ALPHA).fit(fit.sampler.transform(X.astype(np.float64)), y).predict(fit.sampler.transform(X))
    np.testing.assert_allclose(fit.predict(X), expected, atol=2e-3 * y.std())


def test_data_are_left_out_where_they_cannot_be_found(monkeypatch, capsys):
    monkeypatch.setattr(_accuracy, "load", lambda name: (_ for _ in ()).throw(FileNotFoundError(f"no {name}")))
    assert list(_accuracy.run()) == []
    assert "left out letter: no letter" in capsys.readouterr().err


@pytest.mark.parametrize("name, classes, worst", [("diabetes", False, 70.0), ("iris", True, 0.15)])
def test_all_methods_learn_embedded_data(monkeypatch, name, classes, worst):
    split = _accuracy.Case(name, classes=classes).split()
    contenders = [replace(c, widths=c.widths and (64,), draws=1) for c in _contenders.contenders()]
    monkeypatch.setattr(_accuracy, "contenders", lambda: contenders)
    points = list(_accuracy.measure(split))
    assert [point.method for point in points] == [c.name for c in contenders if c.serves(split)]
    assert all(point.error < worst and point.fit > 0 and point.search >= 0 for point in points)
    assert all(result.numbers["rival"] in result.case for result in _accuracy.goals(points))


def test_chosen_parameters_are_those_of_the_automatic_mode():
    split = _accuracy.Case("diabetes").split()
    contender = next(_contenders.contenders())
    predict = contender.fit(split, 64, contender.search(split, 64).parameters, 0)
    whole = KernelRidge(n_components=64, standardize=True, random_state=0).fit(split.X, split.y)
    np.testing.assert_allclose(predict(split.X_test), whole.predict(split.X_test), rtol=1e-6)


def point(method, width, errors, fit, rows=400):
    """Errors of classes on rows, the first of which are wrong."""
    losses = np.array([np.arange(rows) < round(error * rows) for error in errors], dtype=float)
    return _accuracy.Point("data", method, width, losses, True, fit, 0.0)


def test_goals_compare_at_equal_time():
    ours, (sampler, nystroem) = _contenders.AUTOMATIC, _accuracy.RIVALS
    points = [
        point(ours, 128, [0.8], 0.1), point(ours, 512, [0.2], 1.6), point(ours, 1024, [0.3], 1.7),
        point(sampler, 128, [0.4], 0.4), point(sampler, 512, [0.5], 2.0), point(nystroem, 128, [0.9], 0.05),
    ]  # fmt: skip
    against_sampler, against_nystroem = _accuracy.goals(points)  # ours has 0.4 at half way, which is 0.4 seconds
    assert against_sampler.met and against_sampler.numbers["percent"] == pytest.approx([0.0, -60.0])
    assert not against_nystroem.met and against_nystroem.value == np.inf  # none of ours is as fast


def test_differences_within_two_standard_errors_are_ties():
    theirs = point("rival", 128, [0.25, 0.25], 1.0)
    same = _accuracy.gap([point("ours", 128, [0.25, 0.25], 1.0)], theirs)
    assert same.log_ratio == 0 and same.standard_error == 0 and same.tie
    draws = _accuracy.gap([point("ours", 128, [0.2, 0.34], 1.0)], theirs)  # rows differ little, the draws do
    assert draws.percent == pytest.approx(8.0) and draws.tie
    other = replace(theirs, losses=theirs.losses[:, ::-1])
    rows = _accuracy.gap([point("ours", 128, [0.27, 0.27], 1.0)], other)  # different rows are wrong
    share = np.array([0.27, 0.25])
    expected = np.sqrt(((1 - share) / share).sum() / 399 + 2 / 399)  # variances and covariance of two shares
    assert rows.tie and rows.standard_error == pytest.approx(expected, rel=0.01)
    assert not _accuracy.gap([point("ours", 128, [0.27, 0.27], 1.0)], theirs).tie  # the same ones, and more


def test_search_uses_training_rows_only():
    split = _accuracy.Case("diabetes").split()
    split = replace(split, X=split.X[:120], y=split.y[:120])
    spoiled = replace(split, X_test=np.full_like(split.X_test, np.nan), y_test=np.full_like(split.y_test, np.nan))
    for contender, fresh in zip(*(_contenders.contenders() for _ in range(2)), strict=True):
        if contender.serves(split):
            found, again = (one.search(part, 64).parameters for one, part in ((contender, spoiled), (fresh, split)))
            np.testing.assert_equal(found, again)
