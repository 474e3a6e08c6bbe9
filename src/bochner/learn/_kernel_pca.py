"""Kernel principal components in linear time, from sums over rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import linalg
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from .._arrays import is_sparse
from .._validation import check_count
from ._estimator import FeatureEstimator, all_or_nothing
from ._feature_parameters import FeatureParameters
from ._linear.moments import Moments, Part
from ._row_source import Chunk, RowSource


class KernelPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, FeatureEstimator):
    r"""Kernel principal components from random features, in time linear in the number of rows.

    A replacement for ``sklearn.decomposition.KernelPCA`` where the matrix of all pairs does not fit, with `partial_fit` for
    rows that come in parts.  Use it to visualise data, to denoise them (`inverse_transform`), and as a preprocessing
    step.

    Parameters
    ----------
    n_components : int, default 2
        Number of principal components.
    kernel : Kernel or str, default "gaussian"
        A kernel, or its name.
    gamma : "scale", "median", float or None, default None
        Bandwidth, as in `RandomFeatures`; None leaves a kernel unchanged, and means ``"scale"`` for a name.
    map, projection : Map, Projection, str or None
        The features, as in `RandomFeatures`.
    n_features : int, default 512
        Width of the random features; memory is :math:`O(D^2)` and does not depend on the number of rows.
    random_state : int, RandomState, Generator or None
        Source of randomness; pass an int for reproducible components.
    n_jobs : int or None
        Number of threads; None for all that the process may use.

    Attributes
    ----------
    features_ : FeatureMap
        The drawn features.
    components_ : array (n_components, n_features)
        The principal axes, in the space of the features, of unit length and in order of variance.
    explained_variance_, explained_variance_ratio_ : array (n_components,)
        Variance of each component, and its share of the variance of all features.
    mean_ : array (n_features,)
        Mean of the features.
    n_samples_seen_ : int
        Number of rows.
    n_features_in_ : int
        Number of columns of the data.

    See Also
    --------
    RandomFeatures : The features alone.

    Notes
    -----
    The components are those of :math:`\phi(x) - \bar\phi`: eigenvectors V of the covariance C of the features, which is kept
    as sums over rows; centring is exact.  ``transform`` gives :math:`V^T(\phi(x) - \bar\phi)`, whose dot products are the
    best approximation of their rank to those of the centred features.  Eigenvalues of C estimate those of the centred
    kernel matrix divided by n, and scores agree with those of scikit-learn up to signs.

    ``inverse_transform`` is the least-squares prediction of the rows of the fit from their scores, linear in the scores: the
    more components, the closer it comes to the rows.  It needs no second pass, as the products of rows and features are
    among the sums.

    References
    ----------
    schoelkopf1998; lopezpaz2014.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.learn import KernelPCA
    >>> angle = np.random.default_rng(0).uniform(0, 2 * np.pi, 400)
    >>> radius = np.repeat([1.0, 3.0], 200)
    >>> X = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    >>> Z = KernelPCA(2, gamma=1.0, random_state=0).fit_transform(X)
    >>> Z.shape
    (400, 2)
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        kernel: Any = "gaussian",
        gamma: Any = None,
        map: Any = None,
        projection: Any = None,
        n_features: int = 512,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.map = map
        self.projection = projection
        self.n_features = n_features
        self.random_state = random_state
        self.n_jobs = n_jobs

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> KernelPCA:
        """Draw the features, and find the principal components of their values at the rows of X.

        Parameters
        ----------
        X : array or CSR matrix (n, d)
            Data.
        y : ignored
            Present for API consistency.

        Returns
        -------
        self
        """
        rows = self._rows(X, reset=True)
        with self._threads():
            self.features_ = self._drawn(rows)
            self._update(self._moments_of(rows))
        return self

    @all_or_nothing
    def partial_fit(self, X: Any, y: Any = None) -> KernelPCA:
        """Add rows; the features are drawn with the first of them, and the components are those of all rows so far.

        Parameters
        ----------
        X : array or CSR matrix (n, d)
            Data.
        y : ignored
            Present for API consistency.

        Returns
        -------
        self
        """
        if not hasattr(self, "moments_"):
            return self.fit(X)
        rows = self._rows(X)
        with self._threads():
            self._update(self.moments_ + self._moments_of(rows))
        return self

    def transform(self, X: Any) -> Any:
        """Return the scores of rows X on the principal components.

        Parameters
        ----------
        X : array or CSR matrix (n, d)
            Data.

        Returns
        -------
        array (n, n_components)
        """
        rows = self._rows(X)
        axes = np.ascontiguousarray(self.components_.T, dtype=rows.dtype)
        shift = (self.mean_ @ axes).astype(rows.dtype)

        def scores(x: Any) -> np.ndarray:
            return np.asarray(self.features_.queries(x) @ axes - shift)

        with self._threads():
            return rows.map(scores, (len(self.components_),), rows.dtype)

    def inverse_transform(self, Z: Any) -> np.ndarray:
        """Return the rows that scores Z stand for, by least squares on the rows of the fit.

        Parameters
        ----------
        Z : array (n, n_components)
            Scores.

        Returns
        -------
        array (n, d)
        """
        check_is_fitted(self)
        Z = np.asarray(Z)
        if Z.ndim != 2 or Z.shape[1] != len(self.components_):
            raise ValueError(
                f"KernelPCA.inverse_transform: Z must have {len(self.components_)} columns, one for each component, got "
                f"shape {Z.shape}."
            )
        return np.asarray(self.moments_.target_mean + Z @ self._decoder)

    def _moments_of(self, rows: RowSource) -> Moments:
        phi, d = self.features_, rows.shape[1]

        def parts(chunks: Iterator[Chunk]) -> Iterator[Part]:
            for chunk in chunks:
                X = chunk.X.toarray() if is_sparse(chunk.X) else chunk.X
                yield phi.queries(chunk.X), X, None

        return rows.reduce(
            lambda chunks: Moments.collect(parts(chunks), phi.n_features_out, d), width=phi.n_features_out
        )

    def _update(self, moments: Moments) -> None:
        """Take the components from the moments."""
        D = self.features_.n_features_out
        k = check_count("KernelPCA", "n_components", self.n_components)
        if k > min(D, moments.n_rows):
            raise ValueError(
                f"KernelPCA: n_components must be at most {min(D, moments.n_rows)}, the number of features or of rows, "
                f"got {k}."
            )
        covariance = moments.scatter / moments.n_rows
        values, vectors = linalg.eigh(covariance, subset_by_index=(D - k, D - 1))
        values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
        largest = np.abs(vectors).argmax(axis=0)
        vectors = vectors * np.sign(vectors[largest, np.arange(k)])  # the sign of an eigenvector is arbitrary
        total = float(np.trace(covariance))
        self.moments_, self.mean_, self.n_samples_seen_ = moments, moments.feature_mean, moments.n_rows
        self.components_, self.explained_variance_ = np.ascontiguousarray(vectors.T), values
        self.explained_variance_ratio_ = values / total if total > 0 else np.zeros(k)
        known = values > max(total, np.finfo(np.float64).tiny) * D * np.finfo(np.float64).eps
        scale = np.where(known, 1 / np.where(known, values * moments.n_rows, 1.0), 0.0)
        self._decoder = scale[:, None] * (self.components_ @ moments.cross)
        self._n_features_out = k

    def _parameters(self) -> FeatureParameters:
        return FeatureParameters(self.kernel, self.gamma, self.map, self.projection, self.n_features)
