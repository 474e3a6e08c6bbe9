"""Exact kernels, the functions that random features estimate.

A kernel is a plain value: its ``repr`` rebuilds it, ``==`` compares it.  Called as ``kernel(X, Y)`` it gives the exact
Gram matrix, of NumPy arrays and of torch tensors; ``kernel.paired(X, Y)`` and ``kernel.diagonal(X)`` give single
entries of it in linear time.  Each declares the law of its random rows (``spectrum``, ``sample_scales``) and the inputs
they act on (``scaled``).
"""

from .angular import Angular
from .arc_cosine import ArcCosine
from .base import Kernel
from .cauchy import Cauchy
from .gaussian import Gaussian
from .laplacian import Laplacian
from .linear import Linear
from .matern import Matern
from .median import median_distance
from .rational_quadratic import RationalQuadratic
from .softmax import Softmax

__all__ = [
    "Angular",
    "ArcCosine",
    "Cauchy",
    "Gaussian",
    "Kernel",
    "Laplacian",
    "Linear",
    "Matern",
    "RationalQuadratic",
    "Softmax",
    "median_distance",
]
