"""Monte Carlo with coupled points, beyond kernels.

- `expectation` estimates E f(X) for Gaussian and uniform vectors and for the spectral law of a kernel; `Expectation` is what
  it returns;
- `haar_distance` measures how far a rotation sends a vector from the uniform law on the sphere.

Both are also names of `bochner` itself.  Gradients of smoothed functions are in `bochner.optimize`.
"""

from .._facts import publish
from ._expectation import Expectation as Expectation
from ._expectation import expectation
from ._haar_distance import haar_distance

__all__ = ["expectation", "haar_distance"]

publish(globals())
