"""Black-box optimisation with coupled directions: smoothed gradients, evolution strategies, descent.

Directions are the rows of any projection of `bochner.projections`: independent, orthogonal, or nodes of a quadrature, by
dense or fast rotations.

- `smoothed_gradient` estimates one gradient, with its standard error;
- `minimize` descends along such gradients and returns a `scipy.optimize.OptimizeResult`;
- `EvolutionStrategy` is the same search as ``ask`` and ``tell``, which can be saved and resumed bit for bit;
- results: `Candidates` are the points that it asks for, and `GradientEstimate` is what it makes of their values;
- `SGD`, `Momentum` and `Adam` are update rules; write your own as a subclass of `UpdateRule`;
- `ModuleParameters` turns the parameters of a torch module into a vector and back;
- `EvaluationWarning` reports evaluations that failed, and `EvaluationError` is raised if nothing else is left.
"""

from .._facts import publish
from ._evaluation import EvaluationError, EvaluationWarning
from ._gradient import Candidates as Candidates
from ._gradient import GradientEstimate as GradientEstimate
from ._gradient import smoothed_gradient
from ._minimize import minimize
from ._strategy import EvolutionStrategy
from ._torch_parameters import ModuleParameters
from ._update_rules import SGD, Adam, Momentum, UpdateRule

__all__ = [
    "SGD",
    "Adam",
    "EvaluationError",
    "EvaluationWarning",
    "EvolutionStrategy",
    "ModuleParameters",
    "Momentum",
    "UpdateRule",
    "minimize",
    "smoothed_gradient",
]

publish(globals())
