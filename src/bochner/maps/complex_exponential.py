"""Exponentials of linearly transformed data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .._arrays import array_namespace, like
from .._validation import check_flag
from ..kernels import Kernel
from .draws import Draws
from .exponential import ExponentialMap, circle, norm_coefficient
from .features import Features, Scaled, squared_norms
from .linear import as_tuple, transform
from .nodes import Nodes
from .statistics import Data

_Entry = complex | float
_Tuple = _Entry | tuple[_Entry, ...] | tuple[tuple[_Entry, ...], ...]


@dataclass(frozen=True)
class ComplexExponential(ExponentialMap):
    r"""Complex exponential features (HRF Section 2.3): exact where the two transformed points cancel.

    Notes
    -----
    For an invertible complex A let :math:`u = Ax`, :math:`v = A^{-T}y`, so that :math:`u\cdot v = x\cdot y`.  Then

    .. math:: Z = e^{-q(u)/2 - q(v)/2 + w\cdot(u + v)}, \qquad E\,Z = e^{x\cdot y}, \qquad q(u) = \sum_k u_k^2,

    with *unconjugated* squares (HRF Eq. 89-92 print norms, which is wrong for complex A).  The estimate is the mean of
    Re Z, as real pairs :math:`m^{-1/2} e^{a}[\cos\theta, \sin\theta]` of queries and
    :math:`[\cos\theta, -\sin\theta]` of keys: 2m features, m if A is real.  Unbiased; zero variance where u + v = 0.
    With u + v = a + ib the variance of one projection is
    :math:`\mathrm{SM}^2\{(e^{|a|^2+|b|^2} + e^{|a|^2-|b|^2}\cos 2a\cdot b)/2 - 1\}`.

    A = i gives `Trigonometric`, A = 1 `Positive`, and A = 1 with antithetic pairs `Hyperbolic`.

    Parameters
    ----------
    A : complex, sequence of complex, or square matrix
        A multiple of the identity, a diagonal, or a full matrix.
    antithetic : bool
        Whether to use both of w and -w.

    References
    ----------
    hrf (Eq. 13-18).

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import Approximation, kernels, maps
    >>> spec = Approximation(kernels.Softmax(), maps.ComplexExponential([1.0, 1j]), n_projections=4)
    >>> x, y = np.array([[0.3, 0.5]]), np.array([[-0.3, 0.5]])      # u + v = 0: no variance
    >>> bool(np.allclose(spec.draw(2, rng=0).gram(x, y), np.exp(x @ y.T)))
    True
    """

    A: _Tuple
    antithetic: bool = False
    always_symmetric: ClassVar[bool] = False  # queries meet A, keys its inverse
    references: ClassVar[tuple[str, ...]] = ("hrf",)

    def __post_init__(self) -> None:
        matrix = _as_array(self.A)
        object.__setattr__(self, "A", as_tuple(matrix if matrix.imag.any() else matrix.real))
        check_flag("ComplexExponential", "antithetic", self.antithetic)

    @property
    def matrix(self) -> np.ndarray:
        """A as an array of zero, one or two axes."""
        return np.asarray(self.A)

    @property
    def positive(self) -> bool:
        """For real A."""
        return not np.iscomplexobj(self.matrix)

    def draw(self, draws: Draws, kernel: Kernel | None, data: Data | None) -> Features:
        """Check the size of A, then draw."""
        A = self.matrix
        if A.ndim and A.shape[0] != draws.d:
            raise ValueError(
                f"ComplexExponential: A has {A.shape[0]} rows, but the data has d = {draws.d} columns; give a number, "
                f"{draws.d} diagonal entries or a {draws.d} x {draws.d} matrix."
            )
        operator = draws.operator()
        nodes = Nodes(operator, reflect=self.antithetic or operator.reflected)
        return ComplexExponentialFeatures(nodes, A, norm_coefficient(kernel, -0.5))


class ComplexExponentialFeatures(Features):
    """Features of A x (queries) and of the transposed inverse of A times y (keys)."""

    def __init__(self, nodes: Nodes, A: np.ndarray, c: float) -> None:
        self.nodes, self.c = nodes, c
        self.left = A
        self.right = np.linalg.inv(A).T if A.ndim == 2 else 1 / A
        self.real = not np.iscomplexobj(A)
        self.half_log_weights = 0.5 * np.log(nodes.weights)
        # squares of real and imaginary entries are real: then the phase at w = 0 is zero, and its sine no feature
        plain = A.ndim < 2 and not (A.real * A.imag).any()
        self.skip_sine = int(nodes.origin and plain)
        self.width = len(nodes) if self.real else 2 * len(nodes) - self.skip_sine
        self.symmetric = False
        self.positive = self.real and not nodes.signed

    def scaled(self, X: Any, *, key: bool) -> Scaled:
        """Real and imaginary part of w . u - q(u)/2."""
        xp = array_namespace(X)
        T = self.right if key else self.left
        a = transform(T.real, X)
        u = self.nodes.project(a)
        logarithm = like(self.half_log_weights, u) + u - squared_norms(a) / 2
        if self.c:
            logarithm = logarithm + self.c * squared_norms(X)
        if self.real:
            mantissa = self.nodes.signed_last(xp.ones_like(u)) if key and self.nodes.negative_origin else None
            return mantissa, logarithm
        b = transform(T.imag, X)
        logarithm = logarithm + squared_norms(b) / 2
        phase = self.nodes.project(b) - xp.sum(a * b, axis=-1, keepdims=True)
        return circle(self.nodes, phase, logarithm, key=key, skip_sine=self.skip_sine)


def _as_array(A: Any) -> np.ndarray:
    try:
        array = np.asarray(A, dtype=np.complex128)
    except (TypeError, ValueError):
        raise TypeError(f"ComplexExponential: A must be a number, a diagonal or a square matrix, got {A!r}.") from None
    if array.ndim > 2 or (array.ndim == 2 and array.shape[0] != array.shape[1]) or not array.size:
        raise ValueError(
            f"ComplexExponential: A must be a number, a diagonal or a square matrix, got shape {array.shape}."
        )
    if not np.isfinite(array).all() or _is_singular(array):
        raise ValueError("ComplexExponential: A must be finite and invertible, since keys meet its inverse.")
    return array


def _is_singular(A: np.ndarray) -> bool:
    return bool(np.linalg.cond(A) > 1e12) if A.ndim == 2 else not A.all()
