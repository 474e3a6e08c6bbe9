"""Drawn features on tensors: what attention asks of them."""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod

import torch
from torch import Tensor

from ..approximation import FeatureMap
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
        Axes that broadcast against those of the data before its last two: heads with features of their own.
    """

    d: int
    width: int
    positive: bool
    lead: tuple[int, ...] = ()

    @abstractmethod
    def parts(self, X: Tensor, *, key: bool) -> tuple[Tensor | None, Tensor]:
        """Mantissa (None means one) and logarithm of X (..., n, d), each (..., n, width).

        The logarithm is a fresh tensor, which the caller may overwrite, and minus infinity where the mantissa is zero,
        since such a feature must not be a maximum.
        """


class MapFeatures(TensorFeatures):
    """The features of any drawn map, by its own code for any array library."""

    def __init__(self, phi: FeatureMap) -> None:
        self.phi, self.d, self.width, self.positive = phi, phi.n_features_in, phi.n_features_out, phi.positive

    def parts(self, X: Tensor, *, key: bool) -> tuple[Tensor | None, Tensor]:
        """Parts of the map at unit scale, in full."""
        mantissa, logarithm = self.phi.features.scaled(self.phi.spec.at_unit_scale(X), key=key)
        shape = (*X.shape[:-1], self.width)
        if logarithm is None:
            logarithm = torch.zeros(shape, dtype=X.dtype, device=X.device)
        logarithm = logarithm.expand(shape)
        if mantissa is None:
            return None, logarithm.clone()
        return mantissa, logarithm.masked_fill(mantissa == 0, -torch.inf)


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

    def __init__(self, matrix: Tensor, c: float, signs: Tensor | None) -> None:
        self.d, self.width, self.positive = matrix.shape[-2] - 2, matrix.shape[-1], signs is None
        self.matrix, self.c, self.signs, self.lead = matrix, c, signs, tuple(matrix.shape[:-2])

    def parts(self, X: Tensor, *, key: bool) -> tuple[Tensor | None, Tensor]:
        """One matrix product."""
        norms = self.c * X.square().sum(dim=-1, keepdim=True)
        logarithm = torch.cat([X, norms, torch.ones_like(norms)], dim=-1) @ self.matrix.to(X)
        return (self.signs.to(X) if key and self.signs is not None else None), logarithm


def quadratic_form(phi: FeatureMap) -> tuple[Tensor, float, Tensor | None] | None:
    """Matrix, c and signs of a map whose logarithms are quadratic, in float64; None for other maps."""
    form = phi.features.quadratic()
    if form is None or phi.spec.kernel != Softmax():
        return None
    rows, constants = torch.as_tensor(form.rows), torch.as_tensor(form.constants)
    matrix = torch.cat([rows, torch.stack([torch.ones_like(constants), constants], dim=1)], dim=1).mT
    return matrix.contiguous(), form.c, None if form.signs is None else torch.as_tensor(form.signs)


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
            matrix, c, signs = form
            kept[place] = QuadraticFeatures(matrix.to(like), c, None if signs is None else signs.to(like))
    return kept[place]
