"""Every mechanism that applies to a kernel, at a width of the features."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, Field, fields, is_dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from .. import names
from ..approximation import Approximation, Width, width_of
from ..kernels import Kernel
from ..maps import ClusterHybrid, Map
from ..projections import IID, Projection, Quadrature

_ALL = (
    "iid",
    "orthogonal",
    "fast-orthogonal",
    "hadamard",
    "simplex",
    "fast-simplex",
    "simplex+",
    "quadrature",
    "orthoplex",
    "fast-orthoplex",
    "halton",
    "sobol",
)
_HYBRIDS = ("iid", "orthogonal", "fast-orthogonal", "simplex")
_LARGE = ("iid", "orthogonal", "fast-orthogonal", "hadamard", "fast-simplex", "fast-orthoplex", "halton")
_LARGE_DIMENSION = 1024
"""Above it a Haar matrix takes seconds to draw: one stays, as the measure of the fast rotations."""
_SAME_AS_ANOTHER = ("complex-exponential",)
"""`ComplexExponential(1j)`, the table's, has the features of `Trigonometric()`."""


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
    for name, make in names.MAPS.items():
        feature_map = make()
        if not feature_map.serves(kernel) or name in _SAME_AS_ANOTHER:
            continue
        for rows in _rows_for(name, d):
            try:
                spec = Approximation(kernel, feature_map, names.projection(rows), 1)
            except ValueError:
                continue  # this pair does not work together, as the compatibility rules say
            fitted = at_width(spec, d, n_features, X)
            if fitted is not None:
                yield fitted


def at_width(spec: Approximation, d: int, n_features: int, X: np.ndarray | None = None) -> Approximation | None:
    """The mechanism with as many projections as fit; None if none does."""
    if isinstance(spec.map, ClusterHybrid) and X is not None and len(X) < 16:
        return None  # too few points for clusters
    m = width_at(spec, d).rows_within(n_features)
    rule = rows_of_rule(spec, d)
    m = m - m % rule if m >= rule else m
    return replace(spec, n_projections=m) if m else None


def width_at(spec: Approximation, d: int) -> Width:
    """Widths of the mechanism in d dimensions; of couplings, those of quadrature alone change it."""
    assert spec.map is not None
    return _width(spec.map, spec.projection if isinstance(spec.projection, Quadrature) else IID(), d)


@lru_cache(maxsize=1024)
def _width(feature_map: Map, rows: Projection, d: int) -> Width:
    kernel = next(kernel for kernel in (make() for make in names.KERNELS.values()) if feature_map.serves(kernel))
    return width_of(Approximation(kernel, feature_map, rows, 1), d)


def rows_of_rule(spec: Approximation, d: int) -> int:
    """Rows of a whole quadrature rule; one for other projections."""
    if not isinstance(spec.projection, Quadrature):
        return 1
    return d + 1 if spec.projection.vertices == "simplex" else spec.projection.padded(d)


def label(value: Any) -> str:
    """A part as one would type it, without the names of its options and without what is the default.

    Examples
    --------
    >>> from bochner import maps, projections
    >>> label(projections.Orthogonal()), label(maps.OptimalPositive())
    ('Orthogonal()', 'OptimalPositive()')
    """
    if isinstance(value, Approximation):
        discrete = value.map is not None and value.map.discrete
        return label(value.map) if discrete else f"{label(value.map)}, {label(value.projection)}"
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


def _rows_for(name: str, d: int) -> tuple[str, ...]:
    rows = _HYBRIDS if "hybrid" in name else _ALL
    return rows if d <= _LARGE_DIMENSION else tuple(row for row in rows if row in _LARGE)
