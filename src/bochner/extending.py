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
- a closed-form error, in the squared norms that `Pairs` holds: exponential features, independent, orthogonal or simplex
  (`trigonometric_log_relative_mse`, `trigonometric_mse`, `positive_log_relative_mse`, `hyperbolic_log_relative_mse`,
  `gerf_log_relative_mse`, `optimal_positive_log_relative_mse`); complex exponentials, Poisson and geometric features
  (`complex_exponential_log_relative_mse` of a `complex_argument`, `poisson_log_relative_mse`,
  `geometric_log_relative_mse`, `discrete_log_relative_mse`), with a constant per coordinate
  (`dense_exponential_log_relative_mse`); dot products (`dot_product_mse`, `subsampled_dot_product_mse`);
- bounds of errors of features (`log_tail_bound`, `log_orthogonal_tail_bound`, `log_uniform_tail_bound`,
  `uniform_projections`, `log_quadrature_uniform_bound`, `log_max_angular_error_bound`), discrepancies of rotations
  (`uniform_mmd` with its `UniformDiscrepancy`, `log_uniform_similarity`), and errors of smoothed gradients
  (`smoothing_gradient_mse`, `fixed_length_gradient_mse`);
- the constants that minimise them: `optimal_rho`, `optimal_A`, `optimal_gerf`, `optimal_poisson_rate`,
  `optimal_geometric_p`;
- errors of hybrids: `angular_hybrid_log_relative_mse`, `gaussian_hybrid_log_relative_mse`; their parts are
  `CoefficientMoments` (`angular_coefficient`, `gaussian_coefficient`, `normalized_gaussian_coefficient`),
  `shared_relative_covariance` and `orthogonal_pair_covariance` for `hybrid_mse`;
- errors of other couplings: two rows (`log_conformity`), `SampledBlocks` of any geometry
  (`sampled_positive_log_relative_mse`), quadrature and rows that are not Gaussian (`spherical_radial_variance`,
  `fixed_norm_bias`, `origin_weight`, `grid_mse`, `sign_rows_mse`), fourth moments of rotations for dot products
  (`hadamard_fourth_moment`, `kac_fourth_moment`, `tree_fourth_moment`, `rotated_fourth_moment`), and sketches of their
  powers (`product_sketch_variance`, `tensor_sketch_variance`);
- parts of computations: the Walsh-Hadamard transform (`fwht`) and the median of distances (`median_distance`);
- layers above features: `LogFeatures` and `KeySums`, `plan_to_json` and `plan_from_json`, and `as_projection` and
  `as_specification`, which turn what a user gave into a value; parts by name (`kernel`, `projection`, `rotation`), and the
  specifications that are tried for a kernel (`candidates`).

`register` lists the class in `bochner.catalogue`, and `unregister` takes it out again.
"""

from .approximation import KeySums, LogFeatures, plan_from_json, plan_to_json, squared_errors
from .catalogue import as_projection, as_specification, candidates, kernel, projection, register, rotation, unregister
from .geometries import FastGeometry, Geometry
from .kernels import Kernel, Radial, ShiftInvariant, median_distance
from .linalg import fwht
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
    Pairs,
    SampledBlocks,
    UniformDiscrepancy,
    angular_coefficient,
    angular_hybrid_log_relative_mse,
    complex_argument,
    complex_exponential_log_relative_mse,
    dense_exponential_log_relative_mse,
    discrete_log_relative_mse,
    dot_product_mse,
    fixed_length_gradient_mse,
    fixed_norm_bias,
    gaussian_coefficient,
    gaussian_hybrid_log_relative_mse,
    geometric_log_relative_mse,
    gerf_log_relative_mse,
    grid_mse,
    hadamard_fourth_moment,
    hybrid_mse,
    hyperbolic_log_relative_mse,
    kac_fourth_moment,
    log_conformity,
    log_max_angular_error_bound,
    log_orthogonal_tail_bound,
    log_quadrature_uniform_bound,
    log_tail_bound,
    log_uniform_similarity,
    log_uniform_tail_bound,
    normalized_gaussian_coefficient,
    optimal_A,
    optimal_geometric_p,
    optimal_gerf,
    optimal_poisson_rate,
    optimal_positive_log_relative_mse,
    optimal_rho,
    origin_weight,
    orthogonal_pair_covariance,
    poisson_log_relative_mse,
    positive_log_relative_mse,
    product_sketch_variance,
    rotated_fourth_moment,
    sampled_positive_log_relative_mse,
    shared_relative_covariance,
    sign_rows_mse,
    smoothing_gradient_mse,
    spherical_radial_variance,
    subsampled_dot_product_mse,
    tensor_sketch_variance,
    tree_fourth_moment,
    trigonometric_log_relative_mse,
    trigonometric_mse,
    uniform_mmd,
    uniform_projections,
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
    "Pairs",
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
    "UniformDiscrepancy",
    "angular_coefficient",
    "angular_hybrid_log_relative_mse",
    "as_projection",
    "as_specification",
    "candidates",
    "complex_argument",
    "complex_exponential_log_relative_mse",
    "dense_exponential_log_relative_mse",
    "discrete_log_relative_mse",
    "dot_product_mse",
    "fixed_length_gradient_mse",
    "fixed_norm_bias",
    "fwht",
    "gaussian_coefficient",
    "gaussian_hybrid_log_relative_mse",
    "geometric_log_relative_mse",
    "gerf_log_relative_mse",
    "grid_mse",
    "hadamard_fourth_moment",
    "hd_block",
    "hybrid_mse",
    "hyperbolic_log_relative_mse",
    "kac_fourth_moment",
    "kernel",
    "log_conformity",
    "log_max_angular_error_bound",
    "log_orthogonal_tail_bound",
    "log_quadrature_uniform_bound",
    "log_tail_bound",
    "log_uniform_similarity",
    "log_uniform_tail_bound",
    "median_distance",
    "normalized_gaussian_coefficient",
    "optimal_A",
    "optimal_geometric_p",
    "optimal_gerf",
    "optimal_poisson_rate",
    "optimal_positive_log_relative_mse",
    "optimal_rho",
    "origin_weight",
    "orthogonal_pair_covariance",
    "plan_from_json",
    "plan_to_json",
    "poisson_log_relative_mse",
    "positive_log_relative_mse",
    "product_sketch_variance",
    "projection",
    "register",
    "rotated_fourth_moment",
    "rotation",
    "sampled_positive_log_relative_mse",
    "shared_relative_covariance",
    "sign_rows_mse",
    "smoothing_gradient_mse",
    "spherical_radial_variance",
    "squared_errors",
    "subsampled_dot_product_mse",
    "tensor_sketch_variance",
    "tree_fourth_moment",
    "trigonometric_log_relative_mse",
    "trigonometric_mse",
    "uniform_mmd",
    "uniform_projections",
    "unregister",
]
