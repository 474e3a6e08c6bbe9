"""A user's module with variants is seen by every command, by name, as a file, or through an entry point."""

from __future__ import annotations

import importlib.metadata
import sys

import numpy as np
import pytest

from bochner import catalogue
from bochner.cli import main

MODULE = '''
from dataclasses import dataclass
import numpy as np
from bochner import catalogue, radii


@catalogue.register
@dataclass(frozen=True)
class Level(radii.RadialLaw):
    """The mean length of the kernel's rows, for every row."""

    name = "level"
    def unit_lengths(self, dim, sizes, rng):
        return np.full(sum(sizes), float(np.sqrt(dim)))
'''


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "my_variants.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path / "my_variants.py"
    known = sys.modules.pop("my_variants", None)
    if known is not None:
        catalogue.unregister(known.Level)


def check_listed(capsys):
    assert "level" in capsys.readouterr().out and "level" in catalogue.radii()


def test_a_plugin_by_name_is_seen_by_every_command(module, capsys):
    few = ["info", "--dimension", "4", "--rows", "4"]
    assert main([*few, "--plugin", "my_variants"]) == 0
    check_listed(capsys)


def test_a_plugin_may_come_before_the_command_and_be_a_file(module, capsys):
    assert main(["--plugin", str(module), "info", "--dimension", "4", "--rows", "4"]) == 0
    check_listed(capsys)


def test_its_kernels_are_choices_of_the_options(module, tmp_path, capsys):
    module.write_text(
        MODULE.partition("@catalogue")[0]
        + "from bochner import kernels\n\n@catalogue.register\n@dataclass(frozen=True)\nclass Level(kernels.Radial):\n"
        + "    lengthscale: float = 1.0\n    name = 'level'\n"
        + "    def profile(self, xp, q):\n        return xp.exp(-q / 2)\n"
        + "    def sample_scales(self, shape, rng):\n        return np.ones(shape)\n"
    )
    np.savetxt(tmp_path / "rows.csv", np.random.default_rng(0).standard_normal((40, 2)), delimiter=",")
    assert main(["recommend", "rows.csv", "--kernel", "level", "--features", "8", "--plugin", "my_variants"]) == 0
    assert "Level(lengthscale=" in capsys.readouterr().out


def test_an_entry_point_needs_no_option(module, capsys, monkeypatch):
    point = importlib.metadata.EntryPoint("mine", "my_variants", "bochner.plugins")
    monkeypatch.setattr(sys.modules["bochner.cli.main"], "entry_points", lambda group: [point])
    monkeypatch.syspath_prepend(str(module.parent))
    assert main(["info", "--dimension", "4", "--rows", "4"]) == 0
    check_listed(capsys)


def test_a_plugin_that_cannot_be_imported_is_explained(module, capsys):
    assert main(["info", "--plugin", "nowhere_to_be_found"]) == 2
    message = "bochner --plugin: nowhere_to_be_found cannot be imported (ModuleNotFoundError: No module named"
    assert message in capsys.readouterr().err
    module.write_text("raise ValueError('not today')")
    assert main(["info", "--plugin", str(module)]) == 2
    assert "cannot be imported (ValueError: not today)" in capsys.readouterr().err
    assert main(["info", "--plugin", "other.py"]) == 2
    assert "there is no file other.py" in capsys.readouterr().err
