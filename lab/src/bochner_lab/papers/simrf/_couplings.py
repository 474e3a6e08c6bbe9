"""The couplings that SimRF compares, as positive features of the Gaussian kernel."""

from __future__ import annotations

from bochner import catalogue
from bochner.approximation import Approximation

COUPLINGS = ("iid", "orthogonal", "simplex")
LABELS = {
    "iid": "IIDRFs",
    "orthogonal": "ORFs",
    "hadamard": "fast ORFs",
    "simplex": "SimRFs",
    "fast-simplex": "fast SimRFs",
    "simplex+": "SimRFs+",
}


def positive_features(projection: str, m: int) -> Approximation:
    """Positive features of the unit Gaussian kernel with m rows of a projection of the catalogue."""
    return Approximation(catalogue.kernel("gaussian"), catalogue.map("positive"), catalogue.projection(projection), m)
