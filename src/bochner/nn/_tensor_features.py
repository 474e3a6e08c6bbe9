"""Drawn features on tensors, for attention and sampling."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import linear, pad

from ..approximation import FeatureMap
from ..approximation.log_features import NOTHING, LogFeatures, log_features
from ..kernels import Softmax
from ..maps import QuadraticSide
from ..maps._features import parts_of
from ..maps._hybrid import HybridFeatures

LOG2E = math.log2(math.e)


class TensorFeatures(ABC):
    """Features of queries and keys as mantissa times exponential, on tensors."""

    d: int  # dimension of the data, number of features
    width: int
    positive: bool  # whether all features are positive
    # axes that broadcast against those of the data before its last two, for heads with their own features
    lead: tuple[int, ...] = ()
    traceable: bool = False  # whether they are plain tensor operations, which `torch.compile` can follow

    @abstractmethod
    def log(self, X: Tensor, *, key: bool) -> LogFeatures:
        """Features of X (..., n, d), (..., n, width): logarithms in a fresh tensor, which the caller may overwrite."""

    def log2(self, X: Tensor, root: float | Tensor, *, key: bool, norms: bool = True) -> LogFeatures:
        """Features of ``root`` times X with finite logarithms to base two.

        Without ``norms`` any factor per row may be missing, for queries whose weights come from features alone.
        """
        found = self.log(X * root, key=key)
        return found._replace(log=(found.log * LOG2E).clamp(min=2 * NOTHING))


class MapFeatures(TensorFeatures):
    """The features of any drawn map, by its own code for any array library."""

    def __init__(self, phi: FeatureMap) -> None:
        self.phi, self.d, self.width, self.positive = phi, phi.n_features_in, phi.n_features_out, phi.positive

    def log(self, X: Tensor, *, key: bool) -> LogFeatures:
        """Features of the map at unit scale."""
        return log_features(self.phi.features, self.phi.spec.at_unit_scale(X), key=key)


class BaseFeatures(NamedTuple):
    """Features of the bases of a hybrid, before they are multiplied with its coefficients."""

    mantissas: tuple[Tensor, ...]  # (..., n, width of the base): mantissas and logarithms to base two
    logs: tuple[Tensor, ...]


class HybridTensorFeatures(MapFeatures):
    """The features of a hybrid: exponentials of its bases, times random coefficients."""

    def __init__(self, phi: FeatureMap, hybrid: HybridFeatures) -> None:
        super().__init__(phi)
        self.hybrid = hybrid

    def bases(self, X: Tensor, root: float | Tensor, *, key: bool) -> BaseFeatures:
        """Features of the bases at ``root`` times X, with finite logarithms to base two."""
        rows = self.phi.spec.at_unit_scale(X * root)
        parts = [parts_of(base, rows, key=key) for base in self.hybrid.bases]
        logs = tuple((log * LOG2E).clamp(min=2 * NOTHING) for _, log in parts)
        return BaseFeatures(tuple(mantissa for mantissa, _ in parts), logs)

    def products(self, of_bases: Sequence[Tensor], X: Tensor, root: float | Tensor, *, key: bool) -> Tensor:
        """Return all features, from the values of the bases."""
        products: Tensor = self.hybrid.products(of_bases, self.phi.spec.at_unit_scale(X * root), key=key)
        return products


class Side(NamedTuple):
    r"""Logarithms of queries or of keys as one product :math:`[z, c|z|^2, 1]\,[w, 1, a]^T`, at :math:`z = T^T(x - o)`."""

    # (..., d + 2, m): columns [w, 1, a]; leading axes (heads) broadcast against those of the data before its last two
    matrix: Tensor
    centre: Tensor | None = None  # (..., 1, d): the point o and the matrix T; None where z = x
    turn: Tensor | None = None

    def log(self, X: Tensor, c: float) -> Tensor:
        """Logarithms of X (..., n, d), (..., n, m)."""
        if self.turn is not None and self.centre is not None:
            X = (X - self.centre.to(X)) @ self.turn.to(X)
        matrix = self.matrix.to(X)
        d = X.shape[-1]
        norms = X.square().sum(dim=-1, keepdim=True)
        if matrix.ndim == 2:  # one operation for the product and the constants
            return linear(X, matrix[:d].mT, matrix[d + 1]).add(norms, alpha=c)
        return (X @ matrix[..., :d, :]).add(matrix[..., d + 1 :, :]).add(norms, alpha=c)

    def map(self, function: Callable[..., Tensor], *others: Side) -> Side:
        """The tensors of this and of other sides, each part by itself through a function."""
        parts = zip(self, *others, strict=True)
        mapped: list[Any] = [None if part[0] is None else function(*part) for part in parts]
        return Side(*mapped)


class Binary(NamedTuple):
    r"""Logarithms to base two, :math:`(x - o)P + a + c\,|(x - o)T|^2`: what both engines of attention work with.

    Powers of two are faster than exponentials on CPUs: measured on 4 million numbers and one thread, 1.3 against 3.4 ms, and
    2.6 against 87 ms where they underflow.
    """

    slope: Tensor  # (..., d, m): P and a
    constant: Tensor
    # (..., 1, d): the point o and the matrix T; None where they are zero and the unit matrix
    centre: Tensor | None = None
    turn: Tensor | None = None

    def offsets(self, X: Tensor) -> Tensor:
        """``x - o``."""
        return X if self.centre is None else X - self.centre

    def turned(self, offsets: Tensor) -> Tensor:
        """``(x - o) T``."""
        return offsets if self.turn is None else offsets @ self.turn


class Extended(NamedTuple):
    """One side of quadratic features beside exact weights: one product of extended rows has all terms of their logarithms.

    Queries are extended as ``[q, |z|^2, 0, 1, 0]`` and keys as ``[k, balance, |z|^2, b, 1]``.  The product of both, times
    the scale and to base two, is the logarithm of the exact weight with the bias b of the key; both this and the logarithms
    of the query lack the squared norm of the query, which is a factor of its row.
    """

    matrix: Tensor  # (..., d + 4, m): what extended rows are multiplied with
    balance: float  # the negative coefficient of the squared norm, divided by the scale to base two
    side: Binary  # what squared norms are computed with

    @classmethod
    def of(cls, side: Binary, c: float, factor: float, key: bool) -> Extended:
        """Build the form from the coefficient c of the squared norm and the ``factor`` of products of queries and keys."""
        constant = side.constant if side.centre is None else side.constant - side.centre @ side.slope
        zero = torch.zeros_like(constant)
        rows = (zero, zero + c, zero + factor, constant) if key else (zero, zero, constant, zero)
        return cls(torch.cat([side.slope, *rows], dim=-2), -c / factor, side)

    def norms(self, X: Tensor) -> Tensor:
        """Squared norms (..., n, 1)."""
        return self.side.turned(self.side.offsets(X)).square().sum(dim=-1, keepdim=True)


class QuadraticFeatures(TensorFeatures):
    r"""Features whose logarithms are quadratic, times a sign for keys.

    All real exponential maps have this form, with constants and slopes of the map in the rows and constants, nodes of a
    quadrature and reflections as further rows, and the frame of maps in a frame before them.

    Parameters
    ----------
    queries, keys : Side
        The logarithms of both sides.
    c : float
        Coefficient of the squared norm.
    signs : Tensor (m,) or None
        Signs on the side of the keys; None where all are one.
    """

    traceable = True

    def __init__(self, queries: Side, keys: Side, c: float, signs: Tensor | None) -> None:
        self.d, self.width, self.positive = queries.matrix.shape[-2] - 2, queries.matrix.shape[-1], signs is None
        self.queries, self.keys, self.c, self.signs = queries, keys, c, signs
        self.lead = tuple(queries.matrix.shape[:-2])
        self._binary: dict[tuple[Any, ...], tuple[Binary, float]] = {}
        self._extended: dict[tuple[Any, ...], Extended] = {}

    def log(self, X: Tensor, *, key: bool) -> LogFeatures:
        """One matrix product, and one before it to enter a frame."""
        logarithm = (self.keys if key else self.queries).log(X, self.c)
        return LogFeatures(self.signs.to(X) if key and self.signs is not None else None, logarithm)

    def log2(self, X: Tensor, root: float | Tensor, *, key: bool, norms: bool = True) -> LogFeatures:
        """One matrix product, and one of small tensors before it to enter a frame."""
        if isinstance(root, Tensor):
            X, root = X * root, 1.0
        side, c = self.binary(root, X, key=key)
        offsets = side.offsets(X)
        if side.slope.ndim == 2 and offsets.is_contiguous():  # one operation for the product and the constants
            logs = linear(offsets, side.slope.mT, side.constant[0])
        else:
            logs = offsets @ side.slope + side.constant
        if norms:
            logs = logs.add_(side.turned(offsets).square().sum(dim=-1, keepdim=True), alpha=c)
        return LogFeatures(self.signs.to(X) if key and self.signs is not None else None, logs)

    def binary(self, root: float, like: Tensor, *, key: bool) -> tuple[Binary, float]:
        """The form of one side at ``root`` times the data, to base two, and the coefficient c of the squared norm."""
        if not is_plain(self.queries.matrix):
            return self._found(root, like, key)
        place = root, like.dtype, like.device, key, torch.is_inference_mode_enabled()
        if place not in self._binary:
            self._binary[place] = self._found(root, like, key)
        return self._binary[place]

    def extended(self, root: float, like: Tensor, *, key: bool) -> Extended:
        """The form of one side at ``root`` times the data beside exact weights."""
        side, c = self.binary(root, like, key=key)
        factor = LOG2E * root**2
        if not is_plain(self.queries.matrix):
            return Extended.of(side, c, factor, key)
        place = root, like.dtype, like.device, key, torch.is_inference_mode_enabled()
        if place not in self._extended:
            self._extended[place] = Extended.of(side, c, factor, key)
        return self._extended[place]

    def _found(self, root: float, like: Tensor, key: bool) -> tuple[Binary, float]:
        matrix, centre, turn = self.keys if key else self.queries
        matrix = matrix.to(like)
        slope, constant = matrix[..., : self.d, :], matrix[..., self.d + 1 :, :] * LOG2E
        if centre is None or turn is None:
            return Binary(slope * (root * LOG2E), constant), self.c * LOG2E * root**2
        turn = turn.to(like) * root
        return Binary((turn @ slope) * LOG2E, constant, centre.to(like) / root, turn), self.c * LOG2E


def is_plain(x: Tensor) -> bool:
    """Whether a tensor has numbers and no gradient, outside of all tracing: what follows from it may be kept."""
    # private, since torch.func has no public question for it; a tensor of vmap or grad must not be kept beyond the call
    if torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active():
        return False
    return type(x) in (Tensor, torch.nn.Buffer) and not x.requires_grad and not x.is_meta


class HeadFeatures(TensorFeatures):
    """Features of data (..., heads, n, d) by one map for each head; narrower ones are filled up with zero features."""

    def __init__(self, members: Sequence[TensorFeatures]) -> None:
        self.members, self.lead = tuple(members), (len(members),)
        self.d, self.width = members[0].d, max(member.width for member in members)
        self.positive = all(member.positive and member.width == self.width for member in members)

    def log(self, X: Tensor, *, key: bool) -> LogFeatures:
        """Features of each head, one beside the other."""
        X = X.expand(*X.shape[:-3], len(self.members), *X.shape[-2:])
        found = [member.log(X[..., h, :, :], key=key) for h, member in enumerate(self.members)]
        logarithm = torch.stack(
            [pad(log, (0, self.width - log.shape[-1]), value=-torch.inf) for _, log in found], dim=-3
        )
        if all(mantissa is None for mantissa, _ in found):
            return LogFeatures(None, logarithm)
        mantissas = [torch.ones_like(log) if mantissa is None else mantissa.expand_as(log) for mantissa, log in found]
        widened = [pad(mantissa, (0, self.width - mantissa.shape[-1])) for mantissa in mantissas]
        return LogFeatures(torch.stack(widened, dim=-3), logarithm)


class QuadraticForm(NamedTuple):
    """Quadratic logarithms of both sides, the coefficient of the squared norm, and signs (m,) or None."""

    queries: Side
    keys: Side
    c: float
    signs: Tensor | None

    @property
    def framed(self) -> bool:
        """Whether queries and keys have different forms, those of a frame."""
        return self.queries.turn is not None

    @property
    def kind(self) -> tuple[Any, ...]:
        """What forms must share to be stacked."""
        return self.queries.matrix.shape, self.framed, self.c, self.signs is None

    @classmethod
    def stacked(cls, forms: Sequence[QuadraticForm]) -> QuadraticForm:
        """Forms of one kind with an axis before their own: one for each head."""
        first = forms[0]
        queries, keys = (
            sides[0].map(lambda *parts: torch.stack(parts), *sides[1:])
            for sides in ([form.queries for form in forms], [form.keys for form in forms])
        )
        signs = [form.signs for form in forms if form.signs is not None]
        return cls(queries, keys, first.c, torch.stack(signs)[:, None] if signs else None)

    def only(self) -> QuadraticForm:
        """The single form of a stack of one."""
        queries, keys = (side.map(lambda part: part[0]) for side in (self.queries, self.keys))
        return QuadraticForm(queries, keys, self.c, None if self.signs is None else self.signs[0])

    def to(self, like: Tensor) -> QuadraticForm:
        """The form in the type and place of a tensor."""
        queries, keys = (side.map(lambda part: part.to(like)) for side in (self.queries, self.keys))
        return QuadraticForm(queries, keys, self.c, None if self.signs is None else self.signs.to(like))


def quadratic_form(phi: FeatureMap) -> QuadraticForm | None:
    """The form of a map whose logarithms are quadratic, in float64; None for other maps."""
    form = phi.features.quadratic()
    if form is None or phi.spec.kernel != Softmax():
        return None
    signs = None if form.signs is None else torch.as_tensor(form.signs)
    return QuadraticForm(_side(form.queries), _side(form.keys), form.queries.c, signs)


def _side(form: QuadraticSide) -> Side:
    rows, constants = torch.as_tensor(form.rows), torch.as_tensor(form.constants)
    matrix = torch.cat([rows, torch.stack([torch.ones_like(constants), constants], dim=1)], dim=1).mT.contiguous()
    if form.center is None or form.matrix is None:
        return Side(matrix)
    return Side(matrix, torch.tensor(form.center)[None], torch.tensor(form.matrix))


def map_features(phi: FeatureMap) -> MapFeatures:
    """The features of a drawn map by its own code; those of hybrids know their bases."""
    hybrid = phi.features
    return HybridTensorFeatures(phi, hybrid) if isinstance(hybrid, HybridFeatures) else MapFeatures(phi)


def tensor_features(phi: FeatureMap, like: Tensor) -> TensorFeatures:
    """The features of ``phi`` in the type and place of ``like``, kept with the map for the next time."""
    place = (like.dtype, like.device)
    kept: TensorFeatures | None = phi.derived.get(place)
    if kept is not None:
        return kept
    form = quadratic_form(phi)
    found: TensorFeatures
    if form is not None:
        found = QuadraticFeatures(*form.to(like))
    else:
        found = map_features(phi)
    if not isinstance(found, QuadraticFeatures) or type(found.queries.matrix) is Tensor:  # no tensors of a tracer
        phi.derived[place] = found
    return found
