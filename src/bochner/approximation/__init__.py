"""Approximation: kernel x map x projection, from specification to plan to draw."""

from .._facts import publish
from ..maps import NoClosedForm
from ._feature_map import FeatureMap
from ._simulation import SimulatedError, squared_errors
from ._specification import Approximation
from .files import load, plan_from_json, plan_to_json
from .log_features import KeySums, LogFeatures

__all__ = [
    "Approximation",
    "FeatureMap",
    "KeySums",
    "LogFeatures",
    "NoClosedForm",
    "SimulatedError",
    "load",
    "plan_from_json",
    "plan_to_json",
    "squared_errors",
]

publish(globals())
