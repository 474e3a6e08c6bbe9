"""Approximation: kernel x map x projection, from specification to plan to draw.

`Approximation.simulate_mse` returns a `SimulatedError`.
"""

from .._facts import publish
from ..maps import NoClosedForm
from ._feature_map import FeatureMap
from ._simulation import SimulatedError as SimulatedError
from ._simulation import squared_errors as squared_errors
from ._specification import Approximation
from .files import load
from .files import plan_from_json as plan_from_json
from .files import plan_to_json as plan_to_json
from .log_features import KeySums as KeySums
from .log_features import LogFeatures as LogFeatures

__all__ = [
    "Approximation",
    "FeatureMap",
    "NoClosedForm",
    "load",
]

publish(globals())
