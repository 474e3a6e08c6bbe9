"""`recommend`: every applicable mechanism predicted, measured and ranked on the data at hand."""

from __future__ import annotations

import warnings as python_warnings
from collections.abc import Sequence
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
from .candidates import applicable, label
from .cost import seconds_per_row
from .facts import Facts
from .prediction import MANY_DRAWS, Predictor
from .reasons import reasons, warnings
from .recommendation import Candidate, Recommendation
from .sample import Sample
from .tolerance import at_tolerance

DEFAULT_FEATURES, MOST_FEATURES = 512, 65536
_CLOSE = 1.3
"""Simulated errors up to this factor above the best are simulated again, with more draws."""
_TIMED = 12
"""Mechanisms that are measured again at the width that a tolerance asks for; times of the others are scaled by it."""


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
    r"""Which mechanism, and how many features, for these data.

    Every mechanism that applies to the kernel gets the same width of features; its relative Frobenius error
    :math:`\sqrt{E|\hat K - K|_F^2}/|K|_F` is predicted on sampled pairs, in closed form where there is one and by simulation
    elsewhere, and its time is measured.

    Parameters
    ----------
    X : array (n, d)
        Queries, or all the points.
    Y : array (p, d), optional
        Keys; None means X.
    kernel : Kernel or str, optional
        The kernel, or its name, whose bandwidth is then that of `bochner.learn` (``gamma="scale"``); Gaussian without it.
    n_features : int, optional
        Width of the features (512 without it); with a tolerance, the most that are allowed (65536 without it).
    positive : bool
        Whether to consider positive features alone, as attention needs them.
    tolerance : float, optional
        Relative error to be reached: the mechanism that needs the fewest features for it is recommended.
    rng : int, numpy.random.Generator or None
        Chooses the sampled pairs and the simulated draws; the same int gives the same ranking.
    symmetric : bool
        Whether to consider only features that are the same for queries and keys, as `bochner.learn.RandomFeatures` needs.
    verbose : bool
        Whether to show a progress bar, if it takes more than a few seconds.

    Returns
    -------
    Recommendation
        Prints as a table; ``.best`` is a specification ready to fit, ``.plot()`` draws error against features.

    Warns
    -----
    UserWarning
        Where no mechanism reaches the tolerance, or none is better than nothing.

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
    seed, chosen = int(as_generator(rng).integers(2**31)), _kernel(kernel, X)
    predictor = Predictor(Sample.of(X, Y, chosen, np.random.default_rng(seed)), seed)
    width = limit if limit is not None and tolerance is None else min(limit or DEFAULT_FEATURES, DEFAULT_FEATURES)
    specs = _specs(chosen, predictor.sample.X, width, positive, symmetric)
    found = [_candidate(spec, X, predictor) for spec in progress(specs, label="recommend", shown=verbose)]
    ranking = sorted(_simulated_again(found, predictor), key=lambda c: c.bound)
    reached = True
    if tolerance is not None:
        most = limit or MOST_FEATURES
        ranking, reached = at_tolerance(ranking, tolerance, most, predictor)
        ranking = [_timed(c, X, predictor) if place < _TIMED else c for place, c in enumerate(ranking)]
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
    """The kernel itself, or the named one with the bandwidth that an estimator gives it."""
    if kernel is None:
        kernel = "gaussian"
    if isinstance(kernel, str):
        named = catalogue.kernel(kernel)
        return resolve_bandwidth(named, named.default_rule, X, owner="recommend")
    check_instance("recommend", "kernel", kernel, Kernel, "kernels.Gaussian()")
    return kernel


def _specs(kernel: Kernel, X: np.ndarray, width: int, positive: bool, symmetric: bool) -> list[Approximation]:
    d = X.shape[1]
    specs = list(applicable(kernel, d, width, X))
    if not specs:
        raise ValueError(f"recommend: n_features={width} is too few for any mechanism of {kernel!r}; allow more.")
    if positive or symmetric:
        plans = [(spec, spec.plan(X, rng=0)) for spec in specs]
        specs = [spec for spec, plan in plans if plan.positive >= positive and plan.symmetric >= symmetric]
    if not specs:
        kind = " and ".join(name for name, asked in (("positive", positive), ("symmetric", symmetric)) if asked)
        raise ValueError(
            f"recommend: {kernel!r} has no {kind} features; leave {kind.replace(' and ', '=True and ')}=True out."
        )
    return specs


def _candidate(spec: Approximation, X: np.ndarray, predictor: Predictor) -> Candidate:
    time, phi = seconds_per_row(spec, *_sampled(X, predictor), predictor.seed)
    return Candidate(spec, phi.n_features_out, *predictor(spec), time, phi.positive, phi.symmetric, spec.unbiased)


def _timed(c: Candidate, X: np.ndarray, predictor: Predictor) -> Candidate:
    return replace(c, seconds_per_row=seconds_per_row(c.spec, *_sampled(X, predictor), predictor.seed)[0])


def _sampled(X: np.ndarray, predictor: Predictor) -> tuple[np.ndarray, np.ndarray]:
    """The sampled rows in the precision of the data."""
    dtype = X.dtype if X.dtype == np.float32 else np.float64
    return predictor.sample.X.astype(dtype), predictor.sample.Y.astype(dtype)


def _simulated_again(found: Sequence[Candidate], predictor: Predictor) -> list[Candidate]:
    """Those that may be the best, with more draws."""
    least = min(c.error for c in found)
    close = [c for c in found if c.source == "simulation" and c.error <= _CLOSE * least]
    again = {label(c.spec): c.predicted(predictor.simulation(c.spec, MANY_DRAWS)) for c in close}
    return [again.get(label(c.spec), c) for c in found]
