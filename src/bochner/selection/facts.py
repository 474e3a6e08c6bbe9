"""What the data look like at the kernel's scale: the numbers that decide which features err least."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..approximation import Approximation
from ..kernels import Kernel
from ..theory import Pairs
from .sample import Sample


@dataclass(frozen=True)
class Facts:
    """Averages over the sampled pairs, without the diagonal; lengths in units of the lengthscale.

    Attributes
    ----------
    d : int
    norm2, smallest_norm2, largest_norm2 : float
        Mean, least and largest squared norm of points of both sides.
    distance2, sum2 : float
        Means of squared distances and of squared norms of sums x + y.
    kernel_mean : float
        Mean of the kernel's entries.
    diagonal_share : float
        Share of the squared Gram matrix that lies on its diagonal; zero where queries and keys differ.
    """

    d: int
    norm2: float
    smallest_norm2: float
    largest_norm2: float
    distance2: float
    sum2: float
    kernel_mean: float
    diagonal_share: float

    @classmethod
    def of(cls, sample: Sample, kernel: Kernel) -> Facts:
        """The facts of a sample."""
        spec = Approximation(kernel, n_projections=1)
        x, y = (np.asarray(spec.at_unit_scale(Z)) for Z in (sample.X, sample.Y))
        pairs = Pairs.of(x[:, None], y[None])
        norms = np.concatenate([(x**2).sum(1), (y**2).sum(1)])
        apart = pairs.minus > 0 if (pairs.minus > 0).any() else np.ones_like(pairs.minus, bool)
        return cls(x.shape[1], float(norms.mean()), float(norms.min()), float(norms.max()), float(pairs.minus[apart].mean()),
                   float(pairs.plus[apart].mean()), float(sample.exact[apart].mean()), _diagonal_share(sample))  # fmt: skip

    @property
    def norms_vary(self) -> bool:
        """Whether the longest point is more than twice as long as the shortest."""
        return self.largest_norm2 > 4 * max(self.smallest_norm2, 1e-12)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def _diagonal_share(sample: Sample) -> float:
    if sample.X is not sample.Y:
        return 0.0
    squares = sample.weights * (sample.exact / np.abs(sample.exact).max()) ** 2
    return float(np.trace(squares) / squares.sum())
