"""A user's own idea: a file from the template is a variant with an experiment, and runs outside of the package."""

from __future__ import annotations

import importlib.metadata
import sys

import pytest

import bochner_lab
from bochner import catalogue
from bochner_lab import _experiment
from bochner_lab.command_line import known_verdicts, main


@pytest.fixture
def idea(tmp_path, monkeypatch):
    """A new file, and nothing left of it afterwards."""
    monkeypatch.chdir(tmp_path)
    assert main(["new", "some_idea.py"]) == 0
    yield tmp_path / "some_idea.py"
    module = sys.modules.pop("some_idea", None)
    if module is not None:
        catalogue.unregister(module.SomeIdea)
        _experiment._ADDED.remove(module.SomeIdeaExperiment)
        bochner_lab.experiments.cache_clear()


def test_an_idea_gets_table_figure_and_verdict(idea, capsys):
    assert main(["run", "some-idea", "--plugin", "some_idea.py", "--profile", "smoke", "--out", "found"]) == 0
    out = capsys.readouterr().out
    assert any(out.startswith(f"some-idea: {verdict}.") for verdict in bochner_lab.VERDICTS) and "against" in out
    assert (idea.parent / "found" / "some-idea" / "smoke" / "figure.png").exists()
    assert "orthogonal-some-idea" in catalogue.projections()
    assert main(["list", "--plugin", "some_idea.py", "--out", "found"]) == 0
    assert "some-idea: My lengths" in capsys.readouterr().out


def test_the_experiment_of_an_installed_plugin_needs_no_option(idea, capsys, monkeypatch):
    monkeypatch.syspath_prepend(idea.parent)
    point = importlib.metadata.EntryPoint("mine", "some_idea", "bochner.plugins")
    monkeypatch.setattr(sys.modules["bochner.cli.main"], "entry_points", lambda group: [point])
    assert main(["list", "--out", "found"]) == 0
    assert "some-idea: My lengths" in capsys.readouterr().out


def test_a_file_is_not_overwritten(idea, capsys):
    before = idea.read_text()
    assert main(["new", "some_idea.py"]) == 2
    assert "exists already" in capsys.readouterr().err and idea.read_text() == before
    assert main(["new", "not-a-name.py"]) == 2
    assert "must be the name of a Python file" in capsys.readouterr().err


def test_a_taken_name_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken_name.py").write_text(
        "from bochner_lab import Experiment\nclass Mine(Experiment):\n    name = 'simrf-fig6'\n"
    )
    assert main(["list", "--plugin", "taken_name.py"]) == 2
    assert "there is an experiment 'simrf-fig6' already" in capsys.readouterr().err
    sys.modules.pop("taken_name", None)


def test_known_verdicts_are_shown_where_there_are_no_results(tmp_path, capsys):
    assert main(["list", "--paper", "simrf", "--out", str(tmp_path)]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("simrf-fig6 "))
    assert line.split()[1] == known_verdicts()["simrf-fig6"]
