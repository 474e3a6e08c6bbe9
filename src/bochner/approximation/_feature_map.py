"""The drawn features of an approximation, and the engine that evaluates them on rows of data."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .._arrays import array_namespace, cast, common_namespace, is_numpy, is_sparse, working_dtype
from .._validation import check_flag, check_memory, check_points, check_rows, check_sparse_rows
from ..kernels import Kernel
from ..linalg.engine import for_each_tile, rows_per_tile
from ..maps import Draws, Features
from ._gram import normalized, products
from ._overflow import check_overflow, noticing
from .log_features import LogFeatures, log_features

if TYPE_CHECKING:
    from ._specification import Approximation

_SHARED = 8  # tiles that there are at least, so that threads have something to share, before tiles are made taller


class FeatureMap:
    r"""Drawn features :math:`\phi_q`, :math:`\phi_k` with :math:`k(x, y) \approx \phi_q(x)\cdot\phi_k(y)`.

    Returned by `Approximation.fit`, `Approximation.draw` and `bochner.load`.

    Attributes
    ----------
    spec : Approximation
        The plan from which the features were drawn, with every constant.
    features : Features
        The drawn map, which acts on data at unit scale.
    n_features_in, n_features_out : int
        Dimension of the data, width of the features.
    symmetric : bool
        Whether queries and keys have the same features.
    positive : bool
        Whether all features are positive; for shifted discrete maps, on data that do not fall below the planned shift.
    nbytes : int
        Size of the drawn numbers in bytes.
    derived : dict
        Cached forms of these features, such as tensors, which live as long as the map; never saved.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import Approximation
    >>> phi = Approximation("gaussian", n_projections=64).draw(3, rng=0)
    >>> X = np.zeros((5, 3))
    >>> phi.queries(X).shape, phi.gram(X).shape
    ((5, 128), (5, 5))
    """

    def __init__(self, spec: Approximation, draws: Draws) -> None:
        self.spec, self._draws = spec, draws
        self.features = spec.map.draw(draws, spec.kernel)
        self.n_features_in, self.n_features_out = draws.d, self.features.width
        self.symmetric, self.positive = self.features.symmetric, self.features.positive
        self._longest_at_unit_scale = draws.longest_row * _largest_factor(spec, draws.d)
        self.derived: dict[Any, Any] = {}

    @property
    def nbytes(self) -> int:
        """Size of the drawn numbers in bytes."""
        return self._draws.nbytes

    def queries(self, X: Any) -> Any:
        """Return the features of queries.

        Parameters
        ----------
        X : array (..., n, d) or sparse matrix (n, d)
            Points as rows.

        Returns
        -------
        array (..., n, n_features_out)
        """
        return self._evaluate("queries", X, key=False)

    def fill_queries(self, X: Any, out: np.ndarray) -> None:
        """Write the features of checked rows into ``out``, as a single tile: for callers with tiles of their own.

        Parameters
        ----------
        X : NumPy array or sparse matrix (n, d)
            Points as rows.
        out : array (n, n_features_out)
            Of the precision of X.
        """
        if is_sparse(X):
            X = check_sparse_rows("FeatureMap.fill_queries", X, self.n_features_in)
        self._noticing_overflow(lambda: self._fill(X, out, key=False), X, out, key=False, refuse=True)

    def keys(self, Y: Any) -> Any:
        """Return the features of keys.

        Parameters
        ----------
        Y : array (..., p, d) or sparse matrix (p, d)
            Points as rows.

        Returns
        -------
        array (..., p, n_features_out)
        """
        return self._evaluate("keys", Y, key=True)

    def log_queries(self, X: Any) -> Any:
        """Return the logarithms of the features of queries, which do not overflow; only for positive maps.

        Parameters
        ----------
        X : array (..., n, d)
            Points as rows.

        Returns
        -------
        array (..., n, n_features_out)
        """
        return self._logarithms("log_queries", X, key=False)

    def log_keys(self, Y: Any) -> Any:
        """Return the logarithms of the features of keys, which do not overflow; only for positive maps.

        Parameters
        ----------
        Y : array (..., p, d)
            Points as rows.

        Returns
        -------
        array (..., p, n_features_out)
        """
        return self._logarithms("log_keys", Y, key=True)

    def log_features(self, X: Any, *, key: bool) -> LogFeatures:
        """Return features as mantissa times exponential, for stabilised ratios.

        Parameters
        ----------
        X : array (..., n, d) or CSR matrix (n, d)
            Checked rows.
        key : bool
            Whether the rows are keys.

        Returns
        -------
        LogFeatures
        """

        def compute() -> LogFeatures:
            x = self.at_unit_scale(X)
            dense = is_sparse(x) and not self.features.sparse_rows
            return log_features(self.features, x.toarray() if dense else x, key=key)

        found, suspicious = noticing(compute, X, self._longest_at_unit_scale)
        if suspicious and is_numpy(found.log):
            for part in found:
                if part is not None:
                    check_overflow("FeatureMap.log_features", part, X, self.spec.kernel, accepted=(-np.inf,))
        return found

    def gram(self, X: Any, Y: Any = None, *, normalize: bool = False) -> Any:
        r"""Return the estimated Gram matrix ``queries(X) @ keys(Y).T``, in tiles of bounded memory for NumPy arrays.

        Parameters
        ----------
        X : array (..., n, d)
            Queries.
        Y : array (..., p, d), optional
            Keys; None means X.
        normalize : bool
            Whether rows are divided by their sums, as in softmax attention.  The logarithms are stabilised by factors
            that cancel exactly, so exponentials do not overflow; data so large that their squares do are refused.  If
            features are not all positive, a row sum can be zero or close to it, which stabilisation cannot prevent.
            All features of the keys are held in memory.

        Returns
        -------
        array (..., n, p)
        """
        check_flag("FeatureMap.gram", "normalize", normalize)
        X = check_rows("FeatureMap.gram", check_points("FeatureMap.gram", X), self.n_features_in)
        same = Y is None or Y is X
        if not same:
            Y = check_rows("FeatureMap.gram", check_points("FeatureMap.gram", Y), self.n_features_in)
        xp = array_namespace(X) if same else common_namespace("FeatureMap.gram", X, Y)
        dtype = X.dtype if same else xp.result_type(X, Y)
        working = working_dtype(xp, dtype)
        x = cast(X, working)
        y = x if same else cast(Y, working)
        if xp is np:
            entries = math.prod(np.broadcast_shapes(x.shape[:-2], y.shape[:-2])) * float(x.shape[-2]) * y.shape[-2]
            check_memory("FeatureMap.gram", entries * x.itemsize, "take fewer rows at a time")
        return cast((normalized if normalize else products)(self, xp, x, y), dtype)

    def with_features(self, features: Features) -> FeatureMap:
        """Return other features of the same rows, such as those of `Features.factored`, which must not be saved.

        Parameters
        ----------
        features : Features
            A drawn map that acts on data at unit scale.

        Returns
        -------
        FeatureMap
        """
        other = FeatureMap.__new__(FeatureMap)
        other.__dict__.update(self.__dict__, features=features, n_features_out=features.width, derived={})
        return other

    def at_unit_scale(self, X: Any) -> Any:
        """Return rows divided by the lengthscale, on which the drawn map acts; sparse rows stay sparse.

        Parameters
        ----------
        X : array (..., n, d) or sparse matrix (n, d)
            Checked rows.

        Returns
        -------
        array (..., n, d) or CSR matrix (n, d)
        """
        if is_sparse(X):
            return self._sparse_at_unit_scale(check_sparse_rows("FeatureMap.at_unit_scale", X, self.n_features_in))
        return self.spec.at_unit_scale(X)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return all drawn numbers as arrays under stable names.

        Together with the plan they rebuild the features without drawing, see `from_arrays`.

        Returns
        -------
        dict of str to array
        """
        return self._draws.to_arrays()

    @classmethod
    def from_arrays(cls, plan: Approximation, d: int, arrays: Mapping[str, np.ndarray]) -> FeatureMap:
        """Rebuild the features of a plan from the arrays of an earlier draw, without drawing.

        Parameters
        ----------
        plan : Approximation
            The ``spec`` of the drawn features.
        d : int
            Dimension of the data.
        arrays : mapping of str to array
            Result of `to_arrays`; names, shapes and types are checked.

        Returns
        -------
        FeatureMap
        """
        try:
            return cls(plan, Draws(plan.projection, d, plan.n_projections, plan.kernel, arrays=arrays))
        except ValueError as error:
            raise ValueError(f"FeatureMap.from_arrays: these arrays do not belong to {plan!r}: {error}") from None

    def with_kernel(self, kernel: Kernel) -> FeatureMap:
        """Return features with the same drawn numbers for a kernel with another lengthscale or scale.

        Parameters
        ----------
        kernel : Kernel
            A kernel of the class of ``spec.kernel``.

        Returns
        -------
        FeatureMap
        """
        if type(kernel) is not type(self.spec.kernel):
            raise TypeError(f"FeatureMap.with_kernel: expected a kernel such as {self.spec.kernel!r}, got {kernel!r}.")
        kernel.check_columns(self.n_features_in)
        rescaled = self.spec.map.rescaled(self.spec.kernel, kernel)
        return FeatureMap(replace(self.spec, kernel=kernel, map=rescaled), self._draws)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the features to a file that `bochner.load` reads: a versioned ``.npz`` without pickled objects.

        Parameters
        ----------
        path : str or path
            Where to write.  An existing file is replaced once the new one is complete.
        """
        from .files import save

        save(self, path)

    def __getstate__(self) -> dict[str, Any]:
        from .files import to_state

        return to_state(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        from .files import from_state

        self.__dict__.update(from_state(state).__dict__)

    def __repr__(self) -> str:
        return f"<{self.spec!r} drawn: {self.n_features_in} -> {self.n_features_out} features>"

    def _evaluate(self, method: str, X: Any, *, key: bool) -> Any:
        if is_sparse(X):
            X = check_sparse_rows(f"FeatureMap.{method}", X, self.n_features_in)
            return self.evaluate(X, key=key, refuse=True)
        X = check_rows(f"FeatureMap.{method}", X, self.n_features_in)
        if not isinstance(X, np.ndarray):
            return cast(self.features(self.spec.at_unit_scale(X), key=key), X.dtype)
        features = self.evaluate(X.reshape(-1, X.shape[-1]), key=key, refuse=True)
        return features.reshape(*X.shape[:-1], self.n_features_out)

    def evaluate(self, rows: Any, *, key: bool, refuse: bool) -> np.ndarray:
        """Return the features of checked rows, in tiles that are made dense only for maps that need it.

        Parameters
        ----------
        rows : NumPy array or CSR matrix (n, d)
            Points as rows.
        key : bool
            Whether the rows are keys.
        refuse : bool
            Whether features that overflow are refused.

        Returns
        -------
        array (n, n_features_out)
        """
        n, held = rows.shape[0], self.n_features_out
        if is_sparse(rows) and not self.features.sparse_rows:
            held = max(held, self.n_features_in)
        out = np.empty((n, self.n_features_out), rows.dtype)

        def compute() -> None:
            tile = self._tile_rows(n, held * rows.dtype.itemsize)
            for_each_tile(n, tile, lambda i, j: self._fill(rows[i:j], out[i:j], key=key))

        self._noticing_overflow(compute, rows, out, key=key, refuse=refuse)
        return out

    def _tile_rows(self, n: int, row_bytes: int) -> int:
        return max(rows_per_tile(row_bytes), min(self.features.tall, n // _SHARED))

    def _sparse_at_unit_scale(self, X: Any) -> Any:
        """Checked rows in CSR format, divided by the lengthscale, which leaves zeros as they are."""
        if self.spec.kernel is None:
            return X
        factors = self.spec.kernel.at_unit_scale(np.ones((1, X.shape[1]), X.dtype))[0]
        return type(X)((X.data * factors[X.indices], X.indices, X.indptr), X.shape)

    def _fill(self, rows: Any, out: np.ndarray, *, key: bool) -> None:
        """Write the features of a tile of rows; half precision is computed in float32."""
        x = self._sparse_at_unit_scale(rows) if is_sparse(rows) else self.spec.at_unit_scale(rows)
        if is_sparse(x) and not self.features.sparse_rows:
            x = x.toarray()
        if x.dtype == out.dtype:
            self.features.fill(x, out, key=key)
        else:
            out[...] = self.features(x, key=key)

    def _noticing_overflow(
        self, compute: Callable[[], None], rows: Any, out: np.ndarray, *, key: bool, refuse: bool
    ) -> None:
        _, suspicious = noticing(compute, rows, self._longest_at_unit_scale)
        if refuse and suspicious:
            check_overflow(f"FeatureMap.{'keys' if key else 'queries'}", out, rows, self.spec.kernel)

    def _logarithms(self, method: str, X: Any, *, key: bool) -> Any:
        if not self.positive:
            raise ValueError(
                f"FeatureMap.{method}: the features of {self.spec.map!r} with {self.spec.projection!r} are not positive; "
                f"use a positive map, such as Positive() with Simplex()."
            )
        X = check_rows(f"FeatureMap.{method}", X, self.n_features_in)
        (mantissa, logarithm), suspicious = noticing(
            lambda: self.features.scaled(self.spec.at_unit_scale(X), key=key), X, self._longest_at_unit_scale
        )
        if suspicious and is_numpy(logarithm):
            check_overflow(f"FeatureMap.{method}", logarithm, X, self.spec.kernel, accepted=(-np.inf,))
        if mantissa is not None:
            raise ValueError(
                f"FeatureMap.{method}: some rows fall below the data that {self.spec.map!r} was fitted to, and their "
                f"features are not positive; fit on data with values as low."
            )
        return cast(logarithm, X.dtype)


def _largest_factor(spec: Approximation, d: int) -> float:
    """Largest factor of a column on the way to unit scale."""
    if spec.kernel is None:
        return 1.0
    with np.errstate(over="ignore", divide="ignore"):
        return float(np.max(spec.kernel.at_unit_scale(np.ones((1, d)))))
