"""Kernels of some of the columns, and averages over all subsets of the columns of one size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .._random import RNG, as_generator
from .._validation import check_count
from ._composite import Composite, check_part, rows_at_own_scale
from ._distances import Lengthscale
from ._shift_invariant import Gaussian, ShiftInvariant


@dataclass(frozen=True)
class Columns(Composite):
    r"""A kernel of some of the columns, which ignores the others; a part of a `Product` or a `Sum`.

    Use it to give groups of columns kernels of their own, such as a period for the hour and a distance for the place.

    Parameters
    ----------
    kernel : ShiftInvariant
        The kernel.
    indices : sequence of int
        The columns that it sees, counted from 0.
    lengthscale : float or sequence of float, default 1.0
        A length by which the inputs are divided first, or one length per dimension of the whole data.

    Notes
    -----
    Kernel: :math:`k(x, y) = k_0(x_C/\ell, y_C/\ell)` with :math:`x_C` the chosen entries of x.

    Law of the rows at :math:`\ell = 1`: a row of the kernel in these columns, and zero in all others.

    References
    ----------
    rasmussen2006, Section 4.2.4.

    Examples
    --------
    >>> from bochner.kernels import Columns, Gaussian
    >>> Columns(Gaussian(), [2]).sample_rows(3, 1, rng=0)[0, :2]
    array([0., 0.])
    """

    kernel: ShiftInvariant
    indices: tuple[int, ...]
    lengthscale: Lengthscale = 1.0

    references: ClassVar[tuple[str, ...]] = ("rasmussen2006",)

    def __post_init__(self) -> None:
        """Check the kernel, the columns and the lengthscale."""
        check_part("Columns", "kernel", self.kernel)
        given = tuple(self.indices) if hasattr(self.indices, "__iter__") else (self.indices,)
        indices = tuple(check_count("Columns", f"indices[{i}]", value, 0) for i, value in enumerate(given))
        if not indices or len(set(indices)) < len(indices):
            raise ValueError(f"Columns: indices must be different columns, at least one, got {given!r}.")
        self.kernel.check_columns(len(indices))
        object.__setattr__(self, "indices", indices)
        super().__post_init__()

    @classmethod
    def variants(cls) -> dict[str, Columns]:
        """Return the Gaussian kernel of the first column."""
        return {"first-column": cls(Gaussian(), (0,))}

    def check_columns(self, d: int) -> None:
        """Raise a ValueError if the lengthscale does not fit d columns, or one of the columns is not there."""
        super().check_columns(d)
        if max(self.indices) >= d:
            raise ValueError(f"Columns: indices must be below {d}, the number of columns, got {max(self.indices)}.")

    def sample_rows(self, d: int, m: int, rng: RNG) -> np.ndarray:
        """Draw m independent rows of d entries for unit lengthscale: a float64 array of shape (m, d)."""
        m, d = self._counts(d, m)
        W = np.zeros((m, d))
        W[:, list(self.indices)] = rows_at_own_scale(self.kernel, len(self.indices), m, as_generator(rng))
        return W

    def entries(self, xp: Any, X: Any, Y: Any) -> Any:
        """Return the kernel at the chosen columns."""
        x = self._chosen(xp, X)
        return self.kernel.entries(xp, x, x if Y is X else self._chosen(xp, Y))

    def _chosen(self, xp: Any, X: Any) -> Any:
        X = self.at_unit_scale(X)
        return xp.concat([X[..., i : i + 1] for i in self.indices], axis=-1)


@dataclass(frozen=True)
class Additive(Composite):
    r"""Additive (ANOVA) kernel: the mean over all sets of p columns of products of one-dimensional kernels.

    Use it for tables where the effects of columns add up: ``order=1`` is a generalised additive model, ``order=2`` has all
    interactions of two columns.  Unlike a kernel of the distance, it does not degrade as the number of columns grows.

    Parameters
    ----------
    kernel : ShiftInvariant
        The kernel of a single column.
    order : int, default 1
        Size p of the sets of columns.
    lengthscale : float or sequence of float, default 1.0
        The length by which the inputs are divided, or one length per dimension.

    See Also
    --------
    Sum, Columns : Sums of kernels of given columns.

    Notes
    -----
    Kernel: :math:`k(x, y) = \binom{d}{p}^{-1} \sum_{|C| = p} \prod_{i \in C} k_1((x_i - y_i)/\ell_i)`, computed in
    :math:`O(dp)` per entry by the recursion of elementary symmetric polynomials.  Orders are combined by `Sum`.

    Law of the rows at :math:`\ell = 1`: p entries in columns chosen at random without replacement are those of the kernel
    in one dimension, and all others are zero.

    References
    ----------
    duvenaud2011.

    Examples
    --------
    >>> from bochner.kernels import Additive, Gaussian
    >>> Additive(Gaussian())([[0.0, 0.0]], [[0.0, 99.0]])
    array([[0.5]])
    """

    kernel: ShiftInvariant
    order: int = 1
    lengthscale: Lengthscale = 1.0

    references: ClassVar[tuple[str, ...]] = ("duvenaud2011",)

    def __post_init__(self) -> None:
        """Check the kernel, the order and the lengthscale."""
        check_part("Additive", "kernel", self.kernel)
        self.kernel.check_columns(1)
        object.__setattr__(self, "order", check_count("Additive", "order", self.order))
        super().__post_init__()

    @classmethod
    def variants(cls) -> dict[str, Additive]:
        """Return the additive Gaussian kernel."""
        return {"additive": cls(Gaussian())}

    def check_columns(self, d: int) -> None:
        """Raise a ValueError if the lengthscale does not fit d columns, or there are fewer than a set has."""
        super().check_columns(d)
        if self.order > d:
            raise ValueError(f"Additive: order must be at most {d}, the number of columns, got {self.order}.")

    def sample_rows(self, d: int, m: int, rng: RNG) -> np.ndarray:
        """Draw m independent rows of d entries for unit lengthscale: a float64 array of shape (m, d)."""
        m, d = self._counts(d, m)
        rng = as_generator(rng)
        chosen = np.argpartition(rng.random((m, d)), self.order - 1, axis=1)[:, : self.order]
        W = np.zeros((m, d))
        values = rows_at_own_scale(self.kernel, 1, m * self.order, rng).reshape(m, self.order)
        np.put_along_axis(W, chosen, values, axis=1)
        return W

    def entries(self, xp: Any, X: Any, Y: Any) -> Any:
        """Return the means over sets, column by column: a set of the first n columns has the last one or has not."""
        x = self.at_unit_scale(X)
        y = x if Y is X else self.at_unit_scale(Y)
        means: list[Any] = [1.0]  # over sets of size 0, 1, ... of the columns so far
        for n in range(1, x.shape[-1] + 1):
            xi = x[..., n - 1 : n]
            K = self.kernel.entries(xp, xi, xi if y is x else y[..., n - 1 : n])
            last = means[-1] * K
            for k in range(len(means) - 1, 0, -1):
                means[k] = means[k] + (k / n) * (means[k - 1] * K - means[k])
            if n <= self.order:
                means.append(last)
        return means[self.order]
