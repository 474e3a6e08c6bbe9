"""The example scripts run when they are copied out, in their smoke profile with every mechanism, and learn."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "training"
NAMES = ["softmax", "favor+", "favor++", "simrf-performer"]


@pytest.fixture
def run(tmp_path):
    """Standard output of a script that was copied to an empty folder, without data of its own."""

    def in_a_process(script, *arguments):
        shutil.copy(FOLDER / script, tmp_path)
        environment = {name: value for name, value in os.environ.items() if name != "BOCHNER_DATA"}
        command = [sys.executable, script, "--profile", "smoke", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return in_a_process


def results(output):
    """Measures of each attention in the table: as trained or converted, and trained on."""
    found = re.findall(r"^([a-z+-]+) +([\d.]+)(?: +([\d.]+))? +[\d.]+ ms$", output, re.M)
    return {name: [float(value) for value in values if value] for name, *values in found}


def test_vision_transformer_is_converted_with_every_mechanism(run):
    output = run("vit_mnist.py", "--uptrain", "5", "--report")
    assert "data: digits, 1397 images and 400 for tests; 100 steps of 64" in output
    found = results(output)
    assert list(found) == NAMES
    assert min(min(values) for values in found.values()) > 0.15  # ten classes: 0.1 by chance, with a deviation of 0.015
    assert "relative errors of attention matrices" in output


def test_language_model_is_converted_with_every_mechanism(run):
    output = run("language_model.py", "--uptrain", "5")
    assert "sentences of a random grammar (BOCHNER_DATA is not set)" in output
    found = results(output)
    assert list(found) == NAMES
    assert max(max(values) for values in found.values()) < 12  # 31 words: 31 by chance, some 15 by their frequencies
