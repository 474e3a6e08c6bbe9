"""Which mechanism, and how many features, for the data at hand."""

from ._applicable import applicable
from ._recommend import DEFAULT_FEATURES, MOST_FEATURES, recommend
from ._recommendation import Candidate, Recommendation

__all__ = ["DEFAULT_FEATURES", "MOST_FEATURES", "Candidate", "Recommendation", "applicable", "recommend"]
