"""The base class of kernels: declared facts, input checks, types, and evaluation in tiles."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np

from .._arrays import array_namespace, cast, common_namespace, in_working_precision, is_sparse, working_dtype
from .._facts import Catalogued
from .._random import RNG, as_generator
from .._validation import check_count, check_memory, check_points, check_rows, shown

Bandwidth: TypeAlias = float | tuple[float, ...]
Compute: TypeAlias = Callable[[np.ndarray, np.ndarray], np.ndarray]
SIDE = 768  # of a square tile
LONG = 2**19  # entries in a tile of few columns or few rows
NUMBERS = 2**20  # input numbers behind one side of a tile
FEWEST = 64  # rows, however wide the inputs are


class Kernel(Catalogued, ABC):
    r"""Base class of kernels, positive definite functions k(x, y).

    A subclass is a frozen dataclass of its parameters.  It implements `entries` for the array API, on inputs that are
    checked and of one floating type, and declares its facts:

    - ``shift_invariant``: k depends on x - y only;
    - ``dot_product``: k depends on x . y, \|x\| and \|y\| only;
    - ``spectrum``: ``"radial"`` if its random rows are :math:`s\,g` with :math:`g \sim N(0, I)` and an independent
      scale s, ``"product"`` if their entries are independent but their direction is not uniform;
    - ``has_bandwidth``: whether stretching the inputs gives another kernel of the family; then ``bandwidth``,
      `with_bandwidth` and `from_gamma` say how, and ``metric`` in which distance;
    - ``name`` and ``references``: the name in the catalogue, and bibliography keys.
    """

    shift_invariant: ClassVar[bool] = False
    dot_product: ClassVar[bool] = False
    spectrum: ClassVar[Literal["radial", "product"]] = "radial"
    metric: ClassVar[Literal["euclidean", "cityblock"] | None] = None
    has_bandwidth: ClassVar[bool] = False

    def __call__(self, X: Any, Y: Any = None) -> Any:
        """Return the exact Gram matrix k(x_i, y_j).

        Parameters
        ----------
        X : array of shape (..., n, d)
            Points as rows: a NumPy array (or nested lists), or a torch tensor, through which gradients flow.
        Y : array of shape (..., p, d), optional
            Other points; None means X.  Leading axes broadcast against those of X.

        Returns
        -------
        array of shape (..., n, p)
            Of the library and floating type of the inputs; integers become float64.

        Notes
        -----
        NumPy arrays are computed in tiles, with temporaries of tens of megabytes; tensors are computed in one step.
        """
        xp, X, Y, dtype = self._enter(X, Y)
        self._check_shapes(X.shape[:-2], Y.shape[:-2], "leading axes of X and Y")
        if xp is np:
            entries = math.prod(np.broadcast_shapes(X.shape[:-2], Y.shape[:-2])) * float(X.shape[-2]) * Y.shape[-2]
            check_memory(type(self).__name__, entries * X.itemsize, "take fewer rows at a time, or random features")
        K = gram_by_tiles(partial(self.entries, xp), X, Y) if xp is np else self.entries(xp, X, Y)
        return cast(K, dtype)

    def paired(self, X: Any, Y: Any) -> Any:
        """Return k(x_i, y_i) for paired rows, in O(n d).

        Parameters
        ----------
        X, Y : array of shape (..., n, d)
            Points as rows; their shapes broadcast.

        Returns
        -------
        array of shape (..., n)
        """
        xp, X, Y, dtype = self._enter(X, Y)
        self._check_shapes(X.shape[:-1], Y.shape[:-1], "rows of X and Y")
        compute = partial(self._paired, xp)
        return cast(paired_by_chunks(compute, X, Y) if xp is np else compute(X, Y), dtype)

    def diagonal(self, X: Any) -> Any:
        """Return k(x_i, x_i), the diagonal of the Gram matrix, in O(n d).

        Parameters
        ----------
        X : array of shape (..., n, d), or sparse matrix (n, d)
            Points as rows.

        Returns
        -------
        array of shape (..., n)
        """
        if is_sparse(X):
            tiles = (X[i : i + FEWEST].toarray() for i in range(0, X.shape[0], FEWEST))
            return np.concatenate([np.empty(0, X.dtype), *(self.diagonal(tile) for tile in tiles)])
        return self.paired(X, X)

    def scaled(self, X: Any) -> Any:
        """Return the inputs divided by the bandwidth, on which the random features of the kernel act.

        Parameters
        ----------
        X : array of shape (..., n, d)
            Points as rows.

        Returns
        -------
        array of shape (..., n, d)
            Of the library and type of X.
        """
        X = self._check_inputs(X)
        with np.errstate(over="ignore"):
            x = cast(self.at_unit_scale(in_working_precision(X)), X.dtype)
        if isinstance(x, np.ndarray) and not np.all(np.isfinite(x)):
            raise ValueError(
                f"{type(self).__name__}: inputs at unit bandwidth must be finite in {X.dtype}, got an overflow with "
                f"{self!r}; choose a larger bandwidth, or rescale the data."
            )
        return x

    def at_unit_scale(self, X: Any) -> Any:
        """Return `scaled` of checked rows in working precision; the base class returns X itself."""
        return X

    def check_columns(self, d: int) -> None:
        """Raise a ValueError if the parameters do not fit data of d columns; the base class accepts any d."""

    @property
    def bandwidth(self) -> Bandwidth:
        """The length over which the kernel changes, or one length per column; 1.0 for kernels without a bandwidth."""
        return 1.0

    def with_bandwidth(self, value: Any) -> Self:
        """Return the same kernel with another bandwidth: a positive number, or one per column."""
        raise ValueError(f"{type(self).__name__}: {self!r} has no bandwidth to set.")

    def from_gamma(self, gamma: float) -> Self:
        """Return the same kernel with the bandwidth that corresponds to scikit-learn's ``gamma``."""
        raise ValueError(f"{type(self).__name__}: {self!r} has no bandwidth for gamma={shown(gamma)} to set.")

    @property
    def default_rule(self) -> Literal["scale"] | None:
        """The rule for `bochner.kernels.resolve_bandwidth` when the user does not choose one."""
        return "scale" if self.has_bandwidth else None

    def sample_scales(self, shape: int | tuple[int, ...], rng: RNG) -> np.ndarray:
        r"""Draw independent scales s of random rows :math:`s\,g`; the base class returns ones.

        Parameters
        ----------
        shape : int or tuple of int
            Shape of the result.
        rng : numpy.random.Generator, int or None
            Source of randomness.

        Returns
        -------
        float64 array of shape ``shape``
        """
        return np.ones(shape)

    def opposite_scales(self, scales: np.ndarray) -> np.ndarray | None:
        r"""Return the scales of the opposite ranks, for `bochner.radii.Coupled`; the base class does not know them.

        Parameters
        ----------
        scales : float64 array
            Scales s of the law of `sample_scales`, with distribution function F.

        Returns
        -------
        float64 array or None
            :math:`F^{-1}(1 - F(s))`, of the same law; None if it is not known, and scales then stay independent.
        """
        return None

    def sample_rows(self, d: int, m: int, rng: RNG) -> np.ndarray:
        """Draw m independent rows of the spectral law at unit lengthscale.

        Parameters
        ----------
        d : int
            Dimension of the data.
        m : int
            Number of rows.
        rng : numpy.random.Generator, int or None
            Source of randomness.

        Returns
        -------
        float64 array of shape (m, d)
        """
        name = type(self).__name__
        shape = (check_count(name, "m", m), check_count(name, "d", d))
        rng = as_generator(rng)
        return self.sample_scales((m, 1), rng) * rng.standard_normal(shape)

    @abstractmethod
    def entries(self, xp: Any, X: Any, Y: Any) -> Any:
        """Return the Gram matrix of X (..., n, d) and Y (..., p, d), in the array namespace ``xp``."""

    def columns(self, points: np.ndarray) -> Callable[[Any], np.ndarray]:
        """Return the Gram matrix with fixed points (p, d) as a function of checked rows (n, d) of the same type.

        Rows may be a CSR matrix.  What depends on the points alone is computed here, once; the base class has no such
        part, and makes sparse rows dense.
        """

        def at_rows(X: Any) -> np.ndarray:
            return gram_by_tiles(partial(self.entries, np), X.toarray() if is_sparse(X) else X, points)

        return at_rows

    def _paired(self, xp: Any, X: Any, Y: Any) -> Any:
        """Treat each pair as a Gram matrix of one entry, so that subclasses write their formula once."""
        x = X[..., None, :]
        return self.entries(xp, x, x if Y is X else Y[..., None, :])[..., 0, 0]

    def _check_inputs(self, X: Any) -> Any:
        X = check_points(type(self).__name__, X)
        self.check_columns(X.shape[-1])
        return X

    def _enter(self, X: Any, Y: Any) -> tuple[Any, Any, Any, Any]:
        """Return the namespace, the inputs in working precision (still one object if Y is X), and the type of the result."""
        same, owner = Y is None or Y is X, type(self).__name__
        X = self._check_inputs(X)
        if not same:
            Y = check_rows(owner, check_points(owner, Y), X.shape[-1], remedy="X and Y must have the same width.")
        xp = array_namespace(X) if same else common_namespace(owner, X, Y)
        dtype = X.dtype if same else xp.result_type(X, Y)
        working = working_dtype(xp, dtype)
        X = cast(X, working)
        return xp, X, X if same else cast(Y, working), dtype

    def _check_shapes(self, x_shape: Any, y_shape: Any, what: str) -> None:
        try:
            np.broadcast_shapes(tuple(x_shape), tuple(y_shape))
        except ValueError:
            raise ValueError(
                f"{type(self).__name__}: the {what} must broadcast, got {tuple(x_shape)} and {tuple(y_shape)}."
            ) from None


def gram_by_tiles(compute: Compute, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return ``compute(X, Y)`` of shape (..., n, p), with ``compute`` called on tiles; symmetric where Y is X."""
    batch = np.broadcast_shapes(X.shape[:-2], Y.shape[:-2])
    n, p, d = X.shape[-2], Y.shape[-2], X.shape[-1]
    K = np.empty((*batch, n, p), dtype=X.dtype)
    if K.size <= LONG and max(X.size, Y.size) <= NUMBERS:
        _fill(compute, X, Y, K, (n, p))
        return K
    X_all = np.broadcast_to(X, (*batch, n, d))
    Y_all = np.broadcast_to(Y, (*batch, p, d))
    for index in np.ndindex(batch):
        x = X_all[index]
        _fill(compute, x, x if Y is X else Y_all[index], K[index], _tile_shape(n, p, d))
    return K


def paired_by_chunks(compute: Compute, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return ``compute(X, Y)`` of shape (..., n), with ``compute`` called on chunks of shape (rows, d)."""
    shape = np.broadcast_shapes(X.shape, Y.shape)
    rows = np.broadcast_to(X, shape).reshape(-1, shape[-1])
    partners = rows if Y is X else np.broadcast_to(Y, shape).reshape(-1, shape[-1])
    values = np.empty(len(rows), dtype=X.dtype)
    step = max(FEWEST, NUMBERS // shape[-1])
    for start in range(0, len(rows), step):
        chunk = slice(start, start + step)
        x = rows[chunk]
        values[chunk] = compute(x, x if partners is rows else partners[chunk])
    return values.reshape(shape[:-1])


def _tile_shape(n: int, p: int, d: int) -> tuple[int, int]:
    most = max(FEWEST, NUMBERS // d)
    return min(most, max(SIDE, LONG // min(p, SIDE))), min(most, max(SIDE, LONG // min(n, SIDE)))


def _fill(compute: Compute, X: np.ndarray, Y: np.ndarray, K: np.ndarray, tile: tuple[int, int]) -> None:
    """Write ``compute(X, Y)`` into K; where Y is X, tiles below the diagonal mirror those above."""
    for top in range(0, K.shape[-2], tile[0]):
        rows = slice(top, top + tile[0])
        x = X[..., rows, :]
        for left in range(top if Y is X else 0, K.shape[-1], tile[1]):
            columns = slice(left, left + tile[1])
            if Y is X and left == top:
                K[..., rows, rows] = _symmetric(compute(x, x))
                continue
            K[..., rows, columns] = compute(x, Y[..., columns, :])
            if Y is X:
                K[..., columns, rows] = np.matrix_transpose(K[..., rows, columns])


def _symmetric(K: np.ndarray) -> np.ndarray:
    """Copy the upper triangle of K to the lower one: a matrix product may round the two differently."""
    return np.where(np.tri(K.shape[-1], k=-1, dtype=bool), np.matrix_transpose(K), K)
