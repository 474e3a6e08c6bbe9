"""The public names of the layer, and what importing it costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from bochner import theory


def test_import_loads_no_scipy():
    script = "import sys, bochner.theory; print('scipy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("name", theory.__all__)
def test_every_public_name_is_documented_and_named_on_the_front_page(name):
    assert getattr(theory, name).__doc__
    assert f"`{name}`" in theory.__doc__ or name == "Erratum"
