"""Low-discrepancy rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .._random import RNG
from .._validation import check_option
from ..kernels import Kernel
from ..radii.table import check_radial
from .base import Projection, named_streams, scaled_rows
from .dense import DenseOperator
from .operator import Operator

SEQUENCES = ("halton", "sobol")
_SOBOL_MAX_DIM = 21201
_CELL = 2.0**-30
"""Resolution of the scrambled Sobol points; half of it keeps zero and one away from the normal quantile."""


@dataclass(frozen=True)
class QMC(Projection):
    r"""Scrambled low-discrepancy points carried to the normal law: :math:`w_i = \Phi^{-1}(u_i)`.

    Notes
    -----
    The points of a randomly scrambled Halton or Sobol sequence (`scipy.stats.qmc`) fill the cube evenly, yet each by
    itself is uniform in it: so each row is N(0, I), to the resolution of the points, and averages are unbiased.  All
    rows form one coupled block.  For kernels that are Gaussian scale mixtures the scales are drawn independently.

    The gain over independent rows fades as d grows.  Sobol points exist up to d = 21201.

    Parameters
    ----------
    sequence : {"halton", "sobol"}
        The sequence.

    References
    ----------
    yang2014, qbf (Section 4, where Halton points are a baseline), owen2017.

    Examples
    --------
    >>> from bochner.projections import QMC
    >>> QMC("sobol").sample(3, 100, rng=0).shape
    (100, 3)
    """

    sequence: str = "halton"
    name: ClassVar[str] = "halton"
    references: ClassVar[tuple[str, ...]] = ("yang2014", "owen2017")

    def __post_init__(self) -> None:
        check_option("QMC", "sequence", self.sequence, SEQUENCES)

    @property
    def gaussian_rows(self) -> bool:
        """Each row by itself is exactly Gaussian."""
        return True

    @property
    def scales(self) -> bool:
        """Halton points do; Sobol points end at d = 21201."""
        return self.sequence == "halton"

    @classmethod
    def variants(cls) -> dict[str, Any]:
        """Both sequences."""
        return {"halton": cls(), "sobol": cls("sobol")}

    def _draw(self, name: str, d: int, m: int, rng: RNG, kernel: Kernel | None) -> Operator:
        from scipy.special import ndtri

        if kernel is not None:
            check_radial(name, kernel)
        directions, lengths = named_streams(rng)
        points = self._points(name, d, m, directions)
        W = scaled_rows(ndtri(np.clip(points + _CELL / 2, _CELL / 2, 1 - _CELL / 2)), kernel, lengths)
        return DenseOperator(name, W, d, np.linalg.norm(W, axis=1), (m,))

    def _points(self, name: str, d: int, m: int, rng: np.random.Generator) -> np.ndarray:
        from scipy.stats import qmc

        if self.sequence == "halton":
            return np.asarray(qmc.Halton(d, scramble=True, rng=rng).random(m))
        if d > _SOBOL_MAX_DIM:
            raise ValueError(f"{name}: Sobol points exist up to d = {_SOBOL_MAX_DIM}, got d = {d}; use QMC('halton').")
        exponent = max(m - 1, 0).bit_length()  # the sequence is balanced at powers of two: draw one, keep m
        return np.asarray(qmc.Sobol(d, scramble=True, rng=rng).random_base2(exponent))[:m]
