"""The catalogue: every kernel, rotation, geometry, radial law, projection, map and named mechanism, by name.

Each class declares its facts once (`name`, variants, references, what it serves, when it is worth trying).  This module
collects them, and `recommend`, `compare`, the command line, the benchmarks, the tables of the documentation, the error
messages and the common tests iterate over it.  Use `bochner.extending.register` to add your own class.

>>> from bochner import catalogue
>>> sorted(catalogue.rotations())
['butterfly', 'haar', 'hadamard', 'kac', 'multi-hadamard', 'structured-givens', \
'unpadded-butterfly', 'unpadded-hadamard']
>>> catalogue.projection("fast-simplex")
Simplex(rotation=Hadamard(blocks=3), radii='kernel')
"""

from .._facts import publish
from .._facts import register as register
from .._facts import unregister as unregister
from ..approximation._names import (
    geometries,
    kernel,
    kernels,
    maps,
    projection,
    projections,
    radii,
    rotation,
    rotations,
)
from ..approximation._names import map as map
from ._mechanisms import Mechanism, mechanism, mechanisms
from ._mechanisms import as_specification as as_specification
from ._parts import as_projection as as_projection
from ._parts import candidates

__all__ = [
    "Mechanism",
    "candidates",
    "geometries",
    "kernel",
    "kernels",
    "maps",
    "mechanism",
    "mechanisms",
    "projection",
    "projections",
    "radii",
    "rotation",
    "rotations",
]

publish(globals())
