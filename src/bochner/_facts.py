"""What every named part of the library declares about itself, read by the catalogue and by `citation`."""

from __future__ import annotations

from typing import Any, ClassVar


class Catalogued:
    """A frozen value that can be found by name: a kernel, rotation, geometry, radial law, projection or map.

    A subclass declares its facts once, and `bochner.catalogue`, `recommend`, the command line, the documentation and the
    common tests read them.

    Attributes
    ----------
    name : str
        The name of the instance without arguments; empty for classes that are not listed (abstract ones, and those that
        need arguments of the user's own).
    references : tuple of str
        Keys of the bibliography.
    """

    name: ClassVar[str] = ""
    references: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def variants(cls) -> dict[str, Any]:
        """Instances by name: the default one; a class with aliases or useful parameters lists those as well."""
        return {cls.name: cls()} if cls.name else {}
