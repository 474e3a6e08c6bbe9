"""Which mechanism, and how many features, for the data at hand."""

from .candidates import applicable
from .ranking import recommend
from .recommendation import Candidate, Recommendation

__all__ = ["Candidate", "Recommendation", "applicable", "recommend"]
