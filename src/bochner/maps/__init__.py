"""Maps: nonlinearities that turn random projections into features of a kernel.

Each map is an immutable value.  `Trigonometric` works for every shift-invariant kernel, and `DenseExponential` is the
default for softmax.  `AngularHybrid`, `GaussianHybrid` and `ClusterHybrid` mix several maps; `Poisson`, `Geometric` and
`Discrete` use powers of the coordinates; `Sign`, `Rectified` and `Identity` are for the angular, arc-cosine and linear
kernels, `Maclaurin` and `TensorSketch` for polynomial ones; `FourierGrid` and
`HilbertSpace` are deterministic, for at most three columns; and `Pointwise` applies any function.  `bochner.extending`
has what a map of your own needs.
"""

from .._facts import publish
from . import coefficients
from ._classical import Hyperbolic, Positive, Trigonometric
from ._cluster_hybrid import ClusterHybrid
from ._complex import ComplexExponential
from ._data import Data as Data
from ._dense_exponential import DenseExponential
from ._discrete import Geometric, Poisson
from ._discrete_law import Discrete
from ._drawing import Directions as Directions
from ._drawing import Draws as Draws
from ._drawing import Nodes as Nodes
from ._error import ErrorCase as ErrorCase
from ._error import NoClosedForm as NoClosedForm
from ._exponential import ExponentialFeatures as ExponentialFeatures
from ._features import Features as Features
from ._features import Quadratic as Quadratic
from ._features import QuadraticSide as QuadraticSide
from ._frame import Frame
from ._framed import Framed
from ._gaussian_hybrid import GaussianHybrid
from ._generalized import GeneralizedExponential, OptimalPositive
from ._homogeneous import Identity, Pointwise, Rectified, Sign
from ._hybrid import AngularHybrid, Hybrid
from ._landmarks import Landmarks
from ._low_dimensions import FourierGrid, HilbertSpace
from ._maclaurin import Maclaurin
from ._map import Layout as Layout
from ._map import Map as Map
from ._tensor_sketch import TensorSketch

__all__ = [
    "AngularHybrid",
    "ClusterHybrid",
    "ComplexExponential",
    "DenseExponential",
    "Discrete",
    "FourierGrid",
    "Frame",
    "Framed",
    "GaussianHybrid",
    "GeneralizedExponential",
    "Geometric",
    "HilbertSpace",
    "Hybrid",
    "Hyperbolic",
    "Identity",
    "Landmarks",
    "Maclaurin",
    "OptimalPositive",
    "Pointwise",
    "Poisson",
    "Positive",
    "Rectified",
    "Sign",
    "TensorSketch",
    "Trigonometric",
    "coefficients",
]

publish(globals())
