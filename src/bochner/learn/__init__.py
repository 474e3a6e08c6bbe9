"""Kernel machines as scikit-learn estimators, in linear time.

- `RandomFeatures`: the features themselves, as a transformer that can replace ``RBFSampler``;
- `KernelRidge`: regression by ridge or by the Nadaraya-Watson average, with `partial_fit`;
- `KernelClassifier`: the same for classification;
- `GaussianProcess`: regression with uncertainty, and hyperparameters chosen by the marginal likelihood;
- `FourierProcess`: the same for one to three columns and ten million rows;
- `GaussianProcessClassifier`: classification by Laplace's approximation;
- `KernelPCA`: principal components, with `partial_fit` and `inverse_transform`;
- `FeatureRidge`, `FeatureRidgeClassifier`: ridge regression and classification on features that are given;
- `RandomProjection`: dimensionality reduction with any rotation;
- `AngularHash`: approximate nearest neighbours by angle.
"""

from .._facts import publish
from ._angular_hash import AngularHash
from ._feature_ridge import FeatureRidge, FeatureRidgeClassifier
from ._fourier_process import FourierProcess
from ._gaussian_process import GaussianProcess
from ._gaussian_process_classifier import GaussianProcessClassifier
from ._kernel_classifier import KernelClassifier
from ._kernel_pca import KernelPCA
from ._kernel_ridge import KernelRidge
from ._transformers import RandomFeatures, RandomProjection

__all__ = [
    "AngularHash",
    "FeatureRidge",
    "FeatureRidgeClassifier",
    "FourierProcess",
    "GaussianProcess",
    "GaussianProcessClassifier",
    "KernelClassifier",
    "KernelPCA",
    "KernelRidge",
    "RandomFeatures",
    "RandomProjection",
]

publish(globals())
