"""Structured linear algebra: Walsh-Hadamard transforms, plane rotations, simplex products, Cholesky factors, the row engine.

Each operation has two implementations: a readable one for any array library (`references`), and one compiled by Numba
for NumPy arrays (`compiled`).  Tests compare the two at every size.  `engine` processes tiles of rows on a pool of
threads.
"""

from .engine import threads
from .references import fwht_reference as fwht_reference
from .transforms import fwht as fwht

__all__ = ["threads"]
