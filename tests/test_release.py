"""What a release needs: one version everywhere, one list of dependencies, and the files that users look for."""

from __future__ import annotations

import importlib
import re
import runpy
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import jinja2
import pytest
import yaml

import bochner
import bochner_lab
from bochner.cli.main import parser

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = set(PROJECT["optional-dependencies"])
LAB = tomllib.loads((ROOT / "lab" / "pyproject.toml").read_text())["project"]


def test_versions_agree():
    released = bochner.__version__.partition(".dev")[0]
    assert bochner_lab.__version__ == bochner.__version__
    assert f"bochner[plot]>={released}" in LAB["dependencies"]
    assert f"version: {released}\n" in (ROOT / "CITATION.cff").read_text()
    assert f'set version = "{released}"' in (ROOT / "packaging" / "conda" / "meta.yaml").read_text()


@pytest.fixture(scope="module")
def recipe() -> dict[str, Any]:
    """The conda recipe, with its variables filled in."""
    text = (ROOT / "packaging" / "conda" / "meta.yaml").read_text()
    return yaml.safe_load(jinja2.Template(text).render(PYTHON="python"))


def test_conda_recipe_says_what_the_package_says(recipe):
    assert recipe["package"] == {"name": PROJECT["name"], "version": bochner.__version__}
    assert recipe["source"]["path"] == f"../../dist/bochner-{bochner.__version__}.tar.gz"
    assert recipe["build"]["noarch"] == "python"
    scripts = [f"{name} = {target}" for name, target in PROJECT["scripts"].items()]
    assert recipe["build"]["entry_points"] == scripts
    assert recipe["about"]["license"] == PROJECT["license"] and recipe["about"]["summary"] == PROJECT["description"]
    assert [recipe["about"]["license_file"]] == PROJECT["license-files"]


def test_conda_recipe_has_the_dependencies_of_the_package(recipe):
    python = f"python{PROJECT['requires-python']}"
    built = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    for kind, needed in (("run", [*PROJECT["dependencies"], python]), ("host", [*built, python, "pip"])):
        assert sorted(line.replace(" ", "") for line in recipe["requirements"][kind]) == sorted(needed)


def test_conda_recipe_has_tests_that_exist(recipe):
    for name in recipe["test"]["imports"]:
        importlib.import_module(name)
    ours = [line.split()[1:] for line in recipe["test"]["commands"] if line.startswith("bochner ")]
    assert ours and all(parser().parse_args(arguments) for arguments in ours)


def test_every_extra_is_described_and_used_after_installation():
    described = re.findall(r"^\| `(\w+)` \|", (ROOT / "docs" / "installation.md").read_text(), re.MULTILINE)
    assert sorted(described) == sorted(EXTRAS)
    checked = runpy.run_path(str(ROOT / "packaging" / "smoke_test.py"))["CHECKS"]
    of_lab = {"lab", *(f"lab-{extra}" for extra in LAB["optional-dependencies"])}
    assert checked.keys() == EXTRAS | {""} | of_lab


def test_the_library_needs_nothing_of_the_laboratory():
    """Browsers, robots, optimisers of other libraries and the peers of benchmarks are not among its extras."""
    needed = " ".join(line for extra in PROJECT["optional-dependencies"].values() for line in extra)
    lacking = [line for extra in LAB["optional-dependencies"].values() for line in extra if "bochner" not in line]
    for line in ["selenium", *lacking]:
        assert re.split(r"[\[>= ]", line)[0] not in needed
    assert (ROOT / "lab" / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


def test_extras_that_are_named_exist():
    texts = [*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").glob("**/*.md"), ROOT / "README.md"]
    named = {
        extra
        for path in texts
        for found in re.findall(r"""["']\S*\[([\w,]+)\]["']""", path.read_text())
        if "bochner[" + found in path.read_text() or ".[" + found in path.read_text()
        for extra in found.split(",")
    }
    assert named <= EXTRAS


def test_no_command_asks_an_index_for_our_packages():
    """Neither package is on an index: extras are installed from a clone, and messages name what the extra would bring."""
    texts = [path for folder in ("src", "docs", "lab/src") for path in (ROOT / folder).rglob("*.[pm][yd]")]
    for path in [*texts, ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "lab" / "README.md"]:
        assert not re.search(r"pip install (-\w+ )*[\"']?bochner", path.read_text()), path


def test_messages_name_the_versions_of_the_extras():
    for extra, module in (("torch", "nn"), ("dask", "distributed")):
        message = (ROOT / "src" / "bochner" / module / "__init__.py").read_text()
        assert all(f'"{needed}"' in message for needed in PROJECT["optional-dependencies"][extra])


def test_the_site_installs_what_its_pages_import():
    """Pages of classes import every public name: the extra `docs` brings the packages that these names ask for."""
    named = " ".join(
        line for extra in ("docs", "plot", "torch", "dask") for line in PROJECT["optional-dependencies"][extra]
    )
    for module in ("nn", "distributed"):
        asked = re.findall(r"pip install ([^.]*)\.", (ROOT / "src" / "bochner" / module / "__init__.py").read_text())
        assert asked and all(package in named for line in asked for package in re.findall(r'"([a-z]+)', line))


@pytest.mark.parametrize("name", ["LICENSE", "CITATION.cff", "SECURITY.md", "CODE_OF_CONDUCT.md", "CHANGELOG.md"])
def test_files_that_users_look_for(name):
    assert (ROOT / name).stat().st_size > 0
    assert (Path(bochner.__file__).parent / "py.typed").exists()


def test_every_target_of_make_is_tried_in_a_fresh_clone():
    """`make fresh-clone` tries the others, each in an empty environment; every one can be read by make."""
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    tried = re.search(r"targets=\((\w[\w ]*)\)", (ROOT / "packaging" / "fresh_clone.sh").read_text())
    assert phony and tried
    assert sorted(phony[1].split()) == sorted([*tried[1].split(), "fresh-clone"])
    if shutil.which("make") is None:
        pytest.skip("there is no make here")
    for target in phony[1].split():
        asked = subprocess.run(["make", "--dry-run", target], cwd=ROOT, capture_output=True, text=True, check=False)
        assert asked.returncode == 0, asked.stderr


def test_tests_of_the_oldest_dependencies_need_no_torch():
    """That job installs the library alone; a module that imports torch would end it while the tests are collected."""
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text())["jobs"]
    folders = jobs["oldest"]["steps"][-1]["run"].removeprefix("python -m pytest ").split()
    files = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    found = [path.name for path in files if re.search(r"^(import|from) torch\b", path.read_text(), re.MULTILINE)]
    assert len(files) > 30 and not found
