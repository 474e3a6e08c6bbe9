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


_registered: list[type[Catalogued]] = []


def register(cls: type[Catalogued]) -> type[Catalogued]:
    """Add a class of your own to the catalogue: a kernel, rotation, geometry, radial law, projection or map.

    Usable as a decorator.  From then on its named variants are found by name, tried by `recommend` and `compare`, and can
    be saved to and loaded from files.

    Parameters
    ----------
    cls : type
        A subclass of `Kernel`, `Rotation`, `Geometry`, `RadialLaw`, `Projection` or `Map`.
    """
    if not (isinstance(cls, type) and issubclass(cls, Catalogued)):
        raise TypeError(
            f"catalogue.register: expected a class of a kernel, rotation, geometry, radial law, projection or "
            f"map, got {cls!r}."
        )
    same = [old for old in _registered if (old.__module__, old.__qualname__) == (cls.__module__, cls.__qualname__)]
    for old in same:  # defined again, as in a notebook
        _registered.remove(old)
    _registered.append(cls)
    return cls


def unregister(cls: type[Catalogued]) -> None:
    """Take a registered class out of the catalogue again."""
    if cls not in _registered:
        raise ValueError(f"catalogue.unregister: {cls!r} is not registered.")
    _registered.remove(cls)


def classes(module: Any, kind: type) -> list[type]:
    """The classes of that kind that a public module exports, then the registered ones."""
    exported = [getattr(module, name) for name in module.__all__]
    found = [cls for cls in exported if isinstance(cls, type) and issubclass(cls, kind)]
    return found + [cls for cls in _registered if issubclass(cls, kind) and cls not in found]


def publish(module: dict[str, Any]) -> None:
    """Let the classes that a public module exports name it as theirs: files and pickles then hold no private path.

    Parameters
    ----------
    module : dict
        Its ``globals()``.
    """
    for name in module["__all__"]:
        if isinstance(module[name], type):
            module[name].__module__ = module["__name__"]
