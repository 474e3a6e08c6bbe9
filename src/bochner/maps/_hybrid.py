"""Hybrid maps: several maps for one kernel, mixed by random coefficients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from .. import theory
from .._arrays import array_namespace
from .._validation import check_count, check_flag, shown
from ..kernels import Gaussian, Kernel
from ..projections import Projection
from ._classical import Hyperbolic, Trigonometric
from ._data import Data
from ._drawing import Draws
from ._error import ErrorCase, NoClosedForm
from ._exponential import ExponentialMap
from ._features import Features, Scaled, parts_of
from ._map import Argument, Layout, Map
from .coefficients import AngularCoefficient, Coefficient, DrawnCoefficient


class HybridMap(ExponentialMap):
    """Base class of hybrids: real features with signs on the side of the keys, neither symmetric nor positive."""

    references: ClassVar[tuple[str, ...]] = ("hrf",)
    family: ClassVar[str] = "hybrid"

    def worth_trying(self, projection: Projection) -> bool:
        """Only with rows of equal weight and an exact law: hybrids are wide, and the coupling changes their error little."""
        return projection.gaussian_rows and projection.coupling is not None

    def why(self, facts: Any) -> str:
        return (
            "A hybrid is best: some pairs are close and some are opposite, and it weights the more accurate base for "
            "each."
        )


class Block(NamedTuple):
    """A block of hybrid features: a base, its constant weight, and the coefficient that multiplies it, if any."""

    base: int
    constant: float
    coefficient: int | None


def blocks_of(coefficients: Sequence[Coefficient]) -> list[Block]:
    """Return the four kinds of blocks of HRF Lemma 2.3, without those of weight zero."""
    last = len(coefficients)
    constants = [math.nan if c.constant is None else c.constant for c in coefficients]  # not known before the plan
    rest = 1 - sum(constants)
    blocks = [Block(k, a, None) for k, a in enumerate(constants) if a]
    blocks += [Block(k, float(c.sign), k) for k, c in enumerate(coefficients)]
    blocks += [Block(last, rest, None)] if rest else []
    blocks += [Block(last, float(-c.sign), k) for k, c in enumerate(coefficients)]
    return blocks


@dataclass(frozen=True)
class Hybrid(HybridMap):
    r"""The general hybrid: p + 1 bases mixed by p random coefficients.

    The bases can be any maps for the Gaussian or softmax kernel that use rows of W.  `AngularHybrid`, `GaussianHybrid`
    and `ClusterHybrid` are the named special cases.

    Parameters
    ----------
    bases : sequence of maps
        p + 1 maps for the Gaussian or softmax kernel.
    coefficients : sequence of Coefficient
        p coefficients (`bochner.maps.coefficients`).
    shared : bool
        Whether all bases use the same W; otherwise each has its own.

    Notes
    -----
    .. math:: \widehat{\mathrm{SM}} = \sum_{k\le p} \hat\lambda_k \widehat{\mathrm{SM}}_k +
              \Big(1 - \sum_k\hat\lambda_k\Big)\widehat{\mathrm{SM}}_{p+1},
              \qquad \hat\lambda_k = a_k + s_k\,\rho_k^{(1)}(x)\cdot\rho_k^{(2)}(y)

    (HRF Eq. 8-12, Lemma 2.3).  The hybrid is unbiased for any coefficients that are independent of the bases.  Its real
    features, with a sign for each block on the side of the keys, are :math:`\sqrt{|a_k|}\,\phi_k`,
    :math:`\rho_k\otimes\phi_k`, :math:`\sqrt{|1-\sum a_k|}\,\phi_{p+1}` and :math:`\rho_k\otimes\phi_{p+1}`.
    Projections cost (m + n) d per row, exponentials 2 m or so, and the outer products m n.  The exact error is
    :math:`\sum_{k,l} E[L_kL_l]\,\mathrm{Cov}_{kl}` with the weights L (`bochner.extending.hybrid_mse`); off-diagonal terms
    occur only with shared projections.

    References
    ----------
    hrf (Section 2.2).

    Examples
    --------
    >>> from bochner import Approximation, kernels, maps
    >>> from bochner.maps.coefficients import AngularCoefficient
    >>> hybrid = maps.Hybrid([maps.Hyperbolic(), maps.Trigonometric()], [AngularCoefficient(4)])
    >>> Approximation(kernels.Softmax(), hybrid, n_projections=8).n_features_out
    160
    """

    bases: tuple[Map, ...]
    coefficients: tuple[Coefficient, ...]
    shared: bool = True

    def __post_init__(self) -> None:
        for name, kind in (("bases", Map), ("coefficients", Coefficient)):
            values = getattr(self, name)
            if not isinstance(values, Sequence) or not all(isinstance(value, kind) for value in values):
                raise TypeError(f"Hybrid: {name} must be a sequence of {kind.__name__.lower()}s, got {shown(values)}.")
            object.__setattr__(self, name, tuple(values))
        if len(self.bases) != len(self.coefficients) + 1 or len(self.bases) < 2:
            raise ValueError(
                f"Hybrid: there must be one base more than coefficients, got {len(self.bases)} bases and "
                f"{len(self.coefficients)} coefficients; the last base has the remaining weight."
            )
        for base in self.bases:
            check_base("Hybrid", base)
        check_flag("Hybrid", "shared", self.shared)

    def serves(self, kernel: Kernel | None) -> bool:
        return super().serves(kernel) and all(base.serves(kernel) for base in self.bases)

    @property
    def planned(self) -> bool:
        return all(base.planned for base in self.bases) and all(c.planned for c in self.coefficients)

    def plan(
        self, data: Data, projection: Projection, kernel: Kernel | None, rng: np.random.Generator, m: int
    ) -> Hybrid:
        bases = tuple(base.plan(data, projection, kernel, rng, m) for base in self.bases)
        return replace(self, bases=bases, coefficients=tuple(c.plan(data, rng) for c in self.coefficients))

    def layout(self, projection: Projection) -> Layout:
        bases = [base.layout(projection) for base in self.bases]
        sizes = [(bases[b], 1 if k is None else self.coefficients[k].width) for b, _, k in blocks_of(self.coefficients)]
        return Layout(
            sum(base.per_row * n for base, n in sizes), sum(base.extra * n for base, n in sizes), False, False
        )

    def draw(self, draws: Draws, kernel: Kernel | None) -> Features:
        bases = [
            base.draw(draws if self.shared else draws.apart(f"base-{k}"), kernel) for k, base in enumerate(self.bases)
        ]
        drawn = [c.draw(draws.apart(f"coefficient-{k}")) for k, c in enumerate(self.coefficients)]
        return HybridFeatures(bases, drawn, blocks_of(self.coefficients))

    def mse(self, case: ErrorCase) -> np.ndarray:
        """Error from those of the bases and coefficients; bases that share rows must be plain exponentials."""
        n, moments = len(self.bases), [c.moments(case) for c in self.coefficients]
        covariances: list[list[Any]] = [[0.0] * n for _ in range(n)]
        for k, base in enumerate(self.bases):
            covariances[k][k] = base.mse(case)
        if self.shared:
            if case.coupling == "orthogonal":
                case.require_time(self)
            arguments = [self._argument(base, case) for base in self.bases]
            for k in range(n):
                for l in range(k):
                    covariances[k][l] = covariances[l][k] = shared_covariance(case, arguments[k], arguments[l])
        return theory.hybrid_mse(moments, covariances)

    def _argument(self, base: Map, case: ErrorCase) -> Argument:
        found = base.argument(case)
        if found is None or case.coupling == "simplex":
            raise NoClosedForm(
                f"no closed form is known for the error of {self!r} with shared rows of {case.projection!r}; the nearest "
                f"that has one is shared=False, or Positive, Hyperbolic, Trigonometric and ComplexExponential bases with "
                f"Orthogonal() or IID()."
            )
        return found


def shared_covariance(case: ErrorCase, first: Argument, second: Argument) -> np.ndarray:
    """Covariances of the estimators of two bases with the same rows, at all pairs of a case."""
    even = first.even or second.even
    relative = theory.shared_relative_covariance(first.z, second.z, case.m, case.dim, even=even, coupling=case.coupling)
    return np.asarray(case.squared_kernel * relative)


def check_base(owner: str, base: Map) -> None:
    """Raise a ValueError for a base that has no W, or that does not estimate the kernels of hybrids."""
    if not base.uses_rows:
        raise ValueError(f"{owner}: {base!r} has no W to share; use exponential or trigonometric bases.")
    if not base.serves(Gaussian()):
        raise ValueError(
            f"{owner}: the base {base!r} needs {base.requirement}, but hybrids estimate the Gaussian and the softmax "
            f"kernel; use exponential or trigonometric bases."
        )


class HybridFeatures(Features):
    """The four kinds of blocks of HRF Lemma 2.3, each with its sign."""

    symmetric = False
    positive = False

    def __init__(
        self, bases: Sequence[Features], coefficients: Sequence[DrawnCoefficient], blocks: Sequence[Block]
    ) -> None:
        self.bases, self.coefficients, self.blocks = tuple(bases), tuple(coefficients), tuple(blocks)
        self.width = sum(bases[base].width * (1 if k is None else coefficients[k].width) for base, _, k in blocks)

    def scaled(self, X: Any, *, key: bool) -> Scaled:
        """Concatenate the blocks; the logarithms are those of the bases, since coefficients are of order one."""
        parts = [parts_of(base, X, key=key) for base in self.bases]
        mantissas = self.products([mantissa for mantissa, _ in parts], X, key=key)
        return mantissas, self.repeated([logarithm for _, logarithm in parts])

    def repeated(self, of_bases: Sequence[Any]) -> Any:
        """Numbers of each base (..., n, width), for all features: side by side, once for each product with the base."""
        copies = [1 if k is None else self.coefficients[k].width for _, _, k in self.blocks]
        columns = [of_bases[base] for (base, _, _), n in zip(self.blocks, copies, strict=True) for _ in range(n)]
        return array_namespace(of_bases[0]).concat(columns, axis=-1)

    def __call__(self, X: Any, *, key: bool) -> Any:
        """Features of the bases first, then their products with the coefficients: no exponential is computed twice."""
        return self.products(self._values(X, key=key), X, key=key)

    def fill(self, X: Any, out: np.ndarray, *, key: bool) -> None:
        """Write the products directly into ``out``."""
        from ..linalg.loops import row_products

        values, rho, start = self._values(X, key=key), [c.features(X, key=key) for c in self.coefficients], 0
        for base, constant, k in self.blocks:
            factor, part = out.dtype.type(_factor(constant, key=key)), values[base]
            stop = start + part.shape[1] * (1 if k is None else rho[k].shape[1])
            if k is None:
                np.multiply(factor, part, out=out[:, start:stop])
            else:
                row_products(factor, rho[k], part, out[:, start:stop])
            start = stop

    def _values(self, X: Any, *, key: bool) -> list[Any]:
        """Features of each base; rows are projected once for all bases that share a W."""
        projected: dict[int, Any] = {}
        values = []
        for base in self.bases:
            if base.operator is None:
                values.append(base(X, key=key))
                continue
            if id(base.operator) not in projected:
                projected[id(base.operator)] = base.operator.apply(X)
            values.append(base.at_projections(X, projected[id(base.operator)], key=key))
        return values

    def products(self, values: Sequence[Any], X: Any, *, key: bool) -> Any:
        """The blocks: ``values`` of the bases times their constants and coefficients, side by side."""
        xp, rho = array_namespace(X), [c.features(X, key=key) for c in self.coefficients]
        parts = []
        for base, constant, k in self.blocks:
            factor, part = _factor(constant, key=key), values[base]
            if k is None:
                parts.append(factor * part)
            else:
                product = (factor * rho[k])[..., :, None] * part[..., None, :]
                parts.append(xp.reshape(product, (*part.shape[:-1], rho[k].shape[-1] * part.shape[-1])))
        return xp.concat(parts, axis=-1)


def _factor(constant: float, *, key: bool) -> float:
    """Factor of one side: the root of a constant, with its sign on the side of the keys."""
    return math.sqrt(abs(constant)) * (math.copysign(1.0, constant) if key else 1.0)


@dataclass(frozen=True)
class AngularHybrid(HybridMap):
    r"""Angular hybrid features: `Hyperbolic` for large angles, `Trigonometric` for small ones.

    Accurate for small and for large angles, while each of its bases is accurate at one end only.
    Use it for softmax where both small and large values of the kernel matter.

    Parameters
    ----------
    n_coefficients : int
        Number n of sign projections.
    shared : bool
        Whether both bases use the same W.

    Notes
    -----
    :math:`\hat\lambda\,\mathrm{SM}^{++} + (1-\hat\lambda)\,\mathrm{SM}^{trig}` with :math:`\hat\lambda` an estimate of
    :math:`\theta/\pi` by n signs (HRF Section 3).  There are 4 m (n + 1) features, and the variance is zero at angles 0
    and :math:`\pi` for equal norms.  The error is
    :math:`E\hat\lambda^2\,\mathrm{MSE}^{++} + E(1-\hat\lambda)^2\,\mathrm{MSE}^{trig}` (HRF Theorem 3.1), plus
    :math:`2E\hat\lambda(1-\hat\lambda)\,\mathrm{Cov} \le 0` with shared projections and different norms.

    References
    ----------
    hrf (Eq. 19, Theorem 3.1).

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import Approximation, kernels, maps
    >>> phi = Approximation(kernels.Softmax(), maps.AngularHybrid(4), n_projections=8).draw(3, rng=0)
    >>> x = np.array([[0.3, -0.2, 0.5]])
    >>> bool(np.allclose(phi.gram(x, x), np.exp(x @ x.T)) and np.allclose(phi.gram(x, -x), np.exp(-x @ x.T)))
    True
    """

    n_coefficients: int = 8
    shared: bool = True
    name: ClassVar[str] = "angular-hybrid"
    formula: ClassVar[str] = (
        r"\hat\lambda\,\hat k_{\cosh} + (1-\hat\lambda)\,\hat k_{\cos}, \hat\lambda\text{ from signs}"
    )

    def __post_init__(self) -> None:
        n = check_count("AngularHybrid", "n_coefficients", self.n_coefficients)
        object.__setattr__(self, "n_coefficients", n)
        check_flag("AngularHybrid", "shared", self.shared)

    def _hybrid(self) -> Hybrid:
        return Hybrid((Hyperbolic(), Trigonometric()), (AngularCoefficient(self.n_coefficients),), self.shared)

    def layout(self, projection: Projection) -> Layout:
        return self._hybrid().layout(projection)

    def draw(self, draws: Draws, kernel: Kernel | None) -> Features:
        return self._hybrid().draw(draws, kernel)

    def mse(self, case: ErrorCase) -> np.ndarray:
        """Error of HRF Theorem 3.1, with the covariance of shared and coupled rows."""
        return self._hybrid().mse(case)
