"""Exponentials."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .._validation import check_flag
from ..kernels import Kernel
from .base import Coupling
from .draws import Draws
from .exponential import ExponentialFeatures, ExponentialMap, norm_coefficient
from .features import Features
from .nodes import Nodes
from .statistics import Data


@dataclass(frozen=True)
class Positive(ExponentialMap):
    r"""Positive features of FAVOR+: one exponential a projection.

    Notes
    -----
    .. math:: \phi(x) = m^{-1/2} \left[e^{w_i\cdot x - c|x|^2}\right]_i,

    c = 1/2 for softmax and 1 for the Gaussian kernel; w ~ N(0, I).  Unbiased; exact at x = -y.  Variance with
    independent rows: :math:`\mathrm{SM}^2(e^{|x+y|^2}-1)/m` (HRF Lemma 2.2, one-sided); lower with orthogonal, lowest with
    simplex rows (SimRF Theorem 3.4).  Features are exponentials of `log_queries`, `log_keys`, which do not overflow.

    Parameters
    ----------
    antithetic : bool
        Whether to use both of w and -w: two features a projection, the same as `Hyperbolic`.

    References
    ----------
    choromanski2021, hrf, simrf (Eq. 7).

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import Approximation, kernels, maps
    >>> phi = Approximation(kernels.Softmax(), maps.Positive(), n_projections=8).draw(3, rng=0)
    >>> bool((phi.queries(np.ones((1, 3))) > 0).all()), phi.n_features_out
    (True, 8)
    """

    antithetic: bool = False
    always_positive: ClassVar[bool] = True
    references: ClassVar[tuple[str, ...]] = ("choromanski2021", "hrf", "simrf")

    def __post_init__(self) -> None:
        check_flag("Positive", "antithetic", self.antithetic)

    @property
    def coupling(self) -> Coupling:
        """Simplex rows, unless reflections undo what they gain."""
        return "orthogonal" if self.antithetic else "simplex"

    def draw(self, draws: Draws, kernel: Kernel | None, data: Data | None) -> Features:
        """GERF with A = 0 and s = 1."""
        operator = draws.operator()
        nodes = Nodes(operator, reflect=self.antithetic or operator.reflected)
        return ExponentialFeatures(nodes, 0, 1, norm_coefficient(kernel, -1.0))
