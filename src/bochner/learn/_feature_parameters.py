"""From the parameters of an estimator to an `Approximation` of the requested width."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from .. import catalogue
from .._validation import check_count, shown
from ..approximation import Approximation, FeatureMap
from ..kernels import Kernel, resolve_bandwidth
from ..maps import Map
from ..projections import Projection
from ._row_source import RowSource


class FeatureParameters(NamedTuple):
    """The parameters that all estimators of features share, as they were passed to the constructor."""

    # a kernel, or its name (`bochner.catalogue.kernels()`); None for a map that has its own (`maps.Pointwise`)
    kernel: Any = "gaussian"
    # see `bochner.kernels.resolve_bandwidth`. None leaves a kernel unchanged, and means ``"scale"`` for a name.
    gamma: Any = None
    map: Any = None  # values, names, or None for the default of the kernel and the map
    projection: Any = None
    n_components: Any = 256  # width of the features


def draw_features(parameters: FeatureParameters, rows: RowSource, random_state: Any, *, symmetric: bool) -> FeatureMap:
    """Resolve the parameters on the rows, and draw features of the requested width.

    The features are narrower if the map has several features per row that do not add up to the width, and no single
    feature to fill the rest (cosines have one).

    Parameters
    ----------
    parameters : FeatureParameters
        Parameters of the estimator.
    rows : RowSource
        Data, used by the rules for gamma and by maps that adapt to data.
    random_state : int, RandomState, Generator or None
        Source of randomness.
    symmetric : bool
        Whether features that differ between queries and keys are refused.

    Returns
    -------
    FeatureMap

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.learn._row_source import ArrayRows
    >>> rows = ArrayRows("example", np.random.default_rng(0).standard_normal((10, 3)))
    >>> draw_features(FeatureParameters(n_components=64), rows, 0, symmetric=True).n_features_out
    64
    """
    rng, owner = as_generator(random_state), rows.owner
    spec = _approximation(parameters, rows, rng)
    width = check_count(owner, "n_components", parameters.n_components)
    if not spec.planned:
        if not spec.map.uses_rows:  # landmarks: as many as there are features
            spec = replace(spec, n_projections=width)
        seen = rows.glance()
        weighted = seen.weights is not None and bool(seen.weights.any())  # a fit without any weight is refused later
        spec = spec.plan(seen.X, rng=rng, weights=seen.weights if weighted else None)
    if symmetric:
        _check_symmetric(owner, spec)
    return _with_width(owner, spec, width).draw(rows.shape[1], rng)


def resolved_kernel(parameters: FeatureParameters, rows: Any, random_state: Any) -> Kernel:
    """The kernel of the parameters, with its bandwidth for these rows."""
    map_ = catalogue.map("landmarks")
    found = _approximation(parameters._replace(map=map_, projection=None), rows, as_generator(random_state)).kernel
    assert found is not None  # landmarks serve no other
    return found


def as_generator(random_state: Any) -> np.random.Generator:
    """Return the Generator of a scikit-learn ``random_state``; None follows ``numpy.random.seed``."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.default_rng(check_random_state(random_state).randint(np.iinfo(np.int32).max, size=4))


def _approximation(parameters: FeatureParameters, rows: RowSource, rng: np.random.Generator) -> Approximation:
    """Look up the parts by name and combine them; errors name the estimator."""
    kernel, gamma, owner = parameters.kernel, parameters.gamma, rows.owner
    if isinstance(kernel, str):
        kernel = look_up(owner, catalogue.kernel, kernel)
        gamma = kernel.default_rule if gamma is None else gamma
    if kernel is not None and not isinstance(kernel, Kernel):
        raise TypeError(
            f"{owner}: kernel must be a kernel such as kernels.Gaussian() or its name, got {shown(kernel)}."
        )
    if gamma is not None:
        if kernel is None:
            raise ValueError(f"{owner}: gamma={shown(gamma)} needs a kernel whose bandwidth it sets; pass gamma=None.")
        kernel = resolve_bandwidth(kernel, gamma, rows, rng=rng, owner=owner)
    feature_map = _part(owner, "map", parameters.map, catalogue.map, Map, "maps.Trigonometric()")
    projection = _part(
        owner, "projection", parameters.projection, catalogue.projection, Projection, "projections.Orthogonal()"
    )
    try:
        return Approximation(kernel, feature_map, projection)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{owner}: {str(error).removeprefix('Approximation: ')}") from None


def _part(owner: str, name: str, value: Any, find: Any, kind: type, example: str) -> Any:
    if isinstance(value, str):
        return look_up(owner, find, value)
    if value is not None and not isinstance(value, kind):
        raise TypeError(f"{owner}: {name} must be a {name} such as {example}, its name or None, got {shown(value)}.")
    return value


def look_up(owner: str, find: Any, name: str) -> Any:
    try:
        return find(name)
    except ValueError as error:
        raise ValueError(f"{owner}: {error}") from None


def _check_symmetric(owner: str, plan: Approximation) -> None:
    if not plan.symmetric:
        raise ValueError(
            f"{owner}: {plan.map!r} with {plan.projection!r} has different features for queries and keys, and there is no "
            f"single one to return; use a symmetric map such as Trigonometric(), Positive() or OptimalPositive() on rows of "
            f"equal weight, such as Orthogonal() or Simplex(), or Approximation.fit(X, Y) with queries and keys."
        )


def _with_width(owner: str, plan: Approximation, n_components: int) -> Approximation:
    """Use as many projections as fit in that width; cosines fill it exactly."""
    try:
        return plan.with_width(n_components, exactly=True)
    except ValueError:
        raise ValueError(
            f"{owner}: n_components={n_components} is too small: one row of {plan.map!r} with {plan.projection!r} makes "
            f"{plan.layout.width(1)} features; raise n_components to that."
        ) from None
