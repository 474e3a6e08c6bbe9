"""What every kernel shares: the checks, the types, and the walk over tiles."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np

from .._arrays import array_namespace, cast, common_namespace, working_dtype
from .._random import RNG, as_generator
from .._validation import check_count, check_points, check_rows
from ._tiles import gram_by_tiles, paired_by_chunks


class Kernel(ABC):
    r"""A positive definite function k(x, y), as a plain value.

    A subclass is a frozen dataclass of its parameters.  It writes `_gram` against the array API, on inputs that are
    checked and of one floating type, and declares its facts:

    - ``shift_invariant``: k depends on x - y alone;
    - ``dot_product``: k depends on x . y, \|x\| and \|y\| alone;
    - ``spectrum``: ``"radial"`` if its random rows are :math:`s\,g` with :math:`g \sim N(0, I)` and an independent
      scale s, ``"product"`` if their entries are independent but their direction is not uniform;
    - ``references``: bibliography keys.
    """

    shift_invariant: ClassVar[bool] = False
    dot_product: ClassVar[bool] = False
    spectrum: ClassVar[Literal["radial", "product"]] = "radial"
    references: ClassVar[tuple[str, ...]] = ()

    def __call__(self, X: Any, Y: Any = None) -> Any:
        """Return the exact Gram matrix k(x_i, y_j).

        Parameters
        ----------
        X : array of shape (..., n, d)
            Points as rows: a NumPy array (or nested lists), or a torch tensor, which is differentiated through.
        Y : array of shape (..., p, d), optional
            Other points; None means X.  Leading axes broadcast against those of X.

        Returns
        -------
        array of shape (..., n, p)
            Of the library and floating type of the inputs; integers become float64.

        Notes
        -----
        NumPy arrays are computed in tiles, with temporaries of tens of megabytes; tensors are computed at once.
        """
        xp, X, Y, dtype = self._enter(X, Y)
        self._check_shapes(X.shape[:-2], Y.shape[:-2], "leading axes of X and Y")
        K = gram_by_tiles(partial(self._gram, xp), X, Y) if xp is np else self._gram(xp, X, Y)
        return cast(K, dtype)

    def paired(self, X: Any, Y: Any) -> Any:
        """Return k(x_i, y_i), shape (..., n), of X and Y of shapes (..., n, d) that broadcast, in O(n d)."""
        xp, X, Y, dtype = self._enter(X, Y)
        self._check_shapes(X.shape[:-1], Y.shape[:-1], "rows of X and Y")
        compute = partial(self._paired, xp)
        return cast(paired_by_chunks(compute, X, Y) if xp is np else compute(X, Y), dtype)

    def diagonal(self, X: Any) -> Any:
        """Return k(x_i, x_i), shape (..., n), of X of shape (..., n, d), in O(n d)."""
        return self.paired(X, X)

    def scaled(self, X: Any) -> Any:
        """Return the inputs on which random features of the kernel at unit scale act: here, X itself."""
        return self._check_inputs(X)

    def at_unit_scale(self, X: Any) -> Any:
        """`scaled` of checked rows: any leading axes, no checks."""
        return X

    def check_columns(self, d: int) -> None:
        """Refuse data of d columns that the parameters do not fit."""

    def sample_scales(self, shape: int | tuple[int, ...], rng: RNG) -> np.ndarray:
        r"""Draw the scales s of random rows :math:`s\,g`, independent: here, ones.

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

    def sample_rows(self, d: int, m: int, rng: RNG) -> np.ndarray:
        """Draw m independent rows of the spectral law for unit lengthscale: a float64 array of shape (m, d)."""
        name = type(self).__name__
        shape = (check_count(name, "m", m), check_count(name, "d", d))
        rng = as_generator(rng)
        return self.sample_scales((m, 1), rng) * rng.standard_normal(shape)

    @abstractmethod
    def _gram(self, xp: Any, X: Any, Y: Any) -> Any:
        """Return the Gram matrix of X (..., n, d) and Y (..., p, d), in the array namespace ``xp``."""

    def _paired(self, xp: Any, X: Any, Y: Any) -> Any:
        """Take each pair as a Gram matrix of one entry, so that subclasses write their formula once."""
        x = X[..., None, :]
        return self._gram(xp, x, x if Y is X else Y[..., None, :])[..., 0, 0]

    def _check_inputs(self, X: Any) -> Any:
        return check_points(type(self).__name__, X)

    def _enter(self, X: Any, Y: Any) -> tuple[Any, Any, Any, Any]:
        """Return the namespace, the inputs in the type to compute in (one object if they were), the type of results."""
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
