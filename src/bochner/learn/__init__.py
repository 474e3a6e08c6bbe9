"""Kernel machines as scikit-learn estimators."""

from .gaussian_process import GaussianProcess, GaussianProcessClassifier

__all__ = ["GaussianProcess", "GaussianProcessClassifier"]
