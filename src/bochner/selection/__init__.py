"""Which mechanism, and how many features, for the data at hand."""

from .candidates import applicable
from .ranking import DEFAULT_FEATURES, MOST_FEATURES, recommend
from .recommendation import Candidate, Recommendation

__all__ = ["DEFAULT_FEATURES", "MOST_FEATURES", "Candidate", "Recommendation", "applicable", "recommend"]
