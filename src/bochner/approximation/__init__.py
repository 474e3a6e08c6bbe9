"""Approximation: kernel x map x projection."""

from .feature_map import FeatureMap
from .spec import Approximation

__all__ = ["Approximation", "FeatureMap"]
