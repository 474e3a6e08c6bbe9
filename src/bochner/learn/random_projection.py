"""Dimensionality reduction by random projections."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import linalg
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import DataDimensionalityWarning
from sklearn.random_projection import johnson_lindenstrauss_min_dim
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from .._validation import check_count, check_flag, check_positive
from ..approximation import FeatureMap
from .base import FLOATS, all_or_nothing
from .specification import FeatureParameters, draw_features
from .streaming import features_of, n_jobs_threads


class RandomProjection(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""Random projection that keeps dot products and distances on average, with any rotation of the library.

    A drop-in for ``sklearn.random_projection.GaussianRandomProjection``.

    Notes
    -----
    The features of the linear kernel, :math:`\phi(x) = Cx` with :math:`E\,C^TC = I`.  Orthogonal rows of fixed radius, the
    default, have an error below that of independent ones by a factor (d - m)/(d - 1) and more (OMC Section 5.1), and fast
    rotations apply them in O(d log d) a row without ever forming C.

    Parameters
    ----------
    n_components : int or "auto"
        Width of the output; "auto" is what the Johnson-Lindenstrauss lemma asks for, given ``eps`` and the number of rows.
    eps : float, default 0.1
        Relative error of squared distances for "auto".
    projection : Projection, str or None
        The law of the rows; None for orthogonal Haar rows of fixed radius.
    compute_inverse_components : bool, default False
        Whether `fit` computes the pseudo-inverse that `inverse_transform` needs, in place of each call.
    random_state : int, RandomState, Generator or None
        Source of randomness.
    n_jobs : int or None
        Threads; None for all that the process may use.  The result does not depend on it.

    Attributes
    ----------
    n_components_ : int
        Width of the output.
    components_ : array, ``(n_components_, d)``
        C, formed when it is asked for.
    inverse_components_ : array, ``(d, n_components_)``
        Its pseudo-inverse, with ``compute_inverse_components=True``.
    n_features_in_ : int
        Columns of the data.

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
            Data, of which the shape and the precision count alone.
        y : ignored
            For the sake of pipelines.
        """
        check_flag("RandomProjection", "compute_inverse_components", self.compute_inverse_components)
        X = validate_data(self, X, accept_sparse="csr", dtype=FLOATS)
        width = self._width(*X.shape)
        parameters = FeatureParameters("linear", projection=self.projection, n_components=width)
        with n_jobs_threads("RandomProjection", self.n_jobs):
            drawn = draw_features("RandomProjection", parameters, X, self.random_state, symmetric=True).features
            inverse = linalg.pinv(_matrix(drawn, X.dtype)) if self.compute_inverse_components else None
        self.n_components_, self.features_, self._dtype = width, drawn, X.dtype
        if inverse is not None:
            self.inverse_components_ = inverse
        elif hasattr(self, "inverse_components_"):  # that of an earlier fit
            del self.inverse_components_
        return self

    @property
    def components_(self) -> np.ndarray:
        """C, of shape ``(n_components_, d)``, in the precision of the data of `fit`."""
        check_is_fitted(self)
        return _matrix(self.features_, self._dtype)

    def transform(self, X: Any) -> np.ndarray:
        """Projections of the rows of X, ``(n, n_components_)``, in its precision.

        Parameters
        ----------
        X : array or CSR matrix (n, d)
            Sparse rows are made dense a tile at a time.
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=FLOATS, reset=False)
        with n_jobs_threads("RandomProjection", self.n_jobs):
            return features_of(self.features_, X)

    def inverse_transform(self, X: Any) -> np.ndarray:
        """The shortest rows whose projections are X, (n, d).

        Parameters
        ----------
        X : array or CSR matrix, ``(n, n_components_)``
            Projections.
        """
        check_is_fitted(self)
        X = check_array(X, dtype=FLOATS, accept_sparse="csr")
        if X.shape[1] != self.n_components_:
            raise ValueError(
                f"RandomProjection: inverse_transform expects {self.n_components_} columns, those of transform, got "
                f"{X.shape[1]}."
            )
        inverse = getattr(self, "inverse_components_", None)
        if inverse is None:
            inverse = linalg.pinv(self.components_)
        return np.asarray(X @ inverse.T)

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def _width(self, n: int, d: int) -> int:
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
        width = int(johnson_lindenstrauss_min_dim(n, eps=check_positive("RandomProjection", "eps", self.eps)))
        if not 0 < width <= d:
            raise ValueError(
                f"RandomProjection: eps={self.eps} and {n} rows lead to a target dimension of {width}, and X has {d} "
                f"columns; raise eps, or pass n_components."
            )
        return width

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _matrix(drawn: FeatureMap, dtype: Any) -> np.ndarray:
    """The projection as a matrix: what it makes of unit vectors."""
    return np.ascontiguousarray(drawn.queries(np.eye(drawn.n_features_in)).T.astype(dtype, copy=False))
