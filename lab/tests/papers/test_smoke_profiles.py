"""The smoke profile of every experiment: it runs, is plotted, is seeded, and declares what the documentation shows."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

import bochner_lab as experiments
from bochner_lab import datasets
from bochner_lab._runner import plain
from bochner_lab.command_line import known_verdicts
from bochner_lab.datasets import _load

ALL = experiments.experiments()
RESULTS = Path(__file__).parent.parent.parent / "results"
MODULES = {  # what an extra installs
    "torch": "torch",
    "rl": "gymnasium.envs.mujoco",
    "minitaur": "pybullet",
    "optimizers": "cma",
}


def needs_data(one):
    """Whether some of its data sets are neither embedded nor in the folder."""
    folder = os.environ.get(_load.VARIABLE)
    return bool(set(one.data) - set(_load.EMBEDDED)) and not folder


@pytest.mark.parametrize("name", ALL)
@pytest.mark.swept(8)
def test_smoke_profile_ends_in_a_verdict_and_a_figure(name, tmp_path):
    one = ALL[name]
    if needs_data(one):
        pytest.skip(f"{_load.VARIABLE} is not set")
    for extra in one.extras:
        pytest.importorskip(MODULES[extra])
    found = experiments.run(one, tmp_path, "smoke")
    assert found["verdict"] in experiments.VERDICTS[:4]
    assert len(found["statements"]) == len(one.statements()) > 0
    path = experiments.result_path(tmp_path, name, "smoke")
    assert experiments.read_result(path)["parts"] == found["parts"]
    assert experiments.draw(path).stat().st_size > 5000


@pytest.mark.parametrize("name", ALL)
def test_every_fact_is_declared(name):
    one = ALL[name]
    assert name.startswith(f"{one.paper}-")
    assert one.paper in experiments.PAPERS
    assert one.item and one.claim.endswith(".") and one.methods
    assert set(one.profiles) == set(one.seconds) == {"smoke", "full"}
    assert set(one.data) <= set(datasets.names())
    assert all(sentence.endswith(".") for sentence in one.statements())
    for p in one.profiles.values():
        parts = list(one.parts(p))
        assert parts and len(set(parts)) == len(parts)


def test_full_profiles_fit_the_time_that_there_is():
    """Two processes take six hours at most, and a single experiment hardly more than half an hour."""
    times = [one.seconds["full"] / (1 if one.timed else 2) for one in ALL.values()]
    assert max(times) <= 2000 and sum(times) <= 6 * 3600
    assert sum(one.seconds["smoke"] for one in ALL.values()) <= 120


def test_absent_experiments_are_not_listed_as_runnable():
    absent = experiments.absent()
    assert not set(absent) & set(ALL)
    assert all(one.paper in experiments.PAPERS and one.missing.endswith(".") for one in absent.values())
    assert all(one.stand_in in {"", *ALL} for one in absent.values())


@pytest.mark.parametrize("name", ALL)
def test_committed_verdicts_follow_from_their_numbers(name):
    """With the digits that a new run would keep, and the statements, claims and parameters of today."""
    one, found = ALL[name], experiments.read_result(experiments.result_path(RESULTS, name, "full"))
    assert found["parameters"] == plain(one.profiles["full"])
    assert (found["claim"], found["deviations"], found["rule"]) == (one.claim, one.deviations, one.rule)
    again = experiments.judged_again(experiments.result_path(RESULTS, name, "full"))
    for key in ("verdict", "statements", "power", "comparison"):
        assert again[key] == found[key]
    assert list(found["parts"]) == list(one.parts(one.profiles["full"]))


def undecided():
    """Claims of papers that our numbers do not decide."""
    return [name for name, one in ALL.items() if one.paper != "ours" and known_verdicts()[name] == "undecided"]


@pytest.mark.parametrize("name", undecided())
def test_an_undecided_claim_says_what_would_decide_it(name):
    assert re.search(r"[Tt]o decide it|would need about|[Ff]ewer runs than", ALL[name].deviations)
