"""Transformers: random features, and random projections."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy import linalg, sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import DataDimensionalityWarning
from sklearn.random_projection import johnson_lindenstrauss_min_dim
from sklearn.utils.validation import check_is_fitted

from .._validation import check_count, check_flag, check_positive
from ..approximation import FeatureMap
from ._estimator import FeatureEstimator, RowEstimator, all_or_nothing
from ._feature_parameters import FeatureParameters, draw_features
from ._row_source import RowSource


class RandomFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, FeatureEstimator):
    r"""Random features whose dot products estimate a kernel, as a scikit-learn transformer.

    A drop-in replacement for ``sklearn.kernel_approximation.RBFSampler``, with any kernel, map and projection.

    Parameters
    ----------
    kernel : Kernel or str, default "gaussian"
        A kernel, or its name; None for `maps.Pointwise`, which has its own.
    gamma : "scale", "median", float or None, default None
        Bandwidth: the Gaussian kernel is :math:`e^{-\gamma|x-y|^2}`; for the others see
        `bochner.kernels.resolve_bandwidth`.  ``"scale"`` is 1/(d Var X), and ``"median"`` sets the lengthscale to the
        median distance between rows.  None leaves a kernel unchanged, and means ``"scale"`` for a name.
    map : Map, str or None
        The nonlinearity; None for the default of the kernel.  It must be symmetric.
    projection : Projection, str or None
        The law of the rows; None for the default of the map.
    n_components : int, default 256
        Width of the output.  If it is odd, the last column of trigonometric features is a single cosine with a random
        phase.  Other maps with several features per row fill remaining columns with zeros.
    random_state : int, RandomState, Generator or None
        Source of randomness; pass an int for reproducible features.
    n_jobs : int or None
        Number of threads; None for all that the process may use.  The result does not depend on it.

    Attributes
    ----------
    features_ : FeatureMap
        The drawn features.
    kernel_ : Kernel
        The kernel with its bandwidth, which the features estimate.
    n_features_in_ : int
        Number of columns of the data.

    Notes
    -----
    :math:`\phi(x)\cdot\phi(y) \approx k(x, y)`, so a linear model on the features is a kernel machine in linear time.
    The default features are cosines and sines on orthogonal rows.  At equal width their error is below that of
    ``RBFSampler``, which uses single cosines with random offsets on independent rows.

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
            Data, used by the rules for gamma and by maps that adapt to data.
        y : ignored
            Present for API consistency.

        Returns
        -------
        self
        """
        rows = self._rows(X, reset=True)
        self._n_features_out = self.n_components
        with self._threads():
            self.features_ = self._drawn(rows)
        return self

    def transform(self, X: Any) -> Any:
        """Return the features of rows X.

        Parameters
        ----------
        X : array or CSR matrix (n, d)
            Data; sparse rows are multiplied as they are.

        Returns
        -------
        array (n, n_components)
            Features, in the precision of X.
        """
        rows = self._rows(X)
        with self._threads():
            return rows.map(self._work(), (self._n_features_out,), rows.dtype)

    def _work(self) -> Callable[[np.ndarray], np.ndarray]:
        """Features, and zeros where their rows do not add up to the width."""
        queries, width = self.features_.queries, self._n_features_out
        return queries if self.features_.n_features_out == width else partial(_padded, queries=queries, width=width)


class RandomProjection(ClassNamePrefixFeaturesOutMixin, TransformerMixin, RowEstimator):
    r"""Random projection that preserves dot products and distances on average, with any rotation.

    A drop-in replacement for ``sklearn.random_projection.GaussianRandomProjection``.

    Parameters
    ----------
    n_components : int or "auto"
        Width of the output; "auto" is the width of the Johnson-Lindenstrauss lemma for ``eps`` and the number of rows.
    eps : float, default 0.1
        Relative error of squared distances for "auto".
    projection : Projection, str or None
        The law of the rows; None for orthogonal Haar rows of fixed length.
    compute_inverse_components : bool, default False
        Whether `fit` computes the pseudo-inverse for `inverse_transform`; otherwise every call computes it.
    random_state : int, RandomState, Generator or None
        Source of randomness.
    n_jobs : int or None
        Number of threads; None for all that the process may use.  The result does not depend on it.

    Attributes
    ----------
    n_components_ : int
        Width of the output.
    components_ : array, ``(n_components_, d)``
        The matrix C, formed on access.
    inverse_components_ : array, ``(d, n_components_)``
        Its pseudo-inverse, with ``compute_inverse_components=True``.
    n_features_in_ : int
        Number of columns of the data.

    Notes
    -----
    These are the features of the linear kernel, :math:`\phi(x) = Cx` with :math:`E\,C^TC = I`.  The error of orthogonal
    rows of fixed length, the default, is lower than that of independent rows by at least a factor of (d - m)/(d - 1)
    (OMC Section 5.1).  Fast rotations apply them in O(d log d) per row without forming C.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import projections, rotations
    >>> from bochner.learn import RandomProjection
    >>> X = np.random.default_rng(0).standard_normal((20, 1000))
    >>> fast = projections.Orthogonal(rotations.StructuredGivens(), radii="fixed")
    >>> Z = RandomProjection(200, projection=fast, random_state=0).fit_transform(X)
    >>> Z.shape, bool(np.abs((Z**2).sum(axis=1) / (X**2).sum(axis=1) - 1).max() < 0.4)
    ((20, 200), True)
    """

    def __init__(
        self,
        n_components: Any = "auto",
        *,
        eps: float = 0.1,
        projection: Any = None,
        compute_inverse_components: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.eps = eps
        self.projection = projection
        self.compute_inverse_components = compute_inverse_components
        self.random_state = random_state
        self.n_jobs = n_jobs

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> RandomProjection:
        """Draw the projection for data with the shape of X.

        Parameters
        ----------
        X : array or CSR matrix (n, d)
            Data, of which only the shape and the precision are used.
        y : ignored
            Present for API consistency.

        Returns
        -------
        self
        """
        check_flag("RandomProjection", "compute_inverse_components", self.compute_inverse_components)
        rows = self._rows(X, reset=True)
        width = self._width(rows)
        parameters = FeatureParameters("linear", projection=self.projection, n_components=width)
        with self._threads():
            drawn = draw_features(parameters, rows, self.random_state, symmetric=True)
            inverse = linalg.pinv(_matrix(drawn, rows.dtype)) if self.compute_inverse_components else None
        self.n_components_, self.features_, self._dtype = width, drawn, rows.dtype.name
        if inverse is not None:
            self.inverse_components_ = inverse
        elif hasattr(self, "inverse_components_"):  # that of an earlier fit
            del self.inverse_components_
        return self

    @property
    def components_(self) -> np.ndarray:
        """The matrix C of shape ``(n_components_, d)``, in the precision of the data of `fit`."""
        check_is_fitted(self)
        return _matrix(self.features_, self._dtype)

    def transform(self, X: Any) -> Any:
        """Return the projections of rows X.

        Parameters
        ----------
        X : array or CSR matrix (n, d)
            Data; sparse rows are multiplied as they are.

        Returns
        -------
        array, ``(n, n_components_)``
            Projections, in the precision of X.
        """
        rows = self._rows(X)
        with self._threads():
            return rows.map(self.features_.queries, (self.n_components_,), rows.dtype)

    def inverse_transform(self, X: Any) -> Any:
        """Return the shortest rows whose projections are X.

        Parameters
        ----------
        X : array or CSR matrix, ``(n, n_components_)``
            Projections.

        Returns
        -------
        array (n, d)
        """
        check_is_fitted(self)
        rows = self._other_rows(X)
        if rows.shape[1] != self.n_components_:
            raise ValueError(
                f"RandomProjection: inverse_transform expects {self.n_components_} columns, those of transform, got "
                f"{rows.shape[1]}."
            )
        inverse = getattr(self, "inverse_components_", None)
        if inverse is None:
            inverse = linalg.pinv(self.components_)
        work = partial(_times, matrix=np.ascontiguousarray(inverse.T))
        return rows.map(work, (self.n_features_in_,), np.result_type(rows.dtype, inverse.dtype))

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def _width(self, rows: RowSource) -> int:
        d = rows.shape[1]
        if not isinstance(self.n_components, str):
            width = check_count("RandomProjection", "n_components", self.n_components)
            if width > d:
                warnings.warn(
                    f"RandomProjection: n_components={width} is above the {d} columns of X: nothing is reduced.",
                    DataDimensionalityWarning,
                    stacklevel=3,
                )
            return width
        if self.n_components != "auto":
            raise ValueError(f"RandomProjection: n_components must be an integer or 'auto', got {self.n_components!r}.")
        n = rows.count()
        width = int(johnson_lindenstrauss_min_dim(n, eps=check_positive("RandomProjection", "eps", self.eps)))
        if not 0 < width <= d:
            raise ValueError(
                f"RandomProjection: eps={self.eps} and {n} rows lead to a target dimension of {width}, and X has {d} "
                f"columns; raise eps, or pass n_components."
            )
        return width


def _padded(X: np.ndarray, *, queries: Callable[[np.ndarray], np.ndarray], width: int) -> np.ndarray:
    """Features, and columns of zeros up to a width."""
    values = queries(X)
    return np.pad(values, [(0, 0), (0, width - values.shape[1])])


def _matrix(drawn: FeatureMap, dtype: Any) -> np.ndarray:
    """The projection as a matrix: its values at the unit vectors."""
    units = sparse.eye_array(drawn.n_features_in, format="csr")
    return np.ascontiguousarray(drawn.queries(units).T.astype(dtype, copy=False))


def _times(X: np.ndarray, *, matrix: np.ndarray) -> np.ndarray:
    return np.asarray(X @ matrix)
