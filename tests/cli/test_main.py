"""The command line."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import numpy as np
import pytest

from bochner.cli import bench, bench_learn, bench_projections, info, main
from bochner.cli.bench import at_least, at_most, best_of
from bochner.cli.self_test import self_test


def test_info_shows_every_projection_and_draws_a_picture(tmp_path, capsys):
    picture = tmp_path / "deep" / "projections.png"
    assert main(["info", "--dimension", "70", "--rows", "20", "--picture", str(picture)]) == 0
    out = capsys.readouterr().out
    for name in ("IID()", "Simplex()", "Orthogonal(StructuredGivens())", "Quadrature()", "QMC('sobol')"):
        assert name in out
    assert "20 x 70" in out and str(picture) in out
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_info_explains_a_bad_dimension(capsys):
    assert main(["info", "--dimension", "1"]) == 2
    assert "--dimension must be at least 2" in capsys.readouterr().err


def test_info_finds_out_before_the_work_where_it_cannot_write(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    for picture, message in (
        (tmp_path / "file" / "p.png", "is a file; give a folder"),
        (tmp_path / "p.xyz", r"must end in one of .*png"),
        (tmp_path / "folder.png", "is a folder; give a file"),
    ):
        (tmp_path / "folder.png").mkdir(exist_ok=True)
        assert main(["info", "--picture", str(picture)]) == 2
        printed = capsys.readouterr()
        assert re.search(message, printed.err) and printed.out == ""


def test_info_refuses_what_would_not_fit_in_memory(capsys):
    assert main(["info", "--dimension", "1000000", "--rows", "1000000"]) == 2
    assert "--rows must be at most 67, got 1000000" in capsys.readouterr().err


def fake_suite():
    yield at_most("half of it", 1.0, 2.0, "x", "1 s; 2 s")
    yield at_least("twice as much", 1.0, 2.0, "x", "1 s; 2 s")


def test_bench_prints_a_table_and_its_exit_code_tells_misses(monkeypatch, capsys):
    monkeypatch.setattr(bench, "SUITES", {"projections": fake_suite})
    assert main(["bench"]) == 1
    out = capsys.readouterr().out
    assert "half of it" in out and ">= 2 x" in out and "NO" in out


def test_an_interrupted_bench_prints_what_it_has(monkeypatch, capsys):
    def stopped():
        yield at_least("fast", 2.0, 1.0, "x", "the first line")
        raise KeyboardInterrupt

    monkeypatch.setattr(bench, "SUITES", {"projections": stopped})
    assert main(["bench"]) == 130
    out, err = capsys.readouterr()
    assert "the first line" in out and "interrupted; what was measured before follows" in err


def test_bench_prints_json(monkeypatch, capsys):
    monkeypatch.setattr(bench, "SUITES", {"projections": fake_suite})
    assert main(["bench", "projections", "--json"]) == 1
    printed = json.loads(capsys.readouterr().out)
    assert [r["met"] for r in printed["results"]] == [True, False]
    assert printed["environment"]["threads"].isdigit()


def test_bench_takes_data_sets_of_one_suite(monkeypatch, capsys):
    assert main(["bench", "projections", "--data", "letter"]) == 2
    assert "--data measures learn, not projections" in capsys.readouterr().err
    names = []
    monkeypatch.setattr(bench_learn, "_speed", fake_suite)
    monkeypatch.setattr(bench_learn.bench_accuracy, "run", lambda found: names.extend(found) or iter(()))
    assert main(["bench", "learn", "--data", "speed", "--json"]) == 1 and not names
    assert main(["bench", "learn", "--data", "letter", "--json"]) == 0 and names == ["letter"]
    with pytest.raises(ValueError, match="--data must be one of 'speed', 'abalone'"):
        list(bench_learn.run(["moon"]))


def test_bench_measures_gram_matrices():
    results = list(bench_projections._gram(60, 4, 16, np.float32))
    assert [result.goal for result in results] == ["<= 1.15 x"] * 2 and all(result.value > 0 for result in results)


def test_best_of_runs_once_more_than_it_counts():
    calls = []
    assert best_of(lambda: calls.append(1), 3) >= 0
    assert len(calls) == 4


@pytest.mark.parametrize(
    "error, code, message",
    [
        (KeyboardInterrupt(), 130, "bochner bench: interrupted."),
        (MemoryError(), 2, "bochner bench: there is not enough memory; ask for fewer rows, columns or features."),
        (OSError(28, "No space left on device"), 2, "No space left on device"),
        (ValueError("x must be \x1b[31mred"), 2, r"bochner bench: x must be \x1b[31mred"),
    ],
)
def test_what_goes_wrong_ends_in_a_sentence(monkeypatch, capsys, error, code, message):
    def fail():
        raise error

    monkeypatch.setattr(bench, "SUITES", {"projections": fail})
    assert main(["bench"]) == code
    err = capsys.readouterr().err
    assert message in err and "Traceback" not in err and "\x1b" not in err


def test_a_closed_pipe_is_not_an_error():
    command = f"{sys.executable} -m bochner.cli info --dimension 4 --rows 4 | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert done.stdout.startswith("bochner") and done.stderr == ""


def test_arguments_are_shown_without_escape_sequences(capsys):
    with pytest.raises(SystemExit):
        main(["info", "\x1b[31mred"])
    assert "\x1b" not in capsys.readouterr().err


def test_unknown_command_lists_the_commands(capsys):
    with pytest.raises(SystemExit):
        main(["frobnicate"])
    assert "bench" in capsys.readouterr().err


def test_module_runs_as_a_script():
    done = subprocess.run(
        [sys.executable, "-m", "bochner.cli", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("bochner ")


def test_without_arguments_shows_what_there_is(capsys):
    assert main([]) == 0
    out = capsys.readouterr().out
    assert all(f"bochner {command}" in out for command in ("compare", "recommend", "reproduce", "bench", "info"))
    assert "bochner recommend wine --features 64" in out


def test_info_ends_in_a_self_test(monkeypatch, capsys):
    assert main(["info", "--dimension", "4", "--rows", "4"]) == 0
    assert capsys.readouterr().out.endswith("all well\n")

    def broken():
        raise ValueError("two is not three")

    monkeypatch.setattr(info, "self_test", lambda: self_test({"numbers": (broken, "count again")}))
    assert main(["info", "--dimension", "4", "--rows", "4"]) == 1
    out = capsys.readouterr().out
    assert "FAILED: ValueError: two is not three. To mend it, count again." in out and out.endswith("1 checks failed\n")
