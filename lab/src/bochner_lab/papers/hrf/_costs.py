"""FLOPs of hybrid and plain features (HRF Section L), and the features that Figure 4 compares."""

from __future__ import annotations

from dataclasses import replace

from bochner import catalogue
from bochner.approximation import Approximation
from bochner.maps import AngularHybrid, Hyperbolic

HYBRID, PLAIN = "HRF 8x8", "FAVOR+ 256"
"""The two of the figure."""
TRIGONOMETRIC = "trigonometric"
"""Half of the hybrid's features; the number of rows follows."""


def cheap(d: int) -> str:
    """FAVOR+ with as many FLOPs as the hybrid."""
    return f"FAVOR+ {flops_of(HYBRID, d) // flops_of('FAVOR+ 1', d)}"


def trigonometric(d: int) -> str:
    """Trigonometric features with as many FLOPs as the hybrid."""
    return f"{TRIGONOMETRIC} {flops_of(HYBRID, d) // flops_of(f'{TRIGONOMETRIC} 1', d)}"


def features_of(method: str) -> Approximation:
    """The specification of a method; FAVOR+ is that of the paper's Eq. 3, with two exponentials per row."""
    if method.startswith(TRIGONOMETRIC):
        return catalogue.mechanism("favor", n_projections=int(method.split()[1]))
    if method == HYBRID:
        return replace(catalogue.mechanism("hrf-angular", n_projections=8), map=AngularHybrid(8))
    return replace(catalogue.mechanism("favor+", n_projections=int(method.split()[1])), map=Hyperbolic())


def flops_of(method: str, d: int) -> int:
    """Operations for the features of one vector and their product with a sum of features (Section L).

    A projection on a row takes 2d, and an exponential, sine or cosine of it and its scale two more.  The hybrid has m + n
    rows, of which the first m give two exponentials, a sine and a cosine each; its features are products of these with the
    n signs.
    """
    spec = features_of(method)
    m, width = spec.n_projections, spec.n_features_out
    if isinstance(spec.map, AngularHybrid):
        return 2 * (m + spec.map.n_coefficients) * d + 2 * 4 * m + width + 2 * width
    return 2 * m * d + 2 * width + 2 * width


def creation_flops(rows: int, d: int, *, signs: int | None = None) -> int:
    """FLOPs that create the features of one vector: of trigonometric features, or of an angular hybrid with ``signs``.

    A projection takes 2d - 1, a cosine, sine or exponential one each.  The hybrid has m + n projections, four base features
    per row, and its 4 m (n + 1) features are products of these with the signs and one constant.
    """
    if signs is None:
        return rows * (2 * d - 1) + 2 * rows
    return (rows + signs) * (2 * d - 1) + 4 * rows + 4 * rows * (signs + 1)


def equal_flops(rows: int, d: int, signs: int) -> int:
    """The largest m of an angular hybrid with so many signs that takes at most the FLOPs of trigonometric features."""
    budget, fixed = creation_flops(rows, d), creation_flops(0, d, signs=signs)
    return (budget - fixed) // (creation_flops(1, d, signs=signs) - fixed)
