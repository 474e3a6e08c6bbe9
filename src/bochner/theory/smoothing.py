"""Errors of gradients estimated by Gaussian smoothing, on quadratics."""

from __future__ import annotations

from typing import Any

import numpy as np

from bochner._validation import check_option

from .blocks import coupled_pairs


def smoothing_gradient_mse(
    gradient: Any,
    n: int,
    *,
    coupling: str = "iid",
    estimator: str = "antithetic",
    sigma: float = 1.0,
    hessian: Any = None,
    value: Any = 0.0,
) -> np.ndarray:
    r"""Mean of :math:`|\hat g - \nabla F_\sigma|^2` for n Gaussian directions with :math:`\chi_d` lengths.

    Notes
    -----
    On :math:`F = f_0 + a\cdot e + \frac12e^THe` around the point (OMC Sec. 6.3 uses these estimators; the errors are in no
    paper).  The antithetic one has :math:`|a|^2[\frac{d+1}n + \sum_bf_b(c_b^2d - 1)]`, fractions and cosines of
    `coupled_pairs`; forward differences add :math:`\frac{\sigma^2}{4n}(d+4)((\mathrm{tr}H)^2 + 2\,\mathrm{tr}H^2)`, and
    the plain forward estimator a further :math:`\frac1n(f_0^2d/\sigma^2 + f_0(d+2)\mathrm{tr}H)`, for independent and
    orthogonal directions.

    Parameters
    ----------
    gradient : array of shape (..., d)
        a.
    n : int
        Directions; an antithetic estimate takes 2n evaluations, differences n + 1, the plain one n.
    coupling : {"iid", "orthogonal", "simplex"}
        Coupling of the directions.
    estimator : {"antithetic", "difference", "forward"}
        Which of the three.
    sigma : float
        Width of the smoothing.
    hessian : array of shape (..., d, d), optional
        H; none means zero.
    value : float
        f_0.

    Examples
    --------
    >>> from bochner.theory import smoothing_gradient_mse
    >>> float(smoothing_gradient_mse([3.0, 0, 0, 4.0], 4, coupling="orthogonal"))  # 2 |a|^2/d
    12.5
    """
    check_option("smoothing_gradient_mse", "estimator", estimator, ("antithetic", "difference", "forward"))
    a = np.asarray(gradient, dtype=np.float64)
    d = a.shape[-1]
    pairs = coupled_pairs(n, d, coupling)
    total = (a**2).sum(-1) * ((d + 1) / n + sum(f * (c**2 * d - 1) for f, c in pairs))
    if estimator == "antithetic":
        return np.asarray(total)
    if coupling == "simplex":
        raise ValueError("smoothing_gradient_mse: simplex directions need estimator='antithetic' for a closed form.")
    H = np.zeros((d, d)) if hessian is None else np.asarray(hessian, dtype=np.float64)
    trace, square = np.trace(H, axis1=-2, axis2=-1), (H * np.swapaxes(H, -1, -2)).sum((-1, -2))
    total = total + sigma**2 / (4 * n) * (d + 4) * (trace**2 + 2 * square)
    if estimator == "difference":
        return np.asarray(total)
    return np.asarray(total + (np.asarray(value) ** 2 * d / sigma**2 + value * (d + 2) * trace) / n)


def fixed_length_gradient_mse(gradient: Any, n: int) -> np.ndarray:
    r"""Error on linear F of n <= d orthogonal directions of length :math:`\sqrt d`.

    It is :math:`(d/n - 1)|a|^2`, zero at n = d; on other F such directions are biased.
    """
    a = np.asarray(gradient, dtype=np.float64)
    return np.asarray((a.shape[-1] / n - 1) * (a**2).sum(-1))
