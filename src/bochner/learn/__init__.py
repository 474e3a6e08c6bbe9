"""Kernel machines as scikit-learn estimators, in linear time.

- `RandomFeatures`: the features themselves, a transformer in place of ``RBFSampler``;
- `KernelRidge`: regression, by ridge or by the Nadaraya-Watson average, with `partial_fit`;
- `KernelClassifier`: the same for classes;
- `GaussianProcess`: regression with its uncertainty and its marginal likelihood;
- `GaussianProcessClassifier`: classes by Laplace's approximation;
- `RandomProjection`: dimensionality reduction with any rotation.
"""

from .gaussian_process import GaussianProcess, GaussianProcessClassifier
from .kernel_classifier import KernelClassifier
from .kernel_ridge import KernelRidge
from .random_features import RandomFeatures
from .random_projection import RandomProjection

__all__ = [
    "GaussianProcess",
    "GaussianProcessClassifier",
    "KernelClassifier",
    "KernelRidge",
    "RandomFeatures",
    "RandomProjection",
]
