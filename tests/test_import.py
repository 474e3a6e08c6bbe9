"""``import bochner`` is light, and says what it has."""

from __future__ import annotations

import subprocess
import sys

import pytest

import bochner

HEAVY = ("numba", "torch", "sklearn", "matplotlib", "scipy", "llvmlite")


def modules_after(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint(' '.join(sorted(m.partition('.')[0] for m in sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_import_loads_no_heavy_library():
    assert not modules_after("import bochner") & set(HEAVY)


def test_drawing_small_projections_loads_no_heavy_library():
    code = "from bochner import projections\nimport numpy as np\nprojections.Orthogonal().sample(4, 4, 0)(np.ones(4))"
    assert not modules_after(code) & {"numba", "torch", "sklearn", "matplotlib"}


def test_every_public_name_is_there():
    for name in bochner.__all__:
        assert getattr(bochner, name) is not None
    assert set(dir(bochner)) == set(bochner.__all__)


def test_unknown_name():
    with pytest.raises(AttributeError, match=r"module 'bochner' has no attribute 'simplx'; it has .*projections"):
        bochner.simplx  # noqa: B018


STARS = """
import sys
from importlib.machinery import PathFinder

missing = set("torch dask transformers matplotlib pyarrow pandas gymnasium mujoco jax cma nevergrad evosax".split())

class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in missing else PathFinder.find_spec(name, path, target)

sys.meta_path[:] = [Without if finder is PathFinder else finder for finder in sys.meta_path]
import bochner

def star(module):
    names = {}
    exec(f"from {module} import *", names)
    return names

def message(code):
    try:
        exec(code)
    except ImportError as error:
        return str(error)

everything = star("bochner")
assert "learn" in everything and not {"nn", "distributed"} & everything.keys(), sorted(everything)
assert all(star(f"bochner.{module}") for module in set(bochner._MODULES) - set(bochner._NEEDS))
assert message("bochner.nn").endswith('pip install "torch>=2.4".')
assert message("bochner.distributed").endswith('pip install "dask[array,dataframe]>=2024.8" "distributed>=2024.8".')
missing.remove("dask")
assert "KernelRidge" in star("bochner.distributed")
missing.remove("torch")
assert "linear_attention" in (names := star("bochner.nn")) and "LinearCache" not in names
assert message("bochner.nn.LinearCache").endswith('pip install "transformers>=5".')
"""


def test_star_imports_need_only_the_extra_of_their_module():
    done = subprocess.run([sys.executable, "-c", STARS], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
