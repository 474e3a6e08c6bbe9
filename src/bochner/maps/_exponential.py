r"""The engine of all exponential maps: :math:`\exp(a|w|^2 + b\,w\cdot x + c|x|^2)` at every node, complex a and b."""

from __future__ import annotations

import cmath
import math
from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np

from .._arrays import array_namespace, like
from .._validation import shown
from ..kernels import Gaussian, Kernel, Softmax
from ..projections import Projection
from ._drawing import Nodes
from ._features import Exponent, Features, Quadratic, QuadraticSide, Scaled, combine, squared_norms
from ._map import Layout, Map


class ExponentialMap(Map):
    """Base class of maps for the Gaussian and the softmax kernel that need Gaussian rows."""

    requirement: ClassVar[str] = "a Gaussian or softmax kernel, since it integrates exponentials over Gaussian rows"
    family: ClassVar[str] = "exponentials"

    def serves(self, kernel: Kernel | None) -> bool:
        return isinstance(kernel, Gaussian | Softmax)

    def why(self, facts: Any) -> str:
        near = facts.distance2 < facts.sum2
        if facts.norms_vary and not near:
            return (
                "Exponentials are the most accurate: norms vary and x + y is short, where the kernel and their error are "
                "small."
            )
        return "Exponentials are the most accurate: their error is smallest where x + y is short" + (
            "." if near else ", as it is here."
        )


def norm_coefficient(kernel: Kernel | None, gaussian: float) -> float:
    r"""Coefficient of :math:`|x|^2` in the exponent: features of softmax are :math:`e^{|x|^2/2}` times Gaussian ones."""
    return gaussian + 0.5 if isinstance(kernel, Softmax) else gaussian


def exponential_layout(
    A: complex, s: int, projection: Projection, *, reflect: bool, single_last: bool = False
) -> Layout:
    """Layout of `ExponentialFeatures` with these constants on the rows of a projection."""
    nodes, origin = 2 if reflect else 1, int(projection.has_origin)
    real = is_real(A, s)
    per_row, extra = (nodes, origin) if real else (2 * nodes, 2 * origin - (origin if not complex(A).imag else 0))
    symmetric = not complex(A).imag and not projection.signed
    return Layout(per_row, extra - single_last, symmetric, real and not projection.signed)


def is_real(A: complex, s: int) -> bool:
    """Whether the features are real exponentials: A real, and a real root of s (1 - 4A)."""
    return not complex(A).imag and s * (1 - 4 * complex(A).real) > 0


class ExponentialFeatures(Features):
    r"""GERF features (CRT Theorem 3.1) of queries :math:`f_1` and keys :math:`f_2`.

    .. math::

        f_1 = D e^{A|w|^2 + B\,w\cdot x + C|x|^2}, \quad f_2 = D e^{A|w|^2 + sB\,w\cdot y + C|y|^2}, \qquad
        B = \sqrt{s(1-4A)}, \quad D = (1-4A)^{d/4},

    with principal roots and d the dimension in which w was drawn.  The estimate is the mean of
    :math:`\mathrm{Re} f_1 f_2`, without conjugation: a complex feature becomes the pair (Re, Im) for queries and
    (Re, -Im) for keys.

    Parameters
    ----------
    nodes : Nodes
        The points w and their weights.
    A : complex
        The constant A.
    s : {-1, 1}
        The sign s.
    c : float
        The coefficient C of the squared norm.
    offset : float, optional
        If given, the last row contributes a single feature :math:`\sqrt2\cos(w\cdot x + b)` with this b in place of a
        pair, which is unbiased for b uniform on the circle (real A, s = -1).
    """

    sparse_rows = True

    def __init__(self, nodes: Nodes, A: complex, s: int, c: float, offset: float | None = None) -> None:
        self.nodes, self.A, self.c, self.s, self.offset = nodes, complex(A), c, s, offset
        self.operator = nodes.operator
        A = self.A
        self.b = cmath.sqrt(s * (1 - 4 * A))
        if abs(self.b.imag) < 1e-300:
            self.b = complex(self.b.real)
        log_D = nodes.dim / 4 * cmath.log(1 - 4 * A)
        self.constant = A.real * nodes.radii**2 + log_D.real + 0.5 * np.log(nodes.weights)
        self.phase = A.imag * nodes.radii**2 + log_D.imag
        self.real = self.b.imag == 0 and A.imag == 0
        # at w = 0 a map with real A has phase zero: its sine is not a feature
        self.skip_sine = int(nodes.origin and A.imag == 0)
        self.offsets = np.zeros(len(nodes))
        if offset is not None:
            last = nodes.operator.shape[0] - 1
            self.offsets[last] = offset
            self.constant[last] += 0.5 * math.log(2)
            self.skip_sine += 1
        self.width = len(nodes) if self.real else 2 * len(nodes) - self.skip_sine
        self.symmetric = A.imag == 0 and not nodes.signed
        self.positive = self.real and not nodes.signed

    def scaled(self, X: Any, *, key: bool) -> Scaled:
        """One logarithm per node; cosines and sines of the phase, if there is one, as mantissa."""
        return self._scaled(X, self.nodes.project(X), key=key)

    def _scaled(self, X: Any, u: Any, *, key: bool) -> Scaled:
        b = self.s * self.b if key else self.b
        logarithm = self._logarithm(X, u, b.real)
        if self.real:
            signs = key and self.nodes.negative_origin
            return self.nodes.signed_last(array_namespace(u).ones_like(u)) if signs else None, logarithm
        phase = b.imag * u
        if self.phase.any():
            phase = phase + like(self.phase, u)
        if self.offset is not None:  # on the side of the keys the phase is negated as a whole
            phase = phase + like(self.s * self.offsets if key else self.offsets, u)
        return circle(self.nodes, phase, logarithm, key=key, skip_sine=self.skip_sine)

    def fill(self, X: Any, out: np.ndarray, *, key: bool) -> None:
        """Write cosines and sines directly into ``out`` if the logarithm of a node does not depend on its projection.

        Keys have :math:`s = -1` in their phase and again before their sines, so they differ from queries only in the
        sign of the node at zero.
        """
        if not self._waves:
            super().fill(X, out, key=key)
            return
        self._fill_waves(X, self.nodes.operator.apply_parts(X), out, key=key)

    def at_projections(self, X: Any, u: Any, *, key: bool) -> Any:
        """Exponentials or waves of the products."""
        if not (self._waves and isinstance(u, np.ndarray) and u.ndim == 2):
            return combine(*self._scaled(X, self.nodes.spread(u), key=key))
        out = np.empty((len(u), self.width), u.dtype)
        self._fill_waves(X, [(0, u)], out, key=key)
        return out

    @property
    def _waves(self) -> bool:
        """Whether the logarithm of a node does not depend on its projection."""
        return not (self.b.real or self.phase.any() or self.nodes.reflect)

    def _fill_waves(self, X: Any, parts: Iterable[tuple[int, np.ndarray]], out: np.ndarray, *, key: bool) -> None:
        """Cosines and sines of products with W, which come in parts: the first row of each, and the products."""
        from ..linalg.transforms import waves

        amplitudes, m = np.exp(self.constant).astype(X.dtype), self.nodes.operator.shape[0]
        pairs = m if self.offset is None else m - 1
        for first, u in parts:
            waves(u, self.b.imag, amplitudes[first : min(first + u.shape[1], pairs)], out, len(self.nodes), first)
        if self.offset is not None:  # the last column of the last part
            phase = X.dtype.type(self.b.imag) * u[:, -1] + X.dtype.type(self.offset)
            out[:, pairs] = amplitudes[pairs] * np.cos(phase)
        if self.nodes.origin:
            out[:, m] = -amplitudes[m] if key and self.nodes.negative_origin else amplitudes[m]
        if self.c:
            out *= np.exp(self.c * squared_norms(X))

    def pull_back(self, X: np.ndarray, values: np.ndarray, gradient: np.ndarray) -> np.ndarray | None:
        """Gradient through cosines and sines of w.x: one product with the adjoint of W, which fast rotations never form.

        The slope of a cosine is minus its sine, and that of a sine its cosine: both are features already.
        """
        if self.A or self.c or self.s != -1 or self.nodes.reflect:
            return None
        m, sines = self.nodes.operator.shape[0], len(self.nodes)
        pairs = m if self.offset is None else m - 1  # a node at zero adds a cosine that does not move, after these
        H = np.empty((len(X), m), values.dtype)
        H[:, :pairs] = gradient[:, sines : sines + pairs] * values[:, :pairs]
        H[:, :pairs] -= gradient[:, :pairs] * values[:, sines : sines + pairs]
        if self.offset is not None:
            u = self.nodes.operator.apply(X)[:, pairs]
            H[:, pairs] = -gradient[:, pairs] * np.exp(self.constant[pairs]) * np.sin(self.b.imag * u + self.offset)
        pulled: np.ndarray = self.b.imag * self.nodes.operator.adjoint(H)
        return pulled

    def quadratic(self) -> Quadratic | None:
        """Rows, constants and signs of real features."""
        if not self.real:
            return None
        side = QuadraticSide(self.nodes.to_dense() * self.b.real, self.constant, self.c)
        return Quadratic(side, side, self.nodes.signs)

    def exponent(self) -> Exponent | None:
        nodes = self.nodes
        single = not nodes.reflect and not nodes.origin and np.ptp(nodes.weights) == 0
        return Exponent(self.A.real, nodes.dim) if self.positive and self.s == 1 and single else None

    def _logarithm(self, X: Any, u: Any, slope: float) -> Any:
        """(..., nodes), or a single column where all nodes have the same."""
        constant = self.constant[:1] if not slope and np.ptp(self.constant) == 0 else self.constant
        logarithm = like(constant, u)
        if slope:
            logarithm = logarithm + slope * u
        if self.c:
            logarithm = logarithm + self.c * squared_norms(X)
        return logarithm


def circle(nodes: Nodes, phase: Any, logarithm: Any, *, key: bool, skip_sine: int) -> Scaled:
    """Cosines then sines of the phase, the latter negated for keys: a real pair whose product is Re f_1 f_2.

    The last ``skip_sine`` nodes have a cosine only.
    """
    xp = array_namespace(phase)
    count = phase.shape[-1] - skip_sine
    cosine, sine = xp.cos(phase), xp.sin(phase[..., :count])
    if key:
        cosine, sine = nodes.signed_last(cosine), -sine
        if not skip_sine:
            sine = nodes.signed_last(sine)
    if logarithm.shape[-1] > 1:
        logarithm = xp.concat([logarithm, logarithm[..., :count]], axis=-1)
    return xp.concat([cosine, sine], axis=-1), logarithm


def check_A(owner: str, A: Any) -> complex:
    """Return A as a complex number for which the variance is finite."""
    if isinstance(A, bool) or not isinstance(A, int | float | complex | np.number):
        raise TypeError(f"{owner}: A must be a real or complex number, got {shown(A)}.")
    value = complex(A)
    if not (math.isfinite(value.real) and math.isfinite(value.imag) and value.real < 0.125):
        raise ValueError(f"{owner}: A must have a real part below 1/8, where the variance is finite, got {A}.")
    return value
