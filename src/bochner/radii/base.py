"""What every radial law is."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np


class RadialLaw(ABC):
    """A law of row lengths; a frozen value."""

    @abstractmethod
    def lengths(self, dim: int, count: int, rng: np.random.Generator) -> np.ndarray:
        """Lengths of ``count`` independent rows in ``dim`` dimensions, float64."""
