"""Projections without blocks: independent rows, low-discrepancy points, and Gauss-Hermite grids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from .._random import RNG
from .._validation import check_count, check_option
from ..kernels import Kernel
from ..radii._laws import kernel_scales
from ._operator import DenseOperator, Operator
from ._projection import Projection, named_streams

SEQUENCES = ("halton", "sobol")
_SOBOL_MAX_DIM = 21201  # dimensions of SciPy's table of directions, by Joe and Kuo
_CELL = 2.0**-30
"""Resolution of the scrambled Sobol points; points are shifted by half of it, since the normal quantile excludes 0 and 1."""
_LARGEST_ORDER = 200  # largest order; above it the weights of the outer Gauss-Hermite nodes underflow


def _scaled(W: np.ndarray, kernel: Kernel | None, rng: np.random.Generator) -> np.ndarray:
    """Turn Gaussian rows W into rows of the kernel's scale mixture, by one random scale per row."""
    return W if kernel is None else W * kernel_scales(len(W), kernel, rng)[:, None]


@dataclass(frozen=True)
class IID(Projection):
    """Independent rows of the kernel's spectral law: the classical random features.

    The baseline for all couplings, and the only projection for kernels whose spectrum is not radial
    (`kernels.Laplacian`).

    Notes
    -----
    Memory O(m d), time O(m d) per row.

    References
    ----------
    rahimi2007.

    Examples
    --------
    >>> from bochner.projections import IID
    >>> IID().sample(3, 5, rng=0).shape
    (5, 3)
    """

    name: ClassVar[str] = "iid"
    radial: ClassVar[bool] = False
    references: ClassVar[tuple[str, ...]] = ("rahimi2007",)

    @property
    def gaussian_rows(self) -> bool:
        return True

    @property
    def coupling(self) -> Literal["iid"]:
        return "iid"

    def block_sizes(self, d: int, m: int) -> tuple[int, ...]:
        return (1,) * m

    def _draw(self, d: int, m: int, rng: RNG, kernel: Kernel | None) -> Operator:
        directions, lengths = named_streams(rng)
        if kernel is not None and kernel.spectrum == "product":
            W = kernel.sample_rows(d, m, directions)
        else:
            W = _scaled(directions.standard_normal((m, d)), kernel, lengths)
        return DenseOperator(self, W, np.linalg.norm(W, axis=1))


@dataclass(frozen=True)
class QMC(Projection):
    r"""Scrambled low-discrepancy points, transformed to the normal law: :math:`w_i = \Phi^{-1}(u_i)`.

    More accurate than independent rows in low dimensions; the gain fades as d grows.

    Parameters
    ----------
    sequence : {"halton", "sobol"}
        The sequence.

    Notes
    -----
    The points of a randomly scrambled Halton or Sobol sequence (`scipy.stats.qmc`) fill the cube evenly, while each
    point is uniform in it.  Each row is therefore N(0, I), up to the resolution of the points, and averages are
    unbiased.  All rows form one coupled block.  For kernels that are Gaussian scale mixtures the scales are drawn
    independently.  Sobol points exist up to d = 21201.

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
        return True

    @property
    def scales(self) -> bool:
        return self.sequence == "halton"

    def why(self, facts: Any) -> str:
        """Return where it is worth trying: in few dimensions."""
        return "In so few dimensions a low-discrepancy sequence fills the space more evenly than chance."

    @classmethod
    def variants(cls) -> dict[str, Any]:
        """Return both sequences."""
        return {"halton": cls(), "sobol": cls("sobol")}

    def block_sizes(self, d: int, m: int) -> tuple[int, ...]:
        return (m,)

    def _draw(self, d: int, m: int, rng: RNG, kernel: Kernel | None) -> Operator:
        from scipy.special import ndtri

        directions, lengths = named_streams(rng)
        points = self._points(d, m, directions)
        W = _scaled(ndtri(np.clip(points + _CELL / 2, _CELL / 2, 1 - _CELL / 2)), kernel, lengths)
        return DenseOperator(self, W, np.linalg.norm(W, axis=1))

    def _points(self, d: int, m: int, rng: np.random.Generator) -> np.ndarray:
        from scipy.stats import qmc

        if self.sequence == "halton":
            return np.asarray(qmc.Halton(d, scramble=True, rng=rng).random(m))
        if d > _SOBOL_MAX_DIM:
            raise ValueError(
                f"{self!r}: Sobol points exist up to d = {_SOBOL_MAX_DIM}, got d = {d}; use QMC('halton')."
            )
        exponent = max(m - 1, 0).bit_length()  # the sequence is balanced at powers of two: draw one, keep m
        return np.asarray(qmc.Sobol(d, scramble=True, rng=rng).random_base2(exponent))[:m]


@dataclass(frozen=True)
class GaussHermite(Projection):
    r"""Nodes of the dense Gauss-Hermite grid, drawn with probabilities equal to their weights.

    A biased baseline of QBF, included for comparison.

    Parameters
    ----------
    order : int
        Number of nodes per coordinate.

    Notes
    -----
    The grid of ``order`` nodes per coordinate has order^d nodes and product weights, which sum to one.  Of these nodes,
    m are drawn independently, so every coordinate of every row is a node drawn by its weight.  The average over rows is
    an unbiased estimate of the value of the grid, which is exact for polynomials of degree up to 2 order - 1 in each
    coordinate.  For the kernel itself it is biased: the estimate along :math:`e_1` is a finite sum of cosines.

    References
    ----------
    dao2017, qbf (Section 4).

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.projections import GaussHermite
    >>> sorted(set(GaussHermite(2).sample(3, 50, rng=0).to_dense().ravel().round(12).tolist()))
    [-1.0, 1.0]
    """

    order: int
    name: ClassVar[str] = "gauss-hermite"
    references: ClassVar[tuple[str, ...]] = ("dao2017", "qbf")

    def __post_init__(self) -> None:
        object.__setattr__(self, "order", check_count("GaussHermite", "order", self.order))
        if self.order > _LARGEST_ORDER:
            raise ValueError(
                f"GaussHermite: order must be at most {_LARGEST_ORDER}, got {self.order}; a few nodes suffice."
            )

    @property
    def gaussian_rows(self) -> bool:
        return False

    @property
    def consistent(self) -> bool:
        """The bias of the grid stays, however many of its nodes are drawn."""
        return False

    @property
    def scales(self) -> bool:
        return False

    @classmethod
    def variants(cls) -> dict[str, Any]:
        """Return the grid with five nodes per coordinate."""
        return {"gauss-hermite": cls(5)}

    def block_sizes(self, d: int, m: int) -> tuple[int, ...]:
        return (1,) * m

    def rule(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the nodes of one coordinate, and their probabilities."""
        nodes, weights = np.polynomial.hermite_e.hermegauss(self.order)
        return nodes, weights / weights.sum()

    def _draw(self, d: int, m: int, rng: RNG, kernel: Kernel | None) -> Operator:
        directions, lengths = named_streams(rng)
        nodes, probabilities = self.rule()
        W = _scaled(directions.choice(nodes, size=(m, d), p=probabilities), kernel, lengths)
        return DenseOperator(self, W, np.linalg.norm(W, axis=1))
