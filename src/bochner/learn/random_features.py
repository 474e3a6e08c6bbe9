"""Random features as a transformer."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from .base import FeatureEstimator, all_or_nothing
from .streaming import features_of


class RandomFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, FeatureEstimator):
    r"""Explicit features whose dot products estimate a kernel, as a scikit-learn transformer.

    A drop-in for ``sklearn.kernel_approximation.RBFSampler``, with any kernel, map and projection of the library.

    Notes
    -----
    :math:`\phi(x)\cdot\phi(y) \approx k(x, y)`, so a linear model on the features is a kernel machine in linear time.
    By default cosines and sines on orthogonal rows, whose error is below that of ``RBFSampler`` (single cosines with
    random offsets on independent rows) at equal width.

    Parameters
    ----------
    kernel : Kernel or str, default "gaussian"
        A kernel, or its name; None for `maps.Pointwise`, which has its own.
    gamma : "scale", "median", float or None, default None
        Bandwidth: the Gaussian kernel is :math:`e^{-\gamma|x-y|^2}`; for the others see `bochner.kernels.resolve_bandwidth`.
        ``"scale"`` is 1/(d Var X), ``"median"`` makes the lengthscale the median distance between rows.  None leaves a
        kernel as it is, and means ``"scale"`` for a name.
    map : Map, str or None
        The nonlinearity; None for what is best for the kernel.  It must be symmetric.
    projection : Projection, str or None
        The law of the rows; None for what is best for the map.
    n_components : int, default 256
        Width of the output.  Cosines and sines come in pairs: an odd width is refused, not rounded.
    random_state : int, RandomState, Generator or None
        Source of randomness; an int gives the same features each time.
    n_jobs : int or None
        Threads; None for all that the process may use.  The result does not depend on it.

    Attributes
    ----------
    features_ : FeatureMap
        The drawn features.
    kernel_ : Kernel
        The kernel with its bandwidth, which the features estimate.
    n_features_in_ : int
        Columns of the data.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.learn import RandomFeatures
    >>> X = np.random.default_rng(0).standard_normal((100, 5))
    >>> transformer = RandomFeatures(gamma=0.1, n_components=512, random_state=0).fit(X)
    >>> Phi = transformer.transform(X)
    >>> Phi.shape, bool(np.abs(Phi @ Phi.T - transformer.kernel_(X)).max() < 0.2)
    ((100, 512), True)
    """

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        gamma: Any = None,
        map: Any = None,
        projection: Any = None,
        n_components: int = 256,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.map = map
        self.projection = projection
        self.n_components = n_components
        self.random_state = random_state
        self.n_jobs = n_jobs

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> RandomFeatures:
        """Draw the features for data with the columns of X.

        Parameters
        ----------
        X : array or CSR matrix (n, d)
            Data; looked at by the rules for gamma, and by maps that adapt.
        y : ignored
            For the sake of pipelines.
        """
        X = self._validated(X, reset=True)
        with self._threads():
            self.features_, self.kernel_ = self._drawn(X)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Features of the rows of X, (n, n_components), in its precision.

        Parameters
        ----------
        X : array or CSR matrix (n, d)
            Sparse rows are made dense a tile at a time.
        """
        X = self._validated(X)
        with self._threads():
            return features_of(self.features_, X)

    @property
    def _n_features_out(self) -> int:
        return self.features_.n_features_out

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
