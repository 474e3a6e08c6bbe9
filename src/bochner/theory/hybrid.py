"""Mean squared errors of hybrid estimators."""

from __future__ import annotations

from typing import Any

import numpy as np

from .coefficients import CoefficientMoments, angular_coefficient, normalised_gaussian_coefficient
from .coupled_mse import hyperbolic_mse, trigonometric_log_relative_mse
from .logarithms import log_signed_sum
from .pairs import Pairs


def hybrid_mse(second_moments: Any, covariances: Any) -> np.ndarray:
    r"""Error of a hybrid: :math:`\sum_{k,l} E[L_kL_l]\,\mathrm{Cov}(\hat k_k, \hat k_l)`.

    Notes
    -----
    HRF Eqs. 8-12, where only an estimate is given.  :math:`L = (\lambda_1, \dots, \lambda_p, 1 - \sum\lambda)` are
    the estimated coefficients, independent of the base projections; then the hybrid is unbiased and this is exact.  Both
    arguments are (..., p + 1, p + 1); bases with projections of their own have a diagonal of covariances.
    """
    return np.asarray(np.einsum("...kl,...kl->...", np.asarray(second_moments), np.asarray(covariances)))


def bipolar_covariance(pairs: Pairs, m: int) -> np.ndarray:
    r"""Relative covariance of hyperbolic and trigonometric estimators that share their projections.

    :math:`-\frac1m(1 - \cos(|x|^2 - |y|^2))` (HRF Theorem 3.1; in Eq. 36 the print's :math:`\binom m2` is m(m - 1)).
    """
    return np.asarray(-2 * np.sin((pairs.x2 - pairs.y2) / 2) ** 2 / m)


def bipolar_mse(
    pairs: Pairs, coefficient: CoefficientMoments, m: int, d: int, *, shared: bool = False, coupling: str = "iid"
) -> np.ndarray:
    r"""Log relative error of :math:`\lambda\,\hat k_{\cosh} + (1-\lambda)\,\hat k_{\mathrm{trig}}` (HRF Theorem 3.1).

    Notes
    -----
    :math:`E\lambda^2\,\epsilon^2_{\cosh} + E(1-\lambda)^2\,\epsilon^2_{\mathrm{trig}} + 2E\lambda(1-\lambda)\,\mathrm{Cov}`.
    Sharing helps if and only if :math:`E\lambda(1-\lambda) \ge 0`, which a Gaussian coefficient can violate.  Projections
    may be coupled where each base has its own; shared and coupled ones have no known closed form.
    """
    if shared and coupling != "iid":
        raise ValueError(
            f"bipolar_mse: shared projections must be independent rows ('iid'), got coupling={coupling!r}."
        )
    logs = [hyperbolic_mse(pairs.plus, m, d, coupling), trigonometric_log_relative_mse(pairs.minus, m, d, coupling)]
    weights: list[Any] = [coefficient.square, coefficient.complement]
    if shared:
        logs.append(np.zeros_like(pairs.plus))
        weights.append(2 * coefficient.product * bipolar_covariance(pairs, m))
    return log_signed_sum(logs, weights)


def angular_hybrid_mse(
    pairs: Pairs, m: int, n: int, d: int, *, shared: bool = False, coupling: str = "iid"
) -> np.ndarray:
    r"""Log relative error of the angular hybrid with m base projections and n signs (HRF Theorem D.1).

    Eqs. 45 and 46 are right; Eq. 47 prints :math:`E\lambda(1-\lambda)` for the coefficient :math:`E(1-\lambda)^2`.  Zero at
    angles 0 and pi for points of one norm.
    """
    return bipolar_mse(pairs, angular_coefficient(pairs.angle, n), m, d, shared=shared, coupling=coupling)


def gaussian_hybrid_mse(
    pairs: Pairs, m: int, n: int, d: int, *, sigma: float, radius: Any, shared: bool = False, coupling: str = "iid"
) -> np.ndarray:
    r"""Log relative error of the bipolar hybrid with the normalised Gaussian coefficient (HRF Theorem F.1).

    The theorem's "remains the same with shared projections" holds for equal norms only; otherwise `bipolar_covariance`
    enters.  Zero at angle 0, not at pi.
    """
    coefficient = normalised_gaussian_coefficient(pairs.minus, radius, sigma, n)
    return bipolar_mse(pairs, coefficient, m, d, shared=shared, coupling=coupling)
