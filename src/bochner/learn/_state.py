"""The schema of saved estimators: fitted attributes as plain data, for pickles and skops files.

A file holds a format version, arrays, numbers and strings, under the names of `_SCHEMA` and `_ATTRIBUTES`.  Those names
belong to the format and never change; the classes and attributes on the right-hand sides are private and may.
"""

from __future__ import annotations

from typing import Any

from ..approximation import FeatureMap
from ..approximation.files import from_state
from ..approximation.log_features import KeySums
from ._cells import Cells
from ._coordinates import Coordinates
from ._exact_kernel import ExactKernel
from ._linear.moments import Moments
from ._linear.posterior import Posterior
from ._linear.ridge import FewRows, Ridge, RidgeModel, Solution
from ._linear.spectrum import Scaling
from ._nadaraya_watson import KernelAverage, NadarayaWatson, TargetSums
from ._selection import Selection
from ._uncertainty import Calibration, KeptRows

FORMAT = 2  # format version that is written; this version and all earlier ones can be read

_SCHEMA: dict[str, tuple[Any, str]] = {
    "Cells": (Cells, "levels fills gaps"),
    "Calibration": (Calibration, "below above own"),
    "Coordinates": (Coordinates, "center scale matrix limit bounds compressed"),
    "ExactKernel": (ExactKernel, "plan points"),
    "FewRows": (FewRows, "features targets weights"),
    "KeptRows": (KeptRows, "X targets own merged weights gaps"),
    "KernelAverage": (KernelAverage, "options sums"),
    "KeySums": (KeySums, "values shift"),
    "Moments": (
        Moments,
        "n_rows weight units feature_mean target_mean upper cross target_scatter rounding blur",
    ),
    "NadarayaWatson": (NadarayaWatson, "owner"),
    "Posterior": (Posterior, "mean root noise amplitude log_marginal_likelihood lost residual"),
    "Ridge": (Ridge, "owner alpha alphas intercept solver exact_products"),
    "RidgeModel": (RidgeModel, "options data alpha found"),
    "Scaling": (Scaling, "shift scale"),
    "Selection": (
        Selection,
        "kernel columns metric map n_components alpha error standard_error reason edges candidates seconds",
    ),
    "Solution": (Solution, "coefficients intercept alpha"),
    "TargetSums": (TargetSums, "keys totals"),
}
"""Kind in files -> its class, and its fields in files; ``field=attribute`` where the class calls it otherwise."""

_ATTRIBUTES = {
    "_cross": "sums_of_targets",
    "_decoder": "decoder",
    "_density": "sums_of_rows",
    "_drawn_functions": "posterior_functions",
    "_dtype": "dtype_of_rows",
    "_histogram": "histogram",
    "_index": "hash_index",
    "_kept": "kept_rows",
    "_log_weights": "log_weights",
    "_n_different": "n_different_rows",
    "_n_tables": "n_hash_tables",
    "_one_dimensional": "targets_were_vector",
    "_ratio": "noise_ratio",
    "_seed": "seed",
    "_several": "several_labels",
    "_single_target": "single_target",
    "_target_sum": "sum_of_targets",
    "_unit_rows": "unit_rows",
}
"""Private attributes of estimators -> their names in files; public attributes are stored under their own names."""

_KIND, _VERSION = "bochner.kind", "bochner.format"


def to_plain(state: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of an estimator with objects of this library as dictionaries.

    Examples
    --------
    >>> import numpy as np
    >>> to_plain({"scaling_": Scaling(np.zeros(1), np.ones(1))})["scaling_"]
    {'bochner.kind': 'Scaling', 'shift': array([0.]), 'scale': array([1.])}
    """
    return {_ATTRIBUTES.get(name, name): _plain(value) for name, value in state.items()} | {_VERSION: FORMAT}


def from_plain(owner: str, state: dict[str, Any]) -> dict[str, Any]:
    """Rebuild the attributes; unknown format versions are refused."""
    state = dict(state)
    version = state.pop(_VERSION, None)
    if not isinstance(version, int) or not 1 <= version <= FORMAT:
        raise ValueError(
            f"{owner}: this estimator was saved in format {version!r}, and this bochner reads 1 to {FORMAT}; use the "
            f"bochner that saved it, or fit again."
        )
    attributes = {
        stored: name for name, stored in _ATTRIBUTES.items()
    }  # format 1 stored them under their private names
    return {attributes.get(name, name): _restored(owner, value) for name, value in state.items()}


def _pairs(fields: str) -> list[tuple[str, str]]:
    """Names in files with the attributes that they stand for."""
    return [(name, attribute or name) for name, _, attribute in (word.partition("=") for word in fields.split())]


def _plain(value: Any) -> Any:
    if isinstance(value, FeatureMap):
        return {_KIND: "FeatureMap"} | value.__getstate__()
    for kind, (cls, fields) in _SCHEMA.items():
        if type(value) is cls:
            value = value.remembered() if isinstance(value, RidgeModel) else value
            return {_KIND: kind} | {name: _plain(getattr(value, attribute)) for name, attribute in _pairs(fields)}
    return value


def _restored(owner: str, value: Any) -> Any:
    if not isinstance(value, dict) or _KIND not in value:
        return value
    parts = {name: _restored(owner, part) for name, part in value.items() if name != _KIND}
    kind = value[_KIND]
    if kind == "FeatureMap":
        return from_state(parts)
    try:
        if kind not in _SCHEMA:
            raise TypeError(f"there is no {kind!r}")
        cls, fields = _SCHEMA[kind]
        attributes = dict(_pairs(fields))
        unknown = sorted(parts.keys() - attributes.keys())
        if unknown:
            raise TypeError(f"{kind} has no field {unknown[0]!r}")
        return cls(**{attributes[name]: part for name, part in parts.items()})
    except TypeError as error:
        raise ValueError(f"{owner}: this estimator's file is damaged: {error}.") from None
