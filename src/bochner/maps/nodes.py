"""The points at which a map evaluates its nonlinearity: rows of W, their reflections, and a node at zero."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arrays import array_namespace, like
from ..projections import Operator


class Nodes:
    r"""Weighted points w with :math:`E f(w) \approx \sum_i \sigma_i \omega_i f(w_i)`.

    Rows of W come first; then, where they are reflected, all of them with the other sign and half of the weight each;
    last the node at zero, if the rule has one.  Weights :math:`\omega_i` are positive, and :math:`\sigma_i = \pm 1` is
    negative for a node at zero of negative weight alone.

    Parameters
    ----------
    operator : Operator
    reflect : bool
        Whether to evaluate at both of w and -w.
    """

    def __init__(self, operator: Operator, *, reflect: bool) -> None:
        weights, radii = operator.weights, operator.radii
        self.operator, self.reflect, self.dim = operator, reflect, operator.dim
        if reflect:
            weights, radii = np.tile(weights / 2, 2), np.tile(radii, 2)
        self.origin = operator.origin_weight != 0
        self.negative_origin = operator.origin_weight < 0
        self.signed = operator.signed
        if self.origin:
            weights, radii = np.append(weights, abs(operator.origin_weight)), np.append(radii, 0.0)
        self.weights, self.radii = weights, radii

    def __len__(self) -> int:
        return len(self.weights)

    def project(self, X: Any) -> Any:
        """The products w . x for all nodes, (..., len(self))."""
        xp = array_namespace(X)
        u = self.operator.apply(X)
        parts = [u, -u] if self.reflect else [u]
        if self.origin:
            parts.append(like(np.zeros((*u.shape[:-1], 1)), u))
        return xp.concat(parts, axis=-1) if len(parts) > 1 else u

    def signed_last(self, values: Any) -> Any:
        """``values`` (..., len(self)) with the sign of the node at zero: for the side of the keys."""
        if not self.negative_origin:
            return values
        return array_namespace(values).concat([values[..., :-1], -values[..., -1:]], axis=-1)


class Directions(Nodes):
    r"""Nodes for maps that are homogeneous of degree b, :math:`f(rw) = r^b f(w)`, with the radius integrated out.

    Where the lengths are not those of Gaussian rows (fixed ones, or the weighted nodes of a quadrature), only the
    directions :math:`u_i` count: :math:`E f(w)g(w) = E[\chi_d^{2b}]\, E f(u)g(u)`, whose average over rows has no
    radial noise and no node at zero.
    """

    def __init__(self, operator: Operator, degree: int, *, reflect: bool) -> None:
        super().__init__(operator, reflect=reflect)
        d = operator.dim
        self.scale: np.ndarray | None = None
        if not operator.gaussian_lengths:
            m = operator.shape[0]
            moment = (1.0, d, d * (d + 2.0))[degree]
            copies = 2 if reflect else 1
            self.origin = self.negative_origin = self.signed = False
            self.weights = np.full(copies * m, moment / (copies * m))
            self.radii = np.tile(operator.radii, copies)
            self.scale = 1 / self.radii

    def project(self, X: Any) -> Any:
        """Products with the nodes, or with their directions."""
        u = super().project(X)
        return u if self.scale is None else u * like(self.scale, u)
