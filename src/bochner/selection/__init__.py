"""Choice of the mechanism and the number of features for given data."""

from ._applicable import applicable
from ._recommend import DEFAULT_FEATURES, MOST_FEATURES, recommend
from ._recommendation import Candidate, Recommendation

__all__ = [
    "DEFAULT_FEATURES",
    "MOST_FEATURES",
    "Candidate",
    "Recommendation",
    "applicable",
    "recommend",
]
