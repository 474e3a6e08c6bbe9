"""The rules of the library's tests hold here too: seeds, one thread, no limits on the time of examples."""

from __future__ import annotations

import runpy
from pathlib import Path

_shared = runpy.run_path(str(Path(__file__).parents[2] / "tests" / "conftest.py"), run_name="tests_conftest")
pytest_generate_tests = _shared["pytest_generate_tests"]
pytest_collection_modifyitems = _shared["pytest_collection_modifyitems"]
no_entropy, two_threads_of_blas = _shared["no_entropy"], _shared["two_threads_of_blas"]
