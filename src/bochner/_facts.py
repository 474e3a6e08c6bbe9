"""The declarations of every named part of the library, which the catalogue and `citation` read."""

from __future__ import annotations

from typing import Any, ClassVar


class Catalogued:
    """Base class of kernels, rotations, geometries, radial laws, projections and maps, which can be found by name.

    A subclass declares its facts once; `bochner.catalogue`, `recommend`, the command line, the documentation and the
    common tests read them.
    """

    # the name of the default instance; empty for classes that are not listed (abstract classes, and those that need
    # arguments)
    name: ClassVar[str] = ""
    references: ClassVar[tuple[str, ...]] = ()  # keys of the bibliography

    @classmethod
    def variants(cls) -> dict[str, Any]:
        """Return instances by name: the default one, and further ones for aliases or useful parameters."""
        return {cls.name: cls()} if cls.name else {}


_registered: list[type[Catalogued]] = []


def register(cls: type[Catalogued]) -> type[Catalogued]:
    """Add your own class to the catalogue: a kernel, rotation, geometry, radial law, projection or map.

    It can be used as a decorator.  From then on the named variants of the class are found by name, tried by `recommend`
    and `compare`, and can be saved to and loaded from files.

    Parameters
    ----------
    cls : type
        A subclass of `Kernel`, `Rotation`, `Geometry`, `RadialLaw`, `Projection` or `Map`.

    Returns
    -------
    type
        The class itself.
    """
    if not (isinstance(cls, type) and issubclass(cls, Catalogued)):
        raise TypeError(
            f"extending.register: expected a class of a kernel, rotation, geometry, radial law, projection or "
            f"map, got {cls!r}."
        )
    same = [old for old in _registered if (old.__module__, old.__qualname__) == (cls.__module__, cls.__qualname__)]
    for old in same:  # defined again, as in a notebook
        _registered.remove(old)
    _registered.append(cls)
    return cls


def unregister(cls: type[Catalogued]) -> None:
    """Remove a registered class from the catalogue.

    Parameters
    ----------
    cls : type
        A class that was passed to `register`.
    """
    if cls not in _registered:
        raise ValueError(f"extending.unregister: {cls!r} is not registered.")
    _registered.remove(cls)


def registered() -> tuple[type[Catalogued], ...]:
    """The classes that `register` has added, in order."""
    return tuple(_registered)


def classes(module: Any, kind: type) -> list[type]:
    """The classes of that kind that a public module exports, then the registered ones."""
    exported = [getattr(module, name) for name in module.__all__]
    found = [cls for cls in exported if isinstance(cls, type) and issubclass(cls, kind)]
    return found + [cls for cls in _registered if issubclass(cls, kind) and cls not in found]


def publish(module: dict[str, Any]) -> None:
    """Let the classes that a public module has name it as theirs: files and pickles then hold no private path.

    Parameters
    ----------
    module : dict
        Its ``globals()``.
    """
    own = f"{module['__name__']}._"
    for name, value in module.items():
        if isinstance(value, type) and (name in module["__all__"] or value.__module__.startswith(own)):
            value.__module__ = module["__name__"]
