"""Squared norms of pairs of points, in which every closed form is written, and checks of the arguments of closed forms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bochner._arrays import as_numpy
from bochner._validation import as_real, check_rows, shown

LARGEST = 1e150  # numbers whose squares are finite


@dataclass(frozen=True)
class Pairs:
    r"""Squared norms of pairs of points: :math:`|x|^2`, :math:`|y|^2`, :math:`|x+y|^2` and :math:`|x-y|^2`.

    The relative errors of Gaussian and softmax features depend on these four numbers only.  Use `Pairs.of` to compute
    them.

    Attributes
    ----------
    x2, y2, plus, minus : ndarray
        The four squared norms, in the order above; all have the same shape.

    Notes
    -----
    The Gaussian kernel is :math:`\exp(-|x-y|^2/2)` and the softmax kernel is :math:`\exp(x \cdot y)`.  For a kernel
    with a lengthscale or a scale, pass the scaled points.

    Examples
    --------
    >>> from bochner.theory import Pairs
    >>> Pairs.of([[1.0, 0.0]], [[0.0, 2.0]])
    Pairs(x2=array([1.]), y2=array([4.]), plus=array([5.]), minus=array([5.]))
    """

    x2: np.ndarray
    y2: np.ndarray
    plus: np.ndarray
    minus: np.ndarray

    @classmethod
    def of(cls, X: Any, Y: Any) -> Pairs:
        """Compute the squared norms for pairs of rows of X and Y.

        Parameters
        ----------
        X, Y : array of shape (..., d)
            Points as rows.  Leading axes broadcast: ``Pairs.of(X[:, None], Y)`` gives all pairs, as in a Gram matrix.

        Returns
        -------
        Pairs
        """
        X, Y = check_paired_rows("Pairs.of", X, Y)
        x2, y2 = np.broadcast_arrays((X**2).sum(-1), (Y**2).sum(-1))
        return cls(x2, y2, ((X + Y) ** 2).sum(-1), ((X - Y) ** 2).sum(-1))

    @property
    def log_gaussian(self) -> np.ndarray:
        """Logarithm of the Gaussian kernel."""
        return -self.minus / 2

    @property
    def log_softmax(self) -> np.ndarray:
        """Logarithm of the softmax kernel."""
        return np.asarray((self.plus - self.minus) / 4)

    @property
    def angle(self) -> np.ndarray:
        """Angle between x and y, accurate near 0 and pi; pi/2 if either vector is zero."""
        x, y = np.sqrt(self.x2), np.sqrt(self.y2)
        near = np.maximum(self.minus - (x - y) ** 2, 0.0)  # 2|x||y|(1 - cos): |x/|x| - y/|y|| up to the factor |x||y|
        far = np.maximum(self.plus - (x - y) ** 2, 0.0)
        return np.where(x * y > 0, 2 * np.arctan2(np.sqrt(near), np.sqrt(far)), np.pi / 2)


def check_numbers(owner: str, name: str, value: Any, need: str, holds: Callable[[np.ndarray], Any]) -> np.ndarray:
    """Return ``value`` as a float64 array if ``holds`` is true for all entries; ``need`` describes the condition."""
    try:
        array = as_numpy(value)
    except (TypeError, ValueError):
        array = np.asarray(None)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{owner}: {name} must be {need}, got {shown(value)}.")
    array = np.asarray(array, dtype=np.float64)
    wrong = ~np.asarray(holds(array), dtype=bool)
    if np.any(wrong):
        raise ValueError(f"{owner}: {name} must be {need}, got {array[wrong].flat[0]}.")
    return array


def check_squares(owner: str, name: str, value: Any) -> np.ndarray:
    """Return squared lengths as a float64 array: not negative and not NaN; infinity stands for the limit."""
    return check_numbers(owner, name, value, "a squared length, zero or more", lambda v: v >= 0)


def check_finite_squares(owner: str, name: str, value: Any) -> np.ndarray:
    """Return squared lengths as a float64 array, finite and not negative."""
    need = "a finite squared length, zero or more"
    return check_numbers(owner, name, value, need, lambda v: (v >= 0) & (v < np.inf))


def check_cosine(owner: str, name: str, value: Any) -> float:
    """Return the cosine of an angle."""
    if np.ndim(value):
        raise TypeError(f"{owner}: {name} must be one number, got {shown(value)}.")
    return float(check_numbers(owner, name, value, "a cosine, between -1 and 1", lambda v: np.abs(v) <= 1))


def check_pairs(owner: str, pairs: Any) -> None:
    """Refuse anything but `Pairs`."""
    if not isinstance(pairs, Pairs):
        raise TypeError(f"{owner}: pairs must be Pairs, made by Pairs.of(X, Y), got {shown(pairs)}.")


def check_paired_rows(owner: str, X: Any, Y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return X and Y as finite float64 arrays of one width whose leading axes broadcast."""
    X = check_vectors(owner, X)
    Y = check_vectors(owner, check_rows(owner, Y, X.shape[-1], remedy="X and Y must have the same width."))
    try:
        np.broadcast_shapes(X.shape, Y.shape)
    except ValueError:
        raise ValueError(f"{owner}: the rows of X and Y must broadcast, got shapes {X.shape} and {Y.shape}.") from None
    return X, Y


def check_vectors(owner: str, X: Any) -> np.ndarray:
    """Return X (..., d) as a float64 array of numbers whose squares are finite."""
    X = as_real(owner, X)
    vectors: np.ndarray = as_numpy(check_rows(owner, X, X.shape[-1] if X.ndim else 1)).astype(np.float64)
    if vectors.ndim and not vectors.shape[-1]:
        raise ValueError(f"{owner}: expected vectors of at least one number, got shape {vectors.shape}.")
    if not np.all(np.isfinite(vectors)):
        raise ValueError(f"{owner}: expected finite numbers, got some that are not.")
    if np.abs(vectors).max(initial=0.0) > LARGEST:
        raise ValueError(
            f"{owner}: expected numbers of at most {LARGEST:g}, whose squares are finite, got larger ones."
        )
    return vectors
