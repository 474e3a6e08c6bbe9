r"""Kernels of the dot product and the norms: softmax, linear, angular, arc-cosine; and angles to full precision.

The arc cosine of a normalised dot product loses half of all digits for nearly parallel vectors.  With unit vectors
u, v and the chords a = |u - v|, b = |u + v|, the angle is :math:`\theta = 2\,\mathrm{atan2}(a, b)`, its sine is
proportional to :math:`2ab` and its cosine to :math:`b^2 - a^2`; chords are distances, and those are accurate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

from .._arrays import detached, may_hold, root
from .._validation import check_count, check_option, check_positive
from ._distances import dot_products, squared_distances
from ._kernel import Bandwidth, Kernel


@dataclass(frozen=True)
class Softmax(Kernel):
    r"""The softmax kernel, which gives the unnormalised weights of attention.

    Use it for attention, and wherever large dot products should count exponentially more.

    Parameters
    ----------
    scale : float, default 1.0
        The factor c > 0 of the dot product.

    Notes
    -----
    Kernel: :math:`k(x, y) = \exp(c\,x\cdot y)` with c the scale.  Attention with heads of width d uses
    :math:`c = 1/\sqrt d`.

    Law of the rows at c = 1: :math:`\omega = g \sim N(0, I)`, since
    :math:`\mathrm{E} \exp(\omega\cdot(x + y)) = \exp(|x|^2/2 + |y|^2/2 + x\cdot y)`.

    The exponential overflows where :math:`c\,x\cdot y` exceeds 709 (88 in float32); the kernel is then infinite.

    References
    ----------
    choromanski2021, Section 2; hrf, Equation 1.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.kernels import Softmax
    >>> bool(np.allclose(Softmax(scale=0.5)([[1.0, 2.0]], [[2.0, 1.0]]), np.exp(2)))
    True
    """

    scale: float = 1.0

    name: ClassVar[str] = "softmax"
    metric: ClassVar[Literal["euclidean", "cityblock"] | None] = "euclidean"
    has_bandwidth: ClassVar[bool] = True
    dot_product: ClassVar[bool] = True
    references: ClassVar[tuple[str, ...]] = ("choromanski2021", "hrf")

    def __post_init__(self) -> None:
        """Check the scale."""
        object.__setattr__(self, "scale", check_positive("Softmax", "scale", self.scale))

    def at_unit_scale(self, X: Any) -> Any:
        """Return checked rows times the root of the scale."""
        return X * math.sqrt(self.scale)

    @property
    def bandwidth(self) -> Bandwidth:
        r"""The length :math:`c^{-1/2}` over which the kernel changes."""
        return float(self.scale**-0.5)

    def with_bandwidth(self, value: Any) -> Softmax:
        """Return the kernel with the scale of another bandwidth."""
        return Softmax(check_positive("Softmax", "bandwidth", value) ** -2)

    def from_gamma(self, gamma: float) -> Softmax:
        r"""Return :math:`e^{\gamma x\cdot y}`."""
        return Softmax(check_positive("Softmax", "gamma", gamma))

    def entries(self, xp: Any, X: Any, Y: Any) -> Any:
        """Return the exponentials of scaled dot products."""
        scale = min(self.scale, float(xp.finfo(X.dtype).max))
        return xp.exp(scale * dot_products(xp, X, Y))


@dataclass(frozen=True)
class Linear(Kernel):
    r"""The linear kernel, the plain dot product, which random projections estimate.

    Use it where targets are linear in the columns, and where rows are features already.

    Notes
    -----
    Kernel: :math:`k(x, y) = x\cdot y`.

    Law of the rows: :math:`\omega \sim N(0, I)`, since :math:`\mathrm{E}\,(\omega\cdot x)(\omega\cdot y) = x\cdot y`,
    the Johnson-Lindenstrauss projection.

    References
    ----------
    johnson1984.

    Examples
    --------
    >>> from bochner.kernels import Linear
    >>> Linear()([[1.0, 2.0]], [[3.0, 4.0]])
    array([[11.]])
    """

    name: ClassVar[str] = "linear"
    dot_product: ClassVar[bool] = True
    references: ClassVar[tuple[str, ...]] = ("johnson1984",)

    def entries(self, xp: Any, X: Any, Y: Any) -> Any:
        """Return the dot products."""
        return dot_products(xp, X, Y)


@dataclass(frozen=True)
class Angular(Kernel):
    r"""The angular kernel, a linear function of the angle between two vectors, which sign features estimate.

    Use it where only directions matter, as for embeddings, and for codes of one bit per direction.

    Notes
    -----
    Kernel: :math:`k(x, y) = 1 - 2\theta/\pi` with :math:`\theta` the angle between x and y.  The angle with a zero
    vector is taken to be :math:`\pi/2`: the kernel is zero there, as the sign of zero is.

    Law of the rows: :math:`\omega \sim N(0, I)`, and
    :math:`\mathrm{E}\,\mathrm{sgn}(\omega\cdot x)\,\mathrm{sgn}(\omega\cdot y) = 1 - 2\theta/\pi`.  In terms of the
    arc-cosine kernel of order 0 it is :math:`2 k_0 - 1`.

    References
    ----------
    goemans1995, Lemma 3.2; charikar2002.

    Examples
    --------
    >>> from bochner.kernels import Angular
    >>> Angular()([[1.0, 0.0]], [[2.0, 0.0], [0.0, 3.0], [-1.0, 0.0]])
    array([[ 1.,  0., -1.]])
    """

    name: ClassVar[str] = "angular"
    dot_product: ClassVar[bool] = True
    references: ClassVar[tuple[str, ...]] = ("goemans1995", "charikar2002")

    def entries(self, xp: Any, X: Any, Y: Any) -> Any:
        """Return one minus the angles, in units of a right angle."""
        return angles(xp, X, Y).complement(xp) * (2 / math.pi)


@dataclass(frozen=True)
class ArcCosine(Kernel):
    r"""The arc-cosine kernels of infinitely wide layers of rectified units.

    Use it where a ReLU network would do well: it grows with the norms of the rows and does not decay with their
    distance.

    Parameters
    ----------
    order : {0, 1, 2}
        The power b: steps, rectified linear units, or rectified squares.

    Notes
    -----
    Kernel: :math:`k_b(x, y) = |x|^b |y|^b J_b(\theta)/\pi` with :math:`\theta` the angle between x and y,

    - :math:`J_0 = \pi - \theta`,
    - :math:`J_1 = \sin\theta + (\pi - \theta)\cos\theta`,
    - :math:`J_2 = 3\sin\theta\cos\theta + (\pi - \theta)(1 + 2\cos^2\theta)`.

    On the diagonal :math:`k_0 = 1`, :math:`k_1 = |x|^2`, :math:`k_2 = 3|x|^4`.  The angle with a zero vector is taken
    to be :math:`\pi/2`: there :math:`k_0 = 1/2`, as for a step that is 1/2 at zero, and the others are zero.

    Law of the rows: :math:`\omega \sim N(0, I)`, and
    :math:`k_b(x, y) = 2\,\mathrm{E}\,f_b(\omega\cdot x) f_b(\omega\cdot y)` with :math:`f_b(t) = t^b` for t > 0 and 0
    for t < 0.

    References
    ----------
    cho2009, Section 2; qbf, Section 4.2.

    Examples
    --------
    >>> from bochner.kernels import ArcCosine
    >>> ArcCosine(order=1)([[3.0, 4.0]])
    array([[25.]])
    """

    order: int

    dot_product: ClassVar[bool] = True
    references: ClassVar[tuple[str, ...]] = ("cho2009", "qbf")

    def __post_init__(self) -> None:
        """Check the order."""
        order = check_count("ArcCosine", "order", self.order, minimum=0)
        check_option("ArcCosine", "order", order, (0, 1, 2))
        object.__setattr__(self, "order", order)

    @classmethod
    def variants(cls) -> dict[str, ArcCosine]:
        """Return the three orders."""
        return {f"arc-cosine-{order}": cls(order) for order in (0, 1, 2)}

    def entries(self, xp: Any, X: Any, Y: Any) -> Any:
        """Return the norms times the function of the angles."""
        theta = angles(xp, X, Y)
        supplement = theta.supplement(xp)
        if self.order == 0:
            return supplement / math.pi
        sine, cosine = theta.sine_and_cosine(xp)
        if self.order == 1:
            return theta.norms * ((sine + supplement * cosine) / math.pi)
        return theta.norms**2 * ((3 * sine * cosine + supplement * (1 + 2 * cosine * cosine)) / math.pi)


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
