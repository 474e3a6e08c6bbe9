r"""Closed-form errors of random features, taken from the papers and corrected where the published formulas are wrong.

The formulas are independent of the sampling code, so each can be used to check the other.  All functions take arrays
and return one value per pair of points; most are written in the squared norms that `Pairs` holds.

The name says what is returned.  ``..._log_relative_mse`` is the logarithm of :math:`\mathrm{MSE}/k^2`.  It is the same
number for the Gaussian and the softmax kernel, stays finite where the error itself overflows, and is minus infinity
where an estimator is exact.  ``..._mse`` and ``..._variance`` are the error itself.  ``m`` is the number of projections
and ``d`` the dimension.

- exponential features, independent, orthogonal or simplex: `trigonometric_log_relative_mse`, `trigonometric_mse`,
  `positive_log_relative_mse`, `hyperbolic_log_relative_mse`, `gerf_log_relative_mse`,
  `optimal_positive_log_relative_mse`;
- complex exponentials, Poisson and geometric features: `complex_exponential_log_relative_mse`,
  `poisson_log_relative_mse`, `geometric_log_relative_mse`, `discrete_log_relative_mse`; a constant per coordinate:
  `dense_exponential_log_relative_mse`;
- the constants that minimise them: `optimal_rho`, `optimal_A`, `optimal_gerf`, `optimal_poisson_rate`,
  `optimal_geometric_p`;
- hybrids: `angular_hybrid_log_relative_mse`, `gaussian_hybrid_log_relative_mse`;
- two coupled rows: `log_conformity`; any geometry: `sampled_positive_log_relative_mse`;
- quadrature and rows of fixed length: `spherical_radial_variance`, `fixed_norm_bias`;
- dot products: `dot_product_mse`, `subsampled_dot_product_mse`;
- smoothed gradients and discrepancy: `smoothing_gradient_mse`, `fixed_length_gradient_mse`, `uniform_mmd` and its result
  `UniformDiscrepancy`, `log_uniform_similarity`;
- bounds: `log_tail_bound`, `log_orthogonal_tail_bound`, `log_uniform_tail_bound` and `uniform_projections` of bounded
  positive features, `log_quadrature_uniform_bound`, `log_max_angular_error_bound`;
  and `errata`, the table of errors in the published formulas.

`bochner.extending` has the parts of these formulas, for the closed forms of other maps.
"""

from ._bounds import log_max_angular_error_bound
from ._complex_exponential_errors import complex_argument as complex_argument
from ._complex_exponential_errors import complex_exponential_log_relative_mse
from ._concentration import log_orthogonal_tail_bound, log_tail_bound, log_uniform_tail_bound, uniform_projections
from ._coupling import log_conformity
from ._dense_exponential_errors import dense_exponential_log_relative_mse
from ._discrete_errors import (
    discrete_log_relative_mse,
    geometric_log_relative_mse,
    optimal_geometric_p,
    optimal_poisson_rate,
    poisson_log_relative_mse,
)
from ._errata import Erratum, errata
from ._exponential_errors import (
    gerf_log_relative_mse,
    hyperbolic_log_relative_mse,
    optimal_positive_log_relative_mse,
    positive_log_relative_mse,
    trigonometric_log_relative_mse,
    trigonometric_mse,
)
from ._hybrid_errors import CoefficientMoments as CoefficientMoments
from ._hybrid_errors import angular_coefficient as angular_coefficient
from ._hybrid_errors import (
    angular_hybrid_log_relative_mse,
    gaussian_hybrid_log_relative_mse,
)
from ._hybrid_errors import gaussian_coefficient as gaussian_coefficient
from ._hybrid_errors import hybrid_mse as hybrid_mse
from ._hybrid_errors import normalized_gaussian_coefficient as normalized_gaussian_coefficient
from ._hybrid_errors import shared_relative_covariance as shared_relative_covariance
from ._optimal_positive import optimal_A, optimal_gerf, optimal_rho
from ._orthogonal_monte_carlo import (
    dot_product_mse,
    fixed_length_gradient_mse,
    smoothing_gradient_mse,
    subsampled_dot_product_mse,
)
from ._orthogonal_monte_carlo import hadamard_fourth_moment as hadamard_fourth_moment
from ._orthogonal_monte_carlo import kac_fourth_moment as kac_fourth_moment
from ._orthogonal_monte_carlo import rotated_fourth_moment as rotated_fourth_moment
from ._orthogonal_monte_carlo import tree_fourth_moment as tree_fourth_moment
from ._orthogonal_pairs import orthogonal_pair_covariance as orthogonal_pair_covariance
from ._pairs import Pairs
from ._polynomial_errors import product_sketch_variance as product_sketch_variance
from ._polynomial_errors import tensor_sketch_variance as tensor_sketch_variance
from ._quadrature import fixed_norm_bias, spherical_radial_variance
from ._quadrature import grid_mse as grid_mse
from ._quadrature import origin_weight as origin_weight
from ._quadrature_uniform import log_quadrature_uniform_bound
from ._sampled_blocks import SampledBlocks as SampledBlocks
from ._sampled_blocks import sampled_positive_log_relative_mse
from ._sign_rows import sign_rows_mse as sign_rows_mse
from ._uniform_discrepancy import UniformDiscrepancy, log_uniform_similarity, uniform_mmd

__all__ = [
    "Erratum",
    "Pairs",
    "UniformDiscrepancy",
    "angular_hybrid_log_relative_mse",
    "complex_exponential_log_relative_mse",
    "dense_exponential_log_relative_mse",
    "discrete_log_relative_mse",
    "dot_product_mse",
    "errata",
    "fixed_length_gradient_mse",
    "fixed_norm_bias",
    "gaussian_hybrid_log_relative_mse",
    "geometric_log_relative_mse",
    "gerf_log_relative_mse",
    "hyperbolic_log_relative_mse",
    "log_conformity",
    "log_max_angular_error_bound",
    "log_orthogonal_tail_bound",
    "log_quadrature_uniform_bound",
    "log_tail_bound",
    "log_uniform_similarity",
    "log_uniform_tail_bound",
    "optimal_A",
    "optimal_geometric_p",
    "optimal_gerf",
    "optimal_poisson_rate",
    "optimal_positive_log_relative_mse",
    "optimal_rho",
    "poisson_log_relative_mse",
    "positive_log_relative_mse",
    "sampled_positive_log_relative_mse",
    "smoothing_gradient_mse",
    "spherical_radial_variance",
    "subsampled_dot_product_mse",
    "trigonometric_log_relative_mse",
    "trigonometric_mse",
    "uniform_mmd",
    "uniform_projections",
]
