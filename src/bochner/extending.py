"""What a class of your own needs: base classes, what they are given, and what they return.

The names that users call are in `bochner.kernels`, `rotations`, `geometries`, `radii`, `projections` and `maps`; this module
has the others.  ``docs/adding_a_variant.md`` builds a rotation, a geometry, a radial law, a kernel and a map from them.

- a kernel: derive from `Radial`, `ShiftInvariant` or `Kernel`;
- a rotation: derive from `FastRotation` and return stages (`hd_block`, `SignedWalsh`, `FoldedWalsh`, `GivensLevel`,
  `GivensWalk`, `Permutation`, or your own `Stage`), or from `DenseRotation` and return matrices;
- a geometry: derive from `Geometry`, or from `FastGeometry` if its products are fast;
- a radial law: derive from `RadialLaw`;
- a map: derive from `Map`, return its `Layout`, and `Features` made of `Draws`, `Nodes` or `Directions`; `Data` is what
  constants are chosen from, `ErrorCase` what a closed-form error is asked for;
- a closed-form error: `CoefficientMoments` (`angular_coefficient`, `gaussian_coefficient`,
  `normalized_gaussian_coefficient`), `shared_relative_covariance` and `orthogonal_pair_covariance` for `hybrid_mse`;
  `complex_argument` of exponentials; `SampledBlocks` of any geometry; `origin_weight`, `grid_mse` and `sign_rows_mse` of
  rows that are not Gaussian; `hadamard_fourth_moment`, `kac_fourth_moment`, `tree_fourth_moment` and
  `rotated_fourth_moment` for dot products; `product_sketch_variance` and `tensor_sketch_variance` of their powers;
- layers above features: `LogFeatures` and `KeySums`, `plan_to_json` and `plan_from_json`, and `as_projection` and
  `as_specification`, which turn what a user gave into a value.

`bochner.catalogue.register` lists the class.
"""

from .approximation import KeySums, LogFeatures, plan_from_json, plan_to_json, squared_errors
from .catalogue import as_projection, as_specification
from .geometries import FastGeometry, Geometry
from .kernels import Kernel, Radial, ShiftInvariant
from .maps import (
    Data,
    Directions,
    Draws,
    ErrorCase,
    ExponentialFeatures,
    Features,
    Layout,
    Map,
    Nodes,
    Quadratic,
    QuadraticSide,
)
from .maps.coefficients import Coefficient
from .projections import Operator, Projection
from .radii import RadialLaw
from .rotations import (
    DenseRotation,
    DrawnRotation,
    FastRotation,
    FoldedWalsh,
    GivensLevel,
    GivensWalk,
    Permutation,
    Rotation,
    SignedWalsh,
    Stage,
    hd_block,
)
from .theory import (
    CoefficientMoments,
    SampledBlocks,
    angular_coefficient,
    complex_argument,
    gaussian_coefficient,
    grid_mse,
    hadamard_fourth_moment,
    hybrid_mse,
    kac_fourth_moment,
    normalized_gaussian_coefficient,
    origin_weight,
    orthogonal_pair_covariance,
    product_sketch_variance,
    rotated_fourth_moment,
    shared_relative_covariance,
    sign_rows_mse,
    tensor_sketch_variance,
    tree_fourth_moment,
)

__all__ = [
    "Coefficient",
    "CoefficientMoments",
    "Data",
    "DenseRotation",
    "Directions",
    "DrawnRotation",
    "Draws",
    "ErrorCase",
    "ExponentialFeatures",
    "FastGeometry",
    "FastRotation",
    "Features",
    "FoldedWalsh",
    "Geometry",
    "GivensLevel",
    "GivensWalk",
    "Kernel",
    "KeySums",
    "Layout",
    "LogFeatures",
    "Map",
    "Nodes",
    "Operator",
    "Permutation",
    "Projection",
    "Quadratic",
    "QuadraticSide",
    "Radial",
    "RadialLaw",
    "Rotation",
    "SampledBlocks",
    "ShiftInvariant",
    "SignedWalsh",
    "Stage",
    "angular_coefficient",
    "as_projection",
    "as_specification",
    "complex_argument",
    "gaussian_coefficient",
    "grid_mse",
    "hadamard_fourth_moment",
    "hd_block",
    "hybrid_mse",
    "kac_fourth_moment",
    "normalized_gaussian_coefficient",
    "origin_weight",
    "orthogonal_pair_covariance",
    "plan_from_json",
    "plan_to_json",
    "product_sketch_variance",
    "rotated_fourth_moment",
    "shared_relative_covariance",
    "sign_rows_mse",
    "squared_errors",
    "tensor_sketch_variance",
    "tree_fourth_moment",
]
