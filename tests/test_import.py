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
