"""How wide features are: what makes mechanisms comparable at equal cost."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..projections import IID, Quadrature
from ..rotations import Kac

if TYPE_CHECKING:
    from .feature_map import FeatureMap
    from .spec import Approximation

PROBE_ROWS = 64
_CHEAP_ROTATION = Kac(0.01)  # of few steps and without padding: a stand-in where only the width counts


class Width(NamedTuple):
    """Widths of features: ``per_row * m + extra`` for m projections."""

    per_row: int
    extra: int

    def of(self, n_projections: int) -> int:
        """Width with that many projections."""
        return self.per_row * n_projections + self.extra

    def rows_within(self, width: int) -> int:
        """Most projections whose features are no wider; zero if one row is too wide already."""
        return max((width - self.extra) // self.per_row, 0)


def width_of(spec: Approximation, d: int, X: Any = None) -> Width:
    """Widths of the features of a specification, seen at one row and at two.

    Parameters
    ----------
    spec : Approximation
    d : int
        Dimension of the data.
    X : array (n, d), optional
        Data for maps that adapt to them; random ones without it.

    Examples
    --------
    >>> from bochner import Approximation, kernels
    >>> from bochner.approximation import width_of
    >>> width_of(Approximation(kernels.Gaussian()), 5)       # a cosine and a sine a row
    Width(per_row=2, extra=0)
    """
    one, two = (probe(spec, m, d, X).n_features_out for m in (1, 2))
    return Width(two - one, 2 * one - two)


def probe(spec: Approximation, m: int, d: int, X: Any = None) -> FeatureMap:
    """The features of m rows, drawn cheaply: couplings of rows change neither their width, nor their symmetry or sign."""
    assert spec.map is not None
    rows: Any = IID()
    if isinstance(spec.projection, Quadrature):
        rows = replace(spec.projection, rotation=_CHEAP_ROTATION)
    few = replace(spec, projection=rows, n_projections=m)
    if not spec.map.needs_data:
        return few.draw(d, rng=0)
    points = np.random.default_rng(0).standard_normal((PROBE_ROWS, d)) / d if X is None else X[:PROBE_ROWS]
    return few.fit(points, rng=0)
