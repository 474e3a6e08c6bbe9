"""Exponentials of linearly transformed data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .. import theory
from .._arrays import array_namespace, like
from .._validation import check_flag, shown
from ..kernels import Kernel
from ..projections import Projection
from ._drawing import Draws, Nodes
from ._error import ErrorCase
from ._exponential import ExponentialMap, circle, norm_coefficient
from ._features import Features, Scaled, as_tuple, squared_norms, transform
from ._map import Argument, Layout

_Entry = complex | float
_Tuple = _Entry | tuple[_Entry, ...] | tuple[tuple[_Entry, ...], ...]


@dataclass(frozen=True)
class ComplexExponential(ExponentialMap):
    r"""Complex exponential features (HRF Section 2.3): exact where the two transformed points cancel.

    Use it as a base of hybrids, where pairs of points near a known relation matter most.

    Parameters
    ----------
    A : complex, sequence of complex, or square matrix
        A multiple of the identity, a diagonal, or a full matrix.
    antithetic : bool
        Whether to use both w and -w.

    Notes
    -----
    For an invertible complex A let :math:`u = Ax`, :math:`v = A^{-T}y`, so that :math:`u\cdot v = x\cdot y`.  Then

    .. math:: Z = e^{-q(u)/2 - q(v)/2 + w\cdot(u + v)}, \qquad E\,Z = e^{x\cdot y}, \qquad q(u) = \sum_k u_k^2,

    with *unconjugated* squares (HRF Eq. 89-92 have norms, which is wrong for complex A).  The estimate is the mean of
    Re Z, as real pairs :math:`m^{-1/2} e^{a}[\cos\theta, \sin\theta]` of queries and :math:`[\cos\theta, -\sin\theta]`
    of keys: 2m features, or m if A is real.  It is unbiased, and its variance is zero where u + v = 0.  With u + v = a
    + ib the variance of one projection is
    :math:`\mathrm{SM}^2\{(e^{|a|^2+|b|^2} + e^{|a|^2-|b|^2}\cos 2a\cdot b)/2 - 1\}`.

    A = i gives `Trigonometric`, A = 1 `Positive`, and A = 1 with antithetic pairs `Hyperbolic`.

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
    formula: ClassVar[str] = r"e^{w_i\cdot Ax - (Ax)^2/2}"
    references: ClassVar[tuple[str, ...]] = ("hrf",)

    def __post_init__(self) -> None:
        matrix = _as_array(self.A)
        object.__setattr__(self, "A", as_tuple(matrix if matrix.imag.any() else matrix.real))
        check_flag("ComplexExponential", "antithetic", self.antithetic)

    @classmethod
    def variants(cls) -> dict[str, Any]:
        """Return the map with A = i, whose features are those of `Trigonometric`."""
        return {"complex-exponential": cls(1j)}

    def worth_trying(self, projection: Projection) -> bool:
        """False where it equals `Trigonometric` or `Positive`: multiples of the identity by 1 or i."""
        return super().worth_trying(projection) and self.A not in (1.0, 1j)

    @property
    def matrix(self) -> np.ndarray:
        """A as an array of zero, one or two axes."""
        return np.asarray(self.A)

    def layout(self, projection: Projection) -> Layout:
        nodes, origin = 2 if self.antithetic or projection.reflected else 1, int(projection.has_origin)
        symmetric = _unit(self.matrix) and not projection.signed
        if not np.iscomplexobj(self.matrix):
            return Layout(nodes, origin, symmetric, not projection.signed)
        return Layout(2 * nodes, 2 * origin - (origin and _plain(self.matrix)), symmetric, False)

    def draw(self, draws: Draws, kernel: Kernel | None) -> Features:
        A = self.matrix
        if A.ndim and A.shape[0] != draws.d:
            raise ValueError(
                f"ComplexExponential: A has {A.shape[0]} rows, but the data has d = {draws.d} columns; give a number, "
                f"{draws.d} diagonal entries or a {draws.d} x {draws.d} matrix."
            )
        operator = draws.operator()
        nodes = Nodes(operator, reflect=self.antithetic or operator.reflected)
        return ComplexExponentialFeatures(nodes, A, norm_coefficient(kernel, -0.5))

    def mse(self, case: ErrorCase) -> np.ndarray:
        """Error with independent and orthogonal rows."""
        if case.coupling == "simplex":
            case.require_independent(self)
        if case.coupling == "orthogonal":
            case.require_time(self)
        error = theory.complex_exponential_log_relative_mse(
            self._argument(case), case.m, antithetic=self.antithetic, d=case.dim, coupling=case.coupling
        )
        return case.absolute(error)

    def argument(self, case: ErrorCase) -> Argument | None:
        return None if case.projection.has_origin else Argument(self._argument(case), self.antithetic)

    def _argument(self, case: ErrorCase) -> np.ndarray:
        A = self.matrix
        return theory.complex_argument(case.X[:, None, :], case.Y[None], A if A.ndim else np.full(case.d, A))


class ComplexExponentialFeatures(Features):
    """Features of A x (queries) and of the transposed inverse of A times y (keys)."""

    def __init__(self, nodes: Nodes, A: np.ndarray, c: float) -> None:
        self.nodes, self.c = nodes, c
        self.left = A
        self.right = np.linalg.inv(A).T if A.ndim == 2 else 1 / A
        self.real = not np.iscomplexobj(A)
        self.half_log_weights = 0.5 * np.log(nodes.weights)
        self.skip_sine = int(nodes.origin and _plain(A))
        self.width = len(nodes) if self.real else 2 * len(nodes) - self.skip_sine
        self.symmetric = _unit(A) and not nodes.signed
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


class DiagonalPairs:
    """Complex exponentials with the same rows and a diagonal for each pair of clusters, computed together.

    A row has features for the pairs of its own cluster only, which need one projection: few operations on tensors,
    and no exponentials of pairs that the row does not fill.

    Parameters
    ----------
    members : sequence of ComplexExponentialFeatures
        Those of the pairs (i, j), i first.
    n_queries, n_keys : int
        Numbers of clusters.
    """

    def __init__(self, members: Sequence[ComplexExponentialFeatures], n_queries: int, n_keys: int) -> None:
        shape = n_queries, n_keys, -1
        first = members[0]
        self.nodes, self.c, self.half_log_weights = first.nodes, first.c, first.half_log_weights
        # by the cluster of the row, then the cluster of the other side
        self.left = np.stack([one.left for one in members]).reshape(shape)
        self.right = np.stack([one.right for one in members]).reshape(shape).swapaxes(0, 1)
        m = len(first.nodes)
        columns = [2 * m * k + np.arange(one.width) for k, one in enumerate(members)]  # a real pair has no sines
        self.columns = None if all(not one.real for one in members) else np.concatenate(columns)

    @classmethod
    def of(cls, members: Sequence[Features], n_queries: int, n_keys: int) -> DiagonalPairs | None:
        """The features of all pairs together; None where they differ in more than their diagonals."""
        found = [one for one in members if isinstance(one, ComplexExponentialFeatures) and one.left.ndim == 1]
        if len(found) < len(members):
            return None
        operators = {id(one.nodes.operator) for one in found}
        return None if len(operators) > 1 or found[0].nodes.origin else cls(found, n_queries, n_keys)

    def scaled(self, rows: Any, cluster: Any, *, key: bool) -> Scaled:
        """Mantissas and logarithms of rows (n, d) of the given clusters, (n, width)."""
        xp = array_namespace(rows)
        table = self.right if key else self.left
        a = rows[:, None, :] * like(np.ascontiguousarray(table.real), rows)[cluster]
        b = rows[:, None, :] * like(np.ascontiguousarray(table.imag), rows)[cluster]
        logarithm = (
            like(self.half_log_weights, rows) + self.nodes.project(a) + (squared_norms(b) - squared_norms(a)) / 2
        )
        if self.c:
            logarithm = logarithm + self.c * squared_norms(rows)[:, None, :]
        phase = self.nodes.project(b) - xp.sum(a * b, axis=-1, keepdims=True)
        mantissa, logarithm = circle(self.nodes, phase, logarithm, key=key, skip_sine=0)
        own = like(np.eye(len(table)), rows)[cluster]  # (n, clusters): one at the cluster of the row
        own = own[:, None, :, None] if key else own[:, :, None, None]
        return tuple(
            self._in_order(own * (part[:, :, None] if key else part[:, None])) for part in (mantissa, logarithm)
        )

    def _in_order(self, part: Any) -> Any:
        """Features (n, queries, keys, 2m) side by side, without the sines of real pairs."""
        xp = array_namespace(part)
        flat = xp.reshape(part, (part.shape[0], math.prod(part.shape[1:])))  # not -1: there may be no rows
        return flat if self.columns is None else flat[:, self.columns]


def _unit(A: np.ndarray) -> bool:
    """Whether all entries of a diagonal are 1, -1, i or -i: then its inverse is its conjugate, and both sides agree."""
    return A.ndim < 2 and bool(np.isin(A, (1, -1, 1j, -1j)).all())


def _plain(A: np.ndarray) -> bool:
    """Whether squares of the entries are real; then the phase at w = 0 is zero, and its sine is left out."""
    return A.ndim < 2 and not (A.real * A.imag).any()


def _as_array(A: Any) -> np.ndarray:
    try:
        array = np.asarray(A, dtype=np.complex128)
    except (TypeError, ValueError):
        raise TypeError(
            f"ComplexExponential: A must be a number, a diagonal or a square matrix, got {shown(A)}."
        ) from None
    if array.ndim > 2 or (array.ndim == 2 and array.shape[0] != array.shape[1]) or not array.size:
        raise ValueError(
            f"ComplexExponential: A must be a number, a diagonal or a square matrix, got shape {array.shape}."
        )
    if not np.isfinite(array).all() or _is_singular(array):
        raise ValueError(
            "ComplexExponential: A must be finite and invertible, since keys are multiplied by its inverse."
        )
    return array


def _is_singular(A: np.ndarray) -> bool:
    return bool(np.linalg.cond(A) > 1e12) if A.ndim == 2 else not A.all()
