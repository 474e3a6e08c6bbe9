"""The numbers of a pair of points that every closed form is written in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Pairs:
    r"""Squared norms of pairs of points: :math:`|x|^2`, :math:`|y|^2`, :math:`|x+y|^2` and :math:`|x-y|^2`.

    Notes
    -----
    Relative errors of Gaussian and softmax features depend on these alone.  The Gaussian kernel is
    :math:`\exp(-|x-y|^2/2)`, the softmax kernel :math:`\exp(x \cdot y)`; a kernel with a lengthscale or a scale is one of
    them at scaled points.

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
        """Pairs of rows of X and Y, whose leading axes broadcast: ``Pairs.of(X[:, None], Y)`` is a whole Gram matrix."""
        X, Y = np.asarray(X, dtype=np.float64), np.asarray(Y, dtype=np.float64)
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
        """Angle between x and y, in a form that keeps its digits near 0 and pi; pi/2 with a zero vector."""
        x, y = np.sqrt(self.x2), np.sqrt(self.y2)
        near = np.maximum(self.minus - (x - y) ** 2, 0.0)  # 2|x||y|(1 - cos): |x/|x| - y/|y|| up to the factor |x||y|
        far = np.maximum(self.plus - (x - y) ** 2, 0.0)
        return np.where(x * y > 0, 2 * np.arctan2(np.sqrt(near), np.sqrt(far)), np.pi / 2)
