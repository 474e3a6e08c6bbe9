"""Every mechanism that applies to a kernel, at a width of the features."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, Field, fields, is_dataclass, replace
from typing import Any

import numpy as np

from .. import catalogue
from ..approximation import Approximation
from ..kernels import Kernel
from ..maps import ClusterHybrid, Layout


def applicable(kernel: Kernel, d: int, n_features: int, X: np.ndarray | None = None) -> Iterator[Approximation]:
    """Mechanisms for the kernel in d dimensions, each with as many projections as fit in ``n_features``.

    Quadrature takes whole rules where one fits.  Mechanisms of which one row is too wide already are left out.

    Examples
    --------
    >>> from bochner import kernels
    >>> from bochner.selection import applicable
    >>> [spec.projection for spec in applicable(kernels.Laplacian(), 3, 64)]
    [IID()]
    """
    for spec in catalogue.candidates(kernel, d):
        fitted = at_width(spec, d, n_features, X)
        if fitted is not None:
            yield fitted


def at_width(spec: Approximation, d: int, n_features: int, X: np.ndarray | None = None) -> Approximation | None:
    """The mechanism with as many projections as fit; None if none does."""
    if isinstance(spec.map, ClusterHybrid) and X is not None and len(X) < 16:
        return None  # too few points for clusters
    m = width_at(spec, d, X).rows_within(n_features)
    rule = rows_of_rule(spec, d)
    m = m - m % rule if m >= rule else m
    return replace(spec, n_projections=m) if m else None


def width_at(spec: Approximation, d: int, X: np.ndarray | None = None) -> Layout:
    """Widths of the mechanism in d dimensions, with constants planned on X or on random points."""
    if not spec.planned:
        points = np.random.default_rng(0).standard_normal((64, d)) / d if X is None else X
        spec = spec.plan(points, rng=0)
    return spec.layout


def rows_of_rule(spec: Approximation, d: int) -> int:
    """Rows of a whole quadrature rule; one for other projections."""
    return spec.projection.rows_per_rule(d)


def label(value: Any) -> str:
    """A part as one would type it, without the names of its options and without what is the default.

    Examples
    --------
    >>> from bochner import maps, projections
    >>> label(projections.Orthogonal()), label(maps.OptimalPositive())
    ('Orthogonal()', 'OptimalPositive()')
    """
    if isinstance(value, Approximation):
        return label(value.map) if not value.map.uses_rows else f"{label(value.map)}, {label(value.projection)}"
    if not is_dataclass(value):
        return repr(value)
    arguments, named = [], ""
    for parameter in fields(value):
        given = getattr(value, parameter.name)
        if given == _default(parameter):
            named = "="
            continue
        arguments.append(f"{parameter.name}={label(given)}" if named else label(given))
    return f"{type(value).__name__}({', '.join(arguments)})"


def _default(parameter: Field[Any]) -> Any:
    return parameter.default if parameter.default is not MISSING else object()
