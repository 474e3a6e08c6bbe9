"""Every kernel as small instances, each with an independent answer: the formula on two vectors, in long double."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
from scipy.special import beta, erfcx, gamma, hyp1f1, kv

from bochner.kernels import (
    Additive,
    Angular,
    ArcCosine,
    Beta,
    Cauchy,
    Columns,
    DotProduct,
    ExponentialPower,
    Gaussian,
    GeneralizedCauchy,
    GeneralizedMatern,
    Kernel,
    Kummer,
    Laplacian,
    Linear,
    LpExponential,
    Matern,
    Periodic,
    Polynomial,
    Product,
    RationalQuadratic,
    Softmax,
    Sum,
    Tricomi,
)

D = 3  # inputs of the instances with one lengthscale for each dimension
SCALES = (0.5, 1.0, 3.0)
PI = np.longdouble("3.14159265358979323846264338327950288")


def distance(x, y, lengthscale):
    return np.sqrt((((x - y) / np.asarray(lengthscale, np.longdouble)) ** 2).sum())


def angle(x, y):
    x, y = x / np.sqrt(x @ x), y / np.sqrt(y @ y)
    return 2 * np.arctan2(np.sqrt(((x - y) ** 2).sum()), np.sqrt(((x + y) ** 2).sum()))


def gaussian(x, y, lengthscale):
    return np.exp(-(distance(x, y, lengthscale) ** 2) / 2)


def laplacian(x, y, lengthscale):
    return np.exp(-(np.abs(x - y) / np.asarray(lengthscale, np.longdouble)).sum())


def cauchy(x, y, lengthscale):
    return 1 / (1 + distance(x, y, lengthscale) ** 2)


def rational_quadratic(x, y, alpha, lengthscale):
    return (1 + distance(x, y, lengthscale) ** 2 / (2 * np.longdouble(alpha))) ** -np.longdouble(alpha)


def matern(x, y, nu, lengthscale):
    """Polynomials times an exponential at half-integers (Rasmussen and Williams, Equation 4.16), Bessel otherwise."""
    z = np.sqrt(2 * np.longdouble(nu)) * distance(x, y, lengthscale)
    p = nu - 0.5
    if p != int(p):
        return np.longdouble(2 ** (1 - nu) / gamma(nu) * float(z) ** nu * kv(nu, float(z))) if z else np.longdouble(1)
    p = int(p)
    total = sum(
        math.factorial(p + i) / math.factorial(i) / math.factorial(p - i) * (2 * z) ** (p - i) for i in range(p + 1)
    )
    return np.exp(-z) * math.factorial(p) / math.factorial(2 * p) * total


def exponential_power(x, y, power, lengthscale):
    return np.exp(-(distance(x, y, lengthscale) ** np.longdouble(power)))


def generalized_cauchy(x, y, power, decay, lengthscale):
    r = distance(x, y, lengthscale) ** np.longdouble(power)
    return (1 + r) ** (-np.longdouble(decay) / np.longdouble(power))


def generalized_matern(x, y, nu, power, lengthscale):
    r = distance(x, y, lengthscale) ** (np.longdouble(power) / 2)
    return matern(np.array([r]), np.zeros(1, np.longdouble), nu, 1.0)


def of_beta_law(function):
    """A kernel that is a function of two shapes and the distance to a power, by the special functions of SciPy."""

    def reference(x, y, alpha, b, power, lengthscale):
        t = float(distance(x, y, lengthscale) ** np.longdouble(power))
        return np.longdouble(function(alpha, b, t))

    return reference


kummer = of_beta_law(lambda a, b, t: hyp1f1(a, a + b, -t))
tricomi = of_beta_law(lambda a, b, t: erfcx(t**0.5))  # shapes 1/2: U(1/2, 1/2, t); hyperu has nine digits
beta_ratio = of_beta_law(lambda a, b, t: beta(a + t, b) / beta(a, b))


def lp_exponential(x, y, norm, power, lengthscale):
    z = np.abs(x - y) / np.asarray(lengthscale, np.longdouble)
    return np.exp(-((z ** np.longdouble(norm)).sum() ** (np.longdouble(power) / np.longdouble(norm))))


def periodic(x, y, period, lengthscale):
    period, lengthscale = (np.asarray(value, np.longdouble) for value in (period, lengthscale))
    return np.exp(-2 * (np.sin(PI * (x - y) / period) ** 2 / lengthscale**2).sum())


def additive(x, y, order, lengthscale):
    z = (x - y) / np.asarray(lengthscale, np.longdouble)
    sets = list(itertools.combinations(range(len(z)), order))
    return sum(np.exp(-(z[list(chosen)] ** 2).sum() / 2) for chosen in sets) / len(sets)


def softmax(x, y, scale):
    return np.exp(np.longdouble(scale) * (x @ y))


def angular(x, y):
    return 1 - 2 * angle(x, y) / PI


def arc_cosine(x, y, order):
    theta, norms = angle(x, y), np.sqrt(x @ x) * np.sqrt(y @ y)
    sine, cosine = np.sin(theta), np.cos(theta)
    J = (PI - theta, sine + (PI - theta) * cosine, 3 * sine * cosine + (PI - theta) * (1 + 2 * cosine**2))[order]
    return norms**order * J / PI


REFERENCES: dict[Kernel, Callable] = {
    Gaussian(): lambda x, y: gaussian(x, y, 1.0),
    Gaussian(1.7): lambda x, y: gaussian(x, y, 1.7),
    Gaussian(SCALES): lambda x, y: gaussian(x, y, SCALES),
    Laplacian(1.7): lambda x, y: laplacian(x, y, 1.7),
    Laplacian(SCALES): lambda x, y: laplacian(x, y, SCALES),
    Cauchy(1.7): lambda x, y: cauchy(x, y, 1.7),
    Cauchy(SCALES): lambda x, y: cauchy(x, y, SCALES),
    RationalQuadratic(0.3): lambda x, y: rational_quadratic(x, y, 0.3, 1.0),
    RationalQuadratic(2.0, SCALES): lambda x, y: rational_quadratic(x, y, 2.0, SCALES),
    Matern(0.5): lambda x, y: matern(x, y, 0.5, 1.0),
    Matern(1.5, 1.7): lambda x, y: matern(x, y, 1.5, 1.7),
    Matern(2.5, SCALES): lambda x, y: matern(x, y, 2.5, SCALES),
    Matern(0.3): lambda x, y: matern(x, y, 0.3, 1.0),
    Matern(1.0, SCALES): lambda x, y: matern(x, y, 1.0, SCALES),
    Matern(4.5, 1.7): lambda x, y: matern(x, y, 4.5, 1.7),
    ExponentialPower(0.5): lambda x, y: exponential_power(x, y, 0.5, 1.0),
    ExponentialPower(1.4, 1.7): lambda x, y: exponential_power(x, y, 1.4, 1.7),
    ExponentialPower(2.0, SCALES): lambda x, y: exponential_power(x, y, 2.0, SCALES),
    GeneralizedCauchy(1.0, 0.7, 1.7): lambda x, y: generalized_cauchy(x, y, 1.0, 0.7, 1.7),
    GeneralizedCauchy(1.5, 3.0, SCALES): lambda x, y: generalized_cauchy(x, y, 1.5, 3.0, SCALES),
    GeneralizedMatern(1.5, 1.0): lambda x, y: generalized_matern(x, y, 1.5, 1.0, 1.0),
    GeneralizedMatern(2.5, 1.6, SCALES): lambda x, y: generalized_matern(x, y, 2.5, 1.6, SCALES),
    Kummer(0.5, 0.5): lambda x, y: kummer(x, y, 0.5, 0.5, 2.0, 1.0),
    Kummer(2.0, 1.3, 1.2, SCALES): lambda x, y: kummer(x, y, 2.0, 1.3, 1.2, SCALES),
    Tricomi(0.5, 0.5): lambda x, y: tricomi(x, y, 0.5, 0.5, 2.0, 1.0),
    Tricomi(0.5, 0.5, 1.6, SCALES): lambda x, y: tricomi(x, y, 0.5, 0.5, 1.6, SCALES),
    Beta(1.0, 1.5): lambda x, y: beta_ratio(x, y, 1.0, 1.5, 2.0, 1.0),
    Beta(3.0, 0.4, 0.8, SCALES): lambda x, y: beta_ratio(x, y, 3.0, 0.4, 0.8, SCALES),
    LpExponential(1.0, 0.7): lambda x, y: lp_exponential(x, y, 1.0, 0.7, 1.0),
    LpExponential(1.3, 1.3, 1.7): lambda x, y: lp_exponential(x, y, 1.3, 1.3, 1.7),
    LpExponential(0.6, 0.4, SCALES): lambda x, y: lp_exponential(x, y, 0.6, 0.4, SCALES),
    Periodic(2.5, 0.8): lambda x, y: periodic(x, y, 2.5, 0.8),
    Periodic(SCALES, SCALES): lambda x, y: periodic(x, y, SCALES, SCALES),
    Product((Periodic(2.5), Gaussian(1.7))): lambda x, y: periodic(x, y, 2.5, 1.0) * gaussian(x, y, 1.7),
    Product((Matern(1.5, SCALES), Laplacian()), SCALES): lambda x, y: (
        matern(x, y, 1.5, np.square(SCALES)) * laplacian(x, y, SCALES)
    ),
    Sum((Gaussian(1.7), Cauchy(), Gaussian(0.3)), (1.0, 2.0, 5.0)): lambda x, y: (
        (gaussian(x, y, 1.7) + 2 * cauchy(x, y, 1.0) + 5 * gaussian(x, y, 0.3)) / 8
    ),
    Sum((Columns(Gaussian(2.0), (1,)), Laplacian()), None, SCALES): lambda x, y: (
        (gaussian(x[1:2], y[1:2], 2.0) + laplacian(x, y, SCALES)) / 2
    ),
    Columns(Gaussian((0.5, 2.0)), (2, 0), SCALES): lambda x, y: gaussian(x[[2, 0]], y[[2, 0]], (1.5, 1.0)),
    Additive(Gaussian(2.0)): lambda x, y: additive(x, y, 1, 2.0),
    Additive(Gaussian(), 2, SCALES): lambda x, y: additive(x, y, 2, SCALES),
    Softmax(): lambda x, y: softmax(x, y, 1.0),
    Softmax(0.4): lambda x, y: softmax(x, y, 0.4),
    Linear(): lambda x, y: x @ y,
    Polynomial(3): lambda x, y: (x @ y + 1) ** 3,
    Polynomial(2, 0.0, 0.5): lambda x, y: (x @ y / 2) ** 2,
    DotProduct((0.5, 0.0, 2.0, 1.0), 0.3): lambda x, y: (
        np.longdouble(0.5) + 2 * (np.longdouble(0.3) * (x @ y)) ** 2 + (np.longdouble(0.3) * (x @ y)) ** 3
    ),
    Angular(): angular,
    ArcCosine(0): lambda x, y: arc_cosine(x, y, 0),
    ArcCosine(1): lambda x, y: arc_cosine(x, y, 1),
    ArcCosine(2): lambda x, y: arc_cosine(x, y, 2),
}
KERNELS = list(REFERENCES)
SHIFT_INVARIANT = [k for k in KERNELS if k.shift_invariant]
ANY_WIDTH = [k for k in KERNELS if getattr(k, "lengthscale", 1.0) != SCALES]


def exact_gram(kernel: Kernel, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """The Gram matrix of two matrices, entry by entry in long double."""
    X, Y = X.astype(np.longdouble), Y.astype(np.longdouble)
    return np.array([[REFERENCES[kernel](x, y) for y in Y] for x in X])


def points(n: int, d: int, seed: int = 0, dtype: type = np.float64) -> np.ndarray:
    """Read-only normal points."""
    X = np.random.default_rng([seed, n, d]).standard_normal((n, d)).astype(dtype)
    X.flags.writeable = False
    return X
