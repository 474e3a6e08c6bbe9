"""The constants of generalised exponential features that minimise their variance."""

from __future__ import annotations

import cmath
import math
from functools import lru_cache
from typing import Any


def optimal_rho(V: float, d: int) -> float:
    r"""The minimiser of the variance of positive features with real A: :math:`\rho = 1/(1 - 8A)` (CRT Theorem 3.3).

    The positive root of :math:`2V\rho^2 + (2V + d)\rho - d = 0`, V = |x + y|^2, in a form without cancellation; the
    printed one (CRT Eq. 7) is 0/0 at V = 0 and loses its digits near it.
    """
    return 2 * d / ((2 * V + d) + math.sqrt((2 * V + d) ** 2 + 8 * d * V))


def A_of_rho(rho: float) -> float:
    """A with rho = 1/(1 - 8A)."""
    return (1 - 1 / rho) / 8


def log_second_moment(A: complex, s: int, V: float, d: int) -> float:
    r"""Logarithm of :math:`E[\hat Z^2]/k^2` for one projection, V = |x + s y|^2 (CRT Theorem 3.2, any complex A).

    With w = 1 - 8A, a = Re A, :math:`\frac12\{\mathrm{Re}[((1-4A)/\sqrt w)^d e^{sV/w}] +
    (|1-4A|^2/\mathrm{Re}\,w)^{d/2} e^{(|1-4A|+4sa)V/\mathrm{Re}\,w}\}`; the second term dominates.
    """
    w = 1 - 8 * A
    first = d * (cmath.log(1 - 4 * A) - cmath.log(w) / 2) + s * V / w
    second = d / 2 * (2 * math.log(abs(1 - 4 * A)) - math.log(w.real)) + (abs(1 - 4 * A) + 4 * s * A.real) * V / w.real
    return second - math.log(2) + math.log1p((cmath.exp(first - second)).real)


@lru_cache(maxsize=256)  # redraws on the same data ask for the same numbers
def minimise(V: float, s: int, d: int) -> tuple[float, complex]:
    """Smallest `log_second_moment` over complex A, and its A.

    The search is over (log Re(1 - 8A), Im A) from real and complex starts.  The best A found has always been real; it
    is returned as such when the imaginary part gains nothing.
    """
    from scipy.optimize import minimize, minimize_scalar

    largest = 4 - math.log(optimal_rho(V, d))  # beyond the real optimum of s = 1, which is the more extreme one

    def A_of(t: float, b: float) -> complex:
        return complex((1 - math.exp(min(max(t, -6.0), largest))) / 8, b)

    def objective(p: Any) -> float:
        return log_second_moment(A_of(float(p[0]), float(p[1])), s, V, d)

    real = minimize_scalar(
        lambda t: objective((t, 0.0)), bounds=(-6.0, largest), method="bounded", options={"xatol": 1e-10}
    )
    best, A = float(real.fun), A_of(float(real.x), 0.0)
    if s == 1:  # the closed form
        A = complex(A_of_rho(optimal_rho(V, d)))
        best = log_second_moment(A, s, V, d)
    options = {"xatol": 1e-9, "fatol": 1e-12, "maxiter": 400}
    for start in ((real.x, 0.05), (real.x + 0.5, 0.5)):
        found = minimize(objective, start, method="Nelder-Mead", options=options)
        if found.fun < best - 1e-9 * max(1.0, abs(best)):
            best, A = float(found.fun), A_of(*found.x)
    return best, A
