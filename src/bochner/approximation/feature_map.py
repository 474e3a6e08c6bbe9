"""The drawn features of an approximation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._arrays import cast, common_namespace
from .._validation import check_points, check_rows
from ..maps import Features
from .gram import gram, normalized_gram
from .tiles import features_by_tiles

if TYPE_CHECKING:
    from .spec import Approximation


class FeatureMap:
    r"""Features :math:`\phi_q`, :math:`\phi_k` with :math:`k(x, y) \approx \phi_q(x)\cdot\phi_k(y)`, all numbers drawn.

    Attributes
    ----------
    spec : Approximation
        What it was drawn from.
    n_features_in, n_features_out : int
        Dimension of the data, width of the features.
    symmetric : bool
        Whether queries and keys have the same features.
    positive : bool
        Whether all features are positive; for shifted discrete maps, on data that do not fall below what was fitted.
    """

    def __init__(self, spec: Approximation, d: int, features: Features) -> None:
        self.spec, self.features = spec, features
        self.n_features_in, self.n_features_out = d, features.width
        self.symmetric, self.positive = features.symmetric, features.positive

    def queries(self, X: Any) -> Any:
        """Features of X (..., n, d), shape (..., n, n_features_out)."""
        return self._features("queries", X, key=False)

    def keys(self, Y: Any) -> Any:
        """Features of Y (..., p, d), shape (..., p, n_features_out)."""
        return self._features("keys", Y, key=True)

    def log_queries(self, X: Any) -> Any:
        """Logarithms of the features of X, which do not overflow; for positive maps."""
        return self._logarithms("log_queries", X, key=False)

    def log_keys(self, Y: Any) -> Any:
        """Logarithms of the features of Y, which do not overflow; for positive maps."""
        return self._logarithms("log_keys", Y, key=True)

    def gram(self, X: Any, Y: Any = None, *, normalize: bool = False) -> Any:
        r"""Estimated Gram matrix ``queries(X) @ keys(Y).T``; of NumPy matrices, in chunks of bounded memory.

        Parameters
        ----------
        X : array (..., n, d)
            Queries.
        Y : array (..., p, d), optional
            Keys; None means X.
        normalize : bool
            Whether rows are divided by their sums, as softmax attention does.  The logarithms are stabilised where that
            cancels exactly, so the result is finite however large the data; an estimate that is not positive can have
            a row sum of zero or near it, which no stabiliser mends.  All features of the keys are held at once.

        Returns
        -------
        array (..., n, p)
        """
        X = check_points("FeatureMap.gram", X)
        Y = X if Y is None else check_points("FeatureMap.gram", Y)
        xp = common_namespace("FeatureMap.gram", X, Y)
        dtype = xp.result_type(X, Y)
        x = self._enter("gram", cast(X, dtype))[0]
        y = x if Y is X else self._enter("gram", cast(Y, dtype))[0]
        return cast((normalized_gram if normalize else gram)(self.features, x, y), dtype)

    def _features(self, method: str, X: Any, *, key: bool) -> Any:
        X = check_rows(f"FeatureMap.{method}", X, self.n_features_in)
        if isinstance(X, np.ndarray):
            return features_by_tiles(self.features, self.spec.at_unit_scale, X, key=key)
        return cast(self.features(self.spec.at_unit_scale(X), key=key), X.dtype)

    def _enter(self, method: str, X: Any) -> tuple[Any, Any]:
        """X checked, in working precision and at unit scale; and the type it came in."""
        X = check_rows(f"FeatureMap.{method}", X, self.n_features_in)
        return self.spec.at_unit_scale(X), X.dtype

    def _logarithms(self, method: str, X: Any, *, key: bool) -> Any:
        if not self.positive:
            raise ValueError(f"FeatureMap.{method}: the features of {self.spec.map!r} with {self.spec.projection!r} are "
                             f"not positive; use a positive map, such as Positive() with Simplex().")  # fmt: skip
        X, dtype = self._enter(method, X)
        mantissa, logarithm = self.features.scaled(X, key=key)
        if mantissa is not None:
            raise ValueError(f"FeatureMap.{method}: some rows fall below the data that {self.spec.map!r} was fitted to, and "
                             f"their features are not positive; fit on data that reaches as low.")  # fmt: skip
        return cast(logarithm, dtype)

    def __repr__(self) -> str:
        return f"<{self.spec!r} drawn: {self.n_features_in} -> {self.n_features_out} features>"
