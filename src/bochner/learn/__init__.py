"""Kernel machines as scikit-learn estimators, in linear time.

- `RandomFeatures`: the features themselves, a transformer in place of ``RBFSampler``;
- `KernelRidge`: regression, by ridge or by the Nadaraya-Watson average, with `partial_fit`;
- `KernelClassifier`: the same for classes;
- `RandomProjection`: dimensionality reduction with any rotation.
"""

from .kernel_classifier import KernelClassifier
from .kernel_ridge import KernelRidge
from .random_features import RandomFeatures
from .random_projection import RandomProjection

__all__ = ["KernelClassifier", "KernelRidge", "RandomFeatures", "RandomProjection"]
