"""Which closed form of `bochner.theory` is the error of which approximation."""

from __future__ import annotations

import dataclasses
from functools import singledispatch
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from .. import theory
from ..kernels import ArcCosine, Gaussian, Softmax
from ..maps import (
    AngularHybrid,
    ComplexExponential,
    GaussianHybrid,
    GeneralizedExponential,
    Geometric,
    Hyperbolic,
    Identity,
    OptimalPositive,
    Poisson,
    Positive,
    Rectified,
    Sign,
    Trigonometric,
)
from ..maps.coefficients import NormalizedGaussianCoefficient
from ..maps.statistics import Data
from ..projections import IID, Orthogonal, Quadrature, Simplex

if TYPE_CHECKING:
    from .spec import Approximation


class NoClosedForm(ValueError):
    """No closed form is known for the error of this approximation; the message names the nearest that has one."""


def _coupling(spec: Approximation) -> str:
    """Name of the coupling in the closed forms: independent rows, or Haar blocks of the kernel's own lengths."""
    projection = spec.projection
    if isinstance(projection, IID):
        return "iid"
    if isinstance(projection, Orthogonal | Simplex) and projection.gaussian_rows:
        if projection.rotation.uniform_directions == "all":
            return "orthogonal" if isinstance(projection, Orthogonal) else "simplex"
    nearest = "Simplex(Haar())" if isinstance(projection, Simplex) else "Orthogonal(Haar())"
    raise NoClosedForm(
        f"no closed form is known for the error with {projection!r}; the nearest that has one is {nearest}."
    )


def _independent(spec: Approximation) -> None:
    if not isinstance(spec.projection, IID):
        raise NoClosedForm(
            f"no closed form is known for the error of {spec.map!r} with {spec.projection!r} and {spec.kernel!r}; "
            f"the nearest that has one is IID()."
        )


def _dim(spec: Approximation, X: np.ndarray) -> int:
    assert spec.projection is not None
    return spec.projection.padded(X.shape[-1])


def _absolute(spec: Approximation, pairs: theory.Pairs, log_relative: np.ndarray) -> np.ndarray:
    """k^2 times the relative error."""
    log_k = pairs.log_softmax if isinstance(spec.kernel, Softmax) else pairs.log_gaussian
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(2 * log_k + log_relative))


@singledispatch
def closed_form(feature_map: Any, spec: Approximation, X: np.ndarray, Y: np.ndarray, data: Data) -> np.ndarray:
    """Errors of the pairs of X (n, 1, d) and Y (1, p, d)."""
    raise NoClosedForm(
        f"no closed form is known for the error of {feature_map!r}; the nearest that have one are AngularHybrid, "
        f"GaussianHybrid with a radius, and ComplexExponential."
    )


@closed_form.register(Trigonometric)
def _(feature_map: Trigonometric, spec: Approximation, X: np.ndarray, Y: np.ndarray, data: Data) -> np.ndarray:
    pairs = theory.Pairs.of(X, Y)
    if not isinstance(spec.kernel, Gaussian | Softmax):
        return _shift_invariant(spec, X, Y)
    if isinstance(spec.projection, Quadrature):
        return _absolute_of_gaussian(spec, pairs, _quadrature(spec, pairs, X.shape[-1]))
    return _even(spec, pairs, _dim(spec, X))


def _even(spec: Approximation, pairs: theory.Pairs, d: int, A: complex = 0.0) -> np.ndarray:
    """Features of x - y: for the Gaussian kernel without a detour over relative errors, which lose digits far away."""
    m, coupling = spec.n_projections, _coupling(spec)
    if isinstance(spec.kernel, Gaussian):
        return theory.trigonometric_mse(pairs.minus, m, d, coupling, A)
    return _absolute(spec, pairs, theory.gerf_mse(A, -1, pairs.minus, m, d, coupling))


def _shift_invariant(spec: Approximation, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Var cos(w.z) = (1 + k(2z))/2 - k(z)^2 for any spectral law; independent rows divide it by m."""
    _independent(spec)
    unit: Any = dataclasses.replace(cast(Any, spec.kernel), lengthscale=1.0)  # the data are at unit scale already
    k, twice = unit(X[:, 0], Y[0]), unit(2 * X[:, 0], 2 * Y[0])
    return np.asarray(((1 + twice) / 2 - k**2) / spec.n_projections)


def _quadrature(spec: Approximation, pairs: theory.Pairs, d: int) -> np.ndarray:
    projection = spec.projection
    assert isinstance(projection, Quadrature)
    rows = d + 1 if projection.vertices == "simplex" else d
    whole = spec.n_projections % rows == 0
    if not (whole and projection.unbiased and projection.rotation.uniform_directions == "all"):
        raise NoClosedForm(
            f"no closed form is known for the error with {projection!r} and {spec.n_projections} rows; the nearest that has "
            f"one is Quadrature(Haar(), {projection.vertices!r}) with whole rules of {rows} rows."
        )
    return theory.spherical_radial_variance(pairs.minus, d, projection.vertices, "own", spec.n_projections // rows)


def _absolute_of_gaussian(spec: Approximation, pairs: theory.Pairs, variance: np.ndarray) -> np.ndarray:
    """An error of the Gaussian kernel as one of the softmax kernel, where that is asked for."""
    return variance * np.exp(pairs.x2 + pairs.y2) if isinstance(spec.kernel, Softmax) else variance


@closed_form.register(Positive)
def _(feature_map: Positive, spec: Approximation, X: np.ndarray, Y: np.ndarray, data: Data) -> np.ndarray:
    pairs, m, d = theory.Pairs.of(X, Y), spec.n_projections, _dim(spec, X)
    error = theory.hyperbolic_mse if feature_map.antithetic else theory.positive_mse
    return _absolute(spec, pairs, error(pairs.plus, m, d, _coupling(spec)))


@closed_form.register(Hyperbolic)
def _(feature_map: Hyperbolic, spec: Approximation, X: np.ndarray, Y: np.ndarray, data: Data) -> np.ndarray:
    return closed_form(Positive(antithetic=True), spec, X, Y, data)


@closed_form.register(GeneralizedExponential)
def _(feature_map: GeneralizedExponential, spec: Approximation, X: np.ndarray, Y: np.ndarray, data: Data) -> np.ndarray:
    pairs, m, d = theory.Pairs.of(X, Y), spec.n_projections, _dim(spec, X)
    A, s = feature_map.constants(d, data)
    even = s == -1 and not complex(A).imag  # cosines: reflections change nothing
    if feature_map.antithetic and not even:
        if s != 1 or complex(A).imag:
            raise NoClosedForm(f"no closed form is known for the error of {feature_map!r}; leave antithetic out.")
        _independent(spec)
        rho = 1 / (1 - 8 * complex(A).real)
        log_relative = theory.antithetic_optimal_positive_variance(pairs.plus, d, rho) - np.log(m)
        return _absolute(spec, pairs, log_relative)
    if s == -1:
        return _even(spec, pairs, d, complex(A))
    return _absolute(spec, pairs, theory.gerf_mse(complex(A), s, pairs.plus, m, d, _coupling(spec)))


@closed_form.register(OptimalPositive)
def _(feature_map: OptimalPositive, spec: Approximation, X: np.ndarray, Y: np.ndarray, data: Data) -> np.ndarray:
    chosen = feature_map.chosen(_dim(spec, X), data, np.random.default_rng(0))
    return closed_form(chosen, spec, X, Y, data)


@closed_form.register(ComplexExponential)
def _(feature_map: ComplexExponential, spec: Approximation, X: np.ndarray, Y: np.ndarray, data: Data) -> np.ndarray:
    _independent(spec)
    A = feature_map.matrix
    z = theory.complex_argument(X, Y, A if A.ndim else np.full(X.shape[-1], A))
    variance = (
        theory.antithetic_complex_exponential_variance
        if feature_map.antithetic
        else theory.complex_exponential_variance
    )
    return _absolute(spec, theory.Pairs.of(X, Y), variance(z) - np.log(spec.n_projections))


@closed_form.register(Poisson)
@closed_form.register(Geometric)
def _(feature_map: Poisson | Geometric, spec: Approximation, X: np.ndarray, Y: np.ndarray, data: Data) -> np.ndarray:
    shift = feature_map.shift(X.shape[-1], data)
    parameter = feature_map.parameter(data, shift, np.random.default_rng(0))
    variance = theory.poisson_variance if isinstance(feature_map, Poisson) else theory.geometric_variance
    log_relative = variance(X - shift, Y - shift, parameter) - np.log(spec.n_projections)
    return _absolute(spec, theory.Pairs.of(X, Y), log_relative)


@closed_form.register(AngularHybrid)
def _(feature_map: AngularHybrid, spec: Approximation, X: np.ndarray, Y: np.ndarray, data: Data) -> np.ndarray:
    pairs, m, n = theory.Pairs.of(X, Y), spec.n_projections, feature_map.n_coefficients
    coupling = _coupling_of_hybrid(spec, feature_map.shared)
    error = theory.angular_hybrid_mse(pairs, m, n, _dim(spec, X), shared=feature_map.shared, coupling=coupling)
    return _absolute(spec, pairs, error)


@closed_form.register(GaussianHybrid)
def _(feature_map: GaussianHybrid, spec: Approximation, X: np.ndarray, Y: np.ndarray, data: Data) -> np.ndarray:
    if feature_map.matrices is not None:
        raise NoClosedForm(
            f"no closed form is offered for the error of {feature_map!r}; the nearest is without matrices."
        )
    pairs, m, n = theory.Pairs.of(X, Y), spec.n_projections, feature_map.n_coefficients
    coupling, sigma = _coupling_of_hybrid(spec, feature_map.shared), feature_map.sigma or 1.0
    radius = NormalizedGaussianCoefficient(sigma, feature_map.radius, n).effective_radius(data)
    error = theory.gaussian_hybrid_mse(
        pairs, m, n, _dim(spec, X), sigma=sigma, radius=radius, shared=feature_map.shared, coupling=coupling
    )
    return _absolute(spec, pairs, error)


def _coupling_of_hybrid(spec: Approximation, shared: bool) -> str:
    if shared:
        _independent(spec)
    return _coupling(spec)


@closed_form.register(Sign)
def _(feature_map: Sign, spec: Approximation, X: np.ndarray, Y: np.ndarray, data: Data) -> np.ndarray:
    """Products of signs are plus or minus one, and zero with a zero vector."""
    _independent(spec)
    assert spec.kernel is not None
    k = spec.kernel(X[:, 0], Y[0])
    square = (X[:, 0] != 0).any(axis=1)[:, None] & (Y[0] != 0).any(axis=1)[None]
    return np.asarray((square - k**2) / spec.n_projections)


@closed_form.register(Rectified)
def _(feature_map: Rectified, spec: Approximation, X: np.ndarray, Y: np.ndarray, data: Data) -> np.ndarray:
    """E[(2 f f)^2] is twice the kernel of double the order: 2 k_0 for steps, 2 k_2 for positive parts."""
    _independent(spec)
    if feature_map.order == 2:
        raise NoClosedForm("no closed form is offered for the error of Rectified(order=2); the nearest is order 1.")
    k, double = ArcCosine(feature_map.order)(X[:, 0], Y[0]), ArcCosine(2 * feature_map.order)(X[:, 0], Y[0])
    return np.asarray((2 * double - k**2) / spec.n_projections)


@closed_form.register(Identity)
def _(feature_map: Identity, spec: Approximation, X: np.ndarray, Y: np.ndarray, data: Data) -> np.ndarray:
    m, d = spec.n_projections, _dim(spec, X)
    projection = spec.projection
    if isinstance(projection, Orthogonal) and projection.radii == "fixed" and d == X.shape[-1] and m <= d:
        if projection.rotation.uniform_directions == "all":  # rows of a Haar matrix: a sample without replacement
            return theory.subsampled_dot_mse(X, Y, m, theory.haar_fourth_moment(X, Y))
    return theory.chi_dot_mse(X, Y, m, _coupling(spec))
