"""Maps: nonlinearities that turn random projections into features of a kernel."""

from .angular_hybrid import AngularHybrid
from .base import Map
from .cluster_hybrid import ClusterHybrid
from .complex_exponential import ComplexExponential
from .features import Features
from .gaussian_hybrid import GaussianHybrid
from .generalized_exponential import GeneralizedExponential
from .geometric import Geometric
from .hybrid import Hybrid
from .hyperbolic import Hyperbolic
from .identity import Identity
from .optimal_positive import OptimalPositive
from .pointwise import Pointwise
from .poisson import Poisson
from .positive import Positive
from .rectified import Rectified
from .sign import Sign
from .trigonometric import Trigonometric

__all__ = [
    "AngularHybrid",
    "ClusterHybrid",
    "ComplexExponential",
    "Features",
    "GaussianHybrid",
    "GeneralizedExponential",
    "Geometric",
    "Hybrid",
    "Hyperbolic",
    "Identity",
    "Map",
    "OptimalPositive",
    "Pointwise",
    "Poisson",
    "Positive",
    "Rectified",
    "Sign",
    "Trigonometric",
]
