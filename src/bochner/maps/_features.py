"""Drawn maps: features of queries and of keys, as mantissa times exponential."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np

from .._arrays import array_namespace, is_sparse, like
from ..projections import Operator

Scaled = tuple[Any, Any]
"""Mantissa and logarithm of the scale, either of them None (one, zero); the feature is mantissa * exp(logarithm)."""


class QuadraticSide(NamedTuple):
    r"""Logarithms of queries or of keys, :math:`\log\phi_m(x) = w_m\cdot z + a_m + c|z|^2` at :math:`z = T^T(x - o)`.

    Attributes
    ----------
    rows : float64 array (D, d)
        The rows w.
    constants : float64 array (D,)
        The constants a.
    c : float
        Coefficient of the squared norm.
    center : float64 array (d,) or None
        The point o; None if z = x.
    matrix : float64 array (d, d) or None
        The matrix T; None if z = x.
    """

    rows: np.ndarray
    constants: np.ndarray
    c: float
    center: np.ndarray | None = None
    matrix: np.ndarray | None = None


class Quadratic(NamedTuple):
    """Features whose logarithms are quadratic functions of the points, with signs for keys.

    Attributes
    ----------
    queries, keys : QuadraticSide
        The logarithms of both sides, which are the same object if queries and keys have the same ones.
    signs : float64 array (D,) or None
        Signs on the side of the keys; None if all are one.
    """

    queries: QuadraticSide
    keys: QuadraticSide
    signs: np.ndarray | None


class Exponent(NamedTuple):
    r"""Constants of features :math:`(1-4A)^{d/4} e^{A|w|^2 + \sqrt{1-4A}\,w\cdot x - \dots}`, d the dimension of w."""

    A: float
    dim: int


class Factored(NamedTuple):
    """Features as other features times a matrix."""

    features: Features  # the other features, (..., p)
    matrix: np.ndarray  # (p, width): upper triangular
    gain: float  # square of its largest singular value, within a few per cent


class Features(ABC):
    """Base class of drawn maps, which act on data at unit scale.

    Attributes
    ----------
    width : int
        Number of features.
    symmetric : bool
        Whether queries and keys have the same features.
    positive : bool
        Whether all features are positive.
    sparse_rows : bool
        Whether rows may be a matrix in CSR format; rows of others are made dense in tiles.
    tall : int
        Rows that a tile has at least, where there are many: a product with a wide matrix is slower for fewer of them.
    operator : Operator or None
        The W of features that follow from its products with the rows, see `at_projections`; None for others.
    """

    width: int
    symmetric: bool
    positive: bool
    sparse_rows: ClassVar[bool] = False
    tall: ClassVar[int] = 1
    operator: Operator | None = None

    @abstractmethod
    def scaled(self, X: Any, *, key: bool) -> Scaled:
        """Return the features of the rows of X as (mantissa, logarithm), which broadcast to (..., width)."""

    def __call__(self, X: Any, *, key: bool) -> Any:
        """Features of the rows of X, (..., width)."""
        return combine(*self.scaled(X, key=key))

    def fill(self, X: Any, out: np.ndarray, *, key: bool) -> None:
        """Write the features of the rows of X (n, d) into ``out`` (n, width): one tile of many."""
        out[...] = self(X, key=key)

    def at_projections(self, X: Any, u: Any, *, key: bool) -> Any:
        """Features of the rows of X, (..., width), from their products ``u`` with ``operator``, if there is one.

        Hybrids project once for all bases that share a W.
        """
        raise NotImplementedError(f"{type(self).__name__} has no operator.")

    def quadratic(self) -> Quadratic | None:
        """The features as exponentials of quadratic functions, or None if they do not have this form."""
        return None

    def factored(self, *, stable: bool) -> Factored | None:
        """The features as cheaper ones times a matrix, which sums over rows can be multiplied with once; None for most.

        With ``stable``, the few of them that make the matrix large may be among the cheaper ones as they are.
        """
        return None

    def at_points(self, X: Any) -> np.ndarray:
        """Which rows of X (n, d) are among the points that the features were made from, (n,)."""
        return np.zeros(X.shape[0], dtype=bool)

    def pull_back(self, X: np.ndarray, values: np.ndarray, gradient: np.ndarray) -> np.ndarray | None:
        """Gradient in the rows X (n, d), from one in their query features ``values`` (n, width); None where not offered."""
        return None

    def stretch(self, X: np.ndarray, values: np.ndarray, gradient: np.ndarray) -> np.ndarray | None:
        r"""Gradient in the logarithms of the lengthscales of the columns, (d,), of a function of the Gram matrix.

        Its gradient in the features ``values`` (n, width) of the rows X (n, d) is given; None where not offered.  With
        constants that do not move, X alone is divided by the lengthscales, and
        :math:`\partial/\partial\log\ell_j = -\sum_n x_{nj}\,\partial/\partial x_{nj}`.
        """
        in_rows = self.pull_back(X, values, gradient)
        if in_rows is None:
            return None
        each: np.ndarray = -np.einsum("nd,nd->d", X, in_rows)
        return each

    def exponent(self) -> Exponent | None:
        """The constants of single positive exponentials of rows of equal weight, or None if the features are different."""
        return None


def combine(mantissa: Any, logarithm: Any) -> Any:
    """Mantissa times exponential of the logarithm."""
    if logarithm is None:
        return mantissa
    scale = array_namespace(logarithm).exp(logarithm)
    return scale if mantissa is None else mantissa * scale


def parts_of(features: Features, X: Any, *, key: bool) -> Scaled:
    """Mantissa and logarithm in full, (..., width) each."""
    xp = array_namespace(X)
    mantissa, logarithm = features.scaled(X, key=key)
    shape = (*X.shape[:-1], features.width)
    if mantissa is None:
        mantissa = (
            xp.ones(shape, dtype=logarithm.dtype) if xp is np else xp.ones_like(xp.broadcast_to(logarithm, shape))
        )
    logarithm = xp.zeros_like(mantissa) if logarithm is None else xp.broadcast_to(logarithm, shape)
    return xp.broadcast_to(mantissa, shape), logarithm


def squared_norms(X: Any) -> Any:
    """|x|^2 of each row, (..., 1)."""
    if is_sparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).reshape(-1, 1)
    return array_namespace(X).sum(X * X, axis=-1, keepdims=True)


def transform(T: np.ndarray, X: Any) -> Any:
    """Rows of X times a number, a diagonal or a matrix T."""
    if T.ndim == 2:
        return array_namespace(X).matmul(X, like(T.T, X))
    if T.ndim:
        return X * like(T, X)
    return X if T == 1 else X * float(T)


def as_tuple(array: np.ndarray) -> Any:
    """Nested tuples of numbers: a value that can be compared, hashed and printed."""
    return array.item() if not array.ndim else tuple(as_tuple(part) for part in array)
