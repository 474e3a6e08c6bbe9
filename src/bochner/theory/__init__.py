r"""Closed-form errors of random features, taken from the papers and corrected where the published formulas are wrong.

The formulas are independent of the sampling code, so each can be used to check the other.  All functions take arrays
and return one value per pair of points; most are written in squared norms.

The name says what is returned.  ``..._log_relative_mse`` is the logarithm of :math:`\mathrm{MSE}/k^2`.  It is the same
number for the Gaussian and the softmax kernel, stays finite where the error itself overflows, and is minus infinity
where an estimator is exact.  ``..._mse`` and ``..._variance`` are the error itself.  ``m`` is the number of projections
and ``d`` the dimension.

`errata` is the table of errors in the published formulas, each an `Erratum`.
`bochner.Approximation.mse` finds the closed form of a map and fills in its constants.  The closed forms themselves, the
constants that minimise them, their parts, and bounds are in `bochner.extending`, for the errors of other maps.
"""

from .._facts import publish
from ._bounds import log_max_angular_error_bound as log_max_angular_error_bound
from ._bounds import log_quadrature_uniform_bound as log_quadrature_uniform_bound
from ._complex_exponential_errors import complex_argument as complex_argument
from ._complex_exponential_errors import complex_exponential_log_relative_mse as complex_exponential_log_relative_mse
from ._concentration import log_orthogonal_tail_bound as log_orthogonal_tail_bound
from ._concentration import log_tail_bound as log_tail_bound
from ._concentration import log_uniform_tail_bound as log_uniform_tail_bound
from ._concentration import uniform_projections as uniform_projections
from ._coupling import log_conformity as log_conformity
from ._dense_exponential_errors import dense_exponential_log_relative_mse as dense_exponential_log_relative_mse
from ._discrete_errors import discrete_log_relative_mse as discrete_log_relative_mse
from ._discrete_errors import geometric_log_relative_mse as geometric_log_relative_mse
from ._discrete_errors import optimal_geometric_p as optimal_geometric_p
from ._discrete_errors import optimal_poisson_rate as optimal_poisson_rate
from ._discrete_errors import poisson_log_relative_mse as poisson_log_relative_mse
from ._errata import Erratum as Erratum
from ._errata import errata
from ._exponential_errors import gerf_log_relative_mse as gerf_log_relative_mse
from ._exponential_errors import hyperbolic_log_relative_mse as hyperbolic_log_relative_mse
from ._exponential_errors import optimal_positive_log_relative_mse as optimal_positive_log_relative_mse
from ._exponential_errors import positive_log_relative_mse as positive_log_relative_mse
from ._exponential_errors import trigonometric_log_relative_mse as trigonometric_log_relative_mse
from ._exponential_errors import trigonometric_mse as trigonometric_mse
from ._hybrid_errors import CoefficientMoments as CoefficientMoments
from ._hybrid_errors import angular_coefficient as angular_coefficient
from ._hybrid_errors import angular_hybrid_log_relative_mse as angular_hybrid_log_relative_mse
from ._hybrid_errors import gaussian_coefficient as gaussian_coefficient
from ._hybrid_errors import gaussian_hybrid_log_relative_mse as gaussian_hybrid_log_relative_mse
from ._hybrid_errors import hybrid_mse as hybrid_mse
from ._hybrid_errors import normalized_gaussian_coefficient as normalized_gaussian_coefficient
from ._hybrid_errors import shared_relative_covariance as shared_relative_covariance
from ._optimal_positive import optimal_A as optimal_A
from ._optimal_positive import optimal_gerf as optimal_gerf
from ._optimal_positive import optimal_rho as optimal_rho
from ._orthogonal_monte_carlo import dot_product_mse as dot_product_mse
from ._orthogonal_monte_carlo import fixed_length_gradient_mse as fixed_length_gradient_mse
from ._orthogonal_monte_carlo import hadamard_fourth_moment as hadamard_fourth_moment
from ._orthogonal_monte_carlo import kac_fourth_moment as kac_fourth_moment
from ._orthogonal_monte_carlo import rotated_fourth_moment as rotated_fourth_moment
from ._orthogonal_monte_carlo import smoothing_gradient_mse as smoothing_gradient_mse
from ._orthogonal_monte_carlo import subsampled_dot_product_mse as subsampled_dot_product_mse
from ._orthogonal_monte_carlo import tree_fourth_moment as tree_fourth_moment
from ._orthogonal_pairs import orthogonal_pair_covariance as orthogonal_pair_covariance
from ._other_rows import SampledBlocks as SampledBlocks
from ._other_rows import sampled_positive_log_relative_mse as sampled_positive_log_relative_mse
from ._other_rows import sign_rows_mse as sign_rows_mse
from ._pairs import Pairs as Pairs
from ._polynomial_errors import product_sketch_variance as product_sketch_variance
from ._polynomial_errors import tensor_sketch_variance as tensor_sketch_variance
from ._quadrature import fixed_norm_bias as fixed_norm_bias
from ._quadrature import grid_mse as grid_mse
from ._quadrature import origin_weight as origin_weight
from ._quadrature import spherical_radial_variance as spherical_radial_variance
from ._uniform_discrepancy import UniformDiscrepancy as UniformDiscrepancy
from ._uniform_discrepancy import log_uniform_similarity as log_uniform_similarity
from ._uniform_discrepancy import uniform_mmd as uniform_mmd

__all__ = [
    "errata",
]

publish(globals())
