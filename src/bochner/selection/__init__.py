"""Choice of the mechanism and the number of features for given data."""

from ._applicable import applicable as applicable
from ._recommend import DEFAULT_FEATURES as DEFAULT_FEATURES
from ._recommend import MOST_FEATURES as MOST_FEATURES
from ._recommend import recommend
from ._recommendation import Candidate, Recommendation

__all__ = [
    "Candidate",
    "Recommendation",
    "recommend",
]
