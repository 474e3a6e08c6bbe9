"""The command line."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from bochner.cli import main
from bochner.cli.bench import command
from bochner.cli.bench.measure import at_least, at_most, best_of


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


def fake_suite():
    yield at_most("half of it", 1.0, 2.0, "x", "1 s; 2 s")
    yield at_least("twice as much", 1.0, 2.0, "x", "1 s; 2 s")


def test_bench_prints_a_table_and_its_exit_code_tells_misses(monkeypatch, capsys):
    monkeypatch.setattr(command, "SUITES", {"projections": fake_suite})
    assert main(["bench"]) == 1
    out = capsys.readouterr().out
    assert "half of it" in out and ">= 2 x" in out and "NO" in out


def test_bench_prints_json(monkeypatch, capsys):
    monkeypatch.setattr(command, "SUITES", {"projections": fake_suite})
    assert main(["bench", "projections", "--json"]) == 1
    printed = json.loads(capsys.readouterr().out)
    assert [r["met"] for r in printed["results"]] == [True, False]
    assert printed["environment"]["threads"].isdigit()


def test_best_of_runs_once_more_than_it_counts():
    calls = []
    assert best_of(lambda: calls.append(1), 3) >= 0
    assert len(calls) == 4


def test_unknown_command_lists_the_commands(capsys):
    with pytest.raises(SystemExit):
        main(["frobnicate"])
    assert "bench" in capsys.readouterr().err


def test_module_runs_as_a_script():
    done = subprocess.run(
        [sys.executable, "-m", "bochner.cli", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("bochner ")
