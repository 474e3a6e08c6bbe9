"""The engine: parts, resuming, interruption, files, verdicts and the command line."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import bochner_lab as experiments
from bochner_lab import Experiment, Finding, Results, by_profile, statement
from bochner_lab._runner import plain, write_atomically
from bochner_lab.command_line import main


class Toy(Experiment):
    """Three parts that count how often they are computed."""

    name = "simrf-toy"
    paper = "simrf"
    item = "A toy"
    claim = "Numbers are <b>numbers</b>."
    methods = ("iid",)
    profiles = by_profile(smoke={"n": 4}, full={"n": 8})
    seconds = by_profile(smoke=0.1, full=0.1)

    def __init__(self):
        self.computed = []
        self.fail_at = None
        self.error = KeyboardInterrupt

    def parts(self, p):
        return ["a", "b/../b", "c"]

    def run(self, part, p, rng):
        if part == self.fail_at:
            raise self.error(part)
        self.computed.append(part)
        return {"values": rng.standard_normal(p["n"]), "limit": np.inf}

    @statement("All parts have their numbers.")
    def complete(self, results: Results) -> Finding:
        return Finding(all(len(part["values"]) == results.parameters["n"] for part in results.parts.values()), "<i>")

    @statement("The sum of part a is above 1000.")
    def large(self, results: Results) -> Finding:
        return Finding(sum(results.parts["a"]["values"]) > 1000, "no")


def test_result_holds_everything(tmp_path):
    found = experiments.run(Toy(), tmp_path, "smoke", seed=3)
    assert found["verdict"] == experiments.IN_PART
    assert found["seed"] == 3 and found["parameters"] == {"n": 4}
    assert {"numpy", "processor", "threads", "bochner"} <= set(found["environment"])
    assert len(found["code"]) == 12 and found["wall_seconds"] >= 0
    assert found["parts"]["a"]["numbers"]["limit"] is None  # JSON has no infinity
    assert json.loads(experiments.result_path(tmp_path, "simrf-toy", "smoke").read_text()) == found
    assert not list(tmp_path.rglob("*.tmp"))


def test_the_version_has_the_digits_that_results_have(tmp_path, capsys):
    found = experiments.run(Toy(), tmp_path, "smoke")
    with pytest.raises(SystemExit) as stopped:
        main(["--version"])
    assert stopped.value.code == 0 and found["code"] == found["parts"]["a"]["code"]
    assert capsys.readouterr().out.endswith(f", code {found['code']}\n")


def test_what_is_left_is_the_recorded_time_of_parts_that_are_not_finished(tmp_path):
    one = Toy()
    assert experiments.seconds_left(one, tmp_path, "smoke") == pytest.approx(0.1)
    assert experiments.seconds_left(one, tmp_path, "smoke", jobs=2) == pytest.approx(0.05)
    found = experiments.run(one, tmp_path, "smoke")
    assert experiments.seconds_left(one, tmp_path, "smoke") == 0
    assert experiments.seconds_left(one, tmp_path, "smoke", fresh=True) == pytest.approx(found["wall_seconds"])
    for path in (tmp_path / "simrf-toy/smoke/parts").glob("a-*.json"):
        path.unlink()
    assert experiments.seconds_left(one, tmp_path, "smoke") == pytest.approx(found["parts"]["a"]["seconds"])


def test_several_experiments_say_first_how_long_they_take(tmp_path, capsys):
    arguments = ["run", "hrf-fig1", "crt-fig1", "--profile", "smoke", "--out", str(tmp_path)]
    assert main(arguments) == 0
    assert capsys.readouterr().out.startswith("2 experiments, about 0 s in one process of an idle machine.\n")


def test_an_interrupted_run_continues_with_the_same_numbers(tmp_path):
    one = Toy()
    one.fail_at = "c"
    with pytest.raises(KeyboardInterrupt):
        experiments.run(one, tmp_path, "smoke")
    assert one.computed == ["a", "b/../b"]
    one.fail_at = None
    resumed = experiments.run(one, tmp_path, "smoke")
    assert one.computed == ["a", "b/../b", "c"]
    whole = experiments.run(Toy(), tmp_path / "other", "smoke")
    assert [part["numbers"] for part in resumed["parts"].values()] == [p["numbers"] for p in whole["parts"].values()]


def test_other_parameters_seeds_and_broken_files_are_computed_again(tmp_path):
    one = Toy()
    experiments.run(one, tmp_path, "smoke")
    experiments.run(one, tmp_path, "smoke")
    assert len(one.computed) == 3
    experiments.run(one, tmp_path, "smoke", seed=1)
    assert len(one.computed) == 6
    experiments.run(one, tmp_path, "smoke", seed=1, fresh=True)
    assert len(one.computed) == 9
    for path in tmp_path.rglob("parts/a-*.json"):
        path.write_text('{"part": "a"')
    experiments.run(one, tmp_path, "smoke", seed=1)
    assert len(one.computed) == 10


@pytest.mark.parametrize("error", [FileNotFoundError, ModuleNotFoundError])
def test_missing_data_and_libraries_are_a_verdict(error, tmp_path):
    one = Toy()
    one.fail_at, one.error = "a", lambda part: error("no <data>")
    found = experiments.run(one, tmp_path, "smoke")
    assert found["verdict"] == experiments.CANNOT_RUN and "no <data>" in found["missing"]
    with pytest.raises(ValueError, match="could not be run"):
        experiments.draw(experiments.result_path(tmp_path, "simrf-toy", "smoke"))


def test_an_experiment_that_is_named_and_cannot_be_run_is_a_failure(tmp_path, monkeypatch):
    one = Toy()
    one.fail_at, one.error = "a", lambda part: FileNotFoundError("no data")
    monkeypatch.setattr(experiments, "experiment", lambda name: one)
    assert main(["run", one.name, "--profile", "smoke", "--out", str(tmp_path)]) == 1


def test_a_killed_run_resumes(tmp_path, capsys):
    """SIGKILL in the third part: finished parts stay whole, and are not computed again."""
    arguments = ["run", "simrf-fig6", "--profile", "smoke", "--out", str(tmp_path)]
    script = f"""
import os, signal
import bochner_lab as experiments
from bochner_lab import command_line as cli
kind, parts = type(experiments.experiment("simrf-fig6")), []
run = kind.run
def fatal(self, *arguments):
    parts.append(arguments)
    return run(self, *arguments) if len(parts) < 3 else os.kill(os.getpid(), signal.SIGKILL)
kind.run = fatal
cli.main({arguments!r})
"""
    killed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    finished = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("parts/*.json")}
    assert len(finished) == 2
    assert main(arguments) == 0 and "simrf-fig6: undecided. " in capsys.readouterr().out
    assert all(path.stat().st_mtime_ns == when for path, when in finished.items())
    assert len(list(tmp_path.rglob("parts/*.json"))) == 4


def test_processes_give_the_same_numbers(tmp_path):
    one = experiments.experiment("simrf-fig6")
    alone = experiments.run(one, tmp_path / "1", "smoke")
    together = experiments.run(one, tmp_path / "2", "smoke", jobs=2)
    assert list(alone["parts"]) == list(together["parts"])
    for name, part in alone["parts"].items():
        assert part["numbers"] == together["parts"][name]["numbers"]


def test_writing_replaces_a_file_as_a_whole(tmp_path):
    path = tmp_path / "a.json"
    write_atomically(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_atomically(path, "\ud800")
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_plain_values():
    assert plain({"a": np.array([1.0, np.nan]), 2: (np.int64(3), None)}) == {"a": [1.0, None], "2": [3, None]}


def test_differences_count_beyond_two_standard_errors():
    low, high = (experiments.Estimate(np.array([m]), np.array([1.0])) for m in (0.0, 2.8))
    assert not low.below(high).any()
    assert low.below(experiments.Estimate(np.array([2.9]), np.array([1.0]))).all()


def test_the_site_is_escaped_and_offline(tmp_path, monkeypatch):
    one = Toy()
    experiments.run(one, tmp_path, "smoke")
    monkeypatch.setattr("bochner_lab._site.experiments", lambda: {one.name: one})
    index = experiments.write_site(tmp_path, tmp_path / "site")
    page = (index.parent / "simrf.html").read_text()
    assert "&lt;b&gt;numbers&lt;/b&gt;" in page and "<b>" not in page and "<i>" not in page
    assert "holds in part" in page and one.rule in page and "All parts have their numbers." in page
    for text in (page, index.read_text()):
        assert "http" not in text and "<script" not in text
    assert {path.name for path in index.parent.iterdir()} == {"index.html", *(f"{p}.html" for p in experiments.PAPERS)}


def test_command_line_lists_runs_plots_and_reports(tmp_path, capsys):
    out = ["--out", str(tmp_path)]
    assert main(["run", "simrf-fig6", "--profile", "smoke", *out]) == 0
    assert "simrf-fig6: undecided" in capsys.readouterr().out
    assert main(["plot", *out]) == 0
    assert capsys.readouterr().out.strip().endswith("figure.png")
    assert main(["list", "--paper", "simrf", *out]) == 0
    listed = capsys.readouterr().out
    assert "simrf-fig6" in listed and "holds" in listed and "simrf-fig9 cannot be run here" in listed
    assert "BOCHNER_DATA" in listed and "Full profiles together: " in listed
    assert main(["list", "--json"]) == 0
    assert "simrf-fig6" in [entry["name"] for entry in json.loads(capsys.readouterr().out)]
    assert main(["report", *out]) == 0
    assert (tmp_path / "site" / "index.html").exists()


def test_a_result_of_another_version_of_an_experiment_is_said_to_be_one(tmp_path, capsys):
    out = ["--out", str(tmp_path)]
    assert main(["run", "crt-fig1", "--profile", "smoke", *out]) == 0
    path = experiments.result_path(tmp_path, "crt-fig1", "smoke")
    found = json.loads(path.read_text())
    path.write_text(json.dumps(found | {"parts": {"former part": next(iter(found["parts"].values()))}}))
    path.with_name("figure.png").unlink()
    capsys.readouterr()
    assert main(["plot", *out]) == 2
    assert "was made by another version of crt-fig1" in capsys.readouterr().err
    assert main(["report", *out]) == 0
    printed = capsys.readouterr()
    assert "crt-fig1: no figure: " in printed.err and "Traceback" not in printed.err
    assert (tmp_path / "site" / "index.html").exists()


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["run", "simrf-fgi6"], "Did you mean 'simrf-fig6'"),
        (["run", "simrf-fig9"], "cannot be run here: ImageNet2012"),
        (["run"], "name experiments, or give --paper or --all"),
        (["run", "simrf-fig6", "--jobs", "0"], "--jobs must be at least 1, got 0"),
        (["plot", "simrf-fig6"], "has no result in"),
        (["report"], "holds no results"),
    ],
)
def test_mistakes_on_the_command_line(arguments, message, tmp_path, capsys):
    assert main([*arguments, "--out", str(tmp_path)]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "text, why",
    [
        ("[]", "it is not an object"),
        ("not JSON", "it is not JSON"),
        ("[" * 100_000, "it is not JSON that can be read"),
        ('{"format": 2}', "it lacks experiment, item"),
        ('{"format": 1}', "its format is 1, not 2"),
        ("verdict", "its verdict 'maybe' is none of holds, holds in part"),
        ("statements", "its statements are damaged"),
        ("parts", "its parts are damaged"),
    ],
)
@pytest.mark.parametrize("command", ["list", "plot", "report"])
def test_a_file_that_is_no_result_is_refused(tmp_path, capsys, text, why, command):
    path = experiments.result_path(tmp_path, "simrf-fig6", "full")
    path.parent.mkdir(parents=True)
    damaged = {"verdict": "maybe", "statements": [{"sentence": 3}], "parts": {"all": 7}}
    if text in damaged:
        committed = Path(__file__).parents[1] / "results"
        good = json.loads(experiments.result_path(committed, "simrf-fig6", "full").read_text())
        text = json.dumps(good | {text: damaged[text]})
    path.write_text(text)
    assert main([command, "--out", str(tmp_path)]) == 2
    printed = capsys.readouterr().err
    assert "is not a result of `bochner-lab run`" in printed and why in printed and "Traceback" not in printed
