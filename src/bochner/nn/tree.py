"""Drawn features as plain data: a structure of names and numbers, and arrays; for checkpoints that run no code."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

_OURS = "bochner."
_CALLABLES = ("bochner", "numpy", "torch")


def flatten(value: Any) -> tuple[Any, list[np.ndarray]]:
    """The structure of ``value``, fit for JSON, and its arrays in order."""
    writer = _Writer()
    return writer.write(value), writer.arrays


def restore(structure: Any, arrays: list[np.ndarray]) -> Any:
    """The value that was flattened."""
    return _Reader(arrays).read(structure)


class _Writer:
    def __init__(self) -> None:
        self.arrays: list[np.ndarray] = []
        self._written: dict[int, int] = {}
        self._alive: list[Any] = []  # numbers of objects stay unique only while these live

    def write(self, value: Any) -> Any:
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, complex):
            return {"complex": [value.real, value.imag]}
        if isinstance(value, np.ndarray):
            self.arrays.append(value)
            return {"array": len(self.arrays) - 1}
        if isinstance(value, list | tuple):
            return {type(value).__name__: [self.write(part) for part in value]}
        if isinstance(value, dict):
            return {"dict": [[self.write(key), self.write(part)] for key, part in value.items()]}
        if callable(value) and hasattr(value, "__name__"):
            return self._callable(value)
        return self._object(value)

    def _callable(self, value: Any) -> Any:
        owner = getattr(value, "__self__", None)
        if type(owner).__module__.startswith(_OURS):
            return {"method": value.__name__, "of": self.write(owner)}
        module = getattr(value, "__module__", None) or type(value).__module__
        if module.partition(".")[0] not in _CALLABLES or "<" in getattr(value, "__qualname__", value.__name__):
            raise TypeError(
                f"bochner.nn: a module cannot keep {value!r} in its checkpoint; use a function of NumPy or torch."
            )
        return {"function": [module, value.__name__]}

    def _object(self, value: Any) -> Any:
        if id(value) in self._written:
            return {"again": self._written[id(value)]}
        kind = type(value)
        if not kind.__module__.startswith(_OURS):
            raise TypeError(f"bochner.nn: a module cannot keep {value!r} in its checkpoint.")
        number = self._written[id(value)] = len(self._written)
        self._alive.append(value)
        state = value.__getstate__() or {}
        return {
            "object": [kind.__module__, kind.__qualname__, number],
            "state": [[name, self.write(part)] for name, part in state.items()],
        }


class _Reader:
    def __init__(self, arrays: list[np.ndarray]) -> None:
        self.arrays = arrays
        self._read: dict[int, Any] = {}

    def read(self, structure: Any) -> Any:
        if not isinstance(structure, dict):
            return structure
        kind = next(iter(structure))
        reader: Callable[[Any], Any] = getattr(self, f"_{kind}")
        return reader(structure)

    def _complex(self, structure: Any) -> complex:
        return complex(*structure["complex"])

    def _array(self, structure: Any) -> Any:
        return self.arrays[structure["array"]]

    def _list(self, structure: Any) -> list[Any]:
        return [self.read(part) for part in structure["list"]]

    def _tuple(self, structure: Any) -> tuple[Any, ...]:
        return tuple(self.read(part) for part in structure["tuple"])

    def _dict(self, structure: Any) -> dict[Any, Any]:
        return {self.read(key): self.read(part) for key, part in structure["dict"]}

    def _method(self, structure: Any) -> Any:
        return getattr(self.read(structure["of"]), structure["method"])

    def _function(self, structure: Any) -> Any:
        module, name = structure["function"]
        return getattr(_imported(module, _CALLABLES), name)

    def _again(self, structure: Any) -> Any:
        return self._read[structure["again"]]

    def _object(self, structure: Any) -> Any:
        module, name, number = structure["object"]
        kind = getattr(_imported(module, ("bochner",)), name)
        value = self._read[number] = kind.__new__(kind)
        value.__dict__.update({name: self.read(part) for name, part in structure["state"]})
        return value


def _imported(module: str, allowed: tuple[str, ...]) -> Any:
    """A module of those that a checkpoint may name."""
    if module.partition(".")[0] not in allowed:
        raise ValueError(f"bochner.nn: the checkpoint names {module}, which is not one of {', '.join(allowed)}.")
    return importlib.import_module(module)
