"""The command ``bochner-lab bench``: tables, goals, interruptions and mistakes."""

from __future__ import annotations

import json

import numpy as np
import pytest

from bochner_lab.benchmarks import _bench, learn, projections
from bochner_lab.benchmarks._bench import at_least, at_most, best_of
from bochner_lab.command_line import main


def fake_suite():
    yield at_most("half of it", 1.0, 2.0, "x", "1 s; 2 s")
    yield at_least("twice as much", 1.0, 2.0, "x", "1 s; 2 s")


def test_bench_prints_a_table_and_its_exit_code_tells_misses(monkeypatch, capsys):
    monkeypatch.setattr(_bench, "SUITES", {"projections": fake_suite})
    assert main(["bench"]) == 1
    out = capsys.readouterr().out
    assert "half of it" in out and ">= 2 x" in out and "NO" in out


def test_an_interrupted_bench_prints_what_it_has(monkeypatch, capsys):
    def stopped():
        yield at_least("fast", 2.0, 1.0, "x", "the first line")
        raise KeyboardInterrupt

    monkeypatch.setattr(_bench, "SUITES", {"projections": stopped})
    assert main(["bench"]) == 130
    out, err = capsys.readouterr()
    assert "the first line" in out and "interrupted; what was measured before follows" in err


def test_a_suite_that_lacks_its_data_does_not_end_the_others(monkeypatch, capsys):
    def lacking():
        yield at_least("before", 2.0, 1.0, "x", "")
        raise FileNotFoundError("'letter' needs letter.npz.")

    def whole():
        yield at_least("after", 2.0, 1.0, "x", "")

    monkeypatch.setattr(_bench, "SUITES", {"projections": lacking, "attention": whole})
    assert main(["bench"]) == 1
    out, err = capsys.readouterr()
    assert "before" in out and "after" in out and "projections ends here. 'letter' needs letter.npz." in err
    assert main(["bench", "projections"]) == 2


def test_bench_prints_json(monkeypatch, capsys):
    monkeypatch.setattr(_bench, "SUITES", {"projections": fake_suite})
    assert main(["bench", "projections", "--json"]) == 1
    printed = json.loads(capsys.readouterr().out)
    assert [r["met"] for r in printed["results"]] == [True, False]
    assert printed["environment"]["threads"].isdigit()


def test_bench_takes_data_sets_of_one_suite(monkeypatch, capsys):
    assert main(["bench", "projections", "--data", "letter"]) == 2
    assert "--data measures learn or tables, not projections" in capsys.readouterr().err
    names = []
    monkeypatch.setattr(learn, "_speed", fake_suite)
    monkeypatch.setattr(learn._accuracy, "run", lambda found: names.extend(found) or iter(()))
    assert main(["bench", "learn", "--data", "speed", "--json"]) == 1 and not names
    assert main(["bench", "learn", "--data", "letter", "--json"]) == 0 and names == ["letter"]
    with pytest.raises(ValueError, match="--data must be one of 'speed', 'abalone'"):
        list(learn.run(["moon"]))


def test_bench_measures_gram_matrices():
    results = list(projections._gram(60, 4, 16, np.float32))
    assert [result.goal for result in results] == ["<= 1.15 x"] * 2 and all(result.value > 0 for result in results)


def test_best_of_runs_once_more_than_it_counts():
    calls = []
    assert best_of(lambda: calls.append(1), 3) >= 0
    assert len(calls) == 4


@pytest.mark.parametrize(
    "error, code, message",
    [
        (KeyboardInterrupt(), 130, "bochner-lab bench: interrupted."),
        (MemoryError(), 2, "bochner-lab bench: there is not enough memory."),
        (OSError(28, "No space left on device"), 2, "No space left on device"),
        (ValueError("x must be \x1b[31mred"), 2, r"bochner-lab bench: x must be \x1b[31mred"),
    ],
)
def test_what_goes_wrong_ends_in_a_sentence(monkeypatch, capsys, error, code, message):
    def fail():
        raise error

    monkeypatch.setattr(_bench, "SUITES", {"projections": fail})
    assert main(["bench"]) == code
    err = capsys.readouterr().err
    assert message in err and "Traceback" not in err and "\x1b" not in err
