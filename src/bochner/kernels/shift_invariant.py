"""Kernels of the difference x - y, measured in lengthscales."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np

from .._arrays import array_namespace, cast, like, working_dtype
from ._lengthscale import Lengthscale, check_lengthscale, check_lengthscale_width
from .base import Kernel


class ShiftInvariant(Kernel):
    r"""A kernel of :math:`(x - y)/\ell`, equal to one at x = y; a subclass has a field ``lengthscale``.

    By Bochner's theorem it is :math:`\mathrm{E} \cos(\omega\cdot(x - y)/\ell)` over random rows :math:`\omega`.
    """

    shift_invariant: ClassVar[bool] = True
    lengthscale: Lengthscale

    def __post_init__(self) -> None:
        """Check the lengthscale, and keep it as a float or a tuple of floats."""
        object.__setattr__(self, "lengthscale", check_lengthscale(type(self).__name__, self.lengthscale))

    def diagonal(self, X: Any) -> Any:
        """Return k(x_i, x_i) = 1, shape (..., n)."""
        X = self._check_inputs(X)
        return array_namespace(X).ones(X.shape[:-1], dtype=X.dtype, device=X.device)

    def scaled(self, X: Any) -> Any:
        """Return X divided by the lengthscale: the inputs on which random features at unit scale act."""
        X = self._check_inputs(X)
        xp, dtype = array_namespace(X), X.dtype
        X = cast(X, working_dtype(xp, dtype))
        return cast(X / like(np.asarray(self.lengthscale), X), dtype)

    def at_unit_scale(self, X: Any) -> Any:
        """Return checked rows divided by the lengthscale."""
        return X / like(np.asarray(self.lengthscale), X)

    def check_columns(self, d: int) -> None:
        """Refuse data of d columns if there are another number of lengthscales."""
        check_lengthscale_width(type(self).__name__, self.lengthscale, d)

    def with_bandwidth(self, value: Any) -> Any:
        """The same kernel with another lengthscale."""
        return dataclasses.replace(self, lengthscale=value)  # type: ignore[type-var]

    def _check_inputs(self, X: Any) -> Any:
        X = super()._check_inputs(X)
        check_lengthscale_width(type(self).__name__, self.lengthscale, X.shape[-1])
        return X
