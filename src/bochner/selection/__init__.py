"""Choice of the mechanism and the number of features for given data.

`recommend` returns a `Recommendation`, whose ranking has a `Candidate` for each mechanism.
"""

from .._facts import publish
from ._applicable import applicable as applicable
from ._recommend import DEFAULT_FEATURES as DEFAULT_FEATURES
from ._recommend import MOST_FEATURES as MOST_FEATURES
from ._recommend import recommend
from ._recommendation import Candidate as Candidate
from ._recommendation import Recommendation

__all__ = [
    "Recommendation",
    "recommend",
]

publish(globals())
