"""The base class of projections, which describe how the rows of W are drawn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from .._facts import Catalogued
from .._random import RNG, streams
from .._validation import check_count, check_instance, check_memory, stored_array
from ..kernels import Kernel
from ..linalg.engine import single_threaded_blas
from ._operator import DenseOperator, Operator


class Projection(Catalogued, ABC):
    """Base class of projections, laws of m random rows in d dimensions.

    Subclasses are frozen dataclasses.  Each declares its facts, which are known without drawing:

    - ``unbiased``: whether weighted averages over the rows have exactly the mean of independent rows of the kernel's
      spectral law;
    - ``gaussian_rows``: whether each single row follows that law exactly (N(0, I) for the Gaussian kernel);
    - ``uniform_directions``: whether the direction of each row is exactly uniform, which is sufficient for homogeneous maps;
    - ``gaussian_lengths``: whether the lengths of the rows follow the kernel's law;
    - ``consistent``: whether the error tends to zero as rows are added; other projections are measured but not recommended;
    - ``reflected``: whether each row stands for the pair of w and -w;
    - ``has_origin``: whether the rule has a node at zero; ``signed``: whether the weight of that node may be negative;
    - ``coupling``: name of the coupling in closed forms, ``"iid"``, ``"orthogonal"`` or ``"simplex"``, or None;
    - ``scales``: whether it is worth trying above d = 1024;
    - ``name`` and ``references``, like every class in `bochner.catalogue`.
    """

    radial: ClassVar[bool] = True
    """Whether the projection needs a kernel whose spectrum has uniform directions."""

    @property
    @abstractmethod
    def gaussian_rows(self) -> bool:
        """Whether each row follows the kernel's spectral law exactly."""

    @property
    def uniform_directions(self) -> bool:
        """Whether the direction of each row is exactly uniform on the sphere, whatever its length."""
        return self.gaussian_rows

    @property
    def unbiased(self) -> bool:
        """Whether weighted averages over the rows are exactly unbiased."""
        return self.gaussian_rows

    @property
    def gaussian_lengths(self) -> bool:
        """Whether the lengths follow the kernel's law, in contrast to fixed lengths and those of weighted nodes."""
        return True

    @property
    def consistent(self) -> bool:
        """Whether the error tends to zero as rows are added, up to the small bias of approximate rotations."""
        return self.gaussian_lengths or self.unbiased

    @property
    def reflected(self) -> bool:
        """Whether each row stands for the pair of w and -w, each with half of the weight."""
        return False

    @property
    def has_origin(self) -> bool:
        """Whether the rule has a node at zero."""
        return False

    @property
    def signed(self) -> bool:
        """Whether the weight of the node at zero may be negative."""
        return False

    @property
    def scales(self) -> bool:
        """Whether it is worth trying above d = 1024."""
        return True

    @property
    def coupling(self) -> str | None:
        """Name of the coupling of the rows in closed forms; None if there is no closed form."""
        return None

    def why(self, facts: Any) -> str:
        """One sentence, for `recommend`, on why these rows have the lowest error on data with these facts."""
        return "These rows have the lowest error."

    def padded(self, d: int) -> int:
        """Dimension in which the rows are drawn."""
        return d

    def rows_per_rule(self, d: int) -> int:
        """Number of rows of a whole quadrature rule in d dimensions; one if rows are not nodes of a rule."""
        return 1

    @abstractmethod
    def block_sizes(self, d: int, m: int) -> tuple[int, ...]:
        """Number of rows of each independently drawn block."""

    def sample(self, d: int, m: int, rng: RNG = None, *, kernel: Kernel | None = None) -> Operator:
        """Draw the matrix W.

        Parameters
        ----------
        d : int
            Dimension of the data.
        m : int
            Number of rows; blocks are stacked, and the last one may be incomplete.
        rng : int, numpy.random.Generator or None
            Source of randomness; the same int gives the same W.
        kernel : Kernel, optional
            Kernel whose spectral law at unit lengthscale the rows follow (apply them to ``kernel.scaled(X)``); Gaussian
            rows by default.

        Returns
        -------
        Operator
            The drawn W as a linear operator.
        """
        d, m = self._checked_shape(d, m)
        self._check_kernel(kernel)
        with single_threaded_blas:  # the number of threads cannot change a bit of the draw
            return self._draw(d, m, rng, kernel)

    def restore(self, d: int, m: int, arrays: Mapping[str, np.ndarray]) -> Operator:
        """Rebuild a drawn W from its numbers, without randomness.

        Parameters
        ----------
        d, m : int
            Dimension of the data and number of rows with which W was drawn.
        arrays : mapping of str to array
            Result of `Operator.to_arrays`.

        Returns
        -------
        Operator
            An operator whose products are identical, bit for bit.

        Examples
        --------
        >>> import numpy as np
        >>> from bochner.projections import IID
        >>> P = IID().sample(3, 5, rng=0)
        >>> again = IID().restore(3, 5, P.to_arrays())
        >>> bool((again.to_dense() == P.to_dense()).all())
        True
        """
        d, m = self._checked_shape(d, m)
        if not isinstance(arrays, Mapping):
            raise TypeError(f"{self!r}: arrays must be a mapping of names to arrays, got {type(arrays).__name__}.")
        radii = self._stored_positive(arrays, "radii", m)
        weights = self._stored_positive(arrays, "weights", m) if self.has_origin else None
        operator = self._restored(d, m, arrays, radii, weights)
        unknown = sorted(set(arrays) - set(operator.to_arrays()))
        if unknown:
            raise ValueError(
                f"{self!r}: the stored arrays {', '.join(map(repr, unknown))} belong to another projection."
            )
        return operator

    def _stored_positive(self, arrays: Mapping[str, np.ndarray], name: str, m: int) -> np.ndarray:
        array = stored_array(repr(self), arrays, name, (m,))
        if not (array >= 0).all():
            raise ValueError(f"{self!r}: the stored array {name!r} must not be negative.")
        return array

    def _checked_shape(self, d: Any, m: Any) -> tuple[int, int]:
        name = repr(self)
        d, m = check_count(name, "d", d), check_count(name, "m", m)
        check_memory(f"{name} with d = {d} and m = {m}", self._bytes(d, m), "use fewer rows or dimensions")
        return d, m

    def _bytes(self, d: int, m: int) -> float:
        """Bytes of a draw."""
        return 8.0 * m * (d + 3)

    def _check_kernel(self, kernel: Any) -> None:
        if kernel is None:
            return
        check_instance(repr(self), "kernel", kernel, Kernel, "kernels.Gaussian()")
        if self.radial and kernel.spectrum != "radial":
            raise ValueError(
                f"{self!r} with {kernel!r}: the rows of this kernel are a product law without a uniform direction, "
                f"which rotations and quadrature need; use IID()."
            )

    @abstractmethod
    def _draw(self, d: int, m: int, rng: RNG, kernel: Kernel | None) -> Operator:
        """Draw, with checked arguments."""

    def _restored(
        self, d: int, m: int, arrays: Mapping[str, np.ndarray], radii: np.ndarray, weights: np.ndarray | None
    ) -> Operator:
        """The operator of checked lengths and weights; its matrix is still to be checked."""
        return DenseOperator(self, stored_array(repr(self), arrays, "W", (m, d)), radii, weights)


def named_streams(rng: RNG) -> tuple[np.random.Generator, np.random.Generator]:
    """The streams of directions and of lengths."""
    directions, lengths = streams(rng, "directions", "lengths")
    return directions, lengths
