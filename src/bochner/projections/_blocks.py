"""Projections made of blocks of rows, coupled by a geometry and rotated: W = D S R."""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .. import geometries
from .. import radii as laws
from .._facts import classes, registered
from .._random import RNG, streams
from .._validation import check_instance, check_option, stored_array
from ..geometries import FastGeometry, Geometry
from ..kernels import Kernel
from ..radii import RadialLaw
from ..rotations import DrawnRotation, FastRotation, Haar, Rotation
from ..rotations._drawn_rotation import DrawnMatrices, DrawnStages
from ._operator import DenseOperator, Operator
from ._projection import Projection
from ._structured import StructuredOperator, groups_of


class BlockProjection(Projection):
    """Base class of `Blocks` and its presets; all facts follow from R, S and D."""

    rotation: Rotation

    @property
    @abstractmethod
    def geometry(self) -> Geometry:
        """The geometry S."""

    @property
    @abstractmethod
    def radial_law(self) -> RadialLaw:
        """The radial law D."""

    @property
    def uniform_directions(self) -> bool:
        uniform = self.rotation.uniform_directions
        return uniform == "all" or (uniform == "axes" and self.geometry.axes)

    @property
    def gaussian_rows(self) -> bool:
        return self.radial_law.exact and self.uniform_directions

    @property
    def unbiased(self) -> bool:
        return self.radial_law.unbiased and self.uniform_directions

    @property
    def gaussian_lengths(self) -> bool:
        return self.radial_law.exact

    @property
    def reflected(self) -> bool:
        return self.radial_law.reflected

    @property
    def has_origin(self) -> bool:
        return self.radial_law.has_origin

    @property
    def signed(self) -> bool:
        return self.radial_law.signed

    @property
    def coupling(self) -> str | None:
        law = self.radial_law
        if not (law.exact and self.rotation.uniform_directions == "all"):
            return None
        if law.independent:
            return self.geometry.coupling
        return law.coupling if self.geometry.axes else None

    @property
    def scales(self) -> bool:
        return self._fast() is not None

    def padded(self, d: int) -> int:
        return self.rotation.padded(d)

    def rows_per_rule(self, d: int) -> int:
        return self.geometry.rows_per_block(self.padded(d)) if self.has_origin else 1

    def block_sizes(self, d: int, m: int) -> tuple[int, ...]:
        rows = self.geometry.rows_per_block(self.padded(d))
        full, rest = divmod(m, rows)
        return (rows,) * full + ((rest,) if rest else ())

    def _fast(self) -> tuple[FastRotation, FastGeometry] | None:
        """R and S, if both are fast: then W is never formed."""
        R, S = self.rotation, self.geometry
        return (R, S) if isinstance(R, FastRotation) and isinstance(S, FastGeometry) else None

    def _bytes(self, d: int, m: int) -> float:
        return super()._bytes(0 if self._fast() else d, m)

    def _draw(self, d: int, m: int, rng: RNG, kernel: Kernel | None) -> Operator:
        directions, lengths, chosen = streams(rng, "directions", "lengths", "rows")
        sizes = self.block_sizes(d, m)
        radii, weights = self.radial_law.draw(self.padded(d), sizes, lengths, kernel)
        rotation, geometry = self._rotations(d, sizes, directions), self.geometry
        order = chosen.permutation(rotation.dim) if self._has_order(d, m) else None
        if isinstance(rotation, DrawnStages) and isinstance(geometry, FastGeometry):
            return StructuredOperator(self, d, rotation, geometry, radii, weights, order)
        W = np.empty((len(radii), d))
        for blocks, own, r in groups_of(sizes):
            cut = order if r < geometry.rows_per_block(rotation.dim) else None
            rows = _rows_of(rotation, geometry, blocks, radii[own].reshape(-1, r), cut)
            np.multiply(radii[own, None], rows[:, :d], out=W[own])
        return DenseOperator(self, W, radii, weights)

    def _has_order(self, d: int, m: int) -> bool:
        """Whether the last block is cut and keeps coordinates of its rotation in a random order (OMC Eq. 6)."""
        cut = bool(m % self.geometry.rows_per_block(self.padded(d)))
        return cut and not self.rotation.exchangeable and self.padded(d) > 1

    def _rotations(self, d: int, sizes: tuple[int, ...], rng: np.random.Generator) -> DrawnRotation:
        """Draw one rotation per block; a single incomplete block only gets the rows that it needs."""
        if len(sizes) > 1:
            return self.rotation.sample(d, len(sizes), rng)
        return self.rotation.sample_rows(d, self.geometry.n_coordinates(sizes[0], self.padded(d)), rng)

    def _restored(
        self, d: int, m: int, arrays: Mapping[str, np.ndarray], radii: np.ndarray, weights: np.ndarray | None
    ) -> Operator:
        fast = self._fast()
        if fast is None:
            return super()._restored(d, m, arrays, radii, weights)
        rotation, geometry = fast
        drawn = rotation.restored(self.padded(d), len(self.block_sizes(d, m)), arrays)
        return StructuredOperator(self, d, drawn, geometry, radii, weights, self._stored_order(d, m, arrays))

    def _stored_order(self, d: int, m: int, arrays: Mapping[str, np.ndarray]) -> np.ndarray | None:
        """The order of the coordinates of a cut block; draws made before version 2 have none, and keep the first rows."""
        if "order" not in arrays or not self._has_order(d, m):
            return None
        order = stored_array(repr(self), arrays, "order", (self.padded(d),), np.dtype(np.int32))
        if not (np.sort(order) == np.arange(len(order))).all():
            raise ValueError(f"{self!r}: the stored array 'order' must hold each coordinate once.")
        return order


def _rows_of(
    rotation: DrawnRotation, geometry: Geometry, blocks: slice, radii: np.ndarray, order: np.ndarray | None
) -> np.ndarray:
    """S R of several blocks with lengths ``radii`` (b, r), stacked; computed by products in O(d) if S has them.

    The rows of R are taken in ``order``, if there is one.
    """
    if isinstance(rotation, DrawnMatrices):
        matrices = rotation.matrices[blocks] if order is None else rotation.matrices[blocks][:, order]
        if isinstance(geometry, FastGeometry):
            columns = matrices.transpose(2, 0, 1)  # (dim, b, rows): columns of R
            rows = np.asarray(geometry.product(columns, radii.shape[1])).transpose(1, 2, 0)
        else:
            rows = _directions(geometry, radii, matrices.shape[1]) @ matrices
    else:
        S = _directions(geometry, radii, rotation.dim)
        S = S if order is None else S[..., np.argsort(order)]
        rows = np.moveaxis(rotation.rows(np.moveaxis(S, 0, 1), blocks, back=True), 0, 1)
    return rows.reshape(-1, rotation.dim)


def _directions(geometry: Geometry, radii: np.ndarray, dim: int) -> np.ndarray:
    """Return the matrices of the geometry, after checking that their rows are unit vectors."""
    S = np.asarray(geometry.directions(radii, dim), np.float64)
    b, r = radii.shape
    if S.shape not in ((b, r, dim), (1, r, dim)):
        raise ValueError(f"{geometry!r}: directions must have shape {(b, r, dim)} or {(1, r, dim)}, got {S.shape}.")
    norms = np.linalg.norm(S, axis=-1)
    if not np.allclose(norms, 1, rtol=0, atol=1e-8):
        raise ValueError(
            f"{geometry!r}: directions must be unit vectors, got norms from {norms.min()} to {norms.max()}."
        )
    return S


def law_of(owner: str, radii: str | RadialLaw) -> RadialLaw:
    """Return the radial law given as a value or by name, among those that `bochner.radii` exports or that are registered.

    Laws of weighted nodes have no name: pass them as values, or use `Quadrature`.
    """
    if isinstance(radii, RadialLaw):
        return radii
    named = _named_laws(registered())
    check_option(owner, "radii", radii, named)
    return named[radii]


@functools.lru_cache(maxsize=4)
def _named_laws(added: tuple[type, ...]) -> dict[str, RadialLaw]:
    """All laws by name; a draw asks several times, so they are listed once for each set of ``added`` classes."""
    found = {name: law for kind in classes(laws, RadialLaw) for name, law in kind.variants().items()}  # type: ignore[attr-defined]
    return {name: law for name, law in found.items() if not law.has_origin}


@dataclass(frozen=True, repr=False)
class Blocks(BlockProjection):
    r"""Stacked blocks :math:`W = D S R` of any rotation, geometry and radial law, including your own.

    `Orthogonal`, `Simplex`, `SimplexPlus` and `Quadrature` are presets with a fixed geometry; use `Blocks` for all
    other combinations.

    Parameters
    ----------
    rotation : Rotation
        R, drawn independently for each block.
    geometry : Geometry
        S, the directions of a block before they are rotated.
    radii : {"kernel", "fixed"} or RadialLaw
        D, the lengths of the rows: "kernel" for the kernel's own law, "fixed" for :math:`\sqrt d`, or a law of
        `bochner.radii`.

    See Also
    --------
    Orthogonal, Simplex, SimplexPlus, Quadrature : Presets.

    Notes
    -----
    A last block that is cut keeps random coordinates of its rotation (OMC Eq. 6), unless any order of the rows has the same
    law (``Rotation.exchangeable``).

    If R makes the directions of S uniform and the lengths follow the kernel's law, each row follows that law exactly
    and every average over rows is unbiased; see ``gaussian_rows`` and ``unbiased``.  If both R and S are fast, W is
    never formed: memory O(m) and time O(m log d) per row.

    Examples
    --------
    >>> from bochner import geometries, projections, radii, rotations
    >>> P = projections.Blocks(rotations.Haar(), geometries.Simplex(), radii.Chi())
    >>> bool((P.sample(4, 6, rng=0).to_dense() == projections.Simplex().sample(4, 6, rng=0).to_dense()).all())
    True
    """

    rotation: Rotation = Haar()
    geometry: Geometry = geometries.Orthogonal()
    radii: str | RadialLaw = "kernel"
    references: ClassVar[tuple[str, ...]] = ("omc", "simrf", "qbf")

    def __repr__(self) -> str:
        # geometries share their names with the presets: so that `repr` rebuilds, ours are written with their module
        ours = getattr(geometries, type(self.geometry).__name__, None) is type(self.geometry)
        geometry = f"geometries.{self.geometry!r}" if ours else repr(self.geometry)
        return f"Blocks(rotation={self.rotation!r}, geometry={geometry}, radii={self.radii!r})"

    def __post_init__(self) -> None:
        check_instance("Blocks", "rotation", self.rotation, Rotation, "rotations.Haar()")
        check_instance("Blocks", "geometry", self.geometry, Geometry, "geometries.Orthogonal()")
        law_of("Blocks", self.radii)

    @property
    def radial_law(self) -> RadialLaw:
        """The radial law D that ``radii`` is or names."""
        return law_of("Blocks", self.radii)
