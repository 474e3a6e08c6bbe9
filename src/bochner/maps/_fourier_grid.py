"""Equispaced Fourier features: cosines and sines of a regular grid of frequencies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .._arrays import array_namespace, like, pad_last
from ._boxed import BoxedMap, Lattice, at_distances, box_of_steps, images
from ._features import Features, Scaled


@dataclass(frozen=True)
class FourierGrid(BoxedMap):
    r"""Equispaced Fourier features, for data of at most three columns.

    Use it in one to three dimensions, where a grid of frequencies has no gaps: nothing is random, and the error falls faster
    than with any random rows.  `learn.FourierProcess` solves the regression on it with fast Fourier transforms.

    Parameters
    ----------
    margin : float, optional
        Width, in lengthscales, of the rim between the data and their periodic images; by default the one with the smallest
        bound for the number of features.
    low, high : sequence of float, optional
        Corners of the box that holds the data, in lengthscales, filled in by the plan.  Beyond it the features repeat.

    See Also
    --------
    HilbertSpace : Sines that vanish at the walls of a box.
    Trigonometric : Random frequencies, for more columns.

    Notes
    -----
    With the spectral density p of the kernel, periods :math:`P_k = \mathrm{high}_k - \mathrm{low}_k + \mathrm{margin}` and
    frequencies :math:`\omega_j = (2\pi j_k/P_k)_k`, :math:`w_j = p(\omega_j)\prod_k 2\pi/P_k`, the features are
    :math:`\sqrt{w_0}`, all :math:`\sqrt{2w_j}\cos(\omega_j\cdot x)`, then all :math:`\sqrt{2w_j}\sin(\omega_j\cdot x)`, for
    those of each pair j, -j with the largest weights.  A column that is left over is zero.

    The estimate is not random.  Poisson's summation formula gives its error inside of the box,

    .. math:: \sum_j w_j \cos(\omega_j\cdot z) - k(z) = \sum_{n \ne 0} k(z + nP),

    less the frequencies that are left out; `bound` adds both up.  The error of a plan is `Approximation.mse`.

    References
    ----------
    greengard2022 (Section 3).

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import Approximation, kernels, maps
    >>> X = np.random.default_rng(0).uniform(-2, 2, (200, 2))
    >>> phi = Approximation(kernels.Gaussian(), maps.FourierGrid(), n_projections=201).fit(X)
    >>> bool(np.abs(phi.gram(X) - kernels.Gaussian()(X)).max() < 2e-3)
    True
    """

    margin: Any = None
    low: Any = None
    high: Any = None
    name: ClassVar[str] = "fourier-grid"
    formula: ClassVar[str] = r"\sqrt{w_j}\,\cos(\omega_j\cdot x),\; \sqrt{w_j}\,\sin(\omega_j\cdot x)"
    cost: ClassVar[str] = r"O(d)"
    references: ClassVar[tuple[str, ...]] = ("greengard2022",)

    def lattice(self, kernel: Any, m: int, margin: float) -> Lattice:
        """Half of the frequencies, zero first, then in the order of their weights."""
        spacing = 2 * np.pi / (self.extent + margin)
        steps = box_of_steps(1 / spacing, m, positive=False)
        weights = kernel.spectral_density(steps * spacing) * spacing.prod()
        kept = np.concatenate([[0], 1 + np.argsort(-weights[1:], kind="stable")[: (m - 1) // 2]])
        return Lattice(steps[kept], spacing, weights[kept])

    def left_out(self, kernel: Any, m: int, margin: float) -> float:
        weights = self.lattice(kernel, m, margin).weights
        total = float(at_distances(kernel, images(len(self.low)) * (self.extent + margin)).sum())  # Poisson, at zero
        return max(total - float(weights[0] + 2 * weights[1:].sum()), 0.0)

    def from_images(self, kernel: Any, margin: float) -> float:
        n = images(len(self.low))
        nearest = np.maximum(np.abs(n) * (self.extent + margin) - self.extent, 0)
        return float(at_distances(kernel, nearest[np.any(n != 0, axis=1)]).sum())

    def features(self, kernel: Any, m: int) -> FourierGridFeatures:
        found = self.lattice(kernel, m, self.chosen_margin(kernel, m))
        return FourierGridFeatures(found, np.add(self.low, self.high) / 2, m)


class FourierGridFeatures(Features):
    """A constant, cosines and sines of the frequencies of a lattice, then columns of zeros."""

    symmetric, positive = True, False

    def __init__(self, lattice: Lattice, centre: np.ndarray, width: int) -> None:
        self.lattice, self.centre, self.width = lattice, centre, width

    def scaled(self, X: Any, *, key: bool) -> Scaled:
        xp, (_, _, weights) = array_namespace(X), self.lattice
        constant = xp.zeros_like(X[..., :1]) + float(np.sqrt(weights[0]))
        u = xp.matmul(X - like(self.centre, X), like(self.lattice.frequencies[1:].T, X))
        scale = like(np.sqrt(2 * weights[1:]), X)
        return pad_last(xp.concat([constant, scale * xp.cos(u), scale * xp.sin(u)], axis=-1), self.width), None
