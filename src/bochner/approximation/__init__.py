"""Approximation: kernel x map x projection."""

from .closed_forms import NoClosedForm
from .error import SimulatedError
from .feature_map import FeatureMap
from .spec import Approximation
from .width import Width, width_of

__all__ = ["Approximation", "FeatureMap", "NoClosedForm", "SimulatedError", "Width", "width_of"]
