"""Every mechanism of the catalogue that applies to a kernel and data, at a width of the features."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from .. import catalogue
from .._arrays import as_numpy
from .._random import RNG, as_generator
from .._validation import check_count, check_instance, check_points, check_rows
from ..approximation import Approximation
from ..kernels import Kernel
from ..maps import Map
from ..reporting import label


def applicable(kernel: Kernel, X: np.ndarray, n_features: int, Y: Any = None, rng: RNG = 0) -> Iterator[Approximation]:
    """Yield the mechanisms for a kernel on given data, each with as many projections as fit in ``n_features``.

    Quadrature uses whole rules if one fits.  Mechanisms whose features are too wide even with one row, and those whose
    constants cannot be chosen from so few points, are left out.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    X : array (n, d)
        Queries.
    n_features : int
        Largest number of features.
    Y : array (p, d), optional
        Keys; None means X.
    rng : int, numpy.random.Generator or None
        Source of randomness, for constants chosen from a random subset of the data.

    Yields
    ------
    Approximation

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import kernels
    >>> from bochner.selection import applicable
    >>> X = np.random.default_rng(0).standard_normal((20, 5))
    >>> [spec.projection for spec in applicable(kernels.Laplacian(), X, 64)]
    [IID()]
    """
    check_instance("applicable", "kernel", kernel, Kernel, "kernels.Gaussian()")
    n_features, rng = check_count("applicable", "n_features", n_features), as_generator(rng)
    X = as_numpy(check_points("applicable", X))
    Y = None if Y is None else as_numpy(check_rows("applicable", Y, X.shape[-1], remedy="Y must have X's columns."))
    if X.ndim != 2:
        raise ValueError(f"applicable: X must be a matrix of points as rows, got shape {X.shape}.")
    for spec, plan in planned(kernel, X, Y, n_features, rng, others=(X, Y)):
        yield replace(spec, n_projections=plan.n_projections)


def planned(
    kernel: Kernel,
    X: np.ndarray,
    Y: np.ndarray | None,
    n_features: int,
    rng: RNG,
    others: tuple[np.ndarray, np.ndarray | None] | None = None,
    *,
    plain_first: bool = False,
) -> Iterator[tuple[Approximation, Approximation]]:
    """Yield specifications and their plans on the data, both with as many projections as fit, in the catalogue's order.

    Maps that keep points of the data are planned on ``others``, so that they can be judged on X and Y, and left out if
    there are fewer of those than features.
    """
    seed = int(as_generator(rng).integers(2**31))
    latest: dict[Map, Map] = {}
    candidates = catalogue.candidates(kernel, X.shape[1])
    for spec in sorted(candidates, key=plainness) if plain_first else candidates:
        rows: tuple[np.ndarray, np.ndarray | None] = (X, Y)
        if spec.map.keeps_points:
            if others is None or len(others[0]) < n_features:
                continue
            spec, rows = replace(spec, n_projections=n_features), others
        known = spec.map.sharing(latest.get(spec.map, spec.map))
        try:
            plan = replace(spec, map=known).plan(*rows, rng=seed)
        except ValueError:
            continue  # too few points for the constants of this map
        latest[spec.map] = plan.map
        m = rows_within(plan, n_features, X.shape[1])
        if m:
            yield replace(spec, n_projections=m), replace(plan, n_projections=m)


def rows_within(plan: Approximation, width: int, d: int) -> int:
    """Largest number of projections that fit in a width, whole rules of a quadrature if possible; zero if none fits."""
    try:
        m = plan.with_width(width, d=d).n_projections
    except ValueError:
        return 0
    return m if plan.map.most_rows is None else min(m, plan.map.most_rows)


def label_of(spec: Approximation) -> str:
    """Short label of map and projection, without default arguments."""
    return f"{label(spec.map)}, {label(spec.projection)}" if spec.map.uses_rows else label(spec.map)


def plainness(spec: Approximation) -> int:
    """The order in which equal mechanisms are preferred: the kernel's default, landmarks, the default map, others.

    Examples
    --------
    >>> from bochner import kernels
    >>> plainness(Approximation(kernels.Gaussian()))
    0
    """
    if spec.map.keeps_points:
        return 1
    default, of_map = Approximation(spec.kernel), Approximation(spec.kernel, spec.map)
    if spec.map == default.map:
        return 0 if spec.projection == default.projection else 2
    return 3 if spec.map.uses_rows and spec.projection == of_map.projection else 4
