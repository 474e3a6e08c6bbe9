"""Benchmarks of the estimators: speed of the transform, accuracy on real data against peers, a million rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from bochner.approximation import Approximation
from bochner.extending import Projection
from bochner.kernels import Gaussian
from bochner.learn import RandomFeatures
from bochner.linalg.engine import for_each_tile, rows_per_tile
from bochner.linalg.transforms import waves
from bochner.maps import Landmarks
from bochner.projections import Orthogonal
from bochner.reporting import seconds
from bochner.rotations import Hadamard

from . import _accuracy, _scale, wide
from ._accuracy import SPEED
from ._bench import REST, Result, at_least, at_most, best_of_each

TRANSFORMS: tuple[tuple[int, int, int, type, Projection | None, float], ...] = (
    (20000, 64, 1024, np.float32, None, 1.5),
    (20000, 64, 1024, np.float64, None, 5),
    (4000, 3072, 8192, np.float32, Orthogonal(Hadamard()), 10),
)

LANDMARK_WIDTHS = (256, 1024)
PIVOTS = {"uniform": 1.0, "rpcholesky": 1.5}
"""Kinds of landmarks, and how much of the time of Nystroem they may take."""


def run(names: Sequence[str] = ()) -> Iterator[Result]:
    """All cases, in order; or data sets of these names, and with "speed" all but the data sets."""
    names = _accuracy.checked_names(names)
    if not names or SPEED in names:
        yield from _speed()
    if not names or set(names) != {SPEED}:
        yield from _accuracy.run(names)


def _speed() -> Iterator[Result]:
    for case in TRANSFORMS:
        yield _transform(*case)
    for width in LANDMARK_WIDTHS:
        for dtype in (np.float32, np.float64):
            yield from _landmarks(width, dtype)
    yield from _scale.run()
    yield from wide.run()


def _transform(n: int, d: int, width: int, dtype: type, projection: Projection | None, goal: float) -> Result:
    """RBFSampler's transform against ours, at equal width."""
    from sklearn.kernel_approximation import RBFSampler

    X: np.ndarray = np.random.default_rng(0).standard_normal((n, d)).astype(dtype)
    ours = RandomFeatures(gamma=1 / d, projection=projection, n_components=width, random_state=0).fit(X)
    theirs = RBFSampler(gamma=1 / d, n_components=width, random_state=0).fit(X)
    works = [lambda: ours.transform(X), lambda: theirs.transform(X)]
    if projection is None:
        works.append(_bare(X, width))
    fast, slow, *bare = best_of_each(works, 3 if d > 1000 else 7, REST)
    rows = "default rows" if projection is None else "Hadamard(3) rows"
    case = f"RBFSampler / RandomFeatures, {n} x {d} -> {width} {np.dtype(dtype)}, {rows}"
    least = "".join(f"; lower bound (product, sine and cosine, result discarded) {seconds(time)}" for time in bare)
    return at_least(case, slow / fast, goal, "x", f"{seconds(fast)}; RBFSampler {seconds(slow)}{least}")


def _bare(X: np.ndarray, width: int) -> Callable[[], None]:
    """What no transform of independent rows can do without: a product with W, and cosines and sines, left in a cache."""
    d, m = X.shape[1], width // 2
    W, ones = np.random.default_rng(0).standard_normal((d, m)).astype(X.dtype), np.ones(m, X.dtype)

    def tile(i: int, j: int) -> None:
        waves(X[i:j] @ W, 1.0, ones, np.empty((j - i, width), X.dtype), m)

    return lambda: for_each_tile(len(X), rows_per_tile(width * X.itemsize), tile)


def _landmarks(width: int, dtype: type, n: int = 10_000, d: int = 64) -> Iterator[Result]:
    """Fit and transform with landmarks against Nystroem, which has uniform ones, at equal width."""
    from sklearn.kernel_approximation import Nystroem

    X: np.ndarray = np.random.default_rng(0).standard_normal((n, d)).astype(dtype)
    theirs = Nystroem(gamma=1 / (2 * d), n_components=width, random_state=0)
    specs = [Approximation(Gaussian(float(np.sqrt(d))), Landmarks(one), n_projections=width) for one in PIVOTS]
    ours = [lambda spec=spec: spec.fit(X, rng=0).queries(X) for spec in specs]
    slow, *times = best_of_each([lambda: theirs.fit(X).transform(X), *ours], 5, REST)
    for (pivots, goal), time in zip(PIVOTS.items(), times, strict=True):
        case = f"fit and transform of Landmarks({pivots!r}) / Nystroem, {n} x {d} -> {width} {np.dtype(dtype)}"
        yield at_most(case, time / slow, goal, "x", f"{seconds(time)}; Nystroem {seconds(slow)}")
