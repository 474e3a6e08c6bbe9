"""Deterministic features in few columns: a regular grid of frequencies, and eigenfunctions of the Laplacian in a box."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .._arrays import array_namespace, like, pad_last
from ._boxed import BoxedFeatures, BoxedMap, Lattice, at_distances, box_of_steps, images
from ._features import Scaled


class FourierGridFeatures(BoxedFeatures):
    """A constant, cosines and sines of the frequencies of a lattice, then columns of zeros."""

    def scaled(self, X: Any, *, key: bool) -> Scaled:
        xp, (_, _, weights) = array_namespace(X), self.lattice
        constant = xp.zeros_like(X[..., :1]) + float(np.sqrt(weights[0]))
        u = xp.matmul(X - like(self.centre, X), like(self.lattice.frequencies[1:].T, X))
        scale = like(np.sqrt(2 * weights[1:]), X)
        return pad_last(xp.concat([constant, scale * xp.cos(u), scale * xp.sin(u)], axis=-1), self.width), None


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
    drawn: ClassVar[type[BoxedFeatures]] = FourierGridFeatures

    def lattice(self, kernel: Any, m: int, margin: float) -> Lattice:
        """One frequency of each pair, zero first, then in the order of their weights."""
        spacing = 2 * np.pi / (self.extent + margin)
        steps = box_of_steps(1 / spacing, m, positive=False)
        weights = kernel.spectral_density(steps * spacing) * spacing.prod()
        kept = np.concatenate([[0], 1 + np.argsort(-weights[1:], kind="stable")[: (m - 1) // 2]])
        return Lattice(steps[kept], spacing, weights[kept])

    def left_out(self, kernel: Any, m: int, margin: float) -> float:
        weights = self.lattice(kernel, m, margin).weights
        total = float(at_distances(kernel, images(len(self.low)) * (self.extent + margin)).sum())  # Poisson, at zero
        return max(total - float(weights[0] + 2 * weights[1:].sum()), 0.0)


class HilbertSpaceFeatures(BoxedFeatures):
    """Products of sines, one for each frequency of a lattice, then columns of zeros."""

    def scaled(self, X: Any, *, key: bool) -> Scaled:
        xp, (steps, spacing, weights) = array_namespace(X), self.lattice
        turned = (X - like(self.centre, X)) * like(spacing, X) + np.pi / 2
        values = like(np.sqrt(weights), X)
        for k in range(steps.shape[1]):
            values = values * xp.sin(turned[..., k : k + 1] * like(steps[:, k].astype(np.float64), X))
        return pad_last(values, self.width), None


@dataclass(frozen=True)
class HilbertSpace(BoxedMap):
    r"""Hilbert-space features (HSGP): products of sines that vanish at the walls of a box, for at most three columns.

    Use it where models are written in this basis, as in probabilistic programming: the features do not depend on the
    lengthscale, only their weights do.  `FourierGrid` has about the same error with as many features.

    Parameters
    ----------
    margin : float, optional
        Distance, in lengthscales, between the data and their mirror images behind the walls; each wall is half of it away
        from the data.  By default the one with the smallest bound for the number of features.
    low, high : sequence of float, optional
        Corners of the box that holds the data, in lengthscales, filled in by the plan.

    See Also
    --------
    FourierGrid : Periodic features.

    Notes
    -----
    The walls are at :math:`c_k \pm L_k` around the centre c of the data.  With frequencies
    :math:`\omega_j = (\pi j_k/(2L_k))_k`, :math:`j_k \ge 1`, and the spectral density p of the kernel,

    .. math:: \phi_j(x) = \sqrt{(2\pi)^d p(\omega_j)} \prod_k L_k^{-1/2}
              \sin\big(\tfrac{\pi j_k}{2L_k}(x_k - c_k + L_k)\big),

    for the j with the largest weights (solin2020, Equations 20 and 21).  With all of them the estimate is the sum of the
    kernel over all mirror images of y, with a minus for every reflection; `bound` adds up these images and what is left out.
    Nothing is random, and the error of a plan is `Approximation.mse`.

    References
    ----------
    solin2020, riutort2023.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import Approximation, kernels, maps
    >>> X = np.linspace(-2, 2, 50)[:, None]
    >>> phi = Approximation(kernels.Gaussian(), maps.HilbertSpace(), n_projections=24).fit(X)
    >>> bool(np.abs(phi.gram(X) - kernels.Gaussian()(X)).max() < 1e-6)
    True
    """

    margin: Any = None
    low: Any = None
    high: Any = None
    name: ClassVar[str] = "hilbert-space"
    formula: ClassVar[str] = r"\sqrt{S(\omega_j)}\prod_k\sin(\omega_{jk}(x_k + L_k))/\sqrt{L_k}"
    cost: ClassVar[str] = r"O(d)"
    references: ClassVar[tuple[str, ...]] = ("solin2020", "riutort2023")
    drawn: ClassVar[type[BoxedFeatures]] = HilbertSpaceFeatures

    def lattice(self, kernel: Any, m: int, margin: float) -> Lattice:
        """Positive frequencies in the order of their weights."""
        spacing = np.pi / (self.extent + margin)
        steps = box_of_steps(1 / spacing, m, positive=True)
        weights = kernel.spectral_density(steps * spacing) * (4 * spacing).prod()  # (2 pi)^d p / prod L
        kept = np.argsort(-weights, kind="stable")[:m]
        return Lattice(steps[kept], spacing, weights[kept])

    def left_out(self, kernel: Any, m: int, margin: float) -> float:
        found, walls, d = self.lattice(kernel, m, margin), self.extent + margin, len(self.low)
        total = float(at_distances(kernel, 2 * images(d) * walls).sum())  # of spacing^d p over all integer points
        half = box_of_steps(walls, m, positive=False)  # one of each pair; those with a zero entry are in no feature
        planes = half[(half == 0).any(axis=1)] * found.spacing
        on_planes = kernel.spectral_density(planes) * found.spacing.prod()
        without = float(on_planes[0] + 2 * on_planes[1:].sum() + found.weights.sum() / 2**d)
        return float(2**d * max(total - without, 0.0))
