"""The Laplacian kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NoReturn

import numpy as np

from .._random import RNG, as_generator
from .._validation import check_count
from ._distances import manhattan_distances
from ._lengthscale import Lengthscale
from .shift_invariant import ShiftInvariant


@dataclass(frozen=True)
class Laplacian(ShiftInvariant):
    r"""The Laplacian kernel of the L1 distance.

    Notes
    -----
    Kernel: :math:`k(x, y) = \exp(-|x - y|_1/\ell)`; with one lengthscale for each dimension,
    :math:`\exp(-\sum_i |x_i - y_i|/\ell_i)`.  With the Euclidean distance in place of L1 it would be
    ``Matern(nu=0.5)``.

    Law of the rows at :math:`\ell = 1`: independent standard Cauchy entries, since
    :math:`\mathrm{E} \cos(\omega_i t) = e^{-|t|}`.  Their direction is not uniform (large rows point along the axes),
    so no rotation can stand in for them and ``spectrum`` is ``"product"``.

    Parameters
    ----------
    lengthscale : float or sequence of float, default 1.0
        The length :math:`\ell` over which the kernel decays, or one for each dimension.

    References
    ----------
    rahimi2007, Figure 1.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.kernels import Laplacian
    >>> bool(np.allclose(Laplacian()([[0.0, 0.0]], [[1.0, -2.0]]), np.exp(-3)))
    True
    >>> Laplacian().sample_rows(2, 5, rng=0).shape
    (5, 2)
    """

    lengthscale: Lengthscale = 1.0

    spectrum: ClassVar[Literal["radial", "product"]] = "product"
    references: ClassVar[tuple[str, ...]] = ("rahimi2007",)

    def sample_rows(self, d: int, m: int, rng: RNG) -> np.ndarray:
        """Draw m independent rows of d entries for unit lengthscale: a float64 array of shape (m, d)."""
        shape = (check_count("Laplacian", "m", m), check_count("Laplacian", "d", d))
        return as_generator(rng).standard_cauchy(shape)

    def sample_scales(self, shape: int | tuple[int, ...], rng: RNG) -> NoReturn:
        """Refuse: the rows are no Gaussian vectors of random scale."""
        raise ValueError(
            "Laplacian: its rows have independent Cauchy entries and are no Gaussian vectors of random scale; "
            "use sample_rows(d, m, rng)."
        )

    def _gram(self, xp: Any, X: Any, Y: Any) -> Any:
        return xp.exp(-manhattan_distances(xp, X, Y, self.lengthscale))
