"""Mixtures of maps with random coefficients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from .._arrays import array_namespace
from .._validation import check_flag
from ..kernels import Gaussian, Kernel
from .base import Map
from .coefficients import Coefficient
from .coefficients.base import DrawnCoefficient
from .draws import Draws
from .exponential import ExponentialMap
from .features import Features, Scaled, parts_of
from .statistics import Data


class HybridMap(ExponentialMap):
    """Common body of the hybrids: real pairs with the sign on the side of the keys, never symmetric nor positive."""

    references: ClassVar[tuple[str, ...]] = ("hrf",)
    always_symmetric: ClassVar[bool] = False


@dataclass(frozen=True)
class Hybrid(HybridMap):
    r"""The general hybrid: p + 1 bases mixed by p random coefficients (HRF Eq. 8-12, Lemma 2.3).

    Notes
    -----
    .. math:: \widehat{\mathrm{SM}} = \sum_{k\le p} \hat\lambda_k \widehat{\mathrm{SM}}_k +
              \Big(1 - \sum_k\hat\lambda_k\Big)\widehat{\mathrm{SM}}_{p+1},
              \qquad \hat\lambda_k = a_k + s_k\,\rho_k^{(1)}(x)\cdot\rho_k^{(2)}(y).

    Unbiased for any coefficients drawn apart from the bases.  As real features, with a sign for each block on the side
    of the keys: :math:`\sqrt{|a_k|}\,\phi_k`, :math:`\rho_k\otimes\phi_k`, :math:`\sqrt{|1-\sum a_k|}\,\phi_{p+1}` and
    :math:`\rho_k\otimes\phi_{p+1}`.  Projections cost (m + n) d a row and the outer products m n.  Exact error:
    :math:`\sum_{k,l} E[L_kL_l]\,\mathrm{Cov}_{kl}`, L the weights, off-diagonal terms only with shared projections.

    Parameters
    ----------
    bases : sequence of maps
        p + 1 maps for the Gaussian or softmax kernel.
    coefficients : sequence of Coefficient
        p coefficients (`bochner.maps.coefficients`).
    shared : bool
        Whether all bases use the same W, or each its own.

    References
    ----------
    hrf (Section 2.2).

    Examples
    --------
    >>> from bochner import Approximation, kernels, maps
    >>> from bochner.maps.coefficients import AngularCoefficient
    >>> hybrid = maps.Hybrid([maps.Hyperbolic(), maps.Trigonometric()], [AngularCoefficient(4)])
    >>> Approximation(kernels.Softmax(), hybrid, n_projections=8).draw(3, rng=0).n_features_out
    160
    """

    bases: tuple[Map, ...]
    coefficients: tuple[Coefficient, ...]
    shared: bool = True

    def __post_init__(self) -> None:
        for name, kind in (("bases", Map), ("coefficients", Coefficient)):
            values = getattr(self, name)
            if not isinstance(values, Sequence) or not all(isinstance(value, kind) for value in values):
                raise TypeError(f"Hybrid: {name} must be a sequence of {kind.__name__.lower()}s, got {values!r}.")
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
        """The Gaussian and the softmax kernel, if all bases do."""
        return super().serves(kernel) and all(base.serves(kernel) for base in self.bases)

    @property
    def needs_data(self) -> bool:
        """If a base or a coefficient does."""
        return any(base.needs_data for base in self.bases) or any(c.needs_data for c in self.coefficients)

    def draw(self, draws: Draws, kernel: Kernel | None, data: Data | None) -> Features:
        """Draw the bases, together or apart, and the coefficients, always apart."""
        bases = [
            base.draw(draws if self.shared else draws.apart(f"base-{k}"), kernel, data)
            for k, base in enumerate(self.bases)
        ]
        coefficients = [c.draw(draws.apart(f"coefficient-{k}"), data) for k, c in enumerate(self.coefficients)]
        return HybridFeatures(bases, coefficients)


def check_base(owner: str, base: Map) -> None:
    """Refuse a base that has no W, or that does not estimate the kernels of hybrids."""
    if base.discrete:
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

    def __init__(self, bases: Sequence[Features], coefficients: Sequence[DrawnCoefficient]) -> None:
        self.bases, self.coefficients = tuple(bases), tuple(coefficients)
        last = len(bases) - 1
        rest = 1 - sum(c.a for c in coefficients)
        # (base, constant, coefficient or None)
        self.blocks: list[tuple[int, float, int | None]] = [(k, c.a, None) for k, c in enumerate(coefficients) if c.a]
        self.blocks += [(k, float(c.s), k) for k, c in enumerate(coefficients)]
        self.blocks += [(last, rest, None)] if rest else []
        self.blocks += [(last, float(-c.s), k) for k, c in enumerate(coefficients)]
        self.width = sum(bases[base].width * (1 if k is None else coefficients[k].width) for base, _, k in self.blocks)

    def scaled(self, X: Any, *, key: bool) -> Scaled:
        """Blocks side by side; the logarithms are those of the bases, since coefficients are of order one."""
        xp = array_namespace(X)
        parts = [parts_of(base, X, key=key) for base in self.bases]
        rho = [c.features(X, key=key) for c in self.coefficients]
        mantissas, logarithms = [], []
        for base, constant, k in self.blocks:
            mantissa, logarithm = parts[base]
            factor = math.sqrt(abs(constant)) * (math.copysign(1.0, constant) if key else 1.0)
            if k is not None:
                mantissa, logarithm = outer(xp, rho[k], mantissa, logarithm)
            mantissas.append(factor * mantissa)
            logarithms.append(logarithm)
        return xp.concat(mantissas, axis=-1), xp.concat(logarithms, axis=-1)


def outer(xp: Any, rho: Any, mantissa: Any, logarithm: Any) -> Scaled:
    """All products of an entry of rho and a feature, flattened."""
    lead = tuple(mantissa.shape[:-1])
    width = rho.shape[-1] * mantissa.shape[-1]
    product = rho[..., :, None] * mantissa[..., None, :]
    repeated = xp.broadcast_to(logarithm[..., None, :], product.shape)
    return xp.reshape(product, (*lead, width)), xp.reshape(repeated, (*lead, width))
