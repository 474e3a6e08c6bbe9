"""Structured linear algebra: Walsh-Hadamard transforms, plane rotations, simplex products, and the tile engine.

Each operation exists twice: readable, for any array library (`walsh`, `givens`, `simplex`), and compiled by Numba for
NumPy arrays (`compiled`).  Tests hold the two together at every size.
"""

from .hadamard import fwht
from .tiles import threads
from .walsh import fwht_reference

__all__ = ["fwht", "fwht_reference", "threads"]
