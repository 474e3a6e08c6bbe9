"""Structured linear algebra: Walsh-Hadamard transforms, plane rotations, simplex products, and the row engine.

Each operation exists twice: readable, for any array library (`references`), and compiled by Numba for NumPy arrays
(`compiled`).  Tests hold the two together at every size.  `engine` walks over tiles of rows on a pool of threads.
"""

from .engine import threads
from .references import fwht_reference
from .transforms import fwht

__all__ = ["fwht", "fwht_reference", "threads"]
