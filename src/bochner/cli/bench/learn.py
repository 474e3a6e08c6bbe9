"""Benchmarks of the estimators: speed of the transform, accuracy on real data, a million rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..._table import seconds
from ...projections import Orthogonal, Projection
from ...rotations import Hadamard
from .measure import Result, at_least, best_of_each

TRANSFORMS: tuple[tuple[int, int, int, type, Projection | None, float], ...] = (
    (20000, 64, 1024, np.float32, None, 1.5),
    (20000, 64, 1024, np.float64, None, 5),
    (4000, 3072, 8192, np.float32, Orthogonal(Hadamard()), 10),
)


def run() -> Iterator[Result]:
    """All cases, in order."""
    from . import learn_accuracy, learn_scale  # scikit-learn is loaded by those who measure

    for case in TRANSFORMS:
        yield _transform(*case)
    yield from learn_accuracy.run()
    yield from learn_scale.run()


def _transform(n: int, d: int, width: int, dtype: type, projection: Projection | None, goal: float) -> Result:
    """RBFSampler's transform against ours, at equal width."""
    from sklearn.kernel_approximation import RBFSampler

    from ...learn import RandomFeatures

    X: np.ndarray = np.random.default_rng(0).standard_normal((n, d)).astype(dtype)
    ours = RandomFeatures(gamma=1 / d, projection=projection, n_components=width, random_state=0).fit(X)
    theirs = RBFSampler(gamma=1 / d, n_components=width, random_state=0).fit(X)
    fast, slow = best_of_each([lambda: ours.transform(X), lambda: theirs.transform(X)], 3 if d > 1000 else 7)
    rows = "default rows" if projection is None else "Hadamard(3) rows"
    case = f"RBFSampler / RandomFeatures, {n} x {d} -> {width} {np.dtype(dtype)}, {rows}"
    return at_least(case, slow / fast, goal, "x", f"{seconds(fast)}; RBFSampler {seconds(slow)}")
