"""How many threads an estimator computes with: those of ``n_jobs`` for features, and for dense algebra by its size."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from ...linalg.engine import single_threaded_blas
from ..streaming import n_jobs_threads

_ORDER = 2048
"""From here on a factorisation gains from the threads of BLAS; below, they wait for each other."""


@contextlib.contextmanager
def computing(owner: str, n_jobs: Any, order: int) -> Iterator[None]:
    """Within the block, as many threads as ``n_jobs`` says, and one thread of BLAS for matrices of a small order.

    The order alone decides, so that no bit of a result depends on ``n_jobs``.
    """
    with n_jobs_threads(owner, n_jobs), single_threaded_blas if order < _ORDER else contextlib.nullcontext():
        yield
