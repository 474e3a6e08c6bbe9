"""The catalogue: every kernel, rotation, geometry, radial law, projection, map and named mechanism, by name.

Each class declares its facts once (`name`, variants, references, what it serves, when it is worth trying).  This module
collects them, and `recommend`, `compare`, the command line, the benchmarks, the tables of the documentation, the error
messages and the common tests iterate over it.  A named `Mechanism` of the
literature holds the names of its parts.  Use `bochner.extending.register` to add your own class.

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
from ..approximation._names import geometries, kernels, maps, projections, radii, rotations
from ..approximation._names import kernel as kernel
from ..approximation._names import map as map
from ..approximation._names import projection as projection
from ..approximation._names import rotation as rotation
from ._mechanisms import Mechanism as Mechanism
from ._mechanisms import as_projection as as_projection
from ._mechanisms import as_specification as as_specification
from ._mechanisms import candidates as candidates
from ._mechanisms import mechanism, mechanisms

__all__ = [
    "geometries",
    "kernels",
    "maps",
    "mechanism",
    "mechanisms",
    "projections",
    "radii",
    "rotations",
]

publish(globals())
