"""Exact kernels, the functions that random features estimate.

A kernel is an immutable value: its ``repr`` rebuilds it and ``==`` compares it.  ``kernel(X, Y)`` returns the exact
Gram matrix of NumPy, torch or JAX arrays; ``kernel.paired(X, Y)`` and ``kernel.diagonal(X)`` return some of its entries
in linear time.  Each kernel declares the law of its random rows (``spectrum``, ``sample_scales``, ``sample_rows``), the
inputs they act on (``scaled``) and its bandwidth (``has_bandwidth``, ``bandwidth``, ``with_bandwidth``, ``from_gamma``,
``metric``).

- functions of the difference x - y: `Gaussian`, `Matern`, `RationalQuadratic`, `Cauchy`, `Laplacian`, and those of a power
  of the distance, `ExponentialPower`, `GeneralizedCauchy`, `GeneralizedMatern`, `Kummer`, `Tricomi`, `Beta`,
  `LpExponential`;
- kernels made of others: `Periodic`, `Product`, `Sum`, `Columns`, `Additive`;
- functions of the dot product and the norms: `Softmax`, `Linear`, `Polynomial`, `DotProduct`, `Angular`, `ArcCosine`;
- base classes for your own kernels: `Radial` (functions of the Euclidean distance), `ShiftInvariant`, `Kernel`;
- bandwidths: `resolve_bandwidth`, which the whole library uses to choose them.
"""

from .._facts import publish
from ._bandwidth import median_distance as median_distance
from ._bandwidth import resolve_bandwidth
from ._beta_mixtures import Beta, Kummer, Tricomi
from ._columnwise import Additive, Columns
from ._composite import Periodic, Product, Sum
from ._dot_product import Angular, ArcCosine, Linear, Softmax
from ._kernel import Kernel as Kernel
from ._matern import Matern
from ._polynomial import DotProduct, Polynomial
from ._polynomial import PowerSeries as PowerSeries
from ._scale_mixtures import ExponentialPower, GeneralizedCauchy, GeneralizedMatern, LpExponential
from ._shift_invariant import (
    Cauchy,
    Gaussian,
    Laplacian,
    RationalQuadratic,
)
from ._shift_invariant import (
    Radial as Radial,
)
from ._shift_invariant import (
    ShiftInvariant as ShiftInvariant,
)

__all__ = [
    "Additive",
    "Angular",
    "ArcCosine",
    "Beta",
    "Cauchy",
    "Columns",
    "DotProduct",
    "ExponentialPower",
    "Gaussian",
    "GeneralizedCauchy",
    "GeneralizedMatern",
    "Kummer",
    "Laplacian",
    "Linear",
    "LpExponential",
    "Matern",
    "Periodic",
    "Polynomial",
    "Product",
    "RationalQuadratic",
    "Softmax",
    "Sum",
    "Tricomi",
    "resolve_bandwidth",
]

publish(globals())
