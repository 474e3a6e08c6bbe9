r"""The engine of all exponential maps: :math:`\exp(a|w|^2 + b\,w\cdot x + c|x|^2)` at every node, complex a and b."""

from __future__ import annotations

import cmath
import math
from typing import Any, ClassVar

import numpy as np

from .._arrays import array_namespace, like
from ..kernels import Gaussian, Kernel, Softmax
from .base import Map
from .features import Features, Scaled, squared_norms
from .nodes import Nodes


class ExponentialMap(Map):
    """Maps for the Gaussian and the softmax kernel that need Gaussian rows."""

    requirement: ClassVar[str] = "a Gaussian or softmax kernel, since it integrates exponentials over Gaussian rows"

    def serves(self, kernel: Kernel | None) -> bool:
        """The Gaussian and the softmax kernel."""
        return isinstance(kernel, Gaussian | Softmax)


def norm_coefficient(kernel: Kernel | None, gaussian: float) -> float:
    r"""Coefficient of :math:`|x|^2` in the exponent: features of softmax are :math:`e^{|x|^2/2}` times Gaussian ones."""
    return gaussian + 0.5 if isinstance(kernel, Softmax) else gaussian


class ExponentialFeatures(Features):
    r"""GERF features (CRT Theorem 3.1) of queries :math:`f_1` and keys :math:`f_2`.

    .. math::

        f_1 = D e^{A|w|^2 + B\,w\cdot x + C|x|^2}, \quad f_2 = D e^{A|w|^2 + sB\,w\cdot y + C|y|^2}, \qquad
        B = \sqrt{s(1-4A)}, \quad D = (1-4A)^{d/4},

    with principal roots and d the dimension in which w was drawn.  The estimate is the mean of
    :math:`\mathrm{Re} f_1 f_2`, without conjugation: a complex feature becomes the pair (Re, Im) for queries and
    (Re, -Im) for keys.
    """

    def __init__(self, nodes: Nodes, A: complex, s: int, c: float) -> None:
        self.nodes, self.c, self.s = nodes, c, s
        A = complex(A)
        self.b = cmath.sqrt(s * (1 - 4 * A))
        if abs(self.b.imag) < 1e-300:
            self.b = complex(self.b.real)
        log_D = nodes.dim / 4 * cmath.log(1 - 4 * A)
        self.constant = A.real * nodes.radii**2 + log_D.real + 0.5 * np.log(nodes.weights)
        self.phase = A.imag * nodes.radii**2 + log_D.imag
        self.real = self.b.imag == 0 and A.imag == 0
        # at w = 0 a map with real A has phase zero: its sine is no feature
        self.skip_sine = int(nodes.origin and A.imag == 0)
        self.width = len(nodes) if self.real else 2 * len(nodes) - self.skip_sine
        self.symmetric = A.imag == 0 and not nodes.signed
        self.positive = self.real and not nodes.signed

    def scaled(self, X: Any, *, key: bool) -> Scaled:
        """One logarithm a node; cosines and sines of the phase as mantissa where there is one."""
        b = self.s * self.b if key else self.b
        u = self.nodes.project(X)
        logarithm = self._logarithm(X, u, b.real)
        if self.real:
            mantissa = (
                self.nodes.signed_last(array_namespace(u).ones_like(u)) if key and self.nodes.negative_origin else None
            )
            return mantissa, logarithm
        phase = b.imag * u
        if self.phase.any():
            phase = phase + like(self.phase, u)
        return circle(self.nodes, phase, logarithm, key=key, skip_sine=self.skip_sine)

    def fill(self, X: np.ndarray, out: np.ndarray, *, key: bool) -> None:
        """Cosines and sines straight into their place, where a node's logarithm does not depend on its projection.

        Keys have :math:`s = -1` in their phase and again before their sines: they differ from queries in the sign of the
        node at zero alone.
        """
        if self.b.real or self.phase.any() or self.nodes.reflect:
            super().fill(X, out, key=key)
            return
        from ..linalg.transforms import waves

        amplitudes = np.exp(self.constant).astype(X.dtype)
        u = self.nodes.operator.apply(X)
        m = u.shape[1]
        waves(u, self.b.imag, amplitudes[:m], out, len(self.nodes))
        if self.nodes.origin:
            out[:, m] = -amplitudes[m] if key and self.nodes.negative_origin else amplitudes[m]
        if self.c:
            out *= np.exp(self.c * squared_norms(X))

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
    """Cosines then sines of the phase, the latter negated for keys: a real pair whose product is Re f_1 f_2."""
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
    """A as a complex number at which the estimate has a finite variance."""
    if isinstance(A, bool) or not isinstance(A, int | float | complex | np.number):
        raise TypeError(f"{owner}: A must be a real or complex number, got {A!r}.")
    value = complex(A)
    if not (math.isfinite(value.real) and math.isfinite(value.imag) and value.real < 0.125):
        raise ValueError(f"{owner}: A must have a real part below 1/8, where the variance is finite, got {A}.")
    return value
