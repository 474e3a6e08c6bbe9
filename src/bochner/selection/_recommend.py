"""`recommend`: rank all applicable mechanisms on the given data."""

from __future__ import annotations

import math
import warnings as python_warnings
from dataclasses import replace
from typing import Any

import numpy as np

from .. import catalogue
from .._arrays import as_numpy
from .._progress import progress
from .._random import RNG, as_generator
from .._validation import check_count, check_flag, check_instance, check_points, check_positive, check_rows
from ..approximation import Approximation
from ..kernels import Kernel, resolve_bandwidth
from ._applicable import planned
from ._prediction import ROUNDS, Predictor, seconds_per_row
from ._reasons import reasons, warnings
from ._recommendation import Candidate, Recommendation
from ._sample import Facts, Sample
from ._tolerance import at_tolerance

DEFAULT_FEATURES, MOST_FEATURES = 512, 65536  # a width to start with, and the widest that a tolerance may ask for
_SAME = 1e-3  # relative difference of errors below which two mechanisms with the same rows count as one
_WORTH = 0.95  # mechanisms are drawn again as long as they may be better than the best known one by this factor
_TIMED = 12  # number of mechanisms that are measured again at the width for a tolerance; times of the others are scaled


def recommend(
    X: Any,
    Y: Any = None,
    kernel: Kernel | str | None = None,
    n_features: int | None = None,
    positive: bool = False,
    tolerance: float | None = None,
    rng: RNG = None,
    *,
    symmetric: bool = False,
    verbose: bool = False,
) -> Recommendation:
    r"""Recommend a mechanism, and the number of features, for given data.

    All mechanisms for the kernel are compared at the same number of features.  Their relative Frobenius error
    :math:`\sqrt{E|\hat K - K|_F^2}/|K|_F` is predicted on sampled pairs, in closed form if there is one and by
    simulation otherwise, and their time is measured.  Landmarks are chosen from up to 2000 rows other than those they
    are evaluated on; they are not considered if there are fewer such rows than features, nor with a tolerance.

    Parameters
    ----------
    X : array (n, d)
        Queries, or all the points.
    Y : array (p, d), optional
        Keys; None means X.
    kernel : Kernel or str, optional
        The kernel, or its name; a named kernel has the bandwidth of `bochner.learn` (``gamma="scale"``).  Gaussian by
        default.
    n_features : int, optional
        Number of features, 512 by default; with a tolerance, the largest number allowed, 65536 by default.
    positive : bool
        Whether to consider only positive features, as required for attention.
    tolerance : float, optional
        Relative error to reach: the mechanism that needs the fewest features for it is recommended.
    rng : int, numpy.random.Generator or None
        Source of randomness for the sampled pairs and the simulated draws; pass an int for a reproducible ranking.
    symmetric : bool
        Whether to consider only features that are the same for queries and keys, as `bochner.learn.RandomFeatures`
        requires.
    verbose : bool
        Whether to show a progress bar if it takes more than a few seconds.

    Returns
    -------
    Recommendation
        The ranking, which prints as a table; ``.best`` is a specification ready to fit, and ``.plot()`` draws the error
        against the number of features.

    See Also
    --------
    bochner.compare : Compares estimators by how well they predict a target.

    Warns
    -----
    UserWarning
        If no mechanism reaches the tolerance, or if none is better than an estimate of zero.

    Examples
    --------
    >>> import numpy as np
    >>> import bochner
    >>> X = np.random.default_rng(0).standard_normal((200, 4))
    >>> advice = bochner.recommend(X, kernel=bochner.kernels.Matern(1.5), n_features=64, rng=0)
    >>> advice.best.fit(X, rng=0).queries(X).shape[1] <= 64
    True
    >>> advice.ranking[0].error < advice.ranking[-1].error
    True
    """
    X, Y = _points(X, Y)
    check_flag("recommend", "positive", positive)
    check_flag("recommend", "symmetric", symmetric)
    limit = None if n_features is None else check_count("recommend", "n_features", n_features)
    tolerance = None if tolerance is None else check_positive("recommend", "tolerance", tolerance)
    seed = int(as_generator(rng).integers(2**31))
    chosen = _kernel(kernel, X)
    predictor = Predictor(Sample.of(X, Y, chosen, np.random.default_rng(seed)), seed)
    width = limit if limit is not None and tolerance is None else min(limit or DEFAULT_FEATURES, DEFAULT_FEATURES)
    others = predictor.sample.others if tolerance is None else None
    mechanisms = _mechanisms(chosen, predictor, width, positive, symmetric, others)
    rows = predictor.sample.X.astype(X.dtype if X.dtype == np.float32 else np.float64)
    found = [_candidate(*one, rows, predictor) for one in progress(mechanisms, label="recommend", shown=verbose)]
    refined = _refined(_distinct(found), predictor)
    ranking = sorted(_distinct(refined), key=lambda c: c.bound)  # more draws may show two to be the same
    reached = True
    if tolerance is not None:
        ranking, reached = at_tolerance(ranking, tolerance, limit or MOST_FEATURES, predictor)
        ranking = [_timed(c, rows, predictor) if place < _TIMED else c for place, c in enumerate(ranking)]
    facts = Facts.of(predictor.sample, chosen)
    said = warnings(ranking, facts, chosen, tolerance, reached)
    for sentence in said:
        python_warnings.warn(f"recommend: {sentence}", UserWarning, stacklevel=2)
    return Recommendation(tuple(ranking), reasons(ranking, facts), said, tolerance, facts, predictor)


def _points(X: Any, Y: Any) -> tuple[np.ndarray, np.ndarray | None]:
    X = as_numpy(check_points("recommend", X))
    Y = None if Y is None else as_numpy(check_rows("recommend", Y, X.shape[-1], remedy="Y must have X's columns."))
    for name, points in (("X", X), ("Y", Y)):
        if points is not None and (points.ndim != 2 or len(points) < 2 or points.shape[1] == 0):
            raise ValueError(
                f"recommend: {name} must be a matrix of at least two points as rows, got shape {points.shape}."
            )
    return X, Y


def _kernel(kernel: Kernel | str | None, X: np.ndarray) -> Kernel:
    """Return the kernel itself, or the named one with the bandwidth that an estimator would choose."""
    if kernel is None:
        kernel = "gaussian"
    if isinstance(kernel, str):
        named = catalogue.kernel(kernel)
        return resolve_bandwidth(named, named.default_rule, X, owner="recommend")
    check_instance("recommend", "kernel", kernel, Kernel, "kernels.Gaussian()")
    return kernel


def _mechanisms(
    kernel: Kernel,
    predictor: Predictor,
    width: int,
    positive: bool,
    symmetric: bool,
    others: tuple[np.ndarray, np.ndarray | None] | None,
) -> list[tuple[Approximation, Approximation]]:
    """Return the requested specifications and plans; those that share their rows are adjacent."""
    sample = predictor.sample
    every = planned(kernel, sample.X, sample.Y, width, predictor.seed, others)
    found = [(spec, plan) for spec, plan in every if plan.unbiased or plan.projection.consistent]
    if not found:
        raise ValueError(f"recommend: n_features={width} is too few for any mechanism of {kernel!r}; allow more.")
    asked = [pair for pair in found if pair[1].positive >= positive and pair[1].symmetric >= symmetric]
    if not asked:
        kind = " and ".join(name for name, wanted in (("positive", positive), ("symmetric", symmetric)) if wanted)
        raise ValueError(
            f"recommend: {kernel!r} has no {kind} features; leave {kind.replace(' and ', '=True and ')}=True out."
        )
    return sorted(asked, key=lambda pair: _rows_of(pair[1]))


def _rows_of(plan: Approximation) -> tuple[str, int]:
    return repr(plan.projection), plan.n_projections


def _candidate(spec: Approximation, plan: Approximation, rows: np.ndarray, predictor: Predictor) -> Candidate:
    time = seconds_per_row(predictor.rows.draw(plan, 0), rows)
    return Candidate(spec, plan, *predictor(plan, ROUNDS[0]), time)


def _timed(c: Candidate, rows: np.ndarray, predictor: Predictor) -> Candidate:
    return replace(c, seconds_per_row=seconds_per_row(predictor.rows.draw(c.plan, 0), rows))


def _distinct(found: list[Candidate]) -> list[Candidate]:
    """Mechanisms that are nearly the same on these rows, under the shortest name.

    A family that contains another one, such as generalised exponentials with a constant close to that of cosines, has the
    same errors from the same rows up to the constant: both in one ranking tell nothing.
    """
    kept: list[Candidate] = []
    for c in sorted(found, key=lambda c: len(c.label)):
        if not any(_nearly_same(c, other) for other in kept):
            kept.append(c)
    return kept


def _nearly_same(one: Candidate, other: Candidate) -> bool:
    """The very same errors from the same seeds; with the same rows, errors that no user could tell apart are enough."""
    if not math.isclose(one.error, other.error, rel_tol=2 * _SAME) or one.n_features != other.n_features:
        return False  # most pairs, by the cheaper of the two
    alike = one.plan.projection == other.plan.projection and one.plan.positive == other.plan.positive
    found = np.isclose([one.error, one.worst], [other.error, other.worst], rtol=_SAME if alike else 1e-10, atol=0)
    return bool(found.all())


def _refined(found: list[Candidate], predictor: Predictor) -> list[Candidate]:
    """Draw mechanisms that may still be the best more often, in several rounds."""
    for n_draws in ROUNDS[1:]:
        doubts = _doubts(found, predictor)
        least = min(c.error * (1 + 2 * doubt) for c, doubt in zip(found, doubts, strict=True))
        again = [
            doubt > 0 and c.error * (1 - 2 * doubt) < _WORTH * least for c, doubt in zip(found, doubts, strict=True)
        ]
        found = [
            c.predicted(predictor.simulation(c.plan, n_draws)) if more else c
            for c, more in zip(found, again, strict=True)
        ]
    return found


def _doubts(found: list[Candidate], predictor: Predictor) -> list[float]:
    """Relative standard errors of simulated errors: no smaller than is usual, since so few draws tell little of it."""
    own = [c.standard_error / c.error if 0 < c.error < np.inf else 0.0 for c in found]
    draws = [predictor.n_draws(c.plan) if c.source == "simulation" else 0 for c in found]
    usual = np.median([r * n**0.5 for r, n in zip(own, draws, strict=True) if n] or [0.0])
    return [max(r, float(usual) / n**0.5) if n else 0.0 for r, n in zip(own, draws, strict=True)]
