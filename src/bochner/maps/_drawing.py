"""The source of random numbers for maps: rows of W and tables by name, drawn from a seed or read from a file."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .._arrays import array_namespace, like
from .._random import streams
from ..kernels import Kernel
from ..projections import IID, Operator, Projection


class Draws:
    """Named draws of one approximation; each name has its own random stream, and everything drawn is kept.

    Parameters
    ----------
    projection : Projection
        Law of the rows of W.
    d, m : int
        Dimension of the data, number of rows of W.
    kernel : Kernel or None
        Kernel whose spectral law the rows follow.
    seed : int
        Seed of all streams.
    arrays : mapping of str to array, optional
        Result of `to_arrays` of an earlier draw: if given, everything is read from it and nothing is drawn.
    """

    def __init__(
        self,
        projection: Projection,
        d: int,
        m: int,
        kernel: Kernel | None,
        seed: int = 0,
        arrays: Mapping[str, np.ndarray] | None = None,
    ) -> None:
        self.projection, self.d, self.m, self.kernel = projection, d, m, kernel
        self._seed, self._prefix, self._arrays = seed, "", arrays
        self._kept: dict[str, Operator | np.ndarray] = {}

    def stream(self, name: str) -> np.random.Generator:
        """Return the generator of that name."""
        return streams(self._seed, self._prefix + name)[0]

    def apart(self, name: str) -> Draws:
        """Return draws under other names, which are independent of these."""
        other = copy.copy(self)
        other._prefix = f"{self._prefix}{name}/"
        return other

    def of(self, name: str, projection: Projection, m: int, kernel: Kernel | None) -> Draws:
        """Return independent draws of another law, number of rows and kernel, for a map inside a map."""
        other = self.apart(name)
        other.projection, other.m, other.kernel = projection, m, kernel
        return other

    def sharing(self, other: Draws) -> Draws:
        """Return these draws with each W that ``other``, of one projection, size, kernel and seed, has drawn already."""
        shared = copy.copy(self)
        shared._kept = {
            name: kept
            for name, kept in other._kept.items()
            if isinstance(kept, Operator) and kept.shape == (self.m, self.d) and kept.projection == self.projection
        }
        return shared

    def operator(self, name: str = "base", m: int | None = None) -> Operator:
        """Return the W of that name, drawn once by the projection; of m rows, by default as many as the features ask for."""
        return self._rows(name, self.projection, self.m if m is None else m, self.kernel)

    def independent_rows(self, name: str, n: int) -> Operator:
        """Return n independent Gaussian rows, for the coefficients of hybrids."""
        return self._rows(name, IID(), n, None)

    def table(self, name: str, shape: tuple[int, ...], make: Callable[[np.random.Generator], np.ndarray]) -> np.ndarray:
        """Return the array of that name and shape, drawn by ``make``."""
        full = self._prefix + name
        if full not in self._kept:
            self._kept[full] = make(self.stream(name)) if self._arrays is None else self._read(full, shape)
        return self._kept[full]  # type: ignore[return-value]

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return everything that was drawn, by name: arrays that rebuild the features without drawing."""
        arrays: dict[str, np.ndarray] = {}
        for name, kept in self._kept.items():
            parts = {"": kept} if isinstance(kept, np.ndarray) else kept.to_arrays()
            arrays.update({f"{name}/{part}" if part else name: values for part, values in parts.items()})
        return arrays

    @property
    def longest_row(self) -> float:
        """Length of the longest row of every W that was drawn; zero without one."""
        return max((float(kept.radii.max()) for kept in self._kept.values() if isinstance(kept, Operator)), default=0.0)

    @property
    def nbytes(self) -> int:
        """Size of everything that was drawn, in bytes."""
        return sum(int(kept.nbytes) for kept in self._kept.values())

    def _rows(self, name: str, projection: Projection, m: int, kernel: Kernel | None) -> Operator:
        full = self._prefix + name
        if full not in self._kept:
            if self._arrays is None:
                self._kept[full] = projection.sample(self.d, m, self.stream(name), kernel=kernel)
            else:
                own = {key.removeprefix(f"{full}/"): a for key, a in self._arrays.items() if key.startswith(f"{full}/")}
                self._kept[full] = projection.restore(self.d, m, own)
        return self._kept[full]  # type: ignore[return-value]

    def _read(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        assert self._arrays is not None
        if name not in self._arrays:
            raise ValueError(f"expected an array {name!r}, got {', '.join(sorted(self._arrays)) or 'none'}.")
        found = np.asarray(self._arrays[name])
        if found.shape != shape or found.dtype.kind not in "iuf" or not np.isfinite(found).all():
            raise ValueError(
                f"array {name!r} must hold finite numbers of shape {shape}, got shape {found.shape} of {found.dtype}."
            )
        return found


class Nodes:
    r"""Weighted points w with :math:`E f(w) \approx \sum_i \sigma_i \omega_i f(w_i)`.

    The rows of W come first.  If they are reflected, they are followed by their negatives, and each has half of the
    weight.  The node at zero, if the rule has one, comes last.  Weights :math:`\omega_i` are positive, and
    :math:`\sigma_i = \pm 1` is negative only for a node at zero of negative weight.

    Parameters
    ----------
    operator : Operator
        The drawn W.
    reflect : bool
        Whether to evaluate at both w and -w.
    """

    def __init__(self, operator: Operator, *, reflect: bool) -> None:
        weights, radii = operator.weights, operator.radii
        self.operator, self.reflect, self.dim = operator, reflect, operator.dim
        if reflect:
            weights, radii = np.tile(weights / 2, 2), np.tile(radii, 2)
        self.origin, self.signed = operator.origin, operator.signed
        self.negative_origin = operator.origin_weight < 0
        if self.origin:
            weights, radii = np.append(weights, abs(operator.origin_weight)), np.append(radii, 0.0)
        self.weights, self.radii = weights, radii

    def __len__(self) -> int:
        return len(self.weights)

    def project(self, X: Any) -> Any:
        """Return the products w . x for all nodes, (..., len(self))."""
        return self.spread(self.operator.apply(X))

    def spread(self, u: Any) -> Any:
        """Return the products for all nodes, (..., len(self)), from those with the rows of W."""
        xp = array_namespace(u)
        parts = [u, -u] if self.reflect else [u]
        if self.origin:
            parts.append(like(np.zeros((*u.shape[:-1], 1)), u))
        return xp.concat(parts, axis=-1) if len(parts) > 1 else u

    def signed_last(self, values: Any) -> Any:
        """Multiply ``values`` (..., len(self)) by the sign of the node at zero, for the side of the keys."""
        if not self.negative_origin:
            return values
        return array_namespace(values).concat([values[..., :-1], -values[..., -1:]], axis=-1)

    @property
    def signs(self) -> np.ndarray | None:
        """The signs of all nodes; None for rules without negative weights."""
        return self.signed_last(np.ones(len(self))) if self.signed else None

    def to_dense(self) -> np.ndarray:
        """Return all nodes, (len(self), d)."""
        rows = self.operator.to_dense()
        parts = [rows, -rows] if self.reflect else [rows]
        return np.concatenate([*parts, np.zeros((1, rows.shape[1]))]) if self.origin else np.concatenate(parts)


class Directions(Nodes):
    r"""Nodes for maps that are homogeneous of degree b, :math:`f(rw) = r^b f(w)`, with the radius integrated out.

    If the lengths are not those of Gaussian rows (fixed lengths, or the weighted nodes of a quadrature), only the
    directions :math:`u_i` are used: :math:`E f(w)g(w) = E[\chi_d^{2b}]\, E f(u)g(u)`, and the average over rows has no
    radial noise and no node at zero.

    Parameters
    ----------
    operator : Operator
        The drawn W.
    degree : int
        Degree b of homogeneity.
    reflect : bool
        Whether to evaluate at both w and -w.
    """

    def __init__(self, operator: Operator, degree: int, *, reflect: bool) -> None:
        super().__init__(operator, reflect=reflect)
        d = operator.dim
        self.scale: np.ndarray | None = None
        if not operator.gaussian_lengths:
            m = operator.shape[0]
            moment = (1.0, d, d * (d + 2.0))[degree]
            copies = 2 if reflect else 1
            self.origin = self.negative_origin = self.signed = False
            self.weights = np.full(copies * m, moment / (copies * m))
            self.radii = np.tile(operator.radii, copies)
            self.scale = 1 / self.radii

    def spread(self, u: Any) -> Any:
        u = super().spread(u)
        return u if self.scale is None else u * like(self.scale, u)
