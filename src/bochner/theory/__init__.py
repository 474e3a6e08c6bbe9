r"""Closed-form errors of random features, from the papers and corrected where their print is wrong.

Formula and simulation check each other: nothing here sees a map or a projection.  All functions take arrays and work
pair by pair; `Pairs` holds the squared norms that most of them are written in.  Relative errors are logarithms of
:math:`\mathrm{MSE}/k^2`, the same number for the Gaussian and the softmax kernel, finite where the error itself
overflows, and minus infinity where an estimator is exact.

- rows: `block_sizes`, `pair_fraction`, `coupled_pairs`; `log_conformity`, `conformity_gap`, `trigonometric_pair`,
  `sum_density`, `orthogonality_gap`;
- one projection: `trigonometric_variance`, `positive_variance`, `hyperbolic_variance`, `gerf_variance`,
  `optimal_positive_variance`, `poisson_variance`, `geometric_variance`, `complex_exponential_variance`;
- any number of projections, independent, orthogonal or simplex: `trigonometric_log_relative_mse`,
  `trigonometric_mse`, `positive_mse`, `hyperbolic_mse`, `gerf_mse`, `optimal_positive_mse`;
- hybrids: `hybrid_mse`, `bipolar_mse`, `angular_hybrid_mse`, `gaussian_hybrid_mse`, `log_max_angular_error_bound`;
- quadrature: `spherical_radial_variance`, `origin_weight`, `fixed_norm_bias`;
- dot products, gradients, discrepancy: `subsampled_dot_mse`, `chi_dot_mse`, `smoothing_gradient_mse`,
  `log_uniform_similarity`;
- concentration: `log_tail_bound`; and `errata`, the table of wrong prints.
"""

from .blocks import COUPLINGS, block_sizes, coupled_pairs, pair_fraction
from .coefficients import CoefficientMoments, angular_coefficient, gaussian_coefficient, normalised_gaussian_coefficient
from .complex_exponential import (
    antithetic_complex_exponential_variance,
    complex_argument,
    complex_exponential_covariance,
    complex_exponential_variance,
)
from .concentration import log_supremum, log_tail_bound
from .conformity import conformity_gap, even_excess, log_conformity, orthogonality_gap, small_norm_factor
from .coupled_mse import (
    gerf_mse,
    hyperbolic_mse,
    optimal_positive_mse,
    positive_mse,
    trigonometric_log_relative_mse,
    trigonometric_mse,
)
from .discrepancy import log_uniform_similarity
from .discrete import geometric_variance, optimal_geometric_p, optimal_poisson_rate, poisson_variance
from .dot_product import (
    chi_dot_mse,
    gaussian_dot_mse,
    haar_fourth_moment,
    hadamard_fourth_moment,
    kac_fourth_moment,
    subsampled_dot_mse,
    tree_fourth_moment,
)
from .errata import errata
from .erratum import Erratum
from .fixed_norm import fixed_norm_bias, hadamard_block_mean
from .hybrid import angular_hybrid_mse, bipolar_covariance, bipolar_mse, gaussian_hybrid_mse, hybrid_mse
from .hypergeometric import hyp1f1_negative, log_hyp1f1
from .optimal_positive import (
    antithetic_optimal_positive_variance,
    optimal_A,
    optimal_positive_variance,
    optimal_rho,
    rho_log_second_moment,
)
from .origin_weight import OriginWeight, origin_weight
from .pairs import Pairs
from .projection_variance import (
    gerf_log_second_moment,
    gerf_variance,
    hyperbolic_variance,
    positive_variance,
    trigonometric_variance,
)
from .relative_error import (
    log_angular_error,
    log_hyperbolic_error,
    log_max_angular_error_bound,
    log_max_error,
    log_small_angle_slope,
    log_trigonometric_error,
)
from .sine_law import chi_mean, sine_law, sine_moment
from .smoothing import fixed_length_gradient_mse, smoothing_gradient_mse
from .spherical_radial import largest_variance, spherical_radial_variance, variance_bound
from .sum_density import sum_density, sum_second_moment
from .trigonometric_pair import trigonometric_excess, trigonometric_pair

__all__ = [
    "COUPLINGS",
    "CoefficientMoments",
    "Erratum",
    "OriginWeight",
    "Pairs",
    "angular_coefficient",
    "angular_hybrid_mse",
    "antithetic_complex_exponential_variance",
    "antithetic_optimal_positive_variance",
    "bipolar_covariance",
    "bipolar_mse",
    "block_sizes",
    "chi_dot_mse",
    "chi_mean",
    "complex_argument",
    "complex_exponential_covariance",
    "complex_exponential_variance",
    "conformity_gap",
    "coupled_pairs",
    "errata",
    "even_excess",
    "fixed_length_gradient_mse",
    "fixed_norm_bias",
    "gaussian_coefficient",
    "gaussian_dot_mse",
    "gaussian_hybrid_mse",
    "geometric_variance",
    "gerf_log_second_moment",
    "gerf_mse",
    "gerf_variance",
    "haar_fourth_moment",
    "hadamard_block_mean",
    "hadamard_fourth_moment",
    "hybrid_mse",
    "hyp1f1_negative",
    "hyperbolic_mse",
    "hyperbolic_variance",
    "kac_fourth_moment",
    "largest_variance",
    "log_angular_error",
    "log_conformity",
    "log_hyp1f1",
    "log_hyperbolic_error",
    "log_max_angular_error_bound",
    "log_max_error",
    "log_small_angle_slope",
    "log_supremum",
    "log_tail_bound",
    "log_trigonometric_error",
    "log_uniform_similarity",
    "normalised_gaussian_coefficient",
    "optimal_A",
    "optimal_geometric_p",
    "optimal_poisson_rate",
    "optimal_positive_mse",
    "optimal_positive_variance",
    "optimal_rho",
    "origin_weight",
    "orthogonality_gap",
    "pair_fraction",
    "poisson_variance",
    "positive_mse",
    "positive_variance",
    "rho_log_second_moment",
    "sine_law",
    "sine_moment",
    "small_norm_factor",
    "smoothing_gradient_mse",
    "spherical_radial_variance",
    "subsampled_dot_mse",
    "sum_density",
    "sum_second_moment",
    "tree_fourth_moment",
    "trigonometric_excess",
    "trigonometric_log_relative_mse",
    "trigonometric_mse",
    "trigonometric_pair",
    "trigonometric_variance",
    "variance_bound",
]
