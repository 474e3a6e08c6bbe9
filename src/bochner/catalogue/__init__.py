"""The catalogue: every kernel, rotation, geometry, radial law, projection, map and named mechanism, by name.

Each class declares its facts once (`name`, variants, references, what it serves, when it is worth trying).  This module
collects them, and `recommend`, `compare`, the command line, the benchmarks, the tables of the documentation, the error
messages and the common tests iterate over it.  Use `register` to add your own class.

>>> from bochner import catalogue
>>> sorted(catalogue.rotations())
['butterfly', 'haar', 'hadamard', 'kac', 'multi-hadamard', 'structured-givens', 'unpadded-hadamard']
>>> catalogue.projection("fast-simplex")
Simplex(rotation=Hadamard(blocks=3), radii='kernel')
"""

from .._facts import publish, register, unregister
from ._mechanisms import Mechanism, as_specification, mechanism, mechanisms
from ._parts import (
    as_projection,
    candidates,
    geometries,
    kernel,
    kernels,
    map,
    maps,
    projection,
    projections,
    radii,
    rotation,
    rotations,
)

__all__ = [
    "Mechanism",
    "as_projection",
    "as_specification",
    "candidates",
    "geometries",
    "kernel",
    "kernels",
    "map",
    "maps",
    "mechanism",
    "mechanisms",
    "projection",
    "projections",
    "radii",
    "register",
    "rotation",
    "rotations",
    "unregister",
]

publish(globals())
