"""Exact kernels, the functions that random features estimate.

A kernel is a plain value: its ``repr`` rebuilds it, ``==`` compares it.  Called as ``kernel(X, Y)`` it gives the exact
Gram matrix, of NumPy, torch and JAX arrays; ``kernel.paired(X, Y)`` and ``kernel.diagonal(X)`` give single entries of it
in linear time.  Each declares the law of its random rows (``spectrum``, ``sample_scales``, ``sample_rows``), the inputs
they act on (``scaled``) and its bandwidth (``has_bandwidth``, ``bandwidth``, ``with_bandwidth``, ``from_gamma``,
``metric``).

- of the difference x - y: `Gaussian`, `Matern`, `RationalQuadratic`, `Cauchy`, `Laplacian`;
- of dot product and norms: `Softmax`, `Linear`, `Angular`, `ArcCosine`;
- base classes for kernels of your own: `Radial` (of the Euclidean distance), `ShiftInvariant`, `Kernel`;
- bandwidths: `resolve_bandwidth`, the one rule of the library, and `median_distance`.
"""

from ._bandwidth import median_distance, resolve_bandwidth
from ._dot_product import Angular, ArcCosine, Linear, Softmax
from ._kernel import Kernel
from ._matern import Matern
from ._shift_invariant import Cauchy, Gaussian, Laplacian, Radial, RationalQuadratic, ShiftInvariant

__all__ = [
    "Angular",
    "ArcCosine",
    "Cauchy",
    "Gaussian",
    "Kernel",
    "Laplacian",
    "Linear",
    "Matern",
    "Radial",
    "RationalQuadratic",
    "ShiftInvariant",
    "Softmax",
    "median_distance",
    "resolve_bandwidth",
]
