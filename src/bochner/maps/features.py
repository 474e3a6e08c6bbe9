"""The drawn map: features of queries and of keys, as mantissa times exponential."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from .._arrays import array_namespace

Scaled = tuple[Any, Any]
"""Mantissa and logarithm of the scale, either of them None (one, zero); the feature is mantissa * exp(logarithm)."""


class Features(ABC):
    """A map with its numbers drawn, on data brought to unit scale.

    Attributes
    ----------
    width : int
        Number of features.
    symmetric : bool
        Whether queries and keys have the same features.
    positive : bool
        Whether all features are positive.
    """

    width: int
    symmetric: bool
    positive: bool

    @abstractmethod
    def scaled(self, X: Any, *, key: bool) -> Scaled:
        """Features of the rows of X as (mantissa, logarithm), which broadcast to (..., width)."""

    def __call__(self, X: Any, *, key: bool) -> Any:
        """Features of the rows of X, (..., width)."""
        return combine(*self.scaled(X, key=key))

    def fill(self, X: np.ndarray, out: np.ndarray, *, key: bool) -> None:
        """Write the features of the rows of X (n, d) into ``out`` (n, width): one tile of many."""
        out[...] = self(X, key=key)


def combine(mantissa: Any, logarithm: Any) -> Any:
    """Mantissa times exponential of the logarithm."""
    if logarithm is None:
        return mantissa
    scale = array_namespace(logarithm).exp(logarithm)
    return scale if mantissa is None else mantissa * scale


def squared_norms(X: Any) -> Any:
    """|x|^2 of each row, (..., 1)."""
    return array_namespace(X).sum(X * X, axis=-1, keepdims=True)


def parts_of(features: Features, X: Any, *, key: bool) -> Scaled:
    """Mantissa and logarithm in full, (..., width) each."""
    xp = array_namespace(X)
    mantissa, logarithm = features.scaled(X, key=key)
    shape = (*X.shape[:-1], features.width)
    if mantissa is None:
        mantissa = (
            xp.ones(shape, dtype=logarithm.dtype) if xp is np else xp.ones_like(xp.broadcast_to(logarithm, shape))
        )
    logarithm = xp.zeros_like(mantissa) if logarithm is None else xp.broadcast_to(logarithm, shape)
    return xp.broadcast_to(mantissa, shape), logarithm
