"""Approximation: kernel x map x projection."""

from .closed_forms import NoClosedForm
from .error import SimulatedError
from .feature_map import FeatureMap
from .spec import Approximation

__all__ = ["Approximation", "FeatureMap", "NoClosedForm", "SimulatedError"]
