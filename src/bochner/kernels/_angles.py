r"""Angles between all rows of two arrays, to full precision also near 0 and :math:`\pi`.

The arc cosine of a normalised dot product loses half of all digits for nearly parallel vectors.  With unit vectors
u, v and the chords a = |u - v|, b = |u + v|, the angle is :math:`\theta = 2\,\mathrm{atan2}(a, b)`, its sine is
proportional to :math:`2ab` and its cosine to :math:`b^2 - a^2`; chords are distances, and those are accurate.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .._arrays import detached, may_hold, root
from ._distances import squared_distances


class Angles(NamedTuple):
    r"""The angles :math:`\theta` between n rows x and p rows y; all fields have shape (..., n, p)."""

    norms: Any  # |x| |y|
    minus: Any  # a^2
    plus: Any  # b^2

    def supplement(self, xp: Any) -> Any:
        r"""Return :math:`\pi - \theta`."""
        return 2 * xp.atan2(root(xp, self.plus), root(xp, self.minus))

    def complement(self, xp: Any) -> Any:
        r"""Return :math:`\pi/2 - \theta`."""
        return xp.atan2(self.plus - self.minus, 2 * root(xp, self.plus * self.minus))

    def sine_and_cosine(self, xp: Any) -> tuple[Any, Any]:
        r"""Return :math:`\sin\theta` and :math:`\cos\theta`."""
        total = self.plus + self.minus
        return 2 * root(xp, self.plus * self.minus) / total, (self.plus - self.minus) / total


def angles(xp: Any, X: Any, Y: Any) -> Angles:
    r"""Return the angles between all rows of X (..., n, d) and Y (..., p, d); :math:`\pi/2` with a zero vector."""
    U, x = _units_and_norms(xp, X)
    V, y = (U, x) if Y is X else _units_and_norms(xp, Y)
    norms = x[..., :, None] * y[..., None, :]
    minus, plus = squared_distances(xp, U, V), squared_distances(xp, U, -V)
    blank = (x == 0)[..., :, None] | (y == 0)[..., None, :]
    if may_hold(blank):
        minus, plus = (xp.where(blank, xp.ones_like(q), q) for q in (minus, plus))
    return Angles(norms, minus, plus)


def _units_and_norms(xp: Any, X: Any) -> tuple[Any, Any]:
    """Return rows divided by their norms (zero rows stay zero), and the norms; no square of an input overflows."""
    largest = detached(xp.max(xp.abs(X), axis=-1, keepdims=True))
    largest = xp.where(largest > 0, largest, xp.ones_like(largest))
    X = X / largest
    norms = root(xp, xp.sum(X * X, axis=-1, keepdims=True))
    return X / xp.where(norms > 0, norms, xp.ones_like(norms)), (norms * largest)[..., 0]
