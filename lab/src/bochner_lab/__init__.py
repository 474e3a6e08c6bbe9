"""The laboratory of `bochner`: experiments of the five papers with verdicts, benchmarks and data sets.

`experiments()` are all of them by name, `experiment(name)` is one; `run` computes the parts of one and writes them as JSON,
`draw` makes the figure from that file, and `write_site` collects everything as a set of HTML pages.  Adding an
experiment is one file in the folder of its paper, with a subclass of `Experiment`.

>>> import bochner_lab
>>> bochner_lab.experiment("simrf-fig6").item
'Figure 6'
"""

from . import datasets
from ._estimates import Estimate, power_law
from ._experiment import (
    PAPERS,
    Absent,
    Experiment,
    PowerCheck,
    Results,
    Row,
    absent,
    add_experiments,
    by_profile,
    experiment,
    experiments,
    needs,
    printed,
    recorded_seconds,
    statement,
)
from ._figures import draw
from ._runner import judged_again, read_result, read_results, result_path, run, seconds_left
from ._site import write_site
from ._verdicts import (
    CANNOT_RUN,
    FAILS,
    HOLDS,
    IN_PART,
    UNDECIDED,
    VERDICTS,
    Finding,
    agreement,
    equal,
    mostly_equal,
    mostly_superior,
    not_worse,
    superior,
    superior_somewhere,
    together,
    verdict_of,
)

__version__ = "0.2.0"

__all__ = [
    "CANNOT_RUN",
    "FAILS",
    "HOLDS",
    "IN_PART",
    "PAPERS",
    "UNDECIDED",
    "VERDICTS",
    "Absent",
    "Estimate",
    "Experiment",
    "Finding",
    "PowerCheck",
    "Results",
    "Row",
    "__version__",
    "absent",
    "add_experiments",
    "agreement",
    "by_profile",
    "datasets",
    "draw",
    "equal",
    "experiment",
    "experiments",
    "judged_again",
    "mostly_equal",
    "mostly_superior",
    "needs",
    "not_worse",
    "power_law",
    "printed",
    "read_result",
    "read_results",
    "recorded_seconds",
    "result_path",
    "run",
    "seconds_left",
    "statement",
    "superior",
    "superior_somewhere",
    "together",
    "verdict_of",
    "write_site",
]
