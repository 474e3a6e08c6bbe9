"""Drawn features on tensors, for attention and sampling."""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from ..approximation import FeatureMap
from ..approximation.log_features import LogFeatures, log_features
from ..kernels import Softmax


class TensorFeatures(ABC):
    """Features of queries and keys as mantissa times exponential, on tensors.

    Attributes
    ----------
    d, width : int
        Dimension of the data, number of features.
    positive : bool
        Whether all features are positive.
    lead : tuple of int
        Axes that broadcast against those of the data before its last two, for heads with their own features.
    traceable : bool
        Whether they are plain tensor operations, which `torch.compile` can follow.
    """

    d: int
    width: int
    positive: bool
    lead: tuple[int, ...] = ()
    traceable: bool = False

    @abstractmethod
    def log(self, X: Tensor, *, key: bool) -> LogFeatures:
        """Features of X (..., n, d), (..., n, width): logarithms in a fresh tensor, which the caller may overwrite."""


class MapFeatures(TensorFeatures):
    """The features of any drawn map, by its own code for any array library."""

    def __init__(self, phi: FeatureMap) -> None:
        self.phi, self.d, self.width, self.positive = phi, phi.n_features_in, phi.n_features_out, phi.positive

    def log(self, X: Tensor, *, key: bool) -> LogFeatures:
        """Features of the map at unit scale."""
        return log_features(self.phi.features, self.phi.spec.at_unit_scale(X), key=key)


class QuadraticFeatures(TensorFeatures):
    r"""Features whose logarithms are quadratic, :math:`\log\phi_m(x) = w_m\cdot x + a_m + c|x|^2`, times a sign for keys.

    All real exponential maps have this form, with constants and slopes of the map in w and a, nodes of a
    quadrature and reflections as further rows.  One product :math:`[x, c|x|^2, 1]\,[w, 1, a]^T` gives the logarithms.

    Parameters
    ----------
    matrix : Tensor (..., d + 2, m)
        Columns [w, 1, a]; leading axes (heads) broadcast against those of the data before its last two.
    c : float
        Coefficient of the squared norm.
    signs : Tensor (m,) or None
        Signs on the side of the keys; None where all are one.
    """

    traceable = True

    def __init__(self, matrix: Tensor, c: float, signs: Tensor | None) -> None:
        self.d, self.width, self.positive = matrix.shape[-2] - 2, matrix.shape[-1], signs is None
        self.matrix, self.c, self.signs, self.lead = matrix, c, signs, tuple(matrix.shape[:-2])

    def log(self, X: Tensor, *, key: bool) -> LogFeatures:
        """One matrix product."""
        norms = self.c * X.square().sum(dim=-1, keepdim=True)
        logarithm = torch.cat([X, norms, torch.ones_like(norms)], dim=-1) @ self.matrix.to(X)
        return LogFeatures(self.signs.to(X) if key and self.signs is not None else None, logarithm)


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
    """Matrix (d + 2, D), coefficient of the squared norm, and signs (D,) or None, as `QuadraticFeatures` takes them."""

    matrix: Tensor
    c: float
    signs: Tensor | None


def quadratic_form(phi: FeatureMap) -> QuadraticForm | None:
    """The form of a map whose logarithms are quadratic, in float64; None for other maps."""
    form = phi.features.quadratic()
    if form is None or phi.spec.kernel != Softmax():
        return None
    rows, constants = torch.as_tensor(form.rows), torch.as_tensor(form.constants)
    matrix = torch.cat([rows, torch.stack([torch.ones_like(constants), constants], dim=1)], dim=1).mT
    return QuadraticForm(matrix.contiguous(), form.c, None if form.signs is None else torch.as_tensor(form.signs))


_converted: weakref.WeakKeyDictionary[FeatureMap, dict[tuple[torch.dtype, torch.device], TensorFeatures]] = (
    weakref.WeakKeyDictionary()
)


def tensor_features(phi: FeatureMap, like: Tensor) -> TensorFeatures:
    """The features of ``phi`` in the type and place of ``like``, kept for the next time."""
    kept = _converted.setdefault(phi, {})
    place = (like.dtype, like.device)
    if place not in kept:
        form = quadratic_form(phi)
        if form is None:
            kept[place] = MapFeatures(phi)
        else:
            signs = None if form.signs is None else form.signs.to(like)
            kept[place] = QuadraticFeatures(form.matrix.to(like), form.c, signs)
    return kept[place]
