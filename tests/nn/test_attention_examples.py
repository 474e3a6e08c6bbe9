"""The example scripts run in their smoke profile with every mechanism, and learn."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "attention"
NAMES = ["softmax", "favor+", "favor++", "simplex"]


@pytest.fixture
def run(monkeypatch, capsys):
    """Standard output of a script without data of its own, and its bars."""
    monkeypatch.delenv("BOCHNER_DATA", raising=False)
    monkeypatch.syspath_prepend(FOLDER)

    def in_this_process(script, *arguments):
        monkeypatch.setattr(sys, "argv", [script, "--profile", "smoke", *arguments])
        runpy.run_path(str(FOLDER / script), run_name="__main__")
        return capsys.readouterr()

    return in_this_process


def results(output):
    """Measure of each attention in the table."""
    found = re.findall(
        r"^([a-z+]+(?:, [a-z]+)?) +([\d.]+) +[\d.]+ \wm?s$|^([a-z+]+, converted) +([\d.]+) +-$", output, re.M
    )
    return {a or c: float(b or d) for a, b, c, d in found}


def test_vision_transformer_learns_with_every_mechanism(run):
    output, errors = run("vit_mnist.py", "--steps", "60", "--uptrain", "5", "--report")
    assert "data: digits, 1397 images and 400 for tests; 60 steps of 64" in output
    found = results(output)
    converted = [f"{name}, {kind}" for name in NAMES[1:] for kind in ("converted", "uptrained")]
    assert list(found) == NAMES + converted
    assert min(found.values()) > 0.3  # ten classes: 0.1 by chance
    assert "relative errors of attention matrices" in output
    assert "softmax:" in errors  # the bar


def test_language_model_learns_with_every_mechanism(run):
    output, errors = run("language_model.py")
    assert "sentences of a random grammar (BOCHNER_DATA is not set)" in output
    found = results(output)
    assert list(found) == NAMES
    assert max(found.values()) < 15  # 44 words: 44 by chance, some 25 by their frequencies
    assert "favor++:" in errors


def test_one_mechanism_and_number_of_steps():
    """By a process of its own, as users run scripts."""
    command = [
        sys.executable,
        FOLDER / "language_model.py",
        "--profile",
        "smoke",
        "--attention",
        "favor++",
        "--steps",
        "3",
    ]
    environment = {name: value for name, value in os.environ.items() if name != "BOCHNER_DATA"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert "3 steps of" in done.stdout
    assert list(results(done.stdout)) == ["favor++"]
