"""Frames: exact changes of coordinates in which the features of queries and keys have a smaller error."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .._arrays import array_namespace, like
from .._validation import shown
from ._data import Data

_RIDGE = 1e-6  # what is added to covariances, in units of their mean diagonal: directions without data stay invertible

_SHOWN = 8  # dimensions up to which ``repr`` shows all numbers, and so rebuilds the frame
_NOTICEABLE = 0.01  # share of a change that is worth a word


@dataclass(frozen=True, eq=False, repr=False)
class Frame:
    r"""An affine change of coordinates of queries and keys that changes :math:`e^{x\cdot y}` by known factors only.

    Frames are fitted by `maps.Framed` and `maps.DenseExponential`; construct one directly to use other statistics, such
    as those of one attention head.

    Parameters
    ----------
    query_center, key_center : array (d,)
        The points a and b that are subtracted from queries and keys.
    matrix : array (d, d)
        The invertible matrix M.
    origin : array (d,), optional
        A point that is first subtracted from both, which does not change the Gaussian kernel.
    key_matrix : array (d, d), optional
        A matrix N of its own for the keys, :math:`y' = N^T(y - b)`; by default that of the exact change of coordinates,
        :math:`N = M^{-T}`.  `nn.distill` learns it; estimates of the kernel then have a bias that was learned too.

    Notes
    -----
    With :math:`x' = M^T(x - a)` and :math:`y' = M^{-1}(y - b)`,

    .. math:: x\cdot y = x'\cdot y' + b\cdot x + a\cdot y - a\cdot b

    exactly, for all vectors a, b and every invertible M.  So features of :math:`(x', y')` become features of (x, y) by
    adding :math:`b\cdot x - a\cdot b/2` and :math:`a\cdot y - a\cdot b/2` to their logarithms.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.maps import Frame
    >>> rng = np.random.default_rng(0)
    >>> frame = Frame(rng.standard_normal(3), rng.standard_normal(3), rng.standard_normal((3, 3)))
    >>> x, y = rng.standard_normal((2, 1, 3))
    >>> inside = frame.inside(x, key=False) @ frame.inside(y, key=True).T
    >>> bool(np.allclose(inside + frame.offset(x, key=False) + frame.offset(y, key=True), x @ y.T))
    True
    """

    query_center: Any
    key_center: Any
    matrix: Any
    origin: Any = None
    key_matrix: Any = None

    def __post_init__(self) -> None:
        centre = _vector("query_center", self.query_center)
        d = len(centre)
        object.__setattr__(self, "query_center", centre)
        object.__setattr__(self, "key_center", _vector("key_center", self.key_center, d))
        origin = np.zeros(d) if self.origin is None else self.origin
        object.__setattr__(self, "origin", _vector("origin", origin, d))
        for name in ("matrix",) if self.key_matrix is None else ("matrix", "key_matrix"):
            M = _array(name, getattr(self, name))
            if M.shape != (d, d) or not np.linalg.cond(M) < 1e12:
                raise ValueError(f"Frame: {name} must be an invertible {d} x {d} matrix, got shape {M.shape}.")
            object.__setattr__(self, name, M)

    @classmethod
    def fitted(cls, data: Data, *, center: bool, balance: bool, gaussian: bool) -> Frame:
        r"""The frame of two sets of points, in :math:`O((n + p) d^2 + d^3)`.

        Parameters
        ----------
        data : Data
            Queries and keys at unit scale.
        center : bool
            Whether a and b are the means, and not zero.
        balance : bool
            Whether M makes both second moments equal and diagonal, and not the identity.
        gaussian : bool
            Whether the kernel is the Gaussian one, which is free to subtract the same point from both.
        """
        x, y, d = data.queries.mean, data.keys.mean, data.d
        origin = (x + y) / 2 if gaussian and center else np.zeros(d)
        if not balance:
            M = np.eye(d)
        elif data.same:  # nothing to balance: the principal axes
            M = principal_axes(data.covariance(key=False) + (0.0 if center else 2 * np.outer(x, x)))
        elif center:
            M = balanced(data.covariance(key=False), data.covariance(key=True), np.zeros((d, d)))
        else:
            S_x, S_y = data.covariance(key=False) + np.outer(x, x), data.covariance(key=True) + np.outer(y, y)
            M = balanced(S_x, S_y, np.outer(x, y))
        return cls(x - origin if center else np.zeros(d), y - origin if center else np.zeros(d), M, origin)

    @classmethod
    def of_moments(cls, a: Any, b: Any, S_x: Any, S_y: Any, C: Any) -> Frame:
        r"""The centred, balanced frame of pairs with these moments, such as pairs weighted by attention.

        Parameters
        ----------
        a, b : arrays (d,)
            Means of queries and of keys over the pairs.
        S_x, S_y : arrays (d, d)
            Covariances of queries and of keys.
        C : array (d, d)
            Covariances of queries (rows) with the keys of their pairs (columns); zero for independent pairs.

        Returns
        -------
        Frame
            The frame in which second moments of :math:`x'` and :math:`y'` are equal up to a rotation, and that of
            :math:`x' + y'` is diagonal.

        Examples
        --------
        >>> import numpy as np
        >>> from bochner.maps import Frame
        >>> frame = Frame.of_moments([1, 1], [0, 2], np.diag([4, 1]), np.diag([1, 4]), np.zeros((2, 2)))
        >>> frame.query_center, np.abs(frame.matrix).round(3)
        (array([1., 1.]), array([[0.   , 0.707],
               [1.414, 0.   ]]))
        """
        moments = [_array(name, S) for name, S in (("S_x", S_x), ("S_y", S_y), ("C", C))]
        d = len(_vector("a", a))
        for name, S in zip(("S_x", "S_y", "C"), moments, strict=True):
            if S.shape != (d, d):
                raise ValueError(
                    f"Frame: {name} must be a {d} x {d} matrix, as a has {d} numbers, got shape {S.shape}."
                )
        return cls(a, b, balanced(*moments))

    @property
    def d(self) -> int:
        """Dimension of the points."""
        return len(self.query_center)

    @cached_property
    def inverse(self) -> np.ndarray:
        """The inverse of M."""
        return np.linalg.inv(self.matrix)

    @cached_property
    def symmetric(self) -> bool:
        """Whether queries and keys have the same coordinates: one centre, and an orthogonal M."""
        same = np.array_equal(self.query_center, self.key_center) and self.key_matrix is None
        return same and bool(np.abs(self.matrix.T @ self.matrix - np.eye(self.d)).max() < 1e-12)

    def coordinates(self, *, key: bool) -> tuple[np.ndarray, np.ndarray]:
        """Centre o and matrix T of queries or keys, whose coordinates are :math:`T^T(x - o)` measured from the origin."""
        if key and self.key_matrix is not None:
            return self.key_center, self.key_matrix
        if key and not self.symmetric:
            return self.key_center, np.ascontiguousarray(self.inverse.T)
        return self.query_center, self.matrix

    def inside(self, X: Any, *, key: bool) -> Any:
        """Points (..., n, d) in the coordinates of the frame."""
        centre, T = self.coordinates(key=key)
        return array_namespace(X).matmul(X - like(centre + self.origin, X), like(T, X))

    def offset(self, X: Any, *, key: bool) -> Any:
        """Summand of the logarithms of features, (..., n, 1), for points measured from the origin."""
        slope = self.query_center if key else self.key_center
        constant = float(self.query_center @ self.key_center) / 2
        shifted = X - like(self.origin, X)
        return array_namespace(X).sum(shifted * like(slope, X), axis=-1, keepdims=True) - constant

    def effect(self, sum2: float) -> str:
        """Sentence on what the frame did to points whose sums x + y have this mean square; empty if nothing."""
        moved = self.query_center + self.key_center + 2 * self.origin
        share = min(float(moved @ moved) / sum2, 1.0) if sum2 > 0 else 0.0
        stretch = np.linalg.svd(self.matrix, compute_uv=False)
        words = [f"centring removed {100 * share:.0f} % of |x + y|^2"] if share >= _NOTICEABLE else []
        if abs(np.log(stretch)).max() >= _NOTICEABLE:
            words += [
                f"balancing multiplied queries by {stretch[-1]:.2g} to {stretch[0]:.2g} and divided keys by the same"
            ]
        sentence = ", and ".join(words)
        return f"{sentence[0].upper()}{sentence[1:]}." if sentence else ""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Frame):
            return NotImplemented
        mine, theirs = self._arrays, other._arrays
        return len(mine) == len(theirs) and all(np.array_equal(a, b) for a, b in zip(mine, theirs, strict=True))

    def __hash__(self) -> int:
        return hash(tuple(a.tobytes() for a in self._arrays))

    def __repr__(self) -> str:
        if self.d <= _SHOWN:
            fields = ["query_center", "key_center", "matrix", "origin"] + ["key_matrix"] * (self.key_matrix is not None)
            return f"Frame({', '.join(f'{name}={getattr(self, name).tolist()}' for name in fields)})"
        centred = bool(self.query_center.any() or self.key_center.any())
        turned = not np.array_equal(self.matrix, np.eye(self.d))
        words = ["centred"] * centred + ["balanced"] * turned + ["learned"] * (self.key_matrix is not None)
        return f"<Frame of {self.d} dimensions, {' and '.join(words) or 'as it is'}>"

    @property
    def _arrays(self) -> tuple[np.ndarray, ...]:
        own = () if self.key_matrix is None else (self.key_matrix,)
        return self.query_center, self.key_center, self.matrix, self.origin, *own


def balanced(S_x: np.ndarray, S_y: np.ndarray, C: np.ndarray) -> np.ndarray:
    r"""M that balances second moments of queries and keys, and diagonalises that of their sum.

    With the geometric mean :math:`G = S_x^{-1/2}(S_x^{1/2} S_y S_x^{1/2})^{1/2} S_x^{-1/2}` of :math:`S_x^{-1}` and
    :math:`S_y`, and U the eigenvectors of :math:`G^{1/2} S_x G^{1/2} + G^{-1/2} S_y G^{-1/2}` plus the cross moments
    :math:`G^{1/2} C G^{-1/2}` and their transpose, it is :math:`M = G^{1/2} U`.

    Parameters
    ----------
    S_x, S_y : arrays (d, d)
        Second moments of queries and keys, measured from their centres.
    C : array (d, d)
        Their cross moments over pairs; zero for independent pairs measured from their means.
    """
    S_x, S_y = (S + _RIDGE * (np.trace(S) / len(S) or 1.0) * np.eye(len(S)) for S in (S_x, S_y))
    root, inverse = _power(S_x, 0.5), _power(S_x, -0.5)
    G = inverse @ _power(root @ S_y @ root, 0.5) @ inverse
    half, back = _power(G, 0.5), _power(G, -0.5)
    cross = half @ C @ back
    M: np.ndarray = half @ principal_axes(half @ S_x @ half + back @ S_y @ back + cross + cross.T)
    return M


def principal_axes(S: np.ndarray) -> np.ndarray:
    """Eigenvectors as columns, with signs that rounding does not change: the largest entry of each is positive."""
    vectors: np.ndarray = np.linalg.eigh(S)[1]
    largest = np.abs(vectors).argmax(axis=0)
    return vectors * np.where(vectors[largest, np.arange(len(S))] < 0, -1.0, 1.0)


def _power(S: np.ndarray, exponent: float) -> np.ndarray:
    """A power of a symmetric positive definite matrix."""
    values, vectors = np.linalg.eigh((S + S.T) / 2)
    values = np.maximum(values, np.finfo(np.float64).eps * values.max())
    power: np.ndarray = (vectors * values**exponent) @ vectors.T
    return power


def _array(name: str, value: Any) -> np.ndarray:
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"Frame: {name} must be an array of real numbers, got {shown(value)}.") from None
    if not np.isfinite(array).all():
        raise ValueError(f"Frame: {name} must be finite.")
    array.flags.writeable = False
    return array


def _vector(name: str, value: Any, d: int | None = None) -> np.ndarray:
    array = _array(name, value)
    if array.ndim != 1 or not array.size or (d is not None and len(array) != d):
        size = "" if d is None else f" of {d} numbers"
        raise ValueError(f"Frame: {name} must be a vector{size}, got shape {array.shape}.")
    return array
