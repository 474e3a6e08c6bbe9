"""Comparison of kernel machines with what one would use instead, on the same folds of the user's own data."""

from ._comparison import Comparison, Result
from ._run import compare

__all__ = ["Comparison", "Result", "compare"]
