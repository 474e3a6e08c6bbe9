"""Gaussian processes in the space of the features: regression, and classification by Laplace's approximation."""

from .classification import GaussianProcessClassifier
from .regression import GaussianProcess

__all__ = ["GaussianProcess", "GaussianProcessClassifier"]
