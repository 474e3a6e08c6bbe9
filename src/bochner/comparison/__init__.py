"""Comparison of kernel machines with what one would use instead, on the same folds of the user's own data.

`compare` returns a `Comparison`, which has a `Result` for each candidate.
"""

from .._facts import publish
from ._comparison import Comparison
from ._comparison import Result as Result
from ._run import compare

__all__ = ["Comparison", "compare"]

publish(globals())
