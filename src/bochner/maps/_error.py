"""Closed-form errors: the inputs of a map's formula, and the exception if there is none."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from .. import theory
from ..geometries import Geometry
from ..kernels import Gaussian, Softmax
from ..projections import Projection, Quadrature, Simplex
from ..projections._blocks import BlockProjection
from ..radii import Chi


class NoClosedForm(ValueError):
    """No closed form is known for the error of an approximation; the message names the nearest case that has one."""


@dataclass(frozen=True, eq=False)
class ErrorCase:
    """Pairs of points whose mean squared errors are to be computed, and the projection of the features.

    Attributes
    ----------
    kernel : Kernel or None
        The kernel; None for maps that induce their own, which have no closed form.
    projection : Projection
        The law of the rows.
    m : int
        Number of rows.
    X, Y : float64 arrays (n, d) and (p, d)
        Points at unit scale.
    quick : bool
        Whether formulas that are numerical integrals for each pair are refused, see `require_time`.
    """

    kernel: Any
    projection: Projection
    m: int
    X: np.ndarray
    Y: np.ndarray
    quick: bool = False

    @property
    def d(self) -> int:
        """Dimension of the points."""
        return int(self.X.shape[1])

    @property
    def dim(self) -> int:
        """Dimension in which the rows are drawn."""
        return self.projection.padded(self.d)

    @cached_property
    def pairs(self) -> theory.Pairs:
        """Squared norms of all pairs, (n, p)."""
        return theory.Pairs.of(self.X[:, None, :], self.Y[None])

    @property
    def polytope(self) -> str | None:
        """Vertices of the rules of a spherical-radial quadrature; None for other projections."""
        rows = self.projection
        if not isinstance(rows, Quadrature):
            return None
        if not rows.unbiased or rows.rotation.uniform_directions != "all":
            raise NoClosedForm(
                f"no closed form is known for the error with {rows!r}; the nearest that has one is "
                f"Quadrature(Haar(), {rows.vertices!r})."
            )
        return rows.vertices

    @property
    def coupling(self) -> str:
        """Name of the coupling in the closed forms: independent rows, or Haar blocks with the kernel's own lengths."""
        found = self.projection.coupling
        if found not in ("iid", "orthogonal", "simplex"):
            nearest = "Simplex(Haar())" if isinstance(self.projection, Simplex) else "Orthogonal(Haar())"
            raise NoClosedForm(
                f"no closed form is known for the error with {self.projection!r}; the nearest that has one is {nearest}."
            )
        return found

    def sampled_blocks(self) -> list[theory.SampledBlocks] | None:
        """Sampled blocks of a geometry without a closed form, under a Haar rotation and with Gaussian lengths; else None."""
        rows = self.projection
        if not isinstance(rows, BlockProjection) or rows.geometry.axes or rows.rotation.uniform_directions != "all":
            return None
        if not isinstance(rows.radial_law, Chi) or rows.geometry.coupling is not None:
            return None
        sizes = rows.block_sizes(self.d, self.m)
        return [_sampled(rows.geometry, self.dim, r, sizes.count(r)) for r in sorted(set(sizes))]

    def require_time(self, feature_map: Any) -> None:
        """Raise `NoClosedForm` in a quick case: the formula that follows takes longer than a small simulation."""
        if self.quick:
            raise NoClosedForm(f"the error of {feature_map!r} with {self.projection!r} is an integral for each pair.")

    def require_independent(self, feature_map: Any) -> None:
        """Raise `NoClosedForm` for coupled rows, if a formula holds for independent rows only."""
        if self.projection.coupling != "iid":
            raise NoClosedForm(
                f"no closed form is known for the error of {feature_map!r} with {self.projection!r} and {self.kernel!r}; "
                f"the nearest that has one is IID()."
            )

    def of_differences(self, A: complex = 0.0) -> np.ndarray:
        """Errors of exponentials of x - y with constant A (s = -1); trigonometric features have A = 0.

        For the Gaussian kernel they are computed directly, since relative errors lose digits at large distances.
        """
        if self.projection.coupling == "norm-coupled":
            return self.of_gaussian(theory.trigonometric_mse(self.pairs.minus, self.m, self.dim, "norm-coupled", A))
        if isinstance(self.kernel, Gaussian):
            return theory.trigonometric_mse(self.pairs.minus, self.m, self.dim, self.coupling, A)
        return self.absolute(theory.gerf_log_relative_mse(A, -1, self.pairs.minus, self.m, self.dim, self.coupling))

    def absolute(self, log_relative: np.ndarray) -> np.ndarray:
        """The square of the kernel times the relative error."""
        log_k = self.pairs.log_softmax if isinstance(self.kernel, Softmax) else self.pairs.log_gaussian
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(2 * log_k + log_relative))

    @property
    def squared_kernel(self) -> np.ndarray:
        """The square of the kernel at all pairs, (n, p)."""
        return self.absolute(np.zeros(()))

    def of_gaussian(self, error: Any) -> np.ndarray:
        """Convert an error for the Gaussian kernel to the softmax kernel, if that is the kernel of the case."""
        if not isinstance(self.kernel, Softmax):
            return np.broadcast_to(error, self.pairs.minus.shape).copy()
        with np.errstate(over="ignore"):
            return np.asarray(error * np.exp(self.pairs.x2 + self.pairs.y2))


_SAMPLED = 1 << 15  # pairs of rows in a sample of blocks


@lru_cache(maxsize=16)
def _sampled(geometry: Geometry, dim: int, r: int, count: int) -> theory.SampledBlocks:
    """Blocks of r rows with lengths of the law chi, always the same ones."""
    samples = int(np.clip(_SAMPLED // max(r * (r - 1) // 2, 1), 200, 4_000))
    lengths = np.sqrt(np.random.default_rng(0).chisquare(dim, (samples, r)))
    W = lengths[:, :, None] * geometry.directions(lengths, max(geometry.n_coordinates(r, dim), 1))
    gram = np.einsum("nid,njd->nij", W, W, optimize=True)
    i, j = np.triu_indices(r, 1)
    sums = gram[:, i, i] + gram[:, j, j] + 2 * gram[:, i, j]
    return theory.SampledBlocks(count, lengths, np.maximum(sums, 0))
