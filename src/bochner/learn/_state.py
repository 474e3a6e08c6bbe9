"""Fitted estimators as plain data, for pickles and skops files.

Objects of this library become dictionaries of arrays, numbers and strings under stable names, with a format version.
Files therefore do not depend on private modules and contain no executable code.  Parameters are not changed.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from ..approximation import FeatureMap
from ..approximation.files import from_state
from ..approximation.log_features import KeySums
from ._chooser import Selection
from ._coordinates import Coordinates
from ._linear.moments import Moments
from ._linear.posterior import Posterior
from ._linear.ridge import FewRows, Ridge, RidgeModel, Solution
from ._linear.spectrum import Scaling
from ._nadaraya_watson import KernelAverage, NadarayaWatson, TargetSums
from ._uncertainty import Calibration, KeptRows

FORMAT = 1
"""Format version that is written; this version and all earlier ones can be read."""
_KINDS: dict[str, Any] = {
    cls.__name__: cls
    for cls in (
        Calibration,
        Coordinates,
        FewRows,
        KeptRows,
        KernelAverage,
        KeySums,
        Moments,
        NadarayaWatson,
        Posterior,
        Ridge,
        RidgeModel,
        Scaling,
        Selection,
        Solution,
        TargetSums,
    )
}
_KIND = "bochner.kind"


def to_plain(state: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of an estimator with objects of this library as dictionaries.

    Examples
    --------
    >>> import numpy as np
    >>> to_plain({"scaling_": Scaling(np.zeros(1), np.ones(1))})["scaling_"]
    {'bochner.kind': 'Scaling', 'shift': array([0.]), 'scale': array([1.])}
    """
    return {name: _plain(value) for name, value in state.items()} | {"bochner.format": FORMAT}


def from_plain(owner: str, state: dict[str, Any]) -> dict[str, Any]:
    """Rebuild the attributes; unknown format versions are refused."""
    state = dict(state)
    version = state.pop("bochner.format", None)
    if not isinstance(version, int) or not 1 <= version <= FORMAT:
        raise ValueError(
            f"{owner}: this estimator was saved in format {version!r}, and this bochner reads 1 to {FORMAT}; use the "
            f"bochner that saved it, or fit again."
        )
    return {name: _restored(owner, value) for name, value in state.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, FeatureMap):
        return {_KIND: "FeatureMap"} | value.__getstate__()
    if _KINDS.get(type(value).__name__) is not type(value):
        return value
    if isinstance(value, RidgeModel):
        value = value.remembered()
    names = getattr(value, "_fields", None) or [field.name for field in dataclasses.fields(value)]
    return {_KIND: type(value).__name__} | {name: _plain(getattr(value, name)) for name in names}


def _restored(owner: str, value: Any) -> Any:
    if not isinstance(value, dict) or _KIND not in value:
        return value
    fields = {name: _restored(owner, part) for name, part in value.items() if name != _KIND}
    if value[_KIND] == "FeatureMap":
        return from_state(fields)
    kind = _KINDS.get(value[_KIND])
    try:
        if kind is None:
            raise TypeError(f"there is no {value[_KIND]!r}")
        return kind(**fields)
    except TypeError as error:
        raise ValueError(f"{owner}: this estimator's file is damaged: {error}.") from None
