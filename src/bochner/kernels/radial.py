"""Kernels of the distance between x and y."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from ._distances import squared_distances
from .shift_invariant import ShiftInvariant


class Radial(ShiftInvariant):
    r"""A kernel :math:`\kappa(q)` of the squared distance :math:`q = \sum_i (x_i - y_i)^2/\ell_i^2`.

    In every dimension it is a mixture :math:`\mathrm{E} \exp(-s^2 q/2)` of Gaussian kernels, so its random rows are
    :math:`s\,g` with :math:`g \sim N(0, I)`; a subclass writes :math:`\kappa` and the law of s.
    """

    @abstractmethod
    def _profile(self, xp: Any, q: Any) -> Any:
        r"""Return the values :math:`\kappa(q)`, in the array namespace ``xp``."""

    def _gram(self, xp: Any, X: Any, Y: Any) -> Any:
        return self._profile(xp, squared_distances(xp, X, Y, self.lengthscale))
