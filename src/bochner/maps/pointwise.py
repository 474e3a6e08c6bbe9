"""A nonlinearity of the user's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .._arrays import like
from ..kernels import Kernel
from .base import Map
from .draws import Draws
from .features import Features, Scaled
from .nodes import Nodes
from .statistics import Data


@dataclass(frozen=True, repr=False)
class Pointwise(Map):
    r"""Features :math:`m^{-1/2} f(w_i\cdot x)` for a function f of the user's own.

    Notes
    -----
    They estimate, without bias, the kernel that f induces: :math:`k(x, y) = E f(w\cdot x) f(w\cdot y)`, w ~ N(0, I).
    An `Approximation` without a kernel stands for it: ``gram`` estimates it, and more projections estimate it better.

    Parameters
    ----------
    f : callable
        Applied to an array of projections of the library of the data (NumPy or torch), entry by entry.

    References
    ----------
    qbf (Section 2), choromanski2021 (generalised attention).

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import Approximation, maps
    >>> phi = Approximation(map=maps.Pointwise(np.tanh), n_projections=16).draw(3, rng=0)
    >>> phi.gram(np.ones((2, 3))).shape
    (2, 2)
    """

    f: Callable[[Any], Any]
    requirement: ClassVar[str] = "no kernel of ours, since the function induces its own"
    references: ClassVar[tuple[str, ...]] = ("qbf", "choromanski2021")

    def __post_init__(self) -> None:
        if not callable(self.f):
            raise TypeError(f"Pointwise: f must be a function of an array, got {self.f!r}.")

    def __repr__(self) -> str:
        module, name = getattr(self.f, "__module__", None), getattr(self.f, "__qualname__", None)
        if isinstance(self.f, np.ufunc):
            module, name = "numpy", self.f.__name__
        return f"Pointwise(f={module}.{name})" if module and name else f"Pointwise(f={self.f!r})"

    def serves(self, kernel: Kernel | None) -> bool:
        """None but its own."""
        return kernel is None

    def draw(self, draws: Draws, kernel: Kernel | None, data: Data | None) -> Features:
        """Evaluate at reflected nodes where the projection has them."""
        operator = draws.operator()
        return PointwiseFeatures(Nodes(operator, reflect=operator.reflected), self.f, 1.0, positive=False)


class PointwiseFeatures(Features):
    """Square roots of the weights times f of the projections."""

    def __init__(self, nodes: Nodes, f: Callable[[Any], Any], constant: float, *, positive: bool) -> None:
        self.nodes, self.f = nodes, f
        self.roots = np.sqrt(constant * nodes.weights)
        self.width = len(nodes)
        self.symmetric = not nodes.signed
        self.positive = positive and not nodes.signed

    def scaled(self, X: Any, *, key: bool) -> Scaled:
        """Values of f; the node at zero carries its sign on the side of the keys."""
        u = self.nodes.project(X)
        values = self.f(u)
        if tuple(values.shape) != tuple(u.shape):
            raise ValueError(
                f"Pointwise: f must return one number for each projection, got shape {tuple(values.shape)} for "
                f"{tuple(u.shape)}."
            )
        values = values * like(self.roots, u)
        return (self.nodes.signed_last(values) if key else values), None
